// Adds n tiles of numbers to a tile in one pass:
//   y[i] += sum_p x[p, i]
// in the order of p: when each tile arrived says nothing. What overwrites does not
// read y.
//
// An item is 16 bytes or more where rows are contiguous and aligned, else one
// element. A thread keeps the sums of 2 items, loads those of a tile before it
// adds any, and does so twice.

!parts = memref<?x?x?x?x?x!in, strided<[?, ?, ?, ?, ?], offset: ?>>
!tile = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!partRows = memref<?x?x!in, strided<[?, 1], offset: ?>>
!flat = memref<?x!out, strided<[1], offset: ?>>

gpu.module @device {
  func.func @blocks(%x: !parts, %y: !tile, %lanes: index) -> index {
    %c1024 = arith.constant 1024 : index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %y : !tile -> memref<!out>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %n23 = arith.muli %n#2, %n#3 : index
    %elements = arith.muli %n01, %n23 : index
    %perBlock = arith.muli %lanes, %c1024 : index
    %blocks = arith.ceildivui %elements, %perBlock : index
    return %blocks : index
  }

  gpu.func @sum_all(%x: !parts, %y: !tile) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : !acc
    %zeros = vector.broadcast %zero : !acc to !accs
    %overwrites = func.call @overwrites() : () -> i1
    %lanes = func.call @lanes() : () -> index
    %inBytes = func.call @in_bytes() : () -> index
    %outBytes = func.call @out_bytes() : () -> index
    %xBase, %xAt, %m:5, %xs:5 = memref.extract_strided_metadata %x : !parts -> memref<!in>, index, index, index, index, index, index, index, index, index, index, index
    %yBase, %yAt, %n:4, %ys:4 = memref.extract_strided_metadata %y : !tile -> memref<!out>, index, index, index, index, index, index, index, index, index
    %count:4, %contiguous = func.call @join(%n#0, %n#1, %n#2, %n#3, %xs#1, %xs#2, %xs#3, %xs#4, %ys#0, %ys#1, %ys#2, %ys#3)
        : (index, index, index, index, index, index, index, index, index, index, index, index) -> (index, index, index, index, i1)
    %xAddress = memref.extract_aligned_pointer_as_index %x : !parts -> index
    %yAddress = memref.extract_aligned_pointer_as_index %y : !tile -> index
    // Every part is aligned as the first if the distance of parts is.
    %xApart = arith.ori %xAt, %xs#0 : index
    %xAligned = func.call @aligned(%xAddress, %xApart, %inBytes, %count#0, %count#1, %count#2, %xs#1, %xs#2, %xs#3)
        : (index, index, index, index, index, index, index, index, index) -> i1
    %yAligned = func.call @aligned(%yAddress, %yAt, %outBytes, %count#0, %count#1, %count#2, %ys#0, %ys#1, %ys#2)
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
      %items = arith.divui %elements, %lanes : index
      %perRow = arith.divui %count#3, %lanes : index
      %parts = memref.reinterpret_cast %xBase to offset: [%xAt], sizes: [%m#0, %elements], strides: [%xs#0, 1] : memref<!in> to !partRows
      %flat = memref.reinterpret_cast %yBase to offset: [%yAt], sizes: [%elements], strides: [1] : memref<!out> to !flat
      %held = memref.alloca() : memref<2x!ins>
      %sums = memref.alloca() : memref<2x!accs>
      %from = memref.alloca() : memref<2xindex>
      %to = memref.alloca() : memref<2xindex>
      scf.for %item0 = %first to %items step %step {
        scf.for %u = %c0 to %c2 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %items : index
          scf.if %inside {
            %i:4 = func.call @place(%item, %count#1, %count#2, %perRow) : (index, index, index, index) -> (index, index, index, index)
            %e = arith.muli %i#3, %lanes : index
            %xPlace = func.call @offset(%i#0, %i#1, %i#2, %e, %xs#1, %xs#2, %xs#3) : (index, index, index, index, index, index, index) -> index
            %yPlace = func.call @offset(%i#0, %i#1, %i#2, %e, %ys#0, %ys#1, %ys#2) : (index, index, index, index, index, index, index) -> index
            memref.store %xPlace, %from[%u] : memref<2xindex>
            memref.store %yPlace, %to[%u] : memref<2xindex>
            %old = vector.load %flat[%yPlace] {alignment = 16 : i64} : !flat, !outs
            %widened = func.call @widen_out_lanes(%old) : (!outs) -> !accs
            %start = arith.select %overwrites, %zeros, %widened : !accs
            memref.store %start, %sums[%u] : memref<2x!accs>
          }
        }
        scf.for %p = %c0 to %m#0 step %c1 {
          scf.for %u = %c0 to %c2 step %c1 {
            %ahead = arith.muli %u, %c256 : index
            %item = arith.addi %item0, %ahead : index
            %inside = arith.cmpi ult, %item, %items : index
            scf.if %inside {
              %xPlace = memref.load %from[%u] : memref<2xindex>
              %term = vector.load %parts[%p, %xPlace] {alignment = 16 : i64} : !partRows, !ins
              memref.store %term, %held[%u] : memref<2x!ins>
            }
          }
          scf.for %u = %c0 to %c2 step %c1 {
            %term = memref.load %held[%u] : memref<2x!ins>
            %widened = func.call @widen_lanes(%term) : (!ins) -> !accs
            %old = memref.load %sums[%u] : memref<2x!accs>
            %new = arith.addf %old, %widened : !accs
            memref.store %new, %sums[%u] : memref<2x!accs>
          }
        }
        scf.for %u = %c0 to %c2 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %items : index
          scf.if %inside {
            %yPlace = memref.load %to[%u] : memref<2xindex>
            %sum = memref.load %sums[%u] : memref<2x!accs>
            %narrowed = func.call @narrow_lanes(%sum) : (!accs) -> !outs
            vector.store %narrowed, %flat[%yPlace] {alignment = 16 : i64} : !flat, !outs
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
            %old = memref.load %y[%i#0, %i#1, %i#2, %i#3] : !tile
            %widenedOld = func.call @widen_out(%old) : (!out) -> !acc
            %start = arith.select %overwrites, %zero, %widenedOld : !acc
            %sum = scf.for %p = %c0 to %m#0 step %c1 iter_args(%partial = %start) -> !acc {
              %term = memref.load %x[%p, %i#0, %i#1, %i#2, %i#3] : !parts
              %widened = func.call @widen(%term) : (!in) -> !acc
              %next = arith.addf %partial, %widened : !acc
              scf.yield %next : !acc
            }
            %narrowed = func.call @narrow(%sum) : (!acc) -> !out
            memref.store %narrowed, %y[%i#0, %i#1, %i#2, %i#3] : !tile
          }
        }
      }
    }
    gpu.return
  }
}
