// y += x, tile by tile: the sum merge. What a link made narrower is added in the
// type of the sum.
//
// An item is 16 bytes where rows are contiguous and aligned, else one element. A
// thread takes 2 items at a time and loads all before it stores any.

!from = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!tile = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!fromRows = memref<?x?x?x?x!in, strided<[?, ?, ?, 1], offset: ?>>
!flat = memref<?x!acc, strided<[1], offset: ?>>

gpu.module @device {
  func.func @blocks(%x: !from, %y: !tile, %lanes: index) -> index {
    %c512 = arith.constant 512 : index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %y : !tile -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %n23 = arith.muli %n#2, %n#3 : index
    %elements = arith.muli %n01, %n23 : index
    %perBlock = arith.muli %lanes, %c512 : index
    %blocks = arith.ceildivui %elements, %perBlock : index
    return %blocks : index
  }

  gpu.func @accumulate(%x: !from, %y: !tile) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c256 = arith.constant 256 : index
    %lanes = func.call @lanes() : () -> index
    %inBytes = func.call @in_bytes() : () -> index
    %bytes = func.call @acc_bytes() : () -> index
    %xBase, %xAt, %n:4, %xs:4 = memref.extract_strided_metadata %x : !from -> memref<!in>, index, index, index, index, index, index, index, index, index
    %yBase, %yAt, %m:4, %ys:4 = memref.extract_strided_metadata %y : !tile -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %count:4, %contiguous = func.call @join(%n#0, %n#1, %n#2, %n#3, %xs#0, %xs#1, %xs#2, %xs#3, %ys#0, %ys#1, %ys#2, %ys#3)
        : (index, index, index, index, index, index, index, index, index, index, index, index) -> (index, index, index, index, i1)
    %xAddress = memref.extract_aligned_pointer_as_index %x : !from -> index
    %yAddress = memref.extract_aligned_pointer_as_index %y : !tile -> index
    %xAligned = func.call @aligned(%xAddress, %xAt, %inBytes, %count#0, %count#1, %count#2, %xs#0, %xs#1, %xs#2)
        : (index, index, index, index, index, index, index, index, index) -> i1
    %yAligned = func.call @aligned(%yAddress, %yAt, %bytes, %count#0, %count#1, %count#2, %ys#0, %ys#1, %ys#2)
        : (index, index, index, index, index, index, index, index, index) -> i1
    %rest = arith.remui %count#3, %lanes : index
    %whole = arith.cmpi eq, %rest, %c0 : index
    %both = arith.andi %xAligned, %yAligned : i1
    %fits = arith.andi %both, %whole : i1
    %wide = arith.andi %fits, %contiguous : i1

    %n01 = arith.muli %n#0, %n#1 : index
    %n23 = arith.muli %n#2, %n#3 : index
    %elements = arith.muli %n01, %n23 : index
    %first, %step = func.call @walk(%c2) : (index) -> (index, index)
    scf.if %wide {
      %xRows = memref.reinterpret_cast %xBase to offset: [%xAt], sizes: [%count#0, %count#1, %count#2, %count#3], strides: [%xs#0, %xs#1, %xs#2, 1] : memref<!in> to !fromRows
      %yFlat = memref.reinterpret_cast %yBase to offset: [%yAt], sizes: [%elements], strides: [1] : memref<!acc> to !flat
      %perRow = arith.divui %count#3, %lanes : index
      %items = arith.divui %elements, %lanes : index
      %held = memref.alloca() : memref<2x!ins>
      %sums = memref.alloca() : memref<2x!accs>
      // Where in y they go.
      %places = memref.alloca() : memref<2xindex>
      scf.for %item0 = %first to %items step %step {
        scf.for %u = %c0 to %c2 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %items : index
          scf.if %inside {
            %i:4 = func.call @place(%item, %count#1, %count#2, %perRow) : (index, index, index, index) -> (index, index, index, index)
            %e = arith.muli %i#3, %lanes : index
            %value = vector.load %xRows[%i#0, %i#1, %i#2, %e] {alignment = 16 : i64} : !fromRows, !ins
            %to = func.call @offset(%i#0, %i#1, %i#2, %e, %ys#0, %ys#1, %ys#2) : (index, index, index, index, index, index, index) -> index
            memref.store %to, %places[%u] : memref<2xindex>
            memref.store %value, %held[%u] : memref<2x!ins>
            %sum = vector.load %yFlat[%to] {alignment = 16 : i64} : !flat, !accs
            memref.store %sum, %sums[%u] : memref<2x!accs>
          }
        }
        scf.for %u = %c0 to %c2 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %items : index
          scf.if %inside {
            %to = memref.load %places[%u] : memref<2xindex>
            %value = memref.load %held[%u] : memref<2x!ins>
            %widened = func.call @widen_lanes(%value) : (!ins) -> !accs
            %sum = memref.load %sums[%u] : memref<2x!accs>
            %new = arith.addf %sum, %widened : !accs
            vector.store %new, %yFlat[%to] {alignment = 16 : i64} : !flat, !accs
          }
        }
      }
    } else {
      scf.for %item0 = %first to %elements step %step {
        scf.for %u = %c0 to %c2 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %elements : index
          scf.if %inside {
            %i:4 = func.call @place(%item, %n#1, %n#2, %n#3) : (index, index, index, index) -> (index, index, index, index)
            %value = memref.load %x[%i#0, %i#1, %i#2, %i#3] : !from
            %widened = func.call @widen(%value) : (!in) -> !acc
            %sum = memref.load %y[%i#0, %i#1, %i#2, %i#3] : !tile
            %new = arith.addf %sum, %widened : !acc
            memref.store %new, %y[%i#0, %i#1, %i#2, %i#3] : !tile
          }
        }
      }
    }
    gpu.return
  }
}
