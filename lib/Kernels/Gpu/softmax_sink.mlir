// Merges an attention sink, one more logit a head that has no value, into (o, lse):
//   lse' = log(exp(lse) + exp(sink[h]))
//   o'   = exp(lse) * o / exp(lse')
//
// A row belongs to a part of a warp. A thread takes four chunks of it at a time: 16
// bytes each where rows are contiguous and aligned, else one element. One thread
// writes the log-sum-exp once all have read it.

!sinks = memref<?x!in, strided<[?], offset: ?>>
!acc4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!row = memref<?x!acc, strided<[1], offset: ?>>

gpu.module @device {
  func.func @blocks(%sink: !sinks, %o: !acc4, %lse: !acc3, %lanes: index) -> index {
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %per = arith.constant 4 : index
    %blocks = func.call @row_blocks(%rows, %n#3, %lanes, %per) : (index, index, index, index) -> index
    return %blocks : index
  }

  gpu.func @softmax_sink(%sink: !sinks, %o: !acc4, %lse: !acc3)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %per = arith.constant 4 : index
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %warp = arith.constant -1 : i32
    %bytes = func.call @acc_bytes() : () -> index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !acc4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %oAddress = memref.extract_aligned_pointer_as_index %o : !acc4 -> index
    %wide = func.call @wide_rows(%oAddress, %at, %bytes, %n#0, %n#1, %n#2, %n#3, %s#0, %s#1, %s#2, %s#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %walk:6 = func.call @walk_rows(%n#0, %n#1, %n#2, %n#3, %wide, %per) : (index, index, index, index, i1, index) -> (index, index, index, index, index, index)

    scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
      %b, %i, %h, %inside = func.call @row_of_group(%row0, %walk#2, %n#1, %n#2, %walk#3) : (index, index, index, index, index) -> (index, index, index, i1)
      %end = arith.select %inside, %n#3, %c0 : index
      %m1 = memref.load %lse[%b, %h, %i] : !acc3
      %logit = memref.load %sink[%h] : !sinks
      %m2 = func.call @widen(%logit) : (!in) -> !acc
      %most = arith.maximumf %m1, %m2 : !acc
      // A sink of -inf says nothing, also to a row that has seen nothing.
      %nonempty = arith.cmpf une, %most, %minusInf : !acc
      %down1 = arith.subf %m1, %most : !acc
      %down2 = arith.subf %m2, %most : !acc
      %w1 = math.exp %down1 : !acc
      %w2 = math.exp %down2 : !acc
      %l = arith.addf %w1, %w2 : !acc
      %share1 = arith.divf %w1, %l : !acc
      %last = arith.select %nonempty, %end, %c0 : index

      %begin = arith.muli %walk#4, %walk#5 : index
      %apart = arith.shli %walk#5, %walk#3 : index
      %step = arith.muli %apart, %per : index
      scf.if %wide {
        %skipped = func.call @offset(%b, %i, %h, %at, %s#0, %s#1, %s#2) : (index, index, index, index, index, index, index) -> index
        %row = memref.reinterpret_cast %base to offset: [%skipped], sizes: [%n#3], strides: [1] : memref<!acc> to !row
        %held = memref.alloca() : memref<4x!accs>
        %shares1 = vector.broadcast %share1 : !acc to !accs
        scf.for %e0 = %begin to %last step %step {
          scf.for %u = %c0 to %per step %c1 {
            %ahead = arith.muli %u, %apart : index
            %e = arith.addi %e0, %ahead : index
            %more = arith.cmpi ult, %e, %last : index
            scf.if %more {
              %x1 = vector.load %row[%e] {alignment = 16 : i64} : !row, !accs
              memref.store %x1, %held[%u] : memref<4x!accs>
            }
          }
          scf.for %u = %c0 to %per step %c1 {
            %ahead = arith.muli %u, %apart : index
            %e = arith.addi %e0, %ahead : index
            %more = arith.cmpi ult, %e, %last : index
            scf.if %more {
              %x1 = memref.load %held[%u] : memref<4x!accs>
              %y = arith.mulf %x1, %shares1 : !accs
              vector.store %y, %row[%e] {alignment = 16 : i64} : !row, !accs
            }
          }
        }
      } else {
        scf.for %e = %begin to %last step %apart {
          %x1 = memref.load %o[%b, %i, %h, %e] : !acc4
          %y = arith.mulf %x1, %share1 : !acc
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
