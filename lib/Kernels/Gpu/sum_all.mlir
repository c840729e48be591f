// Adds n rows of numbers to a row in one pass:
//   y[i] += sum_p x[p, i]
// in the order of p: when each row arrived says nothing.
//
// An item is 16 bytes where the rows are aligned, else one element. A thread keeps
// the sums of 4 items and loads those of a row before it adds any.

!parts = memref<?x?x!acc, strided<[?, 1], offset: ?>>
!flat = memref<?x!acc, strided<[1], offset: ?>>

gpu.module @device {
  func.func @blocks(%x: !parts, %y: !flat, %lanes: index) -> index {
    %c0 = arith.constant 0 : index
    %c1024 = arith.constant 1024 : index
    %n = memref.dim %y, %c0 : !flat
    %perBlock = arith.muli %lanes, %c1024 : index
    %blocks = arith.ceildivui %n, %perBlock : index
    return %blocks : index
  }

  gpu.func @sum_all(%x: !parts, %y: !flat) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %lanes = func.call @lanes() : () -> index
    %bytes = func.call @acc_bytes() : () -> index
    %xBase, %xAt, %m:2, %xs:2 = memref.extract_strided_metadata %x : !parts -> memref<!acc>, index, index, index, index, index
    %yBase, %yAt, %n, %ys = memref.extract_strided_metadata %y : !flat -> memref<!acc>, index, index, index
    %xAddress = memref.extract_aligned_pointer_as_index %x : !parts -> index
    %yAddress = memref.extract_aligned_pointer_as_index %y : !flat -> index
    %xAligned = func.call @aligned(%xAddress, %xAt, %bytes, %m#0, %c1, %c1, %xs#0, %c0, %c0)
        : (index, index, index, index, index, index, index, index, index) -> i1
    %yAligned = func.call @aligned(%yAddress, %yAt, %bytes, %c1, %c1, %c1, %c0, %c0, %c0)
        : (index, index, index, index, index, index, index, index, index) -> i1
    %rest = arith.remui %n, %lanes : index
    %whole = arith.cmpi eq, %rest, %c0 : index
    %both = arith.andi %xAligned, %yAligned : i1
    %wide = arith.andi %both, %whole : i1

    %first, %step = func.call @walk(%c4) : (index) -> (index, index)
    scf.if %wide {
      %items = arith.divui %n, %lanes : index
      %held = memref.alloca() : memref<4x!accs>
      %sums = memref.alloca() : memref<4x!accs>
      scf.for %item0 = %first to %items step %step {
        scf.for %u = %c0 to %c4 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %items : index
          scf.if %inside {
            %at = arith.muli %item, %lanes : index
            %old = vector.load %y[%at] {alignment = 16 : i64} : !flat, !accs
            memref.store %old, %sums[%u] : memref<4x!accs>
          }
        }
        scf.for %p = %c0 to %m#0 step %c1 {
          scf.for %u = %c0 to %c4 step %c1 {
            %ahead = arith.muli %u, %c256 : index
            %item = arith.addi %item0, %ahead : index
            %inside = arith.cmpi ult, %item, %items : index
            scf.if %inside {
              %at = arith.muli %item, %lanes : index
              %term = vector.load %x[%p, %at] {alignment = 16 : i64} : !parts, !accs
              memref.store %term, %held[%u] : memref<4x!accs>
            }
          }
          scf.for %u = %c0 to %c4 step %c1 {
            %term = memref.load %held[%u] : memref<4x!accs>
            %old = memref.load %sums[%u] : memref<4x!accs>
            %new = arith.addf %old, %term : !accs
            memref.store %new, %sums[%u] : memref<4x!accs>
          }
        }
        scf.for %u = %c0 to %c4 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %items : index
          scf.if %inside {
            %at = arith.muli %item, %lanes : index
            %sum = memref.load %sums[%u] : memref<4x!accs>
            vector.store %sum, %y[%at] {alignment = 16 : i64} : !flat, !accs
          }
        }
      }
    } else {
      scf.for %item0 = %first to %n step %step {
        scf.for %u = %c0 to %c4 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %n : index
          scf.if %inside {
            %old = memref.load %y[%item] : !flat
            %sum = scf.for %p = %c0 to %m#0 step %c1 iter_args(%partial = %old) -> !acc {
              %term = memref.load %x[%p, %item] : !parts
              %next = arith.addf %partial, %term : !acc
              scf.yield %next : !acc
            }
            memref.store %sum, %y[%item] : !flat
          }
        }
      }
    }
    gpu.return
  }
}
