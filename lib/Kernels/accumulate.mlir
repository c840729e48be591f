// y += x, tile by tile: the sum merge. What a link made narrower is added in the
// type of the sum.

!from = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!tile = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!fromRow = memref<?x!in, strided<[1], offset: ?>>
!row = memref<?x!acc, strided<[1], offset: ?>>

func.func @accumulate(%x: !from, %y: !tile) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %xBase, %xAt, %n:4, %xs:4 = memref.extract_strided_metadata %x : !from -> memref<!in>, index, index, index, index, index, index, index, index, index
  %yBase, %yAt, %m:4, %ys:4 = memref.extract_strided_metadata %y : !tile -> memref<!acc>, index, index, index, index, index, index, index, index, index
  %xUnit = arith.cmpi eq, %xs#3, %c1 : index
  %yUnit = arith.cmpi eq, %ys#3, %c1 : index
  %contiguous = arith.andi %xUnit, %yUnit : i1
  scf.for %i = %c0 to %n#0 step %c1 {
    scf.for %j = %c0 to %n#1 step %c1 {
      scf.for %k = %c0 to %n#2 step %c1 {
        scf.if %contiguous {
          %xi = arith.muli %i, %xs#0 : index
          %xj = arith.muli %j, %xs#1 : index
          %xk = arith.muli %k, %xs#2 : index
          %xij = arith.addi %xi, %xj : index
          %xijk = arith.addi %xij, %xk : index
          %xRowAt = arith.addi %xAt, %xijk : index
          %yi = arith.muli %i, %ys#0 : index
          %yj = arith.muli %j, %ys#1 : index
          %yk = arith.muli %k, %ys#2 : index
          %yij = arith.addi %yi, %yj : index
          %yijk = arith.addi %yij, %yk : index
          %yRowAt = arith.addi %yAt, %yijk : index
          %xRow = memref.reinterpret_cast %xBase to offset: [%xRowAt], sizes: [%n#3], strides: [1] : memref<!in> to !fromRow
          %yRow = memref.reinterpret_cast %yBase to offset: [%yRowAt], sizes: [%n#3], strides: [1] : memref<!acc> to !row
          scf.for %e = %c0 to %n#3 step %c1 {
            %narrow = memref.load %xRow[%e] : !fromRow
            %part = func.call @widen(%narrow) : (!in) -> !acc
            %sum = memref.load %yRow[%e] : !row
            %new = arith.addf %sum, %part : !acc
            memref.store %new, %yRow[%e] : !row
          }
        } else {
          scf.for %e = %c0 to %n#3 step %c1 {
            %narrow = memref.load %x[%i, %j, %k, %e] : !from
            %part = func.call @widen(%narrow) : (!in) -> !acc
            %sum = memref.load %y[%i, %j, %k, %e] : !tile
            %new = arith.addf %sum, %part : !acc
            memref.store %new, %y[%i, %j, %k, %e] : !tile
          }
        }
      }
    }
  }
  return
}
