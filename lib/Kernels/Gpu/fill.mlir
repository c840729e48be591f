// x = value: gives an accumulator its merge's identity.
//
// An item is 16 bytes where rows are contiguous and aligned, else one element.

!tile = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!rows = memref<?x?x?x?x!acc, strided<[?, ?, ?, 1], offset: ?>>

gpu.module @device {
  func.func @blocks(%x: !tile, %value: !acc, %lanes: index) -> index {
    %c1024 = arith.constant 1024 : index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %x : !tile -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %n23 = arith.muli %n#2, %n#3 : index
    %elements = arith.muli %n01, %n23 : index
    %perBlock = arith.muli %lanes, %c1024 : index
    %blocks = arith.ceildivui %elements, %perBlock : index
    return %blocks : index
  }

  gpu.func @fill(%x: !tile, %value: !acc) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %lanes = func.call @lanes() : () -> index
    %bytes = func.call @acc_bytes() : () -> index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %x : !tile -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %count:4, %contiguous = func.call @join(%n#0, %n#1, %n#2, %n#3, %s#0, %s#1, %s#2, %s#3, %s#0, %s#1, %s#2, %s#3)
        : (index, index, index, index, index, index, index, index, index, index, index, index) -> (index, index, index, index, i1)
    %address = memref.extract_aligned_pointer_as_index %x : !tile -> index
    %aligned = func.call @aligned(%address, %at, %bytes, %count#0, %count#1, %count#2, %s#0, %s#1, %s#2)
        : (index, index, index, index, index, index, index, index, index) -> i1
    %rest = arith.remui %count#3, %lanes : index
    %whole = arith.cmpi eq, %rest, %c0 : index
    %fits = arith.andi %aligned, %whole : i1
    %wide = arith.andi %fits, %contiguous : i1

    %n01 = arith.muli %n#0, %n#1 : index
    %n23 = arith.muli %n#2, %n#3 : index
    %elements = arith.muli %n01, %n23 : index
    %first, %step = func.call @walk(%c4) : (index) -> (index, index)
    scf.if %wide {
      %rows = memref.reinterpret_cast %base to offset: [%at], sizes: [%count#0, %count#1, %count#2, %count#3], strides: [%s#0, %s#1, %s#2, 1] : memref<!acc> to !rows
      %perRow = arith.divui %count#3, %lanes : index
      %items = arith.divui %elements, %lanes : index
      %values = vector.broadcast %value : !acc to !accs
      scf.for %item0 = %first to %items step %step {
        scf.for %u = %c0 to %c4 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %items : index
          scf.if %inside {
            %i:4 = func.call @place(%item, %count#1, %count#2, %perRow) : (index, index, index, index) -> (index, index, index, index)
            %e = arith.muli %i#3, %lanes : index
            vector.store %values, %rows[%i#0, %i#1, %i#2, %e] {alignment = 16 : i64} : !rows, !accs
          }
        }
      }
    } else {
      scf.for %item0 = %first to %elements step %step {
        scf.for %u = %c0 to %c4 step %c1 {
          %ahead = arith.muli %u, %c256 : index
          %item = arith.addi %item0, %ahead : index
          %inside = arith.cmpi ult, %item, %elements : index
          scf.if %inside {
            %i:4 = func.call @place(%item, %n#1, %n#2, %n#3) : (index, index, index, index) -> (index, index, index, index)
            memref.store %value, %x[%i#0, %i#1, %i#2, %i#3] : !tile
          }
        }
      }
    }
    gpu.return
  }
}
