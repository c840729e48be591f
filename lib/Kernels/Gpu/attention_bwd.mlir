// The gradients of one attention tile, added to those of other tiles, as
// attention_bwd.mlir of the CPU states them.
//
// A block of threads either takes 64 queries of one head, walks over the keys that
// any of them sees and adds to dq; or takes 64 keys of one key/value head, walks over
// the queries that see any of them, head by head, and adds to dk and dv. Both compute
// the same p and ds.

!in4 = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!acc4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!acc1 = memref<?x!acc, strided<[?], offset: ?>>
!flat = memref<?x!acc, strided<[1], offset: ?>>

gpu.module @device {
  // So many blocks for queries, and for keys.
  func.func private @roles(%q: !in4, %k: !in4) -> (index, index, index, index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %batches = memref.dim %q, %c0 : !in4
    %sq = memref.dim %q, %c1 : !in4
    %heads = memref.dim %q, %c2 : !in4
    %sk = memref.dim %k, %c1 : !in4
    %kvHeads = memref.dim %k, %c2 : !in4
    %qDown = arith.ceildivui %sq, %c64 : index
    %kDown = arith.ceildivui %sk, %c64 : index
    %qTall = arith.muli %batches, %heads : index
    %kTall = arith.muli %batches, %kvHeads : index
    %queries = arith.muli %qTall, %qDown : index
    %keys = arith.muli %kTall, %kDown : index
    return %queries, %keys, %qDown, %kDown : index, index, index, index
  }
  func.func @blocks(%q: !in4, %k: !in4, %v: !in4, %o: !in4, %gradO: !in4, %lse: !acc3,
      %gradQ: !acc4, %gradK: !acc4, %gradV: !acc4, %scratch: !flat, %scale: !acc,
      %q0: index, %k0: index, %h0: index, %hk0: index, %group: index,
      %left: i64, %right: i64, %lanes: index) -> index {
    %roles:4 = func.call @roles(%q, %k) : (!in4, !in4) -> (index, index, index, index)
    %blocks = arith.addi %roles#0, %roles#1 : index
    return %blocks : index
  }

  // The log-sum-exp of a row and do . o, summed by its 16 threads; whether it saw
  // any key. Rows beyond the last saw none.
  func.func private @row_state(%o: !product, %gradO: !product, %lse: !acc1, %row: index, %column: index)
      -> (!acc, !acc, i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %rows = memref.dim %o, %c0 : !product
    %dv = memref.dim %o, %c1 : !product
    %inside = arith.cmpi ult, %row, %rows : index
    %l = scf.if %inside -> !acc {
      %loaded = memref.load %lse[%row] : !acc1
      scf.yield %loaded : !acc
    } else {
      scf.yield %minusInf : !acc
    }
    %saw = arith.cmpf une, %l, %minusInf : !acc
    %end = arith.select %saw, %dv, %c0 : index
    %lane = arith.divui %column, %c4 : index
    %part = scf.for %e = %lane to %end step %c16 iter_args(%sum = %zero) -> !acc {
      %x = memref.load %gradO[%row, %e] : !product
      %y = memref.load %o[%row, %e] : !product
      %wide = func.call @widen(%x) : (!in) -> !acc
      %out = func.call @widen(%y) : (!in) -> !acc
      %next = math.fma %wide, %out, %sum : !acc
      scf.yield %next : !acc
    }
    %delta = func.call @row_sum(%part) : (!acc) -> !acc
    return %l, %delta, %saw : !acc, !acc, i1
  }

  // p and ds of one row from its scores and from do . v.
  func.func private @differentiate(%scores: !four, %dp: !four, %seen: vector<4xi1>, %scale: !acc,
                                   %l: !acc, %delta: !acc, %saw: i1) -> (!four, !four) {
    %zero = arith.constant 0.0 : !acc
    %zeros = vector.broadcast %zero : !acc to !four
    %scales = vector.broadcast %scale : !acc to !four
    %ls = vector.broadcast %l : !acc to !four
    %deltas = vector.broadcast %delta : !acc to !four
    %saws = vector.broadcast %saw : i1 to vector<4xi1>
    %counts = arith.andi %seen, %saws : vector<4xi1>
    %scaled = arith.mulf %scores, %scales : !four
    %down = arith.subf %scaled, %ls : !four
    %exps = math.exp %down : !four
    %p = arith.select %counts, %exps, %zeros : vector<4xi1>, !four
    %off = arith.subf %dp, %deltas : !four
    %product = arith.mulf %exps, %off : !four
    %ds = arith.select %counts, %product, %zeros : vector<4xi1>, !four
    return %p, %ds : !four, !four
  }

  // The p and ds of a block of queries and a block of keys, by rows of this thread.
  func.func private @block(%q: !product, %k: !product, %v: !product, %o: !product, %gradO: !product,
      %lse: !acc1, %scale: !acc, %first0: index, %last0: index, %slabA: !slab, %slabB: !slab)
      -> (!four, !four, !four, !four, !four, !four, !four, !four) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %keys = memref.dim %k, %c0 : !product
    %row0, %column = func.call @corner() : () -> (index, index)
    %row1 = arith.addi %row0, %c1 : index
    %row2 = arith.addi %row0, %c2 : index
    %row3 = arith.addi %row0, %c3 : index
    %s:4 = func.call @product(%q, %k, %slabA, %slabB) : (!product, !product, !slab, !slab) -> (!four, !four, !four, !four)
    %dp:4 = func.call @product(%gradO, %v, %slabA, %slabB) : (!product, !product, !slab, !slab) -> (!four, !four, !four, !four)
    %r0:3 = func.call @row_state(%o, %gradO, %lse, %row0, %column) : (!product, !product, !acc1, index, index) -> (!acc, !acc, i1)
    %begin0 = arith.addi %first0, %row0 : index
    %behind0 = arith.addi %last0, %row0 : index
    %end0 = arith.minsi %behind0, %keys : index
    %seen0 = func.call @seen(%column, %begin0, %end0) : (index, index, index) -> vector<4xi1>
    %g0:2 = func.call @differentiate(%s#0, %dp#0, %seen0, %scale, %r0#0, %r0#1, %r0#2) : (!four, !four, vector<4xi1>, !acc, !acc, !acc, i1) -> (!four, !four)
    %r1:3 = func.call @row_state(%o, %gradO, %lse, %row1, %column) : (!product, !product, !acc1, index, index) -> (!acc, !acc, i1)
    %begin1 = arith.addi %first0, %row1 : index
    %behind1 = arith.addi %last0, %row1 : index
    %end1 = arith.minsi %behind1, %keys : index
    %seen1 = func.call @seen(%column, %begin1, %end1) : (index, index, index) -> vector<4xi1>
    %g1:2 = func.call @differentiate(%s#1, %dp#1, %seen1, %scale, %r1#0, %r1#1, %r1#2) : (!four, !four, vector<4xi1>, !acc, !acc, !acc, i1) -> (!four, !four)
    %r2:3 = func.call @row_state(%o, %gradO, %lse, %row2, %column) : (!product, !product, !acc1, index, index) -> (!acc, !acc, i1)
    %begin2 = arith.addi %first0, %row2 : index
    %behind2 = arith.addi %last0, %row2 : index
    %end2 = arith.minsi %behind2, %keys : index
    %seen2 = func.call @seen(%column, %begin2, %end2) : (index, index, index) -> vector<4xi1>
    %g2:2 = func.call @differentiate(%s#2, %dp#2, %seen2, %scale, %r2#0, %r2#1, %r2#2) : (!four, !four, vector<4xi1>, !acc, !acc, !acc, i1) -> (!four, !four)
    %r3:3 = func.call @row_state(%o, %gradO, %lse, %row3, %column) : (!product, !product, !acc1, index, index) -> (!acc, !acc, i1)
    %begin3 = arith.addi %first0, %row3 : index
    %behind3 = arith.addi %last0, %row3 : index
    %end3 = arith.minsi %behind3, %keys : index
    %seen3 = func.call @seen(%column, %begin3, %end3) : (index, index, index) -> vector<4xi1>
    %g3:2 = func.call @differentiate(%s#3, %dp#3, %seen3, %scale, %r3#0, %r3#1, %r3#2) : (!four, !four, vector<4xi1>, !acc, !acc, !acc, i1) -> (!four, !four)
    return %g0#0, %g1#0, %g2#0, %g3#0, %g0#1, %g1#1, %g2#1, %g3#1 : !four, !four, !four, !four, !four, !four, !four, !four
  }

  // y[r, e] += scale * sum over k of w[r, k] x[k, e], with x given as [k, e].
  func.func private @add_weighed(%w: !weights, %x: !product, %y: !sums, %scale: !acc, %slab: !slab) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %depth = memref.dim %x, %c0 : !product
    %length = memref.dim %x, %c1 : !product
    %rows = memref.dim %y, %c0 : !sums
    %row0, %column = func.call @corner() : () -> (index, index)
    %row1 = arith.addi %row0, %c1 : index
    %row2 = arith.addi %row0, %c2 : index
    %row3 = arith.addi %row0, %c3 : index
    scf.for %e0 = %c0 to %length step %c64 {
      %rest = arith.subi %length, %e0 : index
      %es = arith.minui %rest, %c64 : index
      %xPart = memref.subview %x[0, %e0] [%depth, %es] [1, 1] : !product to !product
      %xT = memref.transpose %xPart (k, e) -> (e, k) : !product to !product
      %new:4 = func.call @weigh(%w, %xT, %slab) : (!weights, !product, !slab) -> (!four, !four, !four, !four)
      %yPart = memref.subview %y[0, %e0] [%rows, %es] [1, 1] : !sums to !sums
      func.call @add_row(%yPart, %row0, %column, %new#0, %scale) : (!sums, index, index, !four, !acc) -> ()
      func.call @add_row(%yPart, %row1, %column, %new#1, %scale) : (!sums, index, index, !four, !acc) -> ()
      func.call @add_row(%yPart, %row2, %column, %new#2, %scale) : (!sums, index, index, !four, !acc) -> ()
      func.call @add_row(%yPart, %row3, %column, %new#3, %scale) : (!sums, index, index, !four, !acc) -> ()
    }
    return
  }

  func.func private @hold(%square: !square, %x0: !four, %x1: !four, %x2: !four, %x3: !four) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %row0, %column = func.call @corner() : () -> (index, index)
    %row1 = arith.addi %row0, %c1 : index
    %row2 = arith.addi %row0, %c2 : index
    %row3 = arith.addi %row0, %c3 : index
    // What it held before may still be read.
    gpu.barrier
    vector.store %x0, %square[%row0, %column] {alignment = 16 : i64} : !square, !four
    vector.store %x1, %square[%row1, %column] {alignment = 16 : i64} : !square, !four
    vector.store %x2, %square[%row2, %column] {alignment = 16 : i64} : !square, !four
    vector.store %x3, %square[%row3, %column] {alignment = 16 : i64} : !square, !four
    gpu.barrier
    return
  }

  gpu.func @attention_bwd(%q: !in4, %k: !in4, %v: !in4, %o: !in4, %gradO: !in4, %lse: !acc3,
      %gradQ: !acc4, %gradK: !acc4, %gradV: !acc4, %scratch: !flat, %scale: !acc,
      %q0: index, %k0: index, %h0: index, %hk0: index, %group: index,
      %left: i64, %right: i64)
      workgroup(%slabA: !slab {llvm.align = 16 : i64}, %slabB: !slab {llvm.align = 16 : i64}, %square: !square {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : !acc
    %sq = memref.dim %q, %c1 : !in4
    %heads = memref.dim %q, %c2 : !in4
    %d = memref.dim %q, %c3 : !in4
    %sk = memref.dim %k, %c1 : !in4
    %kvHeads = memref.dim %k, %c2 : !in4
    %dv = memref.dim %v, %c3 : !in4
    %first, %last = func.call @window(%q0, %k0, %left, %right) : (index, index, i64, i64) -> (index, index)
    %byRow = memref.reinterpret_cast %square to offset: [0], sizes: [64, 64], strides: [%c64, %c1] : !square to !weights
    %byColumn = memref.reinterpret_cast %square to offset: [0], sizes: [64, 64], strides: [%c1, %c64] : !square to !weights

    %roles:4 = func.call @roles(%q, %k) : (!in4, !in4) -> (index, index, index, index)
    %blocks = arith.addi %roles#0, %roles#1 : index
    %block0 = gpu.block_id x
    %step = gpu.grid_dim x
    scf.for %block = %block0 to %blocks step %step {
      %ofQueries = arith.cmpi ult, %block, %roles#0 : index
      scf.if %ofQueries {
        %bh = arith.divui %block, %roles#2 : index
        %nth = arith.remui %block, %roles#2 : index
        %b = arith.divui %bh, %heads : index
        %h = arith.remui %bh, %heads : index
        %i0 = arith.muli %nth, %c64 : index
        %sqLeft = arith.subi %sq, %i0 : index
        %rows = arith.minui %sqLeft, %c64 : index
        %globalHead = arith.addi %h0, %h : index
        %globalKvHead = arith.divsi %globalHead, %group : index
        %hk = arith.subi %globalKvHead, %hk0 : index
        %qTile = memref.subview %q[%b, %i0, %h, 0] [1, %rows, 1, %d] [1, 1, 1, 1] : !in4 to !product
        %oTile = memref.subview %o[%b, %i0, %h, 0] [1, %rows, 1, %dv] [1, 1, 1, 1] : !in4 to !product
        %doTile = memref.subview %gradO[%b, %i0, %h, 0] [1, %rows, 1, %dv] [1, 1, 1, 1] : !in4 to !product
        %lseTile = memref.subview %lse[%b, %h, %i0] [1, 1, %rows] [1, 1, 1] : !acc3 to !acc1
        %dqTile = memref.subview %gradQ[%b, %i0, %h, 0] [1, %rows, 1, %d] [1, 1, 1, 1] : !acc4 to !sums
        %firstOfBlock = arith.addi %i0, %first : index
        %jBegin = arith.maxsi %firstOfBlock, %c0 : index
        %iEnd = arith.addi %i0, %rows : index
        %lastRow = arith.subi %iEnd, %c1 : index
        %lastOfBlock = arith.addi %lastRow, %last : index
        %jEnd = arith.minsi %lastOfBlock, %sk : index
        scf.for %j0 = %jBegin to %jEnd step %c64 {
          %keysLeft = arith.subi %jEnd, %j0 : index
          %keys = arith.minsi %keysLeft, %c64 : index
          %kTile = memref.subview %k[%b, %j0, %hk, 0] [1, %keys, 1, %d] [1, 1, 1, 1] : !in4 to !product
          %vTile = memref.subview %v[%b, %j0, %hk, 0] [1, %keys, 1, %dv] [1, 1, 1, 1] : !in4 to !product
          %ahead = arith.subi %i0, %j0 : index
          %first0 = arith.addi %ahead, %first : index
          %last0 = arith.addi %ahead, %last : index
          %g:8 = func.call @block(%qTile, %kTile, %vTile, %oTile, %doTile, %lseTile, %scale, %first0, %last0, %slabA, %slabB)
              : (!product, !product, !product, !product, !product, !acc1, !acc, index, index, !slab, !slab)
              -> (!four, !four, !four, !four, !four, !four, !four, !four)
          func.call @hold(%square, %g#4, %g#5, %g#6, %g#7) : (!square, !four, !four, !four, !four) -> ()
          func.call @add_weighed(%byRow, %kTile, %dqTile, %scale, %slabB) : (!weights, !product, !sums, !acc, !slab) -> ()
        }
      } else {
        %number = arith.subi %block, %roles#0 : index
        %bh = arith.divui %number, %roles#3 : index
        %nth = arith.remui %number, %roles#3 : index
        %b = arith.divui %bh, %kvHeads : index
        %hk = arith.remui %bh, %kvHeads : index
        %j0 = arith.muli %nth, %c64 : index
        %skLeft = arith.subi %sk, %j0 : index
        %keys = arith.minui %skLeft, %c64 : index
        %kTile = memref.subview %k[%b, %j0, %hk, 0] [1, %keys, 1, %d] [1, 1, 1, 1] : !in4 to !product
        %vTile = memref.subview %v[%b, %j0, %hk, 0] [1, %keys, 1, %dv] [1, 1, 1, 1] : !in4 to !product
        %dkTile = memref.subview %gradK[%b, %j0, %hk, 0] [1, %keys, 1, %d] [1, 1, 1, 1] : !acc4 to !sums
        %dvTile = memref.subview %gradV[%b, %j0, %hk, 0] [1, %keys, 1, %dv] [1, 1, 1, 1] : !acc4 to !sums
        // The heads of this tile that share the key/value head.
        %globalKvHead = arith.addi %hk0, %hk : index
        %firstHead = arith.muli %globalKvHead, %group : index
        %headFrom = arith.subi %firstHead, %h0 : index
        %headTo = arith.addi %headFrom, %group : index
        %hBegin = arith.maxsi %headFrom, %c0 : index
        %hEnd = arith.minsi %headTo, %heads : index
        // The rows that see at least one of these keys.
        %firstRow = arith.subi %j0, %last : index
        %firstRowSeen = arith.addi %firstRow, %c1 : index
        %iBegin = arith.maxsi %firstRowSeen, %c0 : index
        %jEnd = arith.addi %j0, %keys : index
        %rowsSeen = arith.subi %jEnd, %first : index
        %iEnd = arith.minsi %rowsSeen, %sq : index
        scf.for %h = %hBegin to %hEnd step %c1 {
          scf.for %i0 = %iBegin to %iEnd step %c64 {
            %rowsLeft = arith.subi %iEnd, %i0 : index
            %rows = arith.minsi %rowsLeft, %c64 : index
            %qTile = memref.subview %q[%b, %i0, %h, 0] [1, %rows, 1, %d] [1, 1, 1, 1] : !in4 to !product
            %oTile = memref.subview %o[%b, %i0, %h, 0] [1, %rows, 1, %dv] [1, 1, 1, 1] : !in4 to !product
            %doTile = memref.subview %gradO[%b, %i0, %h, 0] [1, %rows, 1, %dv] [1, 1, 1, 1] : !in4 to !product
            %lseTile = memref.subview %lse[%b, %h, %i0] [1, 1, %rows] [1, 1, 1] : !acc3 to !acc1
            %ahead = arith.subi %i0, %j0 : index
            %first0 = arith.addi %ahead, %first : index
            %last0 = arith.addi %ahead, %last : index
            %g:8 = func.call @block(%qTile, %kTile, %vTile, %oTile, %doTile, %lseTile, %scale, %first0, %last0, %slabA, %slabB)
                : (!product, !product, !product, !product, !product, !acc1, !acc, index, index, !slab, !slab)
                -> (!four, !four, !four, !four, !four, !four, !four, !four)
            func.call @hold(%square, %g#0, %g#1, %g#2, %g#3) : (!square, !four, !four, !four, !four) -> ()
            func.call @add_weighed(%byColumn, %doTile, %dvTile, %one, %slabB) : (!weights, !product, !sums, !acc, !slab) -> ()
            func.call @hold(%square, %g#4, %g#5, %g#6, %g#7) : (!square, !four, !four, !four, !four) -> ()
            func.call @add_weighed(%byColumn, %qTile, %dkTile, %scale, %slabB) : (!weights, !product, !sums, !acc, !slab) -> ()
          }
        }
      }
    }
    gpu.return
  }
}
