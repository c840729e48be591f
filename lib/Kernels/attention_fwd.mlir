// One attention tile merged into the normalised partial result (o, lse):
//   s[i, j] = scale * q[i] . k[j]  where  -left <= j - i <= right  (global positions)
//   lse' = log(exp(lse) + sum_j exp(s[i, j]))
//   o'   = (exp(lse) * o + sum_j exp(s[i, j]) * v[j]) / exp(lse')
//
// Online softmax. A row's state is its largest score m, its sum l = sum exp(s - m)
// and its output times l. The partial result that the caller hands in is such a
// state already: m = lse, l = 1. So is the identity: its m = -inf weighs l and o
// with exp(-inf) = 0 as soon as a key comes.
//
// Blocks of 64 queries x 64 keys. k is packed transposed, so that the 64 scores of
// a row are one vector; q, k and v are widened once a block. Lanes beyond the last
// key or the last dv hold stale numbers: computed with, never read back.

!in4 = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!out4 = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!flat = memref<?x!acc, strided<[1], offset: ?>>
!rows = memref<64x?x!acc, strided<[?, 1], offset: ?>>
!columns = memref<?x64x!acc, strided<[64, 1], offset: ?>>
!block = memref<64x!acc>
!lanes = vector<64x!acc>

func.func @attention_fwd(
    %q: !in4, %k: !in4, %v: !in4, %o: !out4, %lse: !acc3,
    %scratch: !flat, %scale: !acc, %q0: index, %k0: index, %h0: index,
    %hk0: index, %group: index, %left: i64, %right: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : !acc
  %one = arith.constant 1.0 : !acc
  // -1 / 0: the one spelling of -inf that does not depend on the type.
  %minusOne = arith.constant -1.0 : !acc
  %minusInf = arith.divf %minusOne, %zero : !acc
  %overwrites = func.call @overwrites() : () -> i1
  %zeros = vector.broadcast %zero : !acc to !lanes
  %minusInfs = vector.broadcast %minusInf : !acc to !lanes

  %batches = memref.dim %q, %c0 : !in4
  %sq = memref.dim %q, %c1 : !in4
  %heads = memref.dim %q, %c2 : !in4
  %d = memref.dim %q, %c3 : !in4
  %sk = memref.dim %k, %c1 : !in4
  %dv = memref.dim %v, %c3 : !in4

  // Row i of this tile sees its keys i + first <= j < i + last. A bound beyond 2^61
  // means none; cutting it there keeps the sums from overflowing.
  %unbounded = arith.constant 2305843009213693952 : i64
  %leftCut = arith.minsi %left, %unbounded : i64
  %rightCut = arith.minsi %right, %unbounded : i64
  %leftIndex = arith.index_cast %leftCut : i64 to index
  %rightIndex = arith.index_cast %rightCut : i64 to index
  %ahead = arith.subi %q0, %k0 : index
  %first = arith.subi %ahead, %leftIndex : index
  %aheadRight = arith.addi %ahead, %rightIndex : index
  %last = arith.addi %aheadRight, %c1 : index

  // The blocks, one after the other in the scratch memory.
  %dvBlocks = arith.ceildivsi %dv, %c64 : index
  %dvPadded = arith.muli %dvBlocks, %c64 : index
  %base, %at0, %size, %stride = memref.extract_strided_metadata %scratch : !flat -> memref<!acc>, index, index, index
  %qSize = arith.muli %d, %c64 : index
  %vSize = arith.muli %dvPadded, %c64 : index
  %at1 = arith.addi %at0, %qSize : index
  %at2 = arith.addi %at1, %qSize : index
  %at3 = arith.addi %at2, %vSize : index
  %qBlock = memref.reinterpret_cast %base to offset: [%at0], sizes: [64, %d], strides: [%d, 1] : memref<!acc> to !rows
  %kBlock = memref.reinterpret_cast %base to offset: [%at1], sizes: [%d, 64], strides: [64, 1] : memref<!acc> to !columns
  %vBlock = memref.reinterpret_cast %base to offset: [%at2], sizes: [64, %dvPadded], strides: [%dvPadded, 1] : memref<!acc> to !rows
  %oBlock = memref.reinterpret_cast %base to offset: [%at3], sizes: [64, %dvPadded], strides: [%dvPadded, 1] : memref<!acc> to !rows
  %max = memref.alloca() : !block
  %sum = memref.alloca() : !block
  %scores = memref.alloca() {alignment = 64} : !block

  scf.for %b = %c0 to %batches step %c1 {
    scf.for %h = %c0 to %heads step %c1 {
      %globalHead = arith.addi %h0, %h : index
      %globalKvHead = arith.divsi %globalHead, %group : index
      %hk = arith.subi %globalKvHead, %hk0 : index
      scf.for %i0 = %c0 to %sq step %c64 {
        %sqLeft = arith.subi %sq, %i0 : index
        %rows = arith.minsi %sqLeft, %c64 : index

        // Load the state of these rows.
        scf.for %r = %c0 to %rows step %c1 {
          %i = arith.addi %i0, %r : index
          scf.for %e = %c0 to %d step %c1 {
            %x = memref.load %q[%b, %i, %h, %e] : !in4
            %wide = func.call @widen(%x) : (!in) -> !acc
            %scaled = arith.mulf %wide, %scale : !acc
            memref.store %scaled, %qBlock[%r, %e] : !rows
          }
          scf.for %e = %c0 to %dv step %c1 {
            %x = memref.load %o[%b, %i, %h, %e] : !out4
            %wide = func.call @widen_out(%x) : (!out) -> !acc
            %start = arith.select %overwrites, %zero, %wide : !acc
            memref.store %start, %oBlock[%r, %e] : !rows
          }
          %held = memref.load %lse[%b, %h, %i] : !acc3
          %m = arith.select %overwrites, %minusInf, %held : !acc
          memref.store %m, %max[%r] : !block
          memref.store %one, %sum[%r] : !block
        }

        // Only the keys that at least one of these rows sees.
        %firstOfBlock = arith.addi %i0, %first : index
        %jBegin = arith.maxsi %firstOfBlock, %c0 : index
        %iEnd = arith.addi %i0, %rows : index
        %lastRow = arith.subi %iEnd, %c1 : index
        %lastOfBlock = arith.addi %lastRow, %last : index
        %jEnd = arith.minsi %lastOfBlock, %sk : index
        scf.for %j0 = %jBegin to %jEnd step %c64 {
          %keysLeft = arith.subi %jEnd, %j0 : index
          %keys = arith.minsi %keysLeft, %c64 : index
          scf.for %t = %c0 to %keys step %c1 {
            %j = arith.addi %j0, %t : index
            scf.for %e = %c0 to %d step %c1 {
              %x = memref.load %k[%b, %j, %hk, %e] : !in4
              %wide = func.call @widen(%x) : (!in) -> !acc
              memref.store %wide, %kBlock[%e, %t] : !columns
            }
            scf.for %e = %c0 to %dv step %c1 {
              %x = memref.load %v[%b, %j, %hk, %e] : !in4
              %wide = func.call @widen(%x) : (!in) -> !acc
              memref.store %wide, %vBlock[%t, %e] : !rows
            }
          }

          %ahead0 = arith.subi %i0, %j0 : index
          %first0 = arith.addi %ahead0, %first : index
          %last0 = arith.addi %ahead0, %last : index
          scf.for %r = %c0 to %rows step %c1 {
            // This row sees lanes tBegin <= t < tEnd of the block, perhaps none.
            %firstLane = arith.addi %first0, %r : index
            %tBegin = arith.maxsi %firstLane, %c0 : index
            %lastLane = arith.addi %last0, %r : index
            %tEnd = arith.minsi %lastLane, %keys : index
            %some = arith.cmpi slt, %tBegin, %tEnd : index
            scf.if %some {
              %s = scf.for %e = %c0 to %d step %c1 iter_args(%partial = %zeros) -> !lanes {
                %x = memref.load %qBlock[%r, %e] : !rows
                %row = vector.broadcast %x : !acc to !lanes
                %column = vector.load %kBlock[%e, %c0] : !columns, !lanes
                %next = vector.fma %row, %column, %partial : !lanes
                scf.yield %next : !lanes
              }
              vector.store %s, %scores[%c0] : !block, !lanes

              %before = vector.create_mask %tBegin : vector<64xi1>
              %upTo = vector.create_mask %tEnd : vector<64xi1>
              %seen = arith.xori %before, %upTo : vector<64xi1>
              %masked = arith.select %seen, %s, %minusInfs : vector<64xi1>, !lanes
              %mOld = memref.load %max[%r] : !block
              %m = vector.reduction <maximumf>, %masked, %mOld : !lanes into !acc
              memref.store %m, %max[%r] : !block

              // Where every score so far is -inf, -inf - -inf would be NaN: subtract 0.
              %empty = arith.cmpf oeq, %m, %minusInf : !acc
              %shift = arith.select %empty, %zero, %m : !acc
              %mDown = arith.subf %mOld, %shift : !acc
              %rescale = math.exp %mDown : !acc
              %lOld = memref.load %sum[%r] : !block
              %lRescaled = arith.mulf %lOld, %rescale : !acc
              %l = scf.for %t = %tBegin to %tEnd step %c1 iter_args(%lPartial = %lRescaled) -> !acc {
                %score = memref.load %scores[%t] : !block
                %down = arith.subf %score, %shift : !acc
                %p = math.exp %down : !acc
                memref.store %p, %scores[%t] : !block
                %next = arith.addf %lPartial, %p : !acc
                scf.yield %next : !acc
              }
              memref.store %l, %sum[%r] : !block

              %rescales = vector.broadcast %rescale : !acc to !lanes
              scf.for %e = %c0 to %dvPadded step %c64 {
                %oOld = vector.load %oBlock[%r, %e] : !rows, !lanes
                %oRescaled = arith.mulf %oOld, %rescales : !lanes
                %oNew = scf.for %t = %tBegin to %tEnd step %c1 iter_args(%partial = %oRescaled) -> !lanes {
                  %p = memref.load %scores[%t] : !block
                  %weight = vector.broadcast %p : !acc to !lanes
                  %value = vector.load %vBlock[%t, %e] : !rows, !lanes
                  %next = vector.fma %weight, %value, %partial : !lanes
                  scf.yield %next : !lanes
                }
                vector.store %oNew, %oBlock[%r, %e] : !rows, !lanes
              }
            }
          }
        }

        // Normalise. l = 0 is a row whose every score is -inf: it is the identity.
        // (l != 0 holds for NaN: a NaN in the inputs must show in the result.)
        scf.for %r = %c0 to %rows step %c1 {
          %l = memref.load %sum[%r] : !block
          %nonempty = arith.cmpf une, %l, %zero : !acc
          %stores = arith.ori %nonempty, %overwrites : i1
          scf.if %stores {
            %i = arith.addi %i0, %r : index
            %m = memref.load %max[%r] : !block
            %logL = math.log %l : !acc
            %lseNew = arith.addf %m, %logL : !acc
            %lseEnd = arith.select %nonempty, %lseNew, %minusInf : !acc
            memref.store %lseEnd, %lse[%b, %h, %i] : !acc3
            scf.for %e = %c0 to %dv step %c1 {
              %x = memref.load %oBlock[%r, %e] : !rows
              %y = arith.divf %x, %l : !acc
              %z = arith.select %nonempty, %y, %zero : !acc
              %narrow = func.call @narrow(%z) : (!acc) -> !out
              memref.store %narrow, %o[%b, %i, %h, %e] : !out4
            }
          }
        }
      }
    }
  }
  return
}
