// Adds n tiles of numbers to a tile in one pass:
//   y[i] += sum_p x[p, i]
// in the order of p: when each tile arrived says nothing. The terms may be
// narrower than !acc, and so may y, which is rounded once.

!parts = memref<?x?x?x?x?x!in, strided<[?, ?, ?, ?, ?], offset: ?>>
!tile = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!block = memref<256x!acc>

func.func @sum_all(%x: !parts, %y: !tile) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : !acc
  %overwrites = func.call @overwrites() : () -> i1
  %parts = memref.dim %x, %c0 : !parts
  %n0 = memref.dim %y, %c0 : !tile
  %n1 = memref.dim %y, %c1 : !tile
  %n2 = memref.dim %y, %c2 : !tile
  %n3 = memref.dim %y, %c3 : !tile
  // A block of sums stays in the cache while the tiles pass.
  %sums = memref.alloca() {alignment = 64} : !block
  scf.for %a = %c0 to %n0 step %c1 {
    scf.for %b = %c0 to %n1 step %c1 {
      scf.for %c = %c0 to %n2 step %c1 {
        scf.for %i0 = %c0 to %n3 step %c256 {
          %left = arith.subi %n3, %i0 : index
          %count = arith.minsi %left, %c256 : index
          scf.for %i = %c0 to %count step %c1 {
            %at = arith.addi %i0, %i : index
            %old = memref.load %y[%a, %b, %c, %at] : !tile
            %wide = func.call @widen_out(%old) : (!out) -> !acc
            %start = arith.select %overwrites, %zero, %wide : !acc
            memref.store %start, %sums[%i] : !block
          }
          scf.for %p = %c0 to %parts step %c1 {
            scf.for %i = %c0 to %count step %c1 {
              %at = arith.addi %i0, %i : index
              %term = memref.load %x[%p, %a, %b, %c, %at] : !parts
              %wide = func.call @widen(%term) : (!in) -> !acc
              %old = memref.load %sums[%i] : !block
              %new = arith.addf %old, %wide : !acc
              memref.store %new, %sums[%i] : !block
            }
          }
          scf.for %i = %c0 to %count step %c1 {
            %at = arith.addi %i0, %i : index
            %sum = memref.load %sums[%i] : !block
            %narrow = func.call @narrow(%sum) : (!acc) -> !out
            memref.store %narrow, %y[%a, %b, %c, %at] : !tile
          }
        }
      }
    }
  }
  return
}
