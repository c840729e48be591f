// Adds n rows of numbers to a row in one pass:
//   y[i] += sum_p x[p, i]
// in the order of p: when each row arrived says nothing.

!parts = memref<?x?x!acc, strided<[?, 1], offset: ?>>
!flat = memref<?x!acc, strided<[1], offset: ?>>
!block = memref<256x!acc>

func.func @sum_all(%x: !parts, %y: !flat) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %parts = memref.dim %x, %c0 : !parts
  %n = memref.dim %y, %c0 : !flat
  // A block of sums stays in the cache while the rows pass.
  %sums = memref.alloca() {alignment = 64} : !block
  scf.for %i0 = %c0 to %n step %c256 {
    %left = arith.subi %n, %i0 : index
    %count = arith.minsi %left, %c256 : index
    scf.for %i = %c0 to %count step %c1 {
      %at = arith.addi %i0, %i : index
      %old = memref.load %y[%at] : !flat
      memref.store %old, %sums[%i] : !block
    }
    scf.for %p = %c0 to %parts step %c1 {
      scf.for %i = %c0 to %count step %c1 {
        %at = arith.addi %i0, %i : index
        %term = memref.load %x[%p, %at] : !parts
        %old = memref.load %sums[%i] : !block
        %new = arith.addf %old, %term : !acc
        memref.store %new, %sums[%i] : !block
      }
    }
    scf.for %i = %c0 to %count step %c1 {
      %at = arith.addi %i0, %i : index
      %sum = memref.load %sums[%i] : !block
      memref.store %sum, %y[%at] : !flat
    }
  }
  return
}
