// The gradients of one attention tile, added to those of other tiles. With the
// output o and the log-sum-exp lse of whole rows, over all their keys, and
// s[i, j] as in attention_fwd,
//   p[i, j]  = exp(s[i, j] - lse[i])              0 where the mask hides j from i
//   ds[i, j] = p[i, j] * (do[i] . v[j] - do[i] . o[i])
//   dv[j] += sum_i p[i, j] * do[i]
//   dk[j] += sum_i ds[i, j] * scale * q[i]
//   dq[i] += sum_j ds[i, j] * scale * k[j]
//
// Blocks of 64 keys x 64 queries. k and v are packed twice: transposed, so that a
// row's 64 scores are one vector, and k by rows for dq. q is scaled as it is
// packed, which serves the scores and dk. Lanes beyond the last key, d or dv hold
// stale numbers: computed with, never read back. A row that saw no key (lse =
// -inf) is packed as zeros and weighs 0: nothing of it is read.

!in4 = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!acc4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!flat = memref<?x!acc, strided<[1], offset: ?>>
!rows = memref<64x?x!acc, strided<[?, 1], offset: ?>>
!columns = memref<?x64x!acc, strided<[64, 1], offset: ?>>
!square = memref<64x64x!acc, strided<[64, 1], offset: ?>>
!block = memref<64x!acc>
!lanes = vector<64x!acc>

