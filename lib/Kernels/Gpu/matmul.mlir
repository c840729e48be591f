// c[m, n] += a[m, k] @ b[k, n], summed in !acc, in blocks of 64 x 64.

!matrix = memref<?x?x!in, strided<[?, ?], offset: ?>>

gpu.module @device {
  func.func @blocks(%a: !matrix, %b: !matrix, %c: !result, %lanes: index) -> index {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %m = memref.dim %c, %c0 : !result
    %n = memref.dim %c, %c1 : !result
    %down = arith.ceildivui %m, %c64 : index
    %across = arith.ceildivui %n, %c64 : index
    %blocks = arith.muli %down, %across : index
    return %blocks : index
  }

  gpu.func @matmul(%a: !matrix, %b: !matrix, %c: !result)
      workgroup(%slabA: !slab {llvm.align = 16 : i64}, %slabB: !slab {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %m = memref.dim %c, %c0 : !result
    %n = memref.dim %c, %c1 : !result
    %k = memref.dim %a, %c1 : !matrix
    %down = arith.ceildivui %m, %c64 : index
    %across = arith.ceildivui %n, %c64 : index
    %blocks = arith.muli %down, %across : index
    %row0, %column = func.call @corner() : () -> (index, index)
    %row1 = arith.addi %row0, %c1 : index
    %row2 = arith.addi %row0, %c2 : index
    %row3 = arith.addi %row0, %c3 : index
    %bT = memref.transpose %b (k, n) -> (n, k) : !matrix to !matrix
    %first = gpu.block_id x
    %step = gpu.grid_dim x
    scf.for %block = %first to %blocks step %step {
      // Blocks side by side share columns of b.
      %across0 = arith.divui %block, %down : index
      %down0 = arith.remui %block, %down : index
      %i0 = arith.muli %down0, %c64 : index
      %j0 = arith.muli %across0, %c64 : index
      %mLeft = arith.subi %m, %i0 : index
      %mb = arith.minui %mLeft, %c64 : index
      %nLeft = arith.subi %n, %j0 : index
      %nb = arith.minui %nLeft, %c64 : index
      %aTile = memref.subview %a[%i0, 0] [%mb, %k] [1, 1] : !matrix to !matrix
      %bTile = memref.subview %bT[%j0, 0] [%nb, %k] [1, 1] : !matrix to !matrix
      %cTile = memref.subview %c[%i0, %j0] [%mb, %nb] [1, 1] : !result to !result
      %s:4 = func.call @product(%aTile, %bTile, %slabA, %slabB) : (!product, !product, !slab, !slab) -> (!four, !four, !four, !four)
      %old0 = func.call @get_row(%cTile, %row0, %column) : (!result, index, index) -> !four
      %sum0 = arith.addf %old0, %s#0 : !four
      func.call @put_row(%cTile, %row0, %column, %sum0) : (!result, index, index, !four) -> ()
      %old1 = func.call @get_row(%cTile, %row1, %column) : (!result, index, index) -> !four
      %sum1 = arith.addf %old1, %s#1 : !four
      func.call @put_row(%cTile, %row1, %column, %sum1) : (!result, index, index, !four) -> ()
      %old2 = func.call @get_row(%cTile, %row2, %column) : (!result, index, index) -> !four
      %sum2 = arith.addf %old2, %s#2 : !four
      func.call @put_row(%cTile, %row2, %column, %sum2) : (!result, index, index, !four) -> ()
      %old3 = func.call @get_row(%cTile, %row3, %column) : (!result, index, index) -> !four
      %sum3 = arith.addf %old3, %s#3 : !four
      func.call @put_row(%cTile, %row3, %column, %sum3) : (!result, index, index, !four) -> ()
    }
    gpu.return
  }
}
