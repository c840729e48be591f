// Products of tiles by a block of threads, which every kernel of this folder may
// call whose accumulators are f32 or f64.

!product = memref<?x?x!in, strided<[?, ?], offset: ?>>
!slab = memref<16x64x!acc, #gpu.address_space<workgroup>>
!square = memref<64x64x!acc, #gpu.address_space<workgroup>>
!weights = memref<64x64x!acc, strided<[?, ?]>, #gpu.address_space<workgroup>>
!result = memref<?x?x!out, strided<[?, ?], offset: ?>>
!sums = memref<?x?x!acc, strided<[?, ?], offset: ?>>
!four = vector<4x!acc>

gpu.module @device {
  //===--- Products of tiles --------------------------------------------------===//
  //
  // 256 threads make a block of 64 x 64 results: thread t those of rows 4 (t / 16) and
  // columns 4 (t mod 16), four each.

  func.func private @corner() -> (index, index) {
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %thread = gpu.thread_id x
    %ty = arith.divui %thread, %c16 : index
    %tx = arith.remui %thread, %c16 : index
    %row = arith.muli %ty, %c4 : index
    %column = arith.muli %tx, %c4 : index
    return %row, %column : index, index
  }

  // slab[p, r] = widen(x[r, k0 + p]), 0 beyond the tile. Threads follow what is
  // contiguous.
  func.func private @load_slab(%x: !product, %k0: index, %slab: !slab) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : !acc
    %thread = gpu.thread_id x
    %base, %at, %n:2, %s:2 = memref.extract_strided_metadata %x : !product -> memref<!in>, index, index, index, index, index
    %alongRow = arith.cmpi eq, %s#1, %c1 : index
    scf.for %u = %c0 to %c4 step %c1 {
      %ahead = arith.muli %u, %c256 : index
      %number = arith.addi %thread, %ahead : index
      %rowA = arith.divui %number, %c16 : index
      %pA = arith.remui %number, %c16 : index
      %pB = arith.divui %number, %c64 : index
      %rowB = arith.remui %number, %c64 : index
      %row = arith.select %alongRow, %rowA, %rowB : index
      %p = arith.select %alongRow, %pA, %pB : index
      %k = arith.addi %k0, %p : index
      %inRow = arith.cmpi ult, %row, %n#0 : index
      %inDepth = arith.cmpi ult, %k, %n#1 : index
      %inside = arith.andi %inRow, %inDepth : i1
      %value = scf.if %inside -> !acc {
        %loaded = memref.load %x[%row, %k] : !product
        %wide = func.call @widen(%loaded) : (!in) -> !acc
        scf.yield %wide : !acc
      } else {
        scf.yield %zero : !acc
      }
      memref.store %value, %slab[%p, %row] : !slab
    }
    return
  }

  // a b^T: sum over k of a[r, k] b[c, k].
  func.func private @product(%a: !product, %b: !product, %slabA: !slab, %slabB: !slab)
      -> (!four, !four, !four, !four) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0.0 : !acc
    %zeros = vector.broadcast %zero : !acc to !four
    %row, %column = func.call @corner() : () -> (index, index)
    %depth = memref.dim %a, %c1 : !product
    %sum:4 = scf.for %k0 = %c0 to %depth step %c16
        iter_args(%s0 = %zeros, %s1 = %zeros, %s2 = %zeros, %s3 = %zeros) -> (!four, !four, !four, !four) {
      gpu.barrier
      func.call @load_slab(%a, %k0, %slabA) : (!product, index, !slab) -> ()
      func.call @load_slab(%b, %k0, %slabB) : (!product, index, !slab) -> ()
      gpu.barrier
      %t:4 = scf.for %p = %c0 to %c16 step %c1
          iter_args(%p0 = %s0, %p1 = %s1, %p2 = %s2, %p3 = %s3) -> (!four, !four, !four, !four) {
        %x = vector.load %slabA[%p, %row] {alignment = 16 : i64} : !slab, !four
        %y = vector.load %slabB[%p, %column] {alignment = 16 : i64} : !slab, !four
        %x0 = vector.extract %x[0] : !acc from !four
        %x1 = vector.extract %x[1] : !acc from !four
        %x2 = vector.extract %x[2] : !acc from !four
        %x3 = vector.extract %x[3] : !acc from !four
        %b0 = vector.broadcast %x0 : !acc to !four
        %b1 = vector.broadcast %x1 : !acc to !four
        %b2 = vector.broadcast %x2 : !acc to !four
        %b3 = vector.broadcast %x3 : !acc to !four
        %n0 = vector.fma %b0, %y, %p0 : !four
        %n1 = vector.fma %b1, %y, %p1 : !four
        %n2 = vector.fma %b2, %y, %p2 : !four
        %n3 = vector.fma %b3, %y, %p3 : !four
        scf.yield %n0, %n1, %n2, %n3 : !four, !four, !four, !four
      }
      scf.yield %t#0, %t#1, %t#2, %t#3 : !four, !four, !four, !four
    }
    return %sum#0, %sum#1, %sum#2, %sum#3 : !four, !four, !four, !four
  }

  // w b^T of weights in shared memory: sum over k of w[r, k] b[c, k]. Where w is 0, b
  // counts for nothing, whatever it holds.
  func.func private @weigh(%w: !weights, %b: !product, %slab: !slab)
      -> (!four, !four, !four, !four) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0.0 : !acc
    %zeros = vector.broadcast %zero : !acc to !four
    %row0, %column = func.call @corner() : () -> (index, index)
    %row1 = arith.addi %row0, %c1 : index
    %row2 = arith.addi %row0, %c2 : index
    %row3 = arith.addi %row0, %c3 : index
    %depth = memref.dim %b, %c1 : !product
    %sum:4 = scf.for %k0 = %c0 to %depth step %c16
        iter_args(%s0 = %zeros, %s1 = %zeros, %s2 = %zeros, %s3 = %zeros) -> (!four, !four, !four, !four) {
      gpu.barrier
      func.call @load_slab(%b, %k0, %slab) : (!product, index, !slab) -> ()
      gpu.barrier
      %t:4 = scf.for %p = %c0 to %c16 step %c1
          iter_args(%p0 = %s0, %p1 = %s1, %p2 = %s2, %p3 = %s3) -> (!four, !four, !four, !four) {
        %k = arith.addi %k0, %p : index
        %y = vector.load %slab[%p, %column] {alignment = 16 : i64} : !slab, !four
        %n0 = func.call @weigh_row(%w, %row0, %k, %y, %p0) : (!weights, index, index, !four, !four) -> !four
        %n1 = func.call @weigh_row(%w, %row1, %k, %y, %p1) : (!weights, index, index, !four, !four) -> !four
        %n2 = func.call @weigh_row(%w, %row2, %k, %y, %p2) : (!weights, index, index, !four, !four) -> !four
        %n3 = func.call @weigh_row(%w, %row3, %k, %y, %p3) : (!weights, index, index, !four, !four) -> !four
        scf.yield %n0, %n1, %n2, %n3 : !four, !four, !four, !four
      }
      scf.yield %t#0, %t#1, %t#2, %t#3 : !four, !four, !four, !four
    }
    return %sum#0, %sum#1, %sum#2, %sum#3 : !four, !four, !four, !four
  }
  func.func private @weigh_row(%w: !weights, %row: index, %k: index, %y: !four, %sum: !four) -> !four {
    %zero = arith.constant 0.0 : !acc
    %weight = memref.load %w[%row, %k] : !weights
    %counts = arith.cmpf une, %weight, %zero : !acc
    %weights = vector.broadcast %weight : !acc to !four
    %new = vector.fma %weights, %y, %sum : !four
    %next = arith.select %counts, %new, %sum : !four
    return %next : !four
  }

  // Four elements of a row of results, 0 beyond the tile; all 0 if they are overwritten.
  func.func private @get_row(%y: !result, %row: index, %column: index) -> !four {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : !acc
    %overwrites = func.call @overwrites() : () -> i1
    %rows = memref.dim %y, %c0 : !result
    %columns = memref.dim %y, %c1 : !result
    %inRow = arith.cmpi ult, %row, %rows : index
    %held = memref.alloca() : memref<4x!acc>
    scf.for %u = %c0 to %c4 step %c1 {
      %c = arith.addi %column, %u : index
      %inColumn = arith.cmpi ult, %c, %columns : index
      %inside = arith.andi %inRow, %inColumn : i1
      %x = scf.if %inside -> !acc {
        %old = memref.load %y[%row, %c] : !result
        %wide = func.call @widen_out(%old) : (!out) -> !acc
        %start = arith.select %overwrites, %zero, %wide : !acc
        scf.yield %start : !acc
      } else {
        scf.yield %zero : !acc
      }
      memref.store %x, %held[%u] : memref<4x!acc>
    }
    %values = vector.load %held[%c0] : memref<4x!acc>, !four
    return %values : !four
  }
  // The same, rounded into results.
  func.func private @put_row(%y: !result, %row: index, %column: index, %values: !four) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %rows = memref.dim %y, %c0 : !result
    %columns = memref.dim %y, %c1 : !result
    %inRow = arith.cmpi ult, %row, %rows : index
    %held = memref.alloca() : memref<4x!acc>
    vector.store %values, %held[%c0] : memref<4x!acc>, !four
    scf.for %u = %c0 to %c4 step %c1 {
      %c = arith.addi %column, %u : index
      %inColumn = arith.cmpi ult, %c, %columns : index
      %inside = arith.andi %inRow, %inColumn : i1
      scf.if %inside {
        %x = memref.load %held[%u] : memref<4x!acc>
        %narrow = func.call @narrow(%x) : (!acc) -> !out
        memref.store %narrow, %y[%row, %c] : !result
      }
    }
    return
  }
  // y[row, column + u] += x[u] * scale, where there is such an element.
  func.func private @add_row(%y: !sums, %row: index, %column: index, %x: !four, %scale: !acc) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %rows = memref.dim %y, %c0 : !sums
    %columns = memref.dim %y, %c1 : !sums
    %inRow = arith.cmpi ult, %row, %rows : index
    %held = memref.alloca() : memref<4x!acc>
    vector.store %x, %held[%c0] : memref<4x!acc>, !four
    scf.for %u = %c0 to %c4 step %c1 {
      %c = arith.addi %column, %u : index
      %inColumn = arith.cmpi ult, %c, %columns : index
      %inside = arith.andi %inRow, %inColumn : i1
      scf.if %inside {
        %term = memref.load %held[%u] : memref<4x!acc>
        %scaled = arith.mulf %term, %scale : !acc
        %old = memref.load %y[%row, %c] : !sums
        %sum = arith.addf %old, %scaled : !acc
        memref.store %sum, %y[%row, %c] : !sums
      }
    }
    return
  }

  //===--- Rows of 16 threads -------------------------------------------------===//

  func.func private @row_sum(%x: !acc) -> !acc {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %x1 = func.call @from_lane(%x, %c1) : (!acc, i32) -> !acc
    %s1 = arith.addf %x, %x1 : !acc
    %x2 = func.call @from_lane(%s1, %c2) : (!acc, i32) -> !acc
    %s2 = arith.addf %s1, %x2 : !acc
    %x4 = func.call @from_lane(%s2, %c4) : (!acc, i32) -> !acc
    %s4 = arith.addf %s2, %x4 : !acc
    %x8 = func.call @from_lane(%s4, %c8) : (!acc, i32) -> !acc
    %s8 = arith.addf %s4, %x8 : !acc
    return %s8 : !acc
  }
  func.func private @row_max(%x: !acc) -> !acc {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %x1 = func.call @from_lane(%x, %c1) : (!acc, i32) -> !acc
    %s1 = arith.maximumf %x, %x1 : !acc
    %x2 = func.call @from_lane(%s1, %c2) : (!acc, i32) -> !acc
    %s2 = arith.maximumf %s1, %x2 : !acc
    %x4 = func.call @from_lane(%s2, %c4) : (!acc, i32) -> !acc
    %s4 = arith.maximumf %s2, %x4 : !acc
    %x8 = func.call @from_lane(%s4, %c8) : (!acc, i32) -> !acc
    %s8 = arith.maximumf %s4, %x8 : !acc
    return %s8 : !acc
  }

  // The lanes first, first + 1, ... that a query row sees, as four of this thread's:
  // those from `begin` to before `end`.
  func.func private @seen(%column: index, %begin: index, %end: index) -> vector<4xi1> {
    %ahead = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
    %columns = vector.broadcast %column : index to vector<4xindex>
    %lanes = arith.addi %columns, %ahead : vector<4xindex>
    %begins = vector.broadcast %begin : index to vector<4xindex>
    %ends = vector.broadcast %end : index to vector<4xindex>
    %after = arith.cmpi sge, %lanes, %begins : vector<4xindex>
    %before = arith.cmpi slt, %lanes, %ends : vector<4xindex>
    %seen = arith.andi %after, %before : vector<4xi1>
    return %seen : vector<4xi1>
  }

  // A row i of a tile sees its keys i + first <= j < i + last. A bound beyond 2^61
  // means none; cutting it there keeps the sums from overflowing.
  func.func private @window(%q0: index, %k0: index, %left: i64, %right: i64) -> (index, index) {
    %c1 = arith.constant 1 : index
    %unbounded = arith.constant 2305843009213693952 : i64
    %leftCut = arith.minsi %left, %unbounded : i64
    %rightCut = arith.minsi %right, %unbounded : i64
    %leftIndex = arith.index_cast %leftCut : i64 to index
    %rightIndex = arith.index_cast %rightCut : i64 to index
    %ahead = arith.subi %q0, %k0 : index
    %first = arith.subi %ahead, %leftIndex : index
    %aheadRight = arith.addi %ahead, %rightIndex : index
    %last = arith.addi %aheadRight, %c1 : index
    return %first, %last : index, index
  }
}
