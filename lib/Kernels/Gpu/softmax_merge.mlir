// Merges the normalised partial result (o2, lse2) into (o, lse):
//   lse' = log(exp(lse) + exp(lse2))
//   o'   = (exp(lse) * o + exp(lse2) * o2) / exp(lse')
//
// A row belongs to a part of a warp. A thread takes two chunks of it at a time: 16
// bytes each where rows are contiguous and aligned, else one element. One thread
// writes the log-sum-exp once all have read it.

!acc4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!row = memref<?x!acc, strided<[1], offset: ?>>

gpu.module @device {
  func.func @blocks(%o2: !acc4, %lse2: !acc3, %o: !acc4, %lse: !acc3, %lanes: index) -> index {
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %per = arith.constant 2 : index
    %blocks = func.call @row_blocks(%rows, %n#3, %lanes, %per) : (index, index, index, index) -> index
    return %blocks : index
  }

  gpu.func @softmax_merge(%o2: !acc4, %lse2: !acc3, %o: !acc4, %lse: !acc3)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %per = arith.constant 2 : index
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %warp = arith.constant -1 : i32
    %bytes = func.call @acc_bytes() : () -> index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %base2, %at2, %m:4, %s2:4 = memref.extract_strided_metadata %o2 : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %oAddress = memref.extract_aligned_pointer_as_index %o : !acc4 -> index
    %mine = func.call @wide_rows(%oAddress, %at, %bytes, %n#0, %n#1, %n#2, %n#3, %s#0, %s#1, %s#2, %s#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %o2Address = memref.extract_aligned_pointer_as_index %o2 : !acc4 -> index
    %other = func.call @wide_rows(%o2Address, %at2, %bytes, %n#0, %n#1, %n#2, %n#3, %s2#0, %s2#1, %s2#2, %s2#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %wide = arith.andi %mine, %other : i1
    %walk:6 = func.call @walk_rows(%n#0, %n#1, %n#2, %n#3, %wide, %per) : (index, index, index, index, i1, index) -> (index, index, index, index, index, index)

    scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
      %b, %i, %h, %inside = func.call @row_of_group(%row0, %walk#2, %n#1, %n#2, %walk#3) : (index, index, index, index, index) -> (index, index, index, i1)
      %end = arith.select %inside, %n#3, %c0 : index
      %m1 = memref.load %lse[%b, %h, %i] : !acc3
      %m2 = memref.load %lse2[%b, %h, %i] : !acc3
      %most = arith.maximumf %m1, %m2 : !acc
      // Two empty rows are the identity, which (o, lse) already holds.
      %nonempty = arith.cmpf une, %most, %minusInf : !acc
      %down1 = arith.subf %m1, %most : !acc
      %down2 = arith.subf %m2, %most : !acc
      %w1 = math.exp %down1 : !acc
      %w2 = math.exp %down2 : !acc
      %l = arith.addf %w1, %w2 : !acc
      %share1 = arith.divf %w1, %l : !acc
      %share2 = arith.divf %w2, %l : !acc
      %last = arith.select %nonempty, %end, %c0 : index

      %begin = arith.muli %walk#4, %walk#5 : index
      %apart = arith.shli %walk#5, %walk#3 : index
      %step = arith.muli %apart, %per : index
      scf.if %wide {
        %skipped = func.call @offset(%b, %i, %h, %at, %s#0, %s#1, %s#2) : (index, index, index, index, index, index, index) -> index
        %row = memref.reinterpret_cast %base to offset: [%skipped], sizes: [%n#3], strides: [1] : memref<!acc> to !row
        %skipped2 = func.call @offset(%b, %i, %h, %at2, %s2#0, %s2#1, %s2#2) : (index, index, index, index, index, index, index) -> index
        %row2 = memref.reinterpret_cast %base2 to offset: [%skipped2], sizes: [%n#3], strides: [1] : memref<!acc> to !row
        %held = memref.alloca() : memref<2x!accs>
        %held2 = memref.alloca() : memref<2x!accs>
        %shares1 = vector.broadcast %share1 : !acc to !accs
        %shares2 = vector.broadcast %share2 : !acc to !accs
        scf.for %e0 = %begin to %last step %step {
          scf.for %u = %c0 to %per step %c1 {
            %ahead = arith.muli %u, %apart : index
            %e = arith.addi %e0, %ahead : index
            %more = arith.cmpi ult, %e, %last : index
            scf.if %more {
              %x1 = vector.load %row[%e] {alignment = 16 : i64} : !row, !accs
              %x2 = vector.load %row2[%e] {alignment = 16 : i64} : !row, !accs
              memref.store %x1, %held[%u] : memref<2x!accs>
              memref.store %x2, %held2[%u] : memref<2x!accs>
            }
          }
          scf.for %u = %c0 to %per step %c1 {
            %ahead = arith.muli %u, %apart : index
            %e = arith.addi %e0, %ahead : index
            %more = arith.cmpi ult, %e, %last : index
            scf.if %more {
              %x1 = memref.load %held[%u] : memref<2x!accs>
              %x2 = memref.load %held2[%u] : memref<2x!accs>
              %y1 = arith.mulf %x1, %shares1 : !accs
              %y2 = arith.mulf %x2, %shares2 : !accs
              %y = arith.addf %y1, %y2 : !accs
              vector.store %y, %row[%e] {alignment = 16 : i64} : !row, !accs
            }
          }
        }
      } else {
        scf.for %e = %begin to %last step %apart {
          %x1 = memref.load %o[%b, %i, %h, %e] : !acc4
          %x2 = memref.load %o2[%b, %i, %h, %e] : !acc4
          %y1 = arith.mulf %x1, %share1 : !acc
          %y2 = arith.mulf %x2, %share2 : !acc
          %y = arith.addf %y1, %y2 : !acc
          memref.store %y, %o[%b, %i, %h, %e] : !acc4
        }
      }
      nvvm.bar.warp.sync %warp : i32
      %first = arith.cmpi eq, %walk#4, %c0 : index
      %some = arith.andi %nonempty, %inside : i1
      %writes = arith.andi %first, %some : i1
      scf.if %writes {
        %logL = math.log %l : !acc
        %lseNew = arith.addf %most, %logL : !acc
        memref.store %lseNew, %lse[%b, %h, %i] : !acc3
      }
    }
    gpu.return
  }
}
