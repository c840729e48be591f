// One attention tile merged into the normalised partial result (o, lse), as
// attention_fwd.mlir of the CPU states it.
//
// A block of threads takes 64 queries of one head and walks over the keys that any of
// them sees, 64 at a time, once for each 64 columns of the output. A row's largest
// score and sum, and its unnormalised output, stay with the 16 threads of the row.

!in4 = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!out4 = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!flat = memref<?x!acc, strided<[1], offset: ?>>

gpu.module @device {
  func.func @blocks(%q: !in4, %k: !in4, %v: !in4, %o: !out4, %lse: !acc3,
      %scratch: !flat, %scale: !acc, %q0: index, %k0: index, %h0: index,
      %hk0: index, %group: index, %left: i64, %right: i64, %lanes: index) -> index {
    %c64 = arith.constant 64 : index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !out4 -> memref<!out>, index, index, index, index, index, index, index, index, index
    %down = arith.ceildivui %n#1, %c64 : index
    %heads = arith.muli %n#0, %n#2 : index
    %blocks = arith.muli %down, %heads : index
    return %blocks : index
  }

  // One row: its scores as weights, exp(score - largest), what is to become of the
  // output so far, and the new state (largest, sum).
  func.func private @soften(%scores: !four, %seen: vector<4xi1>, %scale: !acc, %mOld: !acc, %lOld: !acc)
      -> (!four, !acc, !acc, !acc) {
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %zeros = vector.broadcast %zero : !acc to !four
    %minusInfs = vector.broadcast %minusInf : !acc to !four
    %scales = vector.broadcast %scale : !acc to !four
    %scaled = arith.mulf %scores, %scales : !four
    %masked = arith.select %seen, %scaled, %minusInfs : vector<4xi1>, !four
    %mine = vector.reduction <maximumf>, %masked : !four into !acc
    %ofRow = func.call @row_max(%mine) : (!acc) -> !acc
    %m = arith.maximumf %ofRow, %mOld : !acc
    // Where every score so far is -inf, -inf - -inf would be NaN: subtract 0.
    %empty = arith.cmpf oeq, %m, %minusInf : !acc
    %shift = arith.select %empty, %zero, %m : !acc
    %mDown = arith.subf %mOld, %shift : !acc
    %rescale = math.exp %mDown : !acc
    %shifts = vector.broadcast %shift : !acc to !four
    %down = arith.subf %masked, %shifts : !four
    %exps = math.exp %down : !four
    %p = arith.select %seen, %exps, %zeros : vector<4xi1>, !four
    %part = vector.reduction <add>, %p : !four into !acc
    %sum = func.call @row_sum(%part) : (!acc) -> !acc
    %rescaled = arith.mulf %lOld, %rescale : !acc
    %l = arith.addf %rescaled, %sum : !acc
    return %p, %rescale, %m, %l : !four, !acc, !acc, !acc
  }

  // The end of one row. A sum of 0 is a row whose every score is -inf: it is the
  // identity. (A NaN is not 0, and shows.)
  func.func private @finish(%o: !result, %lse: memref<?x!acc, strided<[?], offset: ?>>, %row: index, %column: index,
                            %sums: !four, %m: !acc, %l: !acc, %isLast: i1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : !acc
    %zeros = vector.broadcast %zero : !acc to !four
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %overwrites = func.call @overwrites() : () -> i1
    %rows = memref.dim %o, %c0 : !result
    %inRow = arith.cmpi ult, %row, %rows : index
    %nonempty = arith.cmpf une, %l, %zero : !acc
    %stores = arith.ori %nonempty, %overwrites : i1
    %writes = arith.andi %inRow, %stores : i1
    scf.if %writes {
      %ls = vector.broadcast %l : !acc to !four
      %normal = arith.divf %sums, %ls : !four
      %values = arith.select %nonempty, %normal, %zeros : !four
      func.call @put_row(%o, %row, %column, %values) : (!result, index, index, !four) -> ()
      %first = arith.cmpi eq, %column, %c0 : index
      %ends = arith.andi %first, %isLast : i1
      scf.if %ends {
        %logL = math.log %l : !acc
        %lseNew = arith.addf %m, %logL : !acc
        %lseEnd = arith.select %nonempty, %lseNew, %minusInf : !acc
        memref.store %lseEnd, %lse[%row] : memref<?x!acc, strided<[?], offset: ?>>
      }
    }
    return
  }

  gpu.func @attention_fwd(%q: !in4, %k: !in4, %v: !in4, %o: !out4, %lse: !acc3,
      %scratch: !flat, %scale: !acc, %q0: index, %k0: index, %h0: index,
      %hk0: index, %group: index, %left: i64, %right: i64)
      workgroup(%slabA: !slab {llvm.align = 16 : i64}, %slabB: !slab {llvm.align = 16 : i64}, %square: !square {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : !acc
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %overwrites = func.call @overwrites() : () -> i1
    %batches = memref.dim %q, %c0 : !in4
    %sq = memref.dim %q, %c1 : !in4
    %heads = memref.dim %q, %c2 : !in4
    %d = memref.dim %q, %c3 : !in4
    %sk = memref.dim %k, %c1 : !in4
    %dv = memref.dim %v, %c3 : !in4
    %first, %last = func.call @window(%q0, %k0, %left, %right) : (index, index, i64, i64) -> (index, index)
    %weights = memref.reinterpret_cast %square to offset: [0], sizes: [64, 64], strides: [%c64, %c1] : !square to !weights
    %row0, %column = func.call @corner() : () -> (index, index)
    %row1 = arith.addi %row0, %c1 : index
    %row2 = arith.addi %row0, %c2 : index
    %row3 = arith.addi %row0, %c3 : index

    %down = arith.ceildivui %sq, %c64 : index
    %tall = arith.muli %batches, %heads : index
    %blocks = arith.muli %tall, %down : index
    %block0 = gpu.block_id x
    %step = gpu.grid_dim x
    scf.for %block = %block0 to %blocks step %step {
      %bh = arith.divui %block, %down : index
      %nth = arith.remui %block, %down : index
      %b = arith.divui %bh, %heads : index
      %h = arith.remui %bh, %heads : index
      %i0 = arith.muli %nth, %c64 : index
      %sqLeft = arith.subi %sq, %i0 : index
      %rows = arith.minui %sqLeft, %c64 : index
      %globalHead = arith.addi %h0, %h : index
      %globalKvHead = arith.divsi %globalHead, %group : index
      %hk = arith.subi %globalKvHead, %hk0 : index
      %qTile = memref.subview %q[%b, %i0, %h, 0] [1, %rows, 1, %d] [1, 1, 1, 1] : !in4 to !product
      %oTile = memref.subview %o[%b, %i0, %h, 0] [1, %rows, 1, %dv] [1, 1, 1, 1] : !out4 to !result
      %lseTile = memref.subview %lse[%b, %h, %i0] [1, 1, %rows] [1, 1, 1] : !acc3 to memref<?x!acc, strided<[?], offset: ?>>
      // Rows beyond the last compute as the last does, and write nothing.
      %lastRow = arith.subi %rows, %c1 : index
      %firstOfBlock = arith.addi %i0, %first : index
      %jBegin = arith.maxsi %firstOfBlock, %c0 : index
      %endOfRows = arith.addi %i0, %lastRow : index
      %lastOfBlock = arith.addi %endOfRows, %last : index
      %jEnd = arith.minsi %lastOfBlock, %sk : index
      // At least once: a log-sum-exp needs no columns.
      %columns = arith.maxui %dv, %c1 : index
      scf.for %e0 = %c0 to %columns step %c64 {
        %dvLeft = arith.subi %dv, %e0 : index
        %es = arith.minui %dvLeft, %c64 : index
        %isLast = arith.cmpi ule, %dvLeft, %c64 : index
        %oPart = memref.subview %oTile[0, %e0] [%rows, %es] [1, 1] : !result to !result
        %safe0 = arith.minui %row0, %lastRow : index
        %held0 = memref.load %lseTile[%safe0] : memref<?x!acc, strided<[?], offset: ?>>
        %start0 = arith.select %overwrites, %minusInf, %held0 : !acc
        %old0 = func.call @get_row(%oPart, %row0, %column) : (!result, index, index) -> !four
        %safe1 = arith.minui %row1, %lastRow : index
        %held1 = memref.load %lseTile[%safe1] : memref<?x!acc, strided<[?], offset: ?>>
        %start1 = arith.select %overwrites, %minusInf, %held1 : !acc
        %old1 = func.call @get_row(%oPart, %row1, %column) : (!result, index, index) -> !four
        %safe2 = arith.minui %row2, %lastRow : index
        %held2 = memref.load %lseTile[%safe2] : memref<?x!acc, strided<[?], offset: ?>>
        %start2 = arith.select %overwrites, %minusInf, %held2 : !acc
        %old2 = func.call @get_row(%oPart, %row2, %column) : (!result, index, index) -> !four
        %safe3 = arith.minui %row3, %lastRow : index
        %held3 = memref.load %lseTile[%safe3] : memref<?x!acc, strided<[?], offset: ?>>
        %start3 = arith.select %overwrites, %minusInf, %held3 : !acc
        %old3 = func.call @get_row(%oPart, %row3, %column) : (!result, index, index) -> !four
        %state:12 = scf.for %j0 = %jBegin to %jEnd step %c64
            iter_args(%m0 = %start0, %m1 = %start1, %m2 = %start2, %m3 = %start3, %l0 = %one, %l1 = %one, %l2 = %one, %l3 = %one,
                      %o0 = %old0, %o1 = %old1, %o2 = %old2, %o3 = %old3)
            -> (!acc, !acc, !acc, !acc, !acc, !acc, !acc, !acc, !four, !four, !four, !four) {
          %keysLeft = arith.subi %jEnd, %j0 : index
          %keys = arith.minsi %keysLeft, %c64 : index
          %kTile = memref.subview %k[%b, %j0, %hk, 0] [1, %keys, 1, %d] [1, 1, 1, 1] : !in4 to !product
          %s:4 = func.call @product(%qTile, %kTile, %slabA, %slabB) : (!product, !product, !slab, !slab) -> (!four, !four, !four, !four)
          %ahead = arith.subi %i0, %j0 : index
          %first0 = arith.addi %ahead, %first : index
          %last0 = arith.addi %ahead, %last : index
          // The weights of the keys before are still read by others.
          gpu.barrier
          %begin0 = arith.addi %first0, %row0 : index
          %behind0 = arith.addi %last0, %row0 : index
          %end0 = arith.minsi %behind0, %keys : index
          %seen0 = func.call @seen(%column, %begin0, %end0) : (index, index, index) -> vector<4xi1>
          %n0:4 = func.call @soften(%s#0, %seen0, %scale, %m0, %l0) : (!four, vector<4xi1>, !acc, !acc, !acc) -> (!four, !acc, !acc, !acc)
          vector.store %n0#0, %square[%row0, %column] {alignment = 16 : i64} : !square, !four
          %begin1 = arith.addi %first0, %row1 : index
          %behind1 = arith.addi %last0, %row1 : index
          %end1 = arith.minsi %behind1, %keys : index
          %seen1 = func.call @seen(%column, %begin1, %end1) : (index, index, index) -> vector<4xi1>
          %n1:4 = func.call @soften(%s#1, %seen1, %scale, %m1, %l1) : (!four, vector<4xi1>, !acc, !acc, !acc) -> (!four, !acc, !acc, !acc)
          vector.store %n1#0, %square[%row1, %column] {alignment = 16 : i64} : !square, !four
          %begin2 = arith.addi %first0, %row2 : index
          %behind2 = arith.addi %last0, %row2 : index
          %end2 = arith.minsi %behind2, %keys : index
          %seen2 = func.call @seen(%column, %begin2, %end2) : (index, index, index) -> vector<4xi1>
          %n2:4 = func.call @soften(%s#2, %seen2, %scale, %m2, %l2) : (!four, vector<4xi1>, !acc, !acc, !acc) -> (!four, !acc, !acc, !acc)
          vector.store %n2#0, %square[%row2, %column] {alignment = 16 : i64} : !square, !four
          %begin3 = arith.addi %first0, %row3 : index
          %behind3 = arith.addi %last0, %row3 : index
          %end3 = arith.minsi %behind3, %keys : index
          %seen3 = func.call @seen(%column, %begin3, %end3) : (index, index, index) -> vector<4xi1>
          %n3:4 = func.call @soften(%s#3, %seen3, %scale, %m3, %l3) : (!four, vector<4xi1>, !acc, !acc, !acc) -> (!four, !acc, !acc, !acc)
          vector.store %n3#0, %square[%row3, %column] {alignment = 16 : i64} : !square, !four
          gpu.barrier
          %vTile = memref.subview %v[%b, %j0, %hk, %e0] [1, %keys, 1, %es] [1, 1, 1, 1] : !in4 to !product
          %vT = memref.transpose %vTile (j, e) -> (e, j) : !product to !product
          %new:4 = func.call @weigh(%weights, %vT, %slabB) : (!weights, !product, !slab) -> (!four, !four, !four, !four)
          %rescales0 = vector.broadcast %n0#1 : !acc to !four
          %kept0 = arith.mulf %o0, %rescales0 : !four
          %next0 = arith.addf %kept0, %new#0 : !four
          %rescales1 = vector.broadcast %n1#1 : !acc to !four
          %kept1 = arith.mulf %o1, %rescales1 : !four
          %next1 = arith.addf %kept1, %new#1 : !four
          %rescales2 = vector.broadcast %n2#1 : !acc to !four
          %kept2 = arith.mulf %o2, %rescales2 : !four
          %next2 = arith.addf %kept2, %new#2 : !four
          %rescales3 = vector.broadcast %n3#1 : !acc to !four
          %kept3 = arith.mulf %o3, %rescales3 : !four
          %next3 = arith.addf %kept3, %new#3 : !four
          scf.yield %n0#2, %n1#2, %n2#2, %n3#2, %n0#3, %n1#3, %n2#3, %n3#3, %next0, %next1, %next2, %next3
              : !acc, !acc, !acc, !acc, !acc, !acc, !acc, !acc, !four, !four, !four, !four
        }
        func.call @finish(%oPart, %lseTile, %row0, %column, %state#8, %state#0, %state#4, %isLast) : (!result, memref<?x!acc, strided<[?], offset: ?>>, index, index, !four, !acc, !acc, i1) -> ()
        func.call @finish(%oPart, %lseTile, %row1, %column, %state#9, %state#1, %state#5, %isLast) : (!result, memref<?x!acc, strided<[?], offset: ?>>, index, index, !four, !acc, !acc, i1) -> ()
        func.call @finish(%oPart, %lseTile, %row2, %column, %state#10, %state#2, %state#6, %isLast) : (!result, memref<?x!acc, strided<[?], offset: ?>>, index, index, !four, !acc, !acc, i1) -> ()
        func.call @finish(%oPart, %lseTile, %row3, %column, %state#11, %state#3, %state#7, %isLast) : (!result, memref<?x!acc, strided<[?], offset: ?>>, index, index, !four, !acc, !acc, i1) -> ()
      }
    }
    gpu.return
  }
}
