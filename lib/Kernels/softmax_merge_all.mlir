// Merges n normalised partial results (o2, lse2)[p] into (o, lse) in one pass:
//   lse' = log(exp(lse) + sum_p exp(lse2[p]))
//   o'   = (exp(lse) * o + sum_p exp(lse2[p]) * o2[p]) / exp(lse')
// The largest log-sum-exp of all is found first, so nothing is rescaled on the
// way, and the terms are summed in the order of p: when each arrived says nothing.
// The parts of o may be narrower than !acc, and so may o, which is rounded once.

!parts5 = memref<?x?x?x?x?x!in, strided<[?, ?, ?, ?, ?], offset: ?>>
!parts4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!out4 = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!block = memref<64x!acc>

func.func @softmax_merge_all(%o2: !parts5, %lse2: !parts4, %o: !out4, %lse: !acc3) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : !acc
  // -1 / 0: the one spelling of -inf that does not depend on the type.
  %minusOne = arith.constant -1.0 : !acc
  %minusInf = arith.divf %minusOne, %zero : !acc
  %overwrites = func.call @overwrites() : () -> i1
  %parts = memref.dim %lse2, %c0 : !parts4
  %batches = memref.dim %o, %c0 : !out4
  %rows = memref.dim %o, %c1 : !out4
  %heads = memref.dim %o, %c2 : !out4
  %dv = memref.dim %o, %c3 : !out4
  %sums = memref.alloca() {alignment = 64} : !block

  scf.for %b = %c0 to %batches step %c1 {
    scf.for %i = %c0 to %rows step %c1 {
      scf.for %h = %c0 to %heads step %c1 {
        %held = memref.load %lse[%b, %h, %i] : !acc3
        %m0 = arith.select %overwrites, %minusInf, %held : !acc
        %m = scf.for %p = %c0 to %parts step %c1 iter_args(%most = %m0) -> !acc {
          %x = memref.load %lse2[%p, %b, %h, %i] : !parts4
          %next = arith.maximumf %most, %x : !acc
          scf.yield %next : !acc
        }
        // Empty rows alone are the identity, which (o, lse) holds if it counts.
        %nonempty = arith.cmpf une, %m, %minusInf : !acc
        %stores = arith.ori %nonempty, %overwrites : i1
        scf.if %stores {
          %down0 = arith.subf %m0, %m : !acc
          %w0 = math.exp %down0 : !acc
          %l = scf.for %p = %c0 to %parts step %c1 iter_args(%partial = %w0) -> !acc {
            %x = memref.load %lse2[%p, %b, %h, %i] : !parts4
            %down = arith.subf %x, %m : !acc
            %w = math.exp %down : !acc
            %next = arith.addf %partial, %w : !acc
            scf.yield %next : !acc
          }
          %logL = math.log %l : !acc
          %lseNew = arith.addf %m, %logL : !acc
          %lseEnd = arith.select %nonempty, %lseNew, %minusInf : !acc
          memref.store %lseEnd, %lse[%b, %h, %i] : !acc3

          scf.for %e0 = %c0 to %dv step %c64 {
            %dvLeft = arith.subi %dv, %e0 : index
            %es = arith.minsi %dvLeft, %c64 : index
            scf.for %e = %c0 to %es step %c1 {
              %at = arith.addi %e0, %e : index
              %x = memref.load %o[%b, %i, %h, %at] : !out4
              %wide = func.call @widen_out(%x) : (!out) -> !acc
              %y = arith.mulf %wide, %w0 : !acc
              %start = arith.select %overwrites, %zero, %y : !acc
              memref.store %start, %sums[%e] : !block
            }
            scf.for %p = %c0 to %parts step %c1 {
              %x = memref.load %lse2[%p, %b, %h, %i] : !parts4
              %down = arith.subf %x, %m : !acc
              %w = math.exp %down : !acc
              scf.for %e = %c0 to %es step %c1 {
                %at = arith.addi %e0, %e : index
                %y = memref.load %o2[%p, %b, %i, %h, %at] : !parts5
                %wide = func.call @widen(%y) : (!in) -> !acc
                %old = memref.load %sums[%e] : !block
                %term = arith.mulf %wide, %w : !acc
                %new = arith.addf %old, %term : !acc
                memref.store %new, %sums[%e] : !block
              }
            }
            scf.for %e = %c0 to %es step %c1 {
              %at = arith.addi %e0, %e : index
              %x = memref.load %sums[%e] : !block
              %y = arith.divf %x, %l : !acc
              %z = arith.select %nonempty, %y, %zero : !acc
              %narrow = func.call @narrow(%z) : (!acc) -> !out
              memref.store %narrow, %o[%b, %i, %h, %at] : !out4
            }
          }
        }
      }
    }
  }
  return
}
