// Walks over tiles, which every kernel of this folder may call. The compiler puts
// them in front of the kernel, with what README.md lists, and inlines them.

gpu.module @device {
  // The dimensions of two tiles of one shape as rows: dimensions that follow one
  // another in both memories, or have one element, are joined from the last on.
  // Gives the counts of the first three, the length of a row, and whether its
  // elements lie side by side.
  func.func private @join(%n0: index, %n1: index, %n2: index, %n3: index,
                          %xs0: index, %xs1: index, %xs2: index, %xs3: index,
                          %ys0: index, %ys1: index, %ys2: index, %ys3: index)
      -> (index, index, index, index, i1) {
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %row3, %count3, %join3 = func.call @join_one(%n3, %xs3, %ys3, %c1, %true)
        : (index, index, index, index, i1) -> (index, index, i1)
    %row2, %count2, %join2 = func.call @join_one(%n2, %xs2, %ys2, %n3, %join3)
        : (index, index, index, index, i1) -> (index, index, i1)
    %row1, %count1, %join1 = func.call @join_one(%n1, %xs1, %ys1, %row2, %join2)
        : (index, index, index, index, i1) -> (index, index, i1)
    %row0, %count0, %join0 = func.call @join_one(%n0, %xs0, %ys0, %row1, %join1)
        : (index, index, index, index, i1) -> (index, index, i1)
    return %count0, %count1, %count2, %row0, %join3 : index, index, index, index, i1
  }
  func.func private @join_one(%n: index, %xs: index, %ys: index, %row: index, %open: i1)
      -> (index, index, i1) {
    %c1 = arith.constant 1 : index
    %single = arith.cmpi eq, %n, %c1 : index
    %x = arith.cmpi eq, %xs, %row : index
    %y = arith.cmpi eq, %ys, %row : index
    %both = arith.andi %x, %y : i1
    %fits = arith.ori %single, %both : i1
    %joins = arith.andi %fits, %open : i1
    %longer = arith.muli %n, %row : index
    %length = arith.select %joins, %longer, %row : index
    %count = arith.select %joins, %c1, %n : index
    return %length, %count, %joins : index, index, i1
  }

  // Whether every row of a tile begins at a multiple of 16 bytes: `at` and the
  // strides are in elements of `bytes`, the counts those of @join.
  func.func private @aligned(%address: index, %at: index, %bytes: index,
                             %count0: index, %count1: index, %count2: index,
                             %s0: index, %s1: index, %s2: index) -> i1 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c15 = arith.constant 15 : index
    %single0 = arith.cmpi eq, %count0, %c1 : index
    %single1 = arith.cmpi eq, %count1, %c1 : index
    %single2 = arith.cmpi eq, %count2, %c1 : index
    %step0 = arith.select %single0, %c0, %s0 : index
    %step1 = arith.select %single1, %c0, %s1 : index
    %step2 = arith.select %single2, %c0, %s2 : index
    %steps0 = arith.ori %at, %step0 : index
    %steps1 = arith.ori %steps0, %step1 : index
    %steps2 = arith.ori %steps1, %step2 : index
    %stepBytes = arith.muli %steps2, %bytes : index
    %all = arith.ori %stepBytes, %address : index
    %low = arith.andi %all, %c15 : index
    %aligned = arith.cmpi eq, %low, %c0 : index
    return %aligned : i1
  }

  // a / n and a mod n. Division is dear: most walks can do without.
  func.func private @split(%a: index, %n: index) -> (index, index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %below = arith.cmpi ult, %a, %n : index
    %q, %r = scf.if %below -> (index, index) {
      scf.yield %c0, %a : index, index
    } else {
      %unit = arith.cmpi eq, %n, %c1 : index
      %q1, %r1 = scf.if %unit -> (index, index) {
        scf.yield %a, %c0 : index, index
      } else {
        %q2 = arith.divui %a, %n : index
        %r2 = arith.remui %a, %n : index
        scf.yield %q2, %r2 : index, index
      }
      scf.yield %q1, %r1 : index, index
    }
    return %q, %r : index, index
  }
  // The place of item `item` among rows of `perRow` items.
  func.func private @place(%item: index, %count1: index, %count2: index, %perRow: index)
      -> (index, index, index, index) {
    %row, %c = func.call @split(%item, %perRow) : (index, index) -> (index, index)
    %ij, %k = func.call @split(%row, %count2) : (index, index) -> (index, index)
    %i, %j = func.call @split(%ij, %count1) : (index, index) -> (index, index)
    return %i, %j, %k, %c : index, index, index, index
  }

  // The first item of this thread and the distance to its next ones: a block takes
  // `items` a thread, 256 apart, then goes on behind the last block.
  func.func private @walk(%items: index) -> (index, index) {
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %threads = gpu.block_dim x
    %blocks = gpu.grid_dim x
    %perBlock = arith.muli %threads, %items : index
    %begin = arith.muli %block, %perBlock : index
    %first = arith.addi %begin, %thread : index
    %step = arith.muli %blocks, %perBlock : index
    return %first, %step : index, index
  }

  // The logarithm of so many threads that each takes `per` of a row's chunks: at most
  // a warp.
  func.func private @group(%chunks: index, %per: index) -> index {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %group = scf.for %i = %c0 to %c5 step %c1 iter_args(%g = %c0) -> index {
      %taken = arith.shli %per, %g : index
      %fewer = arith.cmpi ult, %taken, %chunks : index
      %more = arith.extui %fewer : i1 to i64
      %one = arith.index_cast %more : i64 to index
      %next = arith.addi %g, %one : index
      scf.yield %next : index
    }
    return %group : index
  }
  // As many blocks of 256 threads as `rows` rows of `length` elements need.
  func.func private @row_blocks(%rows: index, %length: index, %lanes: index, %per: index) -> index {
    %chunks = arith.ceildivui %length, %lanes : index
    %group = func.call @group(%chunks, %per) : (index, index) -> index
    %c256 = arith.constant 256 : index
    %perBlock = arith.shrui %c256, %group : index
    %blocks = arith.ceildivui %rows, %perBlock : index
    return %blocks : index
  }
  // How a grid walks over rows, each of `length` elements, in chunks of 16 bytes if
  // they are `wide` and of one element if not, `per` by each thread: the first row of this block, the
  // distance to its next ones, the number of rows, the logarithm of the threads of a
  // row, which of them this is, the elements of a chunk.
  func.func private @walk_rows(%n0: index, %n1: index, %n2: index, %length: index, %wide: i1, %per: index)
      -> (index, index, index, index, index, index) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %lanes = func.call @lanes() : () -> index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    %n01 = arith.muli %n0, %n1 : index
    %rows = arith.muli %n01, %n2 : index
    %wideChunks = arith.divui %length, %lanes : index
    %chunks = arith.select %wide, %wideChunks, %length : index
    %chunk = arith.select %wide, %lanes, %c1 : index
    %group = func.call @group(%chunks, %per) : (index, index) -> index
    %perBlock = arith.shrui %c256, %group : index
    %first = arith.muli %block, %perBlock : index
    %step = arith.muli %blocks, %perBlock : index
    %threads = arith.shli %c1, %group : index
    %mask = arith.subi %threads, %c1 : index
    %lane = arith.andi %thread, %mask : index
    return %first, %step, %rows, %group, %lane, %chunk : index, index, index, index, index, index
  }
  // The row of this thread among those from `row0` on, and whether it is one; if not,
  // the first row, so that every thread of a warp does the same.
  func.func private @row_of_group(%row0: index, %rows: index, %n1: index, %n2: index, %group: index)
      -> (index, index, index, i1) {
    %c0 = arith.constant 0 : index
    %thread = gpu.thread_id x
    %number = arith.shrui %thread, %group : index
    %mine = arith.addi %row0, %number : index
    %inside = arith.cmpi ult, %mine, %rows : index
    %row = arith.select %inside, %mine, %c0 : index
    %line, %k = func.call @split(%row, %n2) : (index, index) -> (index, index)
    %i, %j = func.call @split(%line, %n1) : (index, index) -> (index, index)
    return %i, %j, %k, %inside : index, index, index, i1
  }
  // Whether rows along the last dimension are contiguous, aligned, and of whole items:
  // `at` and the strides are in elements of `bytes`.
  func.func private @wide_rows(%address: index, %at: index, %bytes: index,
                               %n0: index, %n1: index, %n2: index, %n3: index,
                               %s0: index, %s1: index, %s2: index, %s3: index) -> i1 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %lanes = func.call @lanes() : () -> index
    %aligned = func.call @aligned(%address, %at, %bytes, %n0, %n1, %n2, %s0, %s1, %s2)
        : (index, index, index, index, index, index, index, index, index) -> i1
    %contiguous = arith.cmpi eq, %s3, %c1 : index
    %rest = arith.remui %n3, %lanes : index
    %whole = arith.cmpi eq, %rest, %c0 : index
    %fits = arith.andi %aligned, %whole : i1
    %wide = arith.andi %fits, %contiguous : i1
    return %wide : i1
  }
  // The distance of an element from the first one, its row contiguous.
  func.func private @offset(%i: index, %j: index, %k: index, %e: index,
                            %s0: index, %s1: index, %s2: index) -> index {
    %x0 = arith.muli %i, %s0 : index
    %x1 = arith.muli %j, %s1 : index
    %x2 = arith.muli %k, %s2 : index
    %x01 = arith.addi %x0, %x1 : index
    %x012 = arith.addi %x01, %x2 : index
    %offset = arith.addi %x012, %e : index
    return %offset : index
  }
  // Whether numbers, none negative, fit in 30 bits. Rows, their lengths and strides, but
  // the first, that do are walked with numbers of 32 bits, at a third of the price.
  func.func private @small(%a: index, %b: index, %c: index, %d: index) -> i1 {
    %c0 = arith.constant 0 : index
    %c30 = arith.constant 30 : index
    %ab = arith.ori %a, %b : index
    %cd = arith.ori %c, %d : index
    %all = arith.ori %ab, %cd : index
    %high = arith.shrui %all, %c30 : index
    %small = arith.cmpi eq, %high, %c0 : index
    return %small : i1
  }
  // What @walk_rows says of wide rows, in 32 bits: which row of a block this thread
  // has, its first element, the distance to its next chunk, where the last chunk begins.
  func.func private @small_walk(%length: index, %group: index, %lane: index) -> (i32, i32, i32, i32) {
    %lanesIndex = func.call @lanes() : () -> index
    %lanes = arith.index_cast %lanesIndex : index to i32
    %n = arith.index_cast %length : index to i32
    %g = arith.index_cast %group : index to i32
    %mine = arith.index_cast %lane : index to i32
    %threadIndex = gpu.thread_id x
    %thread = arith.index_cast %threadIndex : index to i32
    %number = arith.shrui %thread, %g : i32
    %begin = arith.muli %mine, %lanes : i32
    %apart = arith.shli %lanes, %g : i32
    %last = arith.subi %n, %lanes : i32
    return %number, %begin, %apart, %last : i32, i32, i32, i32
  }
  // @row_of_group in 32 bits.
  func.func private @small_row(%row0: index, %number: i32, %rowCount: index, %n1: index, %n2: index)
      -> (i32, i32, i32, i1) {
    %c0 = arith.constant 0 : i32
    %begin = arith.index_cast %row0 : index to i32
    %rows = arith.index_cast %rowCount : index to i32
    %count1 = arith.index_cast %n1 : index to i32
    %count2 = arith.index_cast %n2 : index to i32
    %mine = arith.addi %begin, %number : i32
    %inside = arith.cmpi ult, %mine, %rows : i32
    %row = arith.select %inside, %mine, %c0 : i32
    %line = arith.divui %row, %count2 : i32
    %skipped2 = arith.muli %line, %count2 : i32
    %k = arith.subi %row, %skipped2 : i32
    // Division is dear, and most tiles are of one batch.
    %below = arith.cmpi ult, %line, %count1 : i32
    %i, %j = scf.if %below -> (i32, i32) {
      scf.yield %c0, %line : i32, i32
    } else {
      %q = arith.divui %line, %count1 : i32
      %r = arith.remui %line, %count1 : i32
      scf.yield %q, %r : i32, i32
    }
    return %i, %j, %k, %inside : i32, i32, i32, i1
  }
  // Where the row begins of which the first is at `at`; the first stride may be any.
  func.func private @small_offset(%i: i32, %j: i32, %k: i32, %at: index,
                                  %s0: index, %s1: index, %s2: index) -> index {
    %i0 = arith.index_castui %i : i32 to index
    %x0 = arith.muli %i0, %s0 : index
    %x1 = func.call @small_product(%j, %s1) : (i32, index) -> index
    %x2 = func.call @small_product(%k, %s2) : (i32, index) -> index
    %x01 = arith.addi %x0, %x1 : index
    %x012 = arith.addi %x01, %x2 : index
    %offset = arith.addi %x012, %at : index
    return %offset : index
  }
  func.func private @small_product(%i: i32, %s: index) -> index {
    %low = arith.index_cast %s : index to i32
    %a = arith.index_castui %i : i32 to index
    %b = arith.index_castui %low : i32 to index
    %ab = arith.muli %a, %b : index
    return %ab : index
  }
}
