// Merges the normalised partial result (o2, lse2) into (o, lse):
//   lse' = log(exp(lse) + exp(lse2))
//   o'   = (exp(lse) * o + exp(lse2) * o2) / exp(lse')
//
// A row belongs to a part of a warp. A thread takes two chunks of 16 bytes of it at a
// time where rows are contiguous and aligned, else one element. One thread writes the
// log-sum-exp once all have read it.

!acc4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!flat = memref<?x!acc, strided<[1]>>

gpu.module @device {
  func.func @blocks(%o2: !acc4, %lse2: !acc3, %o: !acc4, %lse: !acc3, %lanes: index) -> index {
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %per = arith.constant 2 : index
    %blocks = func.call @row_blocks(%rows, %n#3, %lanes, %per) : (index, index, index, index) -> index
    return %blocks : index
  }

  // Of two log-sum-exps: the larger, whether it is of a row that is not empty, the
  // sum of both weights relative to it, the shares of both.
  func.func private @shares(%m1: !acc, %m2: !acc) -> (!acc, i1, !acc, !acc, !acc) {
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %most = arith.maximumf %m1, %m2 : !acc
    %nonempty = arith.cmpf une, %most, %minusInf : !acc
    %down1 = arith.subf %m1, %most : !acc
    %down2 = arith.subf %m2, %most : !acc
    %w1 = math.exp %down1 : !acc
    %w2 = math.exp %down2 : !acc
    %l = arith.addf %w1, %w2 : !acc
    %share1 = arith.divf %w1, %l : !acc
    %share2 = arith.divf %w2, %l : !acc
    return %most, %nonempty, %l, %share1, %share2 : !acc, i1, !acc, !acc, !acc
  }

  gpu.func @softmax_merge(%o2: !acc4, %lse2: !acc3, %o: !acc4, %lse: !acc3)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 6 : i32} {
    %c0 = arith.constant 0 : index
    %per = arith.constant 2 : index
    %warp = arith.constant -1 : i32
    %bytes = func.call @acc_bytes() : () -> index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %base2, %at2, %m:4, %s2:4 = memref.extract_strided_metadata %o2 : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %lseBase, %lseAt, %ln:3, %ls:3 = memref.extract_strided_metadata %lse : !acc3 -> memref<!acc>, index, index, index, index, index, index, index
    %lseBase2, %lseAt2, %lm:3, %ls2:3 = memref.extract_strided_metadata %lse2 : !acc3 -> memref<!acc>, index, index, index, index, index, index, index
    %oAddress = memref.extract_aligned_pointer_as_index %o : !acc4 -> index
    %mine = func.call @wide_rows(%oAddress, %at, %bytes, %n#0, %n#1, %n#2, %n#3, %s#0, %s#1, %s#2, %s#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %o2Address = memref.extract_aligned_pointer_as_index %o2 : !acc4 -> index
    %other = func.call @wide_rows(%o2Address, %at2, %bytes, %n#0, %n#1, %n#2, %n#3, %s2#0, %s2#1, %s2#2, %s2#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %small0 = func.call @small(%rows, %n#3, %s#1, %s#2) : (index, index, index, index) -> i1
    %small1 = func.call @small(%s2#1, %s2#2, %ls#1, %ls#2) : (index, index, index, index) -> i1
    %small2 = func.call @small(%ls2#1, %ls2#2, %c0, %c0) : (index, index, index, index) -> i1
    %small01 = arith.andi %small0, %small1 : i1
    %small = arith.andi %small01, %small2 : i1
    %alignedRows = arith.andi %mine, %other : i1
    %wide = arith.andi %alignedRows, %small : i1
    %walk:6 = func.call @walk_rows(%n#0, %n#1, %n#2, %n#3, %wide, %per) : (index, index, index, index, i1, index) -> (index, index, index, index, index, index)
    %first = arith.cmpi eq, %walk#4, %c0 : index

    scf.if %wide {
      %flat = memref.reinterpret_cast %base to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !flat
      %flat2 = memref.reinterpret_cast %base2 to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !flat
      %sums = memref.reinterpret_cast %lseBase to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !flat
      %sums2 = memref.reinterpret_cast %lseBase2 to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !flat
      %nothing = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %number, %begin, %apart, %lastChunk = func.call @small_walk(%n#3, %walk#3, %walk#4) : (index, index, index) -> (i32, i32, i32, i32)
      %step = arith.shli %apart, %one : i32
      %length = arith.index_cast %n#3 : index to i32
      scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
        %b, %i, %h, %inside = func.call @small_row(%row0, %number, %walk#2, %n#1, %n#2) : (index, i32, index, index, index) -> (i32, i32, i32, i1)
        %end = arith.select %inside, %length, %nothing : i32
        %place = func.call @small_offset(%b, %i, %h, %at, %s#0, %s#1, %s#2) : (i32, i32, i32, index, index, index, index) -> index
        %place2 = func.call @small_offset(%b, %i, %h, %at2, %s2#0, %s2#1, %s2#2) : (i32, i32, i32, index, index, index, index) -> index
        %lsePlace = func.call @small_offset(%b, %h, %i, %lseAt, %ls#0, %ls#1, %ls#2) : (i32, i32, i32, index, index, index, index) -> index
        %lsePlace2 = func.call @small_offset(%b, %h, %i, %lseAt2, %ls2#0, %ls2#1, %ls2#2) : (i32, i32, i32, index, index, index, index) -> index
        %m1 = memref.load %sums[%lsePlace] : !flat
        %m2 = memref.load %sums2[%lsePlace2] : !flat
        %most, %nonempty, %l, %share1, %share2 = func.call @shares(%m1, %m2) : (!acc, !acc) -> (!acc, i1, !acc, !acc, !acc)
        %shares1 = vector.broadcast %share1 : !acc to !accs
        %shares2 = vector.broadcast %share2 : !acc to !accs
        scf.for %e = %begin to %end step %step : i32 {
          // Behind the last chunk is the last one: no load waits for a condition.
          %ahead = arith.addi %e, %apart : i32
          %near = arith.minui %ahead, %lastChunk : i32
          %e0 = arith.index_castui %e : i32 to index
          %e1 = arith.index_castui %near : i32 to index
          %to0 = arith.addi %place, %e0 : index
          %to1 = arith.addi %place, %e1 : index
          %from0 = arith.addi %place2, %e0 : index
          %from1 = arith.addi %place2, %e1 : index
          %x0 = vector.load %flat[%to0] {alignment = 16 : i64} : !flat, !accs
          %x1 = vector.load %flat[%to1] {alignment = 16 : i64} : !flat, !accs
          %y0 = vector.load %flat2[%from0] {alignment = 16 : i64} : !flat, !accs
          %y1 = vector.load %flat2[%from1] {alignment = 16 : i64} : !flat, !accs
          %u0 = arith.mulf %x0, %shares1 : !accs
          %u1 = arith.mulf %x1, %shares1 : !accs
          // Not fused: which of the two came first shows in no bit.
          %v0 = arith.mulf %y0, %shares2 : !accs
          %v1 = arith.mulf %y1, %shares2 : !accs
          %z0 = arith.addf %u0, %v0 : !accs
          %z1 = arith.addf %u1, %v1 : !accs
          // Two empty rows are the identity, which (o, lse) already holds.
          scf.if %nonempty {
            vector.store %z0, %flat[%to0] {alignment = 16 : i64} : !flat, !accs
            %more = arith.cmpi ult, %ahead, %end : i32
            scf.if %more {
              vector.store %z1, %flat[%to1] {alignment = 16 : i64} : !flat, !accs
            }
          }
        }
        nvvm.bar.warp.sync %warp : i32
        %some = arith.andi %nonempty, %inside : i1
        %writes = arith.andi %first, %some : i1
        scf.if %writes {
          %log = math.log %l : !acc
          %lseNew = arith.addf %most, %log : !acc
          memref.store %lseNew, %sums[%lsePlace] : !flat
        }
      }
    } else {
      %begin = arith.muli %walk#4, %walk#5 : index
      %apart = arith.shli %walk#5, %walk#3 : index
      scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
        %b, %i, %h, %inside = func.call @row_of_group(%row0, %walk#2, %n#1, %n#2, %walk#3) : (index, index, index, index, index) -> (index, index, index, i1)
        %end = arith.select %inside, %n#3, %c0 : index
        %m1 = memref.load %lse[%b, %h, %i] : !acc3
        %m2 = memref.load %lse2[%b, %h, %i] : !acc3
        %most, %nonempty, %l, %share1, %share2 = func.call @shares(%m1, %m2) : (!acc, !acc) -> (!acc, i1, !acc, !acc, !acc)
        %last = arith.select %nonempty, %end, %c0 : index
        scf.for %e = %begin to %last step %apart {
          %x1 = memref.load %o[%b, %i, %h, %e] : !acc4
          %x2 = memref.load %o2[%b, %i, %h, %e] : !acc4
          %y1 = arith.mulf %x1, %share1 : !acc
          %y2 = arith.mulf %x2, %share2 : !acc
          %y = arith.addf %y1, %y2 : !acc
          memref.store %y, %o[%b, %i, %h, %e] : !acc4
        }
        nvvm.bar.warp.sync %warp : i32
        %some = arith.andi %nonempty, %inside : i1
        %writes = arith.andi %first, %some : i1
        scf.if %writes {
          %log = math.log %l : !acc
          %lseNew = arith.addf %most, %log : !acc
          memref.store %lseNew, %lse[%b, %h, %i] : !acc3
        }
      }
    }
    gpu.return
  }
}
