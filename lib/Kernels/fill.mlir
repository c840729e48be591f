// x[:] = value: gives an accumulator its merge's identity.

!flat = memref<?x!acc, strided<[1], offset: ?>>

func.func @fill(%x: !flat, %value: !acc) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !flat
  scf.for %i = %c0 to %n step %c1 {
    memref.store %value, %x[%i] : !flat
  }
  return
}