func.func @attention_bwd(
    %q: !in4, %k: !in4, %v: !in4, %o: !in4, %gradO: !in4, %lse: !acc3,
    %gradQ: !acc4, %gradK: !acc4, %gradV: !acc4, %scratch: !flat, %scale: !acc,
    %q0: index, %k0: index, %h0: index, %hk0: index, %group: index,
    %left: i64, %right: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %c4096 = arith.constant 4096 : index
  %zero = arith.constant 0.0 : !acc
  // -1 / 0: the one spelling of -inf that does not depend on the type.
  %minusOne = arith.constant -1.0 : !acc
  %minusInf = arith.divf %minusOne, %zero : !acc
  %zeros = vector.broadcast %zero : !acc to !lanes

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
  %dBlocks = arith.ceildivsi %d, %c64 : index
  %dPadded = arith.muli %dBlocks, %c64 : index
  %dvBlocks = arith.ceildivsi %dv, %c64 : index
  %dvPadded = arith.muli %dvBlocks, %c64 : index
  %base, %at0, %size, %stride = memref.extract_strided_metadata %scratch : !flat -> memref<!acc>, index, index, index
  %qSize = arith.muli %dPadded, %c64 : index
  %doSize = arith.muli %dvPadded, %c64 : index
  %kTSize = arith.muli %d, %c64 : index
  %vTSize = arith.muli %dv, %c64 : index
  %at1 = arith.addi %at0, %qSize : index
  %at2 = arith.addi %at1, %qSize : index
  %at3 = arith.addi %at2, %doSize : index
  %at4 = arith.addi %at3, %kTSize : index
  %at5 = arith.addi %at4, %vTSize : index
  %at6 = arith.addi %at5, %c4096 : index
  %qBlock = memref.reinterpret_cast %base to offset: [%at0], sizes: [64, %dPadded], strides: [%dPadded, 1] : memref<!acc> to !rows
  %kBlock = memref.reinterpret_cast %base to offset: [%at1], sizes: [64, %dPadded], strides: [%dPadded, 1] : memref<!acc> to !rows
  %doBlock = memref.reinterpret_cast %base to offset: [%at2], sizes: [64, %dvPadded], strides: [%dvPadded, 1] : memref<!acc> to !rows
  %kColumns = memref.reinterpret_cast %base to offset: [%at3], sizes: [%d, 64], strides: [64, 1] : memref<!acc> to !columns
  %vColumns = memref.reinterpret_cast %base to offset: [%at4], sizes: [%dv, 64], strides: [64, 1] : memref<!acc> to !columns
  %pBlock = memref.reinterpret_cast %base to offset: [%at5], sizes: [64, 64], strides: [64, 1] : memref<!acc> to !square
  %dsBlock = memref.reinterpret_cast %base to offset: [%at6], sizes: [64, 64], strides: [64, 1] : memref<!acc> to !square
  %lseBlock = memref.alloca() : !block
  %deltaBlock = memref.alloca() : !block
  %sums = memref.alloca() {alignment = 64} : !block

  scf.for %b = %c0 to %batches step %c1 {
    scf.for %h = %c0 to %heads step %c1 {
      %globalHead = arith.addi %h0, %h : index
      %globalKvHead = arith.divsi %globalHead, %group : index
      %hk = arith.subi %globalKvHead, %hk0 : index
      scf.for %j0 = %c0 to %sk step %c64 {
        %keysLeft = arith.subi %sk, %j0 : index
        %keys = arith.minsi %keysLeft, %c64 : index
        %jEnd = arith.addi %j0, %keys : index

        // Only the rows that see at least one of these keys.
        %firstRow = arith.subi %j0, %last : index
        %firstRowSeen = arith.addi %firstRow, %c1 : index
        %iBegin = arith.maxsi %firstRowSeen, %c0 : index
        %rowsSeen = arith.subi %jEnd, %first : index
        %iEnd = arith.minsi %rowsSeen, %sq : index
        %some = arith.cmpi slt, %iBegin, %iEnd : index
        scf.if %some {
          scf.for %t = %c0 to %keys step %c1 {
            %j = arith.addi %j0, %t : index
            scf.for %e = %c0 to %d step %c1 {
              %x = memref.load %k[%b, %j, %hk, %e] : !in4
              %wide = func.call @widen(%x) : (!in) -> !acc
              memref.store %wide, %kBlock[%t, %e] : !rows
              memref.store %wide, %kColumns[%e, %t] : !columns
            }
            scf.for %e = %c0 to %dv step %c1 {
              %x = memref.load %v[%b, %j, %hk, %e] : !in4
              %wide = func.call @widen(%x) : (!in) -> !acc
              memref.store %wide, %vColumns[%e, %t] : !columns
            }
          }
        }

        scf.for %i0 = %iBegin to %iEnd step %c64 {
          %sqLeft = arith.subi %iEnd, %i0 : index
          %rows = arith.minsi %sqLeft, %c64 : index
          // Row r of the block sees lanes r + first0 <= t < r + last0.
          %ahead0 = arith.subi %i0, %j0 : index
          %first0 = arith.addi %ahead0, %first : index
          %last0 = arith.addi %ahead0, %last : index

          scf.for %r = %c0 to %rows step %c1 {
            %i = arith.addi %i0, %r : index
            %l = memref.load %lse[%b, %h, %i] : !acc3
            memref.store %l, %lseBlock[%r] : !block
            %empty = arith.cmpf oeq, %l, %minusInf : !acc
            scf.if %empty {
              scf.for %e = %c0 to %dPadded step %c64 {
                vector.store %zeros, %qBlock[%r, %e] : !rows, !lanes
              }
              scf.for %e = %c0 to %dvPadded step %c64 {
                vector.store %zeros, %doBlock[%r, %e] : !rows, !lanes
              }
            } else {
              scf.for %e = %c0 to %d step %c1 {
                %x = memref.load %q[%b, %i, %h, %e] : !in4
                %wide = func.call @widen(%x) : (!in) -> !acc
                %scaled = arith.mulf %wide, %scale : !acc
                memref.store %scaled, %qBlock[%r, %e] : !rows
              }
              %delta = scf.for %e = %c0 to %dv step %c1 iter_args(%partial = %zero) -> !acc {
                %x = memref.load %gradO[%b, %i, %h, %e] : !in4
                %wide = func.call @widen(%x) : (!in) -> !acc
                memref.store %wide, %doBlock[%r, %e] : !rows
                %y = memref.load %o[%b, %i, %h, %e] : !in4
                %out = func.call @widen(%y) : (!in) -> !acc
                // As do . v below: of a single key, the difference is exactly 0.
                %next = math.fma %wide, %out, %partial : !acc
                scf.yield %next : !acc
              }
              memref.store %delta, %deltaBlock[%r] : !block
            }
          }

          // p and ds, and dq from them, row by row.
          scf.for %r = %c0 to %rows step %c1 {
            %firstLane = arith.addi %first0, %r : index
            %tBegin = arith.maxsi %firstLane, %c0 : index
            %lastLane = arith.addi %last0, %r : index
            %tEnd = arith.minsi %lastLane, %keys : index
            %l = memref.load %lseBlock[%r] : !block
            %empty = arith.cmpf oeq, %l, %minusInf : !acc
            scf.if %empty {
              vector.store %zeros, %pBlock[%r, %c0] : !square, !lanes
              vector.store %zeros, %dsBlock[%r, %c0] : !square, !lanes
            } else {
              %s = scf.for %e = %c0 to %d step %c1 iter_args(%partial = %zeros) -> !lanes {
                %x = memref.load %qBlock[%r, %e] : !rows
                %row = vector.broadcast %x : !acc to !lanes
                %column = vector.load %kColumns[%e, %c0] : !columns, !lanes
                %next = vector.fma %row, %column, %partial : !lanes
                scf.yield %next : !lanes
              }
              vector.store %s, %pBlock[%r, %c0] : !square, !lanes
              %dp = scf.for %e = %c0 to %dv step %c1 iter_args(%partial = %zeros) -> !lanes {
                %x = memref.load %doBlock[%r, %e] : !rows
                %row = vector.broadcast %x : !acc to !lanes
                %column = vector.load %vColumns[%e, %c0] : !columns, !lanes
                %next = vector.fma %row, %column, %partial : !lanes
                scf.yield %next : !lanes
              }
              vector.store %dp, %dsBlock[%r, %c0] : !square, !lanes

              %delta = memref.load %deltaBlock[%r] : !block
              scf.for %t = %tBegin to %tEnd step %c1 {
                %score = memref.load %pBlock[%r, %t] : !square
                %down = arith.subf %score, %l : !acc
                %p = math.exp %down : !acc
                memref.store %p, %pBlock[%r, %t] : !square
                %dpt = memref.load %dsBlock[%r, %t] : !square
                %off = arith.subf %dpt, %delta : !acc
                %ds = arith.mulf %p, %off : !acc
                memref.store %ds, %dsBlock[%r, %t] : !square
              }

              %i = arith.addi %i0, %r : index
              scf.for %e0 = %c0 to %d step %c64 {
                %sum = scf.for %t = %tBegin to %tEnd step %c1 iter_args(%partial = %zeros) -> !lanes {
                  %x = memref.load %dsBlock[%r, %t] : !square
                  %weight = vector.broadcast %x : !acc to !lanes
                  %key = vector.load %kBlock[%t, %e0] : !rows, !lanes
                  %next = vector.fma %weight, %key, %partial : !lanes
                  scf.yield %next : !lanes
                }
                vector.store %sum, %sums[%c0] : !block, !lanes
                %dLeft = arith.subi %d, %e0 : index
                %es = arith.minsi %dLeft, %c64 : index
                scf.for %e = %c0 to %es step %c1 {
                  %at = arith.addi %e0, %e : index
                  %x = memref.load %sums[%e] : !block
                  %scaled = arith.mulf %x, %scale : !acc
                  %old = memref.load %gradQ[%b, %i, %h, %at] : !acc4
                  %new = arith.addf %old, %scaled : !acc
                  memref.store %new, %gradQ[%b, %i, %h, %at] : !acc4
                }
              }
            }
          }

          // dk and dv, key by key: lane t is seen by rows t - last0 < r <= t - first0.
          scf.for %t = %c0 to %keys step %c1 {
            %j = arith.addi %j0, %t : index
            %beforeFirst = arith.subi %t, %last0 : index
            %firstSeeing = arith.addi %beforeFirst, %c1 : index
            %rBegin = arith.maxsi %firstSeeing, %c0 : index
            %lastSeeing = arith.subi %t, %first0 : index
            %afterLast = arith.addi %lastSeeing, %c1 : index
            %rEnd = arith.minsi %afterLast, %rows : index
            scf.for %e0 = %c0 to %d step %c64 {
              %sum = scf.for %r = %rBegin to %rEnd step %c1 iter_args(%partial = %zeros) -> !lanes {
                %x = memref.load %dsBlock[%r, %t] : !square
                %weight = vector.broadcast %x : !acc to !lanes
                %row = vector.load %qBlock[%r, %e0] : !rows, !lanes
                %next = vector.fma %weight, %row, %partial : !lanes
                scf.yield %next : !lanes
              }
              vector.store %sum, %sums[%c0] : !block, !lanes
              %dLeft = arith.subi %d, %e0 : index
              %es = arith.minsi %dLeft, %c64 : index
              scf.for %e = %c0 to %es step %c1 {
                %at = arith.addi %e0, %e : index
                %x = memref.load %sums[%e] : !block
                %old = memref.load %gradK[%b, %j, %hk, %at] : !acc4
                %new = arith.addf %old, %x : !acc
                memref.store %new, %gradK[%b, %j, %hk, %at] : !acc4
              }
            }
            scf.for %e0 = %c0 to %dv step %c64 {
              %sum = scf.for %r = %rBegin to %rEnd step %c1 iter_args(%partial = %zeros) -> !lanes {
                %x = memref.load %pBlock[%r, %t] : !square
                %weight = vector.broadcast %x : !acc to !lanes
                %row = vector.load %doBlock[%r, %e0] : !rows, !lanes
                %next = vector.fma %weight, %row, %partial : !lanes
                scf.yield %next : !lanes
              }
              vector.store %sum, %sums[%c0] : !block, !lanes
              %dvLeft = arith.subi %dv, %e0 : index
              %es = arith.minsi %dvLeft, %c64 : index
              scf.for %e = %c0 to %es step %c1 {
                %at = arith.addi %e0, %e : index
                %x = memref.load %sums[%e] : !block
                %old = memref.load %gradV[%b, %j, %hk, %at] : !acc4
                %new = arith.addf %old, %x : !acc
                memref.store %new, %gradV[%b, %j, %hk, %at] : !acc4
              }
            }
          }
        }
      }
    }
  }
  return
}
