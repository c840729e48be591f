// y = x, rounded to the output's type: packs, unpacks and casts a tile.
//
// Dimensions that follow one another in both memories are walked as one, so that
// the inner loop is as long and as contiguous as the tiles allow.

!from = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!to = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!fromRow = memref<?x!in, strided<[1], offset: ?>>
!toRow = memref<?x!out, strided<[1], offset: ?>>

func.func @copy(%x: !from, %y: !to) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %xBase, %xAt, %n:4, %xs:4 = memref.extract_strided_metadata %x : !from -> memref<!in>, index, index, index, index, index, index, index, index, index
  %yBase, %yAt, %m:4, %ys:4 = memref.extract_strided_metadata %y : !to -> memref<!out>, index, index, index, index, index, index, index, index, index

  // Rows of `length` elements, and how many of them each outer dimension has.
  %xUnit = arith.cmpi eq, %xs#3, %c1 : index
  %yUnit = arith.cmpi eq, %ys#3, %c1 : index
  %contiguous = arith.andi %xUnit, %yUnit : i1
  %x2 = arith.cmpi eq, %xs#2, %n#3 : index
  %y2 = arith.cmpi eq, %ys#2, %n#3 : index
  %both2 = arith.andi %x2, %y2 : i1
  %join2 = arith.andi %both2, %contiguous : i1
  %length2 = arith.muli %n#2, %n#3 : index
  %row2 = arith.select %join2, %length2, %n#3 : index
  %count2 = arith.select %join2, %c1, %n#2 : index
  %x1 = arith.cmpi eq, %xs#1, %row2 : index
  %y1 = arith.cmpi eq, %ys#1, %row2 : index
  %both1 = arith.andi %x1, %y1 : i1
  %join1 = arith.andi %both1, %join2 : i1
  %length1 = arith.muli %n#1, %row2 : index
  %row1 = arith.select %join1, %length1, %row2 : index
  %count1 = arith.select %join1, %c1, %n#1 : index
  %x0 = arith.cmpi eq, %xs#0, %row1 : index
  %y0 = arith.cmpi eq, %ys#0, %row1 : index
  %both0 = arith.andi %x0, %y0 : i1
  %join0 = arith.andi %both0, %join1 : i1
  %length0 = arith.muli %n#0, %row1 : index
  %length = arith.select %join0, %length0, %row1 : index
  %count0 = arith.select %join0, %c1, %n#0 : index

  scf.for %i = %c0 to %count0 step %c1 {
    scf.for %j = %c0 to %count1 step %c1 {
      scf.for %k = %c0 to %count2 step %c1 {
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
          %xRow = memref.reinterpret_cast %xBase to offset: [%xRowAt], sizes: [%length], strides: [1] : memref<!in> to !fromRow
          %yRow = memref.reinterpret_cast %yBase to offset: [%yRowAt], sizes: [%length], strides: [1] : memref<!out> to !toRow
          scf.for %e = %c0 to %length step %c1 {
            %value = memref.load %xRow[%e] : !fromRow
            %wide = func.call @widen(%value) : (!in) -> !acc
            %narrow = func.call @narrow(%wide) : (!acc) -> !out
            memref.store %narrow, %yRow[%e] : !toRow
          }
        } else {
          scf.for %e = %c0 to %n#3 step %c1 {
            %value = memref.load %x[%i, %j, %k, %e] : !from
            %wide = func.call @widen(%value) : (!in) -> !acc
            %narrow = func.call @narrow(%wide) : (!acc) -> !out
            memref.store %narrow, %y[%i, %j, %k, %e] : !to
          }
        }
      }
    }
  }
  return
}
