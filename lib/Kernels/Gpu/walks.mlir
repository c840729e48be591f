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

  // The place of item `item` among rows of `perRow` items.
  func.func private @place(%item: index, %count1: index, %count2: index, %perRow: index)
      -> (index, index, index, index) {
    %row = arith.divui %item, %perRow : index
    %c = arith.remui %item, %perRow : index
    %ij = arith.divui %row, %count2 : index
    %k = arith.remui %row, %count2 : index
    %i = arith.divui %ij, %count1 : index
    %j = arith.remui %ij, %count1 : index
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

  // So many threads that each takes two of a row's chunks: a power of two, at most
  // a warp.
  func.func private @group(%chunks: index) -> index {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %group = scf.for %i = %c0 to %c5 step %c1 iter_args(%g = %c1) -> index {
      %twice = arith.muli %g, %c2 : index
      %fewer = arith.cmpi ult, %twice, %chunks : index
      %next = arith.select %fewer, %twice, %g : index
      scf.yield %next : index
    }
    return %group : index
  }
  // As many blocks of 256 threads as `rows` rows of `length` elements need.
  func.func private @row_blocks(%rows: index, %length: index, %lanes: index) -> index {
    %c256 = arith.constant 256 : index
    %chunks = arith.ceildivui %length, %lanes : index
    %group = func.call @group(%chunks) : (index) -> index
    %perBlock = arith.divui %c256, %group : index
    %blocks = arith.ceildivui %rows, %perBlock : index
    return %blocks : index
  }
}
