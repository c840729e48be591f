// c[m, n] += a[m, k] @ b[k, n], summed in !acc.
//
// b is cut into panels of 128 x 64, widened and packed once for 256 rows of a,
// so that the inner loop is one contiguous load and one fma whatever the types
// and strides are: 64 columns of one row of c stay in registers over a panel.
// A result narrower than !acc is rounded once: its sums stay in !acc until all
// of k is in them.

!matrix = memref<?x?x!in, strided<[?, ?], offset: ?>>
!result = memref<?x?x!out, strided<[?, ?], offset: ?>>
!block = memref<256x64x!acc>
!lanes = vector<64x!acc>

func.func @matmul(%a: !matrix, %b: !matrix, %c: !result) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : !acc
  %overwrites = func.call @overwrites() : () -> i1
  %zeros = vector.broadcast %zero : !acc to !lanes
  %m = memref.dim %a, %c0 : !matrix
  %k = memref.dim %a, %c1 : !matrix
  %n = memref.dim %b, %c1 : !matrix
  // Columns beyond n hold stale numbers; their sums are not stored.
  %panel = memref.alloca() {alignment = 64} : memref<128x64x!acc>
  %sums = memref.alloca() {alignment = 64} : !block

  scf.for %i0 = %c0 to %m step %c256 {
    %mLeft = arith.subi %m, %i0 : index
    %rows = arith.minsi %mLeft, %c256 : index
    scf.for %j0 = %c0 to %n step %c64 {
      %nLeft = arith.subi %n, %j0 : index
      %nb = arith.minsi %nLeft, %c64 : index

      %cTile = memref.subview %c[%i0, %j0] [%rows, %nb] [1, 1] : !result to !result
      scf.for %i = %c0 to %rows step %c1 {
        scf.for %j = %c0 to %nb step %c1 {
          %x = memref.load %cTile[%i, %j] : !result
          %wide = func.call @widen_out(%x) : (!out) -> !acc
          %start = arith.select %overwrites, %zero, %wide : !acc
          memref.store %start, %sums[%i, %j] : !block
        }
      }

      scf.for %k0 = %c0 to %k step %c128 {
        %kLeft = arith.subi %k, %k0 : index
        %kb = arith.minsi %kLeft, %c128 : index
        %bTile = memref.subview %b[%k0, %j0] [%kb, %nb] [1, 1] : !matrix to !matrix
        scf.for %p = %c0 to %kb step %c1 {
          scf.for %j = %c0 to %nb step %c1 {
            %x = memref.load %bTile[%p, %j] : !matrix
            %wide = func.call @widen(%x) : (!in) -> !acc
            memref.store %wide, %panel[%p, %j] : memref<128x64x!acc>
          }
        }

        %aTile = memref.subview %a[%i0, %k0] [%rows, %kb] [1, 1] : !matrix to !matrix
        scf.for %i = %c0 to %rows step %c1 {
          %sum = scf.for %p = %c0 to %kb step %c1 iter_args(%partial = %zeros) -> !lanes {
            %x = memref.load %aTile[%i, %p] : !matrix
            %wide = func.call @widen(%x) : (!in) -> !acc
            %row = vector.broadcast %wide : !acc to !lanes
            %column = vector.load %panel[%p, %c0] : memref<128x64x!acc>, !lanes
            %next = vector.fma %row, %column, %partial : !lanes
            scf.yield %next : !lanes
          }
          %old = vector.load %sums[%i, %c0] : !block, !lanes
          %both = arith.addf %old, %sum : !lanes
          vector.store %both, %sums[%i, %c0] : !block, !lanes
        }
      }

      scf.for %i = %c0 to %rows step %c1 {
        scf.for %j = %c0 to %nb step %c1 {
          %sum = memref.load %sums[%i, %j] : !block
          %narrow = func.call @narrow(%sum) : (!acc) -> !out
          memref.store %narrow, %cTile[%i, %j] : !result
        }
      }
    }
  }
  return
}
