// Merges n normalised partial results (o2, lse2)[p] into (o, lse) in one pass:
//   lse' = log(exp(lse) + sum_p exp(lse2[p]))
//   o'   = (exp(lse) * o + sum_p exp(lse2[p]) * o2[p]) / exp(lse')
// in the order of p: when each arrived says nothing. What overwrites reads neither o
// nor lse.
//
// A row belongs to a part of a warp. A thread takes two chunks of it at a time: 16
// bytes where rows are contiguous and aligned, else one element. One thread
// writes the log-sum-exp once all have read it.

!out4 = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!parts5 = memref<?x?x?x?x?x!in, strided<[?, ?, ?, ?, ?], offset: ?>>
!parts4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!partRow = memref<?x?x!in, strided<[?, 1], offset: ?>>
!row = memref<?x!out, strided<[1], offset: ?>>

gpu.module @device {
  func.func @blocks(%o2: !parts5, %lse2: !parts4, %o: !out4, %lse: !acc3, %lanes: index) -> index {
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !out4 -> memref<!out>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %per = arith.constant 2 : index
    %blocks = func.call @row_blocks(%rows, %n#3, %lanes, %per) : (index, index, index, index) -> index
    return %blocks : index
  }

  gpu.func @softmax_merge_all(%o2: !parts5, %lse2: !parts4, %o: !out4, %lse: !acc3)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 3 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %per = arith.constant 2 : index
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %zeros = vector.broadcast %zero : !acc to !accs
    %warp = arith.constant -1 : i32
    %overwrites = func.call @overwrites() : () -> i1
    %inBytes = func.call @in_bytes() : () -> index
    %outBytes = func.call @out_bytes() : () -> index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !out4 -> memref<!out>, index, index, index, index, index, index, index, index, index
    %base2, %at2, %m:5, %s2:5 = memref.extract_strided_metadata %o2 : !parts5 -> memref<!in>, index, index, index, index, index, index, index, index, index, index, index
    %oAddress = memref.extract_aligned_pointer_as_index %o : !out4 -> index
    %mine = func.call @wide_rows(%oAddress, %at, %outBytes, %n#0, %n#1, %n#2, %n#3, %s#0, %s#1, %s#2, %s#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    // Every part is aligned as the first if the distance of parts is.
    %apart2 = arith.ori %at2, %s2#0 : index
    %o2Address = memref.extract_aligned_pointer_as_index %o2 : !parts5 -> index
    %other = func.call @wide_rows(%o2Address, %apart2, %inBytes, %n#0, %n#1, %n#2, %n#3, %s2#1, %s2#2, %s2#3, %s2#4)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %wide = arith.andi %mine, %other : i1
    %walk:6 = func.call @walk_rows(%n#0, %n#1, %n#2, %n#3, %wide, %per) : (index, index, index, index, i1, index) -> (index, index, index, index, index, index)

    scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
      %b, %i, %h, %inside = func.call @row_of_group(%row0, %walk#2, %n#1, %n#2, %walk#3) : (index, index, index, index, index) -> (index, index, index, i1)
      %end = arith.select %inside, %n#3, %c0 : index
      %lseHeld = memref.load %lse[%b, %h, %i] : !acc3
      %m0 = arith.select %overwrites, %minusInf, %lseHeld : !acc
      %most = scf.for %p = %c0 to %m#0 step %c1 iter_args(%most = %m0) -> !acc {
        %x = memref.load %lse2[%p, %b, %h, %i] : !parts4
        %next = arith.maximumf %most, %x : !acc
        scf.yield %next : !acc
      }
      // Empty rows alone are the identity, which (o, lse) holds if it counts.
      %nonempty = arith.cmpf une, %most, %minusInf : !acc
      %down0 = arith.subf %m0, %most : !acc
      %w0 = math.exp %down0 : !acc
      %stores = arith.ori %nonempty, %overwrites : i1
      %last = arith.select %stores, %end, %c0 : index

      %begin = arith.muli %walk#4, %walk#5 : index
      %apart = arith.shli %walk#5, %walk#3 : index
      %step = arith.muli %apart, %per : index
      // The thread that writes the log-sum-exp has the first element of the row.
      %l = scf.if %wide -> !acc {
        %skipped = func.call @offset(%b, %i, %h, %at, %s#0, %s#1, %s#2) : (index, index, index, index, index, index, index) -> index
        %row = memref.reinterpret_cast %base to offset: [%skipped], sizes: [%n#3], strides: [1] : memref<!out> to !row
        %skipped2 = func.call @offset(%b, %i, %h, %at2, %s2#1, %s2#2, %s2#3) : (index, index, index, index, index, index, index) -> index
        %rows2 = memref.reinterpret_cast %base2 to offset: [%skipped2], sizes: [%m#0, %n#3], strides: [%s2#0, 1] : memref<!in> to !partRow
        %held = memref.alloca() : memref<2x!ins>
        %sums = memref.alloca() : memref<2x!accs>
        %w0s = vector.broadcast %w0 : !acc to !accs
        %l = scf.for %e0 = %begin to %last step %step iter_args(%none = %w0) -> !acc {
          scf.for %u = %c0 to %per step %c1 {
            %ahead = arith.muli %u, %apart : index
            %e = arith.addi %e0, %ahead : index
            %more = arith.cmpi ult, %e, %last : index
            scf.if %more {
              %x = vector.load %row[%e] {alignment = 16 : i64} : !row, !outs
              %widened = func.call @widen_out_lanes(%x) : (!outs) -> !accs
              %y = arith.mulf %widened, %w0s : !accs
              %start = arith.select %overwrites, %zeros, %y : !accs
              memref.store %start, %sums[%u] : memref<2x!accs>
            }
          }
          %total = scf.for %p = %c0 to %m#0 step %c1 iter_args(%partial = %w0) -> !acc {
            scf.for %u = %c0 to %per step %c1 {
              %ahead = arith.muli %u, %apart : index
              %e = arith.addi %e0, %ahead : index
              %more = arith.cmpi ult, %e, %last : index
              scf.if %more {
                %x = vector.load %rows2[%p, %e] {alignment = 16 : i64} : !partRow, !ins
                memref.store %x, %held[%u] : memref<2x!ins>
              }
            }
            %x2 = memref.load %lse2[%p, %b, %h, %i] : !parts4
            %down = arith.subf %x2, %most : !acc
            %w = math.exp %down : !acc
            %ws = vector.broadcast %w : !acc to !accs
            scf.for %u = %c0 to %per step %c1 {
              %x = memref.load %held[%u] : memref<2x!ins>
              %old = memref.load %sums[%u] : memref<2x!accs>
              %widened = func.call @widen_lanes(%x) : (!ins) -> !accs
              %term = arith.mulf %widened, %ws : !accs
              %new = arith.addf %old, %term : !accs
              memref.store %new, %sums[%u] : memref<2x!accs>
            }
            %next = arith.addf %partial, %w : !acc
            scf.yield %next : !acc
          }
          %ls = vector.broadcast %total : !acc to !accs
          scf.for %u = %c0 to %per step %c1 {
            %ahead = arith.muli %u, %apart : index
            %e = arith.addi %e0, %ahead : index
            %more = arith.cmpi ult, %e, %last : index
            scf.if %more {
              %x = memref.load %sums[%u] : memref<2x!accs>
              %y = arith.divf %x, %ls : !accs
              %z = arith.select %nonempty, %y, %zeros : !accs
              %narrowed = func.call @narrow_lanes(%z) : (!accs) -> !outs
              vector.store %narrowed, %row[%e] {alignment = 16 : i64} : !row, !outs
            }
          }
          scf.yield %total : !acc
        }
        scf.yield %l : !acc
      } else {
        %l = scf.for %e = %begin to %last step %apart iter_args(%none = %w0) -> !acc {
          %x0 = memref.load %o[%b, %i, %h, %e] : !out4
          %widened0 = func.call @widen_out(%x0) : (!out) -> !acc
          %y0 = arith.mulf %widened0, %w0 : !acc
          %start = arith.select %overwrites, %zero, %y0 : !acc
          %sum, %total = scf.for %p = %c0 to %m#0 step %c1 iter_args(%partial = %start, %before = %w0) -> (!acc, !acc) {
            %x2 = memref.load %lse2[%p, %b, %h, %i] : !parts4
            %down = arith.subf %x2, %most : !acc
            %w = math.exp %down : !acc
            %x = memref.load %o2[%p, %b, %i, %h, %e] : !parts5
            %widened = func.call @widen(%x) : (!in) -> !acc
            %term = arith.mulf %widened, %w : !acc
            %next = arith.addf %partial, %term : !acc
            %more = arith.addf %before, %w : !acc
            scf.yield %next, %more : !acc, !acc
          }
          %y = arith.divf %sum, %total : !acc
          %z = arith.select %nonempty, %y, %zero : !acc
          %narrowed = func.call @narrow(%z) : (!acc) -> !out
          memref.store %narrowed, %o[%b, %i, %h, %e] : !out4
          scf.yield %total : !acc
        }
        scf.yield %l : !acc
      }
      nvvm.bar.warp.sync %warp : i32
      %first = arith.cmpi eq, %walk#4, %c0 : index
      %some = arith.andi %stores, %inside : i1
      %writes = arith.andi %first, %some : i1
      scf.if %writes {
        // Without elements nobody has summed.
        %nothing = arith.cmpi eq, %n#3, %c0 : index
        %parts = arith.select %nothing, %m#0, %c0 : index
        %whole = scf.for %p = %c0 to %parts step %c1 iter_args(%sum = %l) -> !acc {
          %x = memref.load %lse2[%p, %b, %h, %i] : !parts4
          %down = arith.subf %x, %most : !acc
          %w = math.exp %down : !acc
          %next = arith.addf %sum, %w : !acc
          scf.yield %next : !acc
        }
        %logL = math.log %whole : !acc
        %lseNew = arith.addf %most, %logL : !acc
        %lseEnd = arith.select %nonempty, %lseNew, %minusInf : !acc
        memref.store %lseEnd, %lse[%b, %h, %i] : !acc3
      }
    }
    gpu.return
  }
}
