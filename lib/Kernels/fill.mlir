// x = value: gives an accumulator its merge's identity.

!tile = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!row = memref<?x!acc, strided<[1], offset: ?>>

func.func @fill(%x: !tile, %value: !acc) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %x : !tile -> memref<!acc>, index, index, index, index, index, index, index, index, index
  %contiguous = arith.cmpi eq, %s#3, %c1 : index
  scf.for %i = %c0 to %n#0 step %c1 {
    scf.for %j = %c0 to %n#1 step %c1 {
      scf.for %k = %c0 to %n#2 step %c1 {
        scf.if %contiguous {
          %xi = arith.muli %i, %s#0 : index
          %xj = arith.muli %j, %s#1 : index
          %xk = arith.muli %k, %s#2 : index
          %xij = arith.addi %xi, %xj : index
          %xijk = arith.addi %xij, %xk : index
          %rowAt = arith.addi %at, %xijk : index
          %row = memref.reinterpret_cast %base to offset: [%rowAt], sizes: [%n#3], strides: [1] : memref<!acc> to !row
          scf.for %e = %c0 to %n#3 step %c1 {
            memref.store %value, %row[%e] : !row
          }
        } else {
          scf.for %e = %c0 to %n#3 step %c1 {
            memref.store %value, %x[%i, %j, %k, %e] : !tile
          }
        }
      }
    }
  }
  return
}
