// Merges an attention sink, one more logit a head that has no value, into (o, lse):
//   lse' = log(exp(lse) + exp(sink[h]))
//   o'   = exp(lse) * o / exp(lse')
//
// A row belongs to a part of a warp. A thread takes four chunks of 16 bytes of it at a
// time where rows are contiguous and aligned, else one element. One thread writes the
// log-sum-exp once all have read it.

!sinks = memref<?x!in, strided<[?], offset: ?>>
!acc4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!flat = memref<?x!acc, strided<[1]>>

gpu.module @device {
  func.func @blocks(%sink: !sinks, %o: !acc4, %lse: !acc3, %lanes: index) -> index {
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %per = arith.constant 4 : index
    %blocks = func.call @row_blocks(%rows, %n#3, %lanes, %per) : (index, index, index, index) -> index
    return %blocks : index
  }

  // Of two log-sum-exps: the larger, whether it is of a row that is not empty, the
  // sum of both weights relative to it, the share of the first.
  func.func private @share(%m1: !acc, %m2: !acc) -> (!acc, i1, !acc, !acc) {
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
    return %most, %nonempty, %l, %share1 : !acc, i1, !acc, !acc
  }

  gpu.func @softmax_sink(%sink: !sinks, %o: !acc4, %lse: !acc3)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
    %c0 = arith.constant 0 : index
    %per = arith.constant 4 : index
    %warp = arith.constant -1 : i32
    %bytes = func.call @acc_bytes() : () -> index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %lseBase, %lseAt, %ln:3, %ls:3 = memref.extract_strided_metadata %lse : !acc3 -> memref<!acc>, index, index, index, index, index, index, index
    %oAddress = memref.extract_aligned_pointer_as_index %o : !acc4 -> index
    %mine = func.call @wide_rows(%oAddress, %at, %bytes, %n#0, %n#1, %n#2, %n#3, %s#0, %s#1, %s#2, %s#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %small0 = func.call @small(%rows, %n#3, %s#1, %s#2) : (index, index, index, index) -> i1
    %small1 = func.call @small(%ls#1, %ls#2, %c0, %c0) : (index, index, index, index) -> i1
    %small = arith.andi %small0, %small1 : i1
    %wide = arith.andi %mine, %small : i1
    %walk:6 = func.call @walk_rows(%n#0, %n#1, %n#2, %n#3, %wide, %per) : (index, index, index, index, i1, index) -> (index, index, index, index, index, index)
    %first = arith.cmpi eq, %walk#4, %c0 : index

    scf.if %wide {
      %flat = memref.reinterpret_cast %base to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !flat
      %sums = memref.reinterpret_cast %lseBase to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !flat
      %nothing = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %number, %begin, %apart, %lastChunk = func.call @small_walk(%n#3, %walk#3, %walk#4) : (index, index, index) -> (i32, i32, i32, i32)
      %step = arith.shli %apart, %two : i32
      %length = arith.index_cast %n#3 : index to i32
      scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
        %b, %i, %h, %inside = func.call @small_row(%row0, %number, %walk#2, %n#1, %n#2) : (index, i32, index, index, index) -> (i32, i32, i32, i1)
        %end = arith.select %inside, %length, %nothing : i32
        %place = func.call @small_offset(%b, %i, %h, %at, %s#0, %s#1, %s#2) : (i32, i32, i32, index, index, index, index) -> index
        %lsePlace = func.call @small_offset(%b, %h, %i, %lseAt, %ls#0, %ls#1, %ls#2) : (i32, i32, i32, index, index, index, index) -> index
        %m1 = memref.load %sums[%lsePlace] : !flat
        %head = arith.index_castui %h : i32 to index
        %logit = memref.load %sink[%head] : !sinks
        %m2 = func.call @widen(%logit) : (!in) -> !acc
        %most, %nonempty, %l, %share1 = func.call @share(%m1, %m2) : (!acc, !acc) -> (!acc, i1, !acc, !acc)
        %shares1 = vector.broadcast %share1 : !acc to !accs
        scf.for %e = %begin to %end step %step : i32 {
          // Behind the last chunk is the last one: no load waits for a condition.
          %ahead1 = arith.addi %e, %apart : i32
          %ahead2 = arith.addi %ahead1, %apart : i32
          %ahead3 = arith.addi %ahead2, %apart : i32
          %near1 = arith.minui %ahead1, %lastChunk : i32
          %near2 = arith.minui %ahead2, %lastChunk : i32
          %near3 = arith.minui %ahead3, %lastChunk : i32
          %e0 = arith.index_castui %e : i32 to index
          %e1 = arith.index_castui %near1 : i32 to index
          %e2 = arith.index_castui %near2 : i32 to index
          %e3 = arith.index_castui %near3 : i32 to index
          %to0 = arith.addi %place, %e0 : index
          %to1 = arith.addi %place, %e1 : index
          %to2 = arith.addi %place, %e2 : index
          %to3 = arith.addi %place, %e3 : index
          %x0 = vector.load %flat[%to0] {alignment = 16 : i64} : !flat, !accs
          %x1 = vector.load %flat[%to1] {alignment = 16 : i64} : !flat, !accs
          %x2 = vector.load %flat[%to2] {alignment = 16 : i64} : !flat, !accs
          %x3 = vector.load %flat[%to3] {alignment = 16 : i64} : !flat, !accs
          %z0 = arith.mulf %x0, %shares1 : !accs
          %z1 = arith.mulf %x1, %shares1 : !accs
          %z2 = arith.mulf %x2, %shares1 : !accs
          %z3 = arith.mulf %x3, %shares1 : !accs
          // A sink of -inf says nothing, also to a row that has seen nothing.
          scf.if %nonempty {
            vector.store %z0, %flat[%to0] {alignment = 16 : i64} : !flat, !accs
            %more1 = arith.cmpi ult, %ahead1, %end : i32
            scf.if %more1 {
              vector.store %z1, %flat[%to1] {alignment = 16 : i64} : !flat, !accs
            }
            %more2 = arith.cmpi ult, %ahead2, %end : i32
            scf.if %more2 {
              vector.store %z2, %flat[%to2] {alignment = 16 : i64} : !flat, !accs
            }
            %more3 = arith.cmpi ult, %ahead3, %end : i32
            scf.if %more3 {
              vector.store %z3, %flat[%to3] {alignment = 16 : i64} : !flat, !accs
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
        %logit = memref.load %sink[%h] : !sinks
        %m2 = func.call @widen(%logit) : (!in) -> !acc
        %most, %nonempty, %l, %share1 = func.call @share(%m1, %m2) : (!acc, !acc) -> (!acc, i1, !acc, !acc)
        %last = arith.select %nonempty, %end, %c0 : index
        scf.for %e = %begin to %last step %apart {
          %x1 = memref.load %o[%b, %i, %h, %e] : !acc4
          %y = arith.mulf %x1, %share1 : !acc
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
