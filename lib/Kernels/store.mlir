// y[:] = x[:], rounded to the output's type: the end of an accumulator's life.

!from = memref<?x!acc, strided<[1], offset: ?>>
!to = memref<?x!out, strided<[1], offset: ?>>

func.func @store(%x: !from, %y: !to) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !from
  scf.for %i = %c0 to %n step %c1 {
    %wide = memref.load %x[%i] : !from
    %narrow = func.call @narrow(%wide) : (!acc) -> !out
    memref.store %narrow, %y[%i] : !to
  }
  return
}
