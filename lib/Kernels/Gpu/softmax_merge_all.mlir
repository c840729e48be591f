// Merges n normalised partial results (o2, lse2)[p] into (o, lse) in one pass:
//   lse' = log(exp(lse) + sum_p exp(lse2[p]))
//   o'   = (exp(lse) * o + sum_p exp(lse2[p]) * o2[p]) / exp(lse')
// in the order of p: when each arrived says nothing. What overwrites reads neither o
// nor lse.
//
// A row belongs to a part of a warp. Where rows are contiguous and aligned, a thread
// takes two chunks of 16 bytes of it at a time, of two parts, and loads all with their
// log-sum-exps before it uses any; else one element. One thread writes the log-sum-exp
// once all have read it.

!out4 = memref<?x?x?x?x!out, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!parts5 = memref<?x?x?x?x?x!in, strided<[?, ?, ?, ?, ?], offset: ?>>
!parts4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!flat = memref<?x!out, strided<[1]>>
!partFlat = memref<?x!in, strided<[1]>>
!lses = memref<?x!acc, strided<[1]>>

gpu.module @device {
  func.func @blocks(%o2: !parts5, %lse2: !parts4, %o: !out4, %lse: !acc3, %lanes: index) -> index {
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !out4 -> memref<!out>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %per = arith.constant 2 : index
    %c2 = arith.constant 2 : index
    // Two rows for each thread: what it finds out before the first costs as much as one.
    %turns = arith.ceildivui %rows, %c2 : index
    %blocks = func.call @row_blocks(%turns, %n#3, %lanes, %per) : (index, index, index, index) -> index
    return %blocks : index
  }

  // Log-sum-exps of rows relative to the largest, but no weight of an empty row.
  func.func private @level(%most: !acc) -> (!acc, i1) {
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %nonempty = arith.cmpf une, %most, %minusInf : !acc
    %level = arith.select %nonempty, %most, %zero : !acc
    return %level, %nonempty : !acc, i1
  }
  func.func private @weight(%lse: !acc, %level: !acc) -> !acc {
    %down = arith.subf %lse, %level : !acc
    %w = math.exp %down : !acc
    return %w : !acc
  }
  // What a chunk of sums becomes with a chunk of two parts.
  func.func private @add_two(%sums: !accs, %kept: !acc, %x0: !ins, %w0: !acc, %x1: !ins, %w1: !acc) -> !accs {
    %keptLanes = vector.broadcast %kept : !acc to !accs
    %ws0 = vector.broadcast %w0 : !acc to !accs
    %ws1 = vector.broadcast %w1 : !acc to !accs
    %widened0 = func.call @widen_lanes(%x0) : (!ins) -> !accs
    %widened1 = func.call @widen_lanes(%x1) : (!ins) -> !accs
    %before = arith.mulf %sums, %keptLanes : !accs
    %one = math.fma %widened0, %ws0, %before : !accs
    %both = math.fma %widened1, %ws1, %one : !accs
    return %both : !accs
  }
  // The result of a row of which `sums` is a chunk.
  func.func private @finish(%sums: !accs, %share: !acc, %nonempty: i1) -> !outs {
    %zero = arith.constant 0.0 : !acc
    %zeros = vector.broadcast %zero : !acc to !accs
    %shares = vector.broadcast %share : !acc to !accs
    %scaled = arith.mulf %sums, %shares : !accs
    %result = arith.select %nonempty, %scaled, %zeros : !accs
    %narrowed = func.call @narrow_lanes(%result) : (!accs) -> !outs
    return %narrowed : !outs
  }
  // The log-sum-exp of a row. Empty rows alone are the identity.
  func.func private @whole(%most: !acc, %sum: !acc) -> !acc {
    %level, %nonempty = func.call @level(%most) : (!acc) -> (!acc, i1)
    %log = math.log %sum : !acc
    %new = arith.addf %level, %log : !acc
    %whole = arith.select %nonempty, %new, %most : !acc
    return %whole : !acc
  }

  gpu.func @softmax_merge_all(%o2: !parts5, %lse2: !parts4, %o: !out4, %lse: !acc3)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 3 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %per = arith.constant 2 : index
    %zero = arith.constant 0.0 : !acc
    %unit = arith.constant 1.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %zeros = vector.broadcast %zero : !acc to !accs
    %warp = arith.constant -1 : i32
    %overwrites = func.call @overwrites() : () -> i1
    %inBytes = func.call @in_bytes() : () -> index
    %outBytes = func.call @out_bytes() : () -> index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !out4 -> memref<!out>, index, index, index, index, index, index, index, index, index
    %base2, %at2, %m:5, %s2:5 = memref.extract_strided_metadata %o2 : !parts5 -> memref<!in>, index, index, index, index, index, index, index, index, index, index, index
    %oAddress = memref.extract_aligned_pointer_as_index %o : !out4 -> index
    %mine = func.call @wide_rows(%oAddress, %at, %outBytes, %n#0, %n#1, %n#2, %n#3, %s#0, %s#1, %s#2, %s#3)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    // Every part is aligned as the first if the distance of parts is.
    %apart2 = arith.ori %at2, %s2#0 : index
    %o2Address = memref.extract_aligned_pointer_as_index %o2 : !parts5 -> index
    %other = func.call @wide_rows(%o2Address, %apart2, %inBytes, %n#0, %n#1, %n#2, %n#3, %s2#1, %s2#2, %s2#3, %s2#4)
        : (index, index, index, index, index, index, index, index, index, index, index) -> i1
    %lseBase, %lseAt, %ln:3, %ls:3 = memref.extract_strided_metadata %lse : !acc3 -> memref<!acc>, index, index, index, index, index, index, index
    %lseBase2, %lseAt2, %lm:4, %ls2:4 = memref.extract_strided_metadata %lse2 : !parts4 -> memref<!acc>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %rows = arith.muli %n01, %n#2 : index
    %small0 = func.call @small(%rows, %n#3, %s#1, %s#2) : (index, index, index, index) -> i1
    %small1 = func.call @small(%s2#2, %s2#3, %ls#1, %ls#2) : (index, index, index, index) -> i1
    %small2 = func.call @small(%ls2#2, %ls2#3, %m#0, %c0) : (index, index, index, index) -> i1
    %small01 = arith.andi %small0, %small1 : i1
    %small = arith.andi %small01, %small2 : i1
    // A row of no elements has a log-sum-exp still.
    %some = arith.cmpi ne, %n#3, %c0 : index
    %alignedRows = arith.andi %mine, %other : i1
    %fits = arith.andi %small, %some : i1
    %wide = arith.andi %alignedRows, %fits : i1
    %walk:6 = func.call @walk_rows(%n#0, %n#1, %n#2, %n#3, %wide, %per) : (index, index, index, index, i1, index) -> (index, index, index, index, index, index)
    // The thread that writes the log-sum-exp has the first element of the row.
    %first = arith.cmpi eq, %walk#4, %c0 : index

    scf.if %wide {
      %flat = memref.reinterpret_cast %base to offset: [0], sizes: [%n#3], strides: [1] : memref<!out> to !flat
      %partFlat = memref.reinterpret_cast %base2 to offset: [0], sizes: [%n#3], strides: [1] : memref<!in> to !partFlat
      %sums = memref.reinterpret_cast %lseBase to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !lses
      %partSums = memref.reinterpret_cast %lseBase2 to offset: [0], sizes: [%n#3], strides: [1] : memref<!acc> to !lses
      %none = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %number, %begin, %apart, %lastChunk = func.call @small_walk(%n#3, %walk#3, %walk#4) : (index, index, index) -> (i32, i32, i32, i32)
      %step = arith.shli %apart, %one : i32
      %length = arith.index_cast %n#3 : index to i32
      %parts = arith.index_cast %m#0 : index to i32
      scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
        %b, %i, %h, %inside = func.call @small_row(%row0, %number, %walk#2, %n#1, %n#2) : (index, i32, index, index, index) -> (i32, i32, i32, i1)
        %end = arith.select %inside, %length, %none : i32
        %place = func.call @small_offset(%b, %i, %h, %at, %s#0, %s#1, %s#2) : (i32, i32, i32, index, index, index, index) -> index
        %place2 = func.call @small_offset(%b, %i, %h, %at2, %s2#1, %s2#2, %s2#3) : (i32, i32, i32, index, index, index, index) -> index
        %lsePlace = func.call @small_offset(%b, %h, %i, %lseAt, %ls#0, %ls#1, %ls#2) : (i32, i32, i32, index, index, index, index) -> index
        %lsePlace2 = func.call @small_offset(%b, %h, %i, %lseAt2, %ls2#1, %ls2#2, %ls2#3) : (i32, i32, i32, index, index, index, index) -> index
        %most, %total = scf.for %e = %begin to %end step %step iter_args(%noMost = %minusInf, %noTotal = %zero) -> (!acc, !acc) : i32 {
          // Behind the last chunk and the last part is the last one, which then counts
          // for nothing: no load waits for a condition.
          %ahead = arith.addi %e, %apart : i32
          %near = arith.minui %ahead, %lastChunk : i32
          %e0 = arith.index_castui %e : i32 to index
          %e1 = arith.index_castui %near : i32 to index
          %to0 = arith.addi %place, %e0 : index
          %to1 = arith.addi %place, %e1 : index
          %own0 = vector.load %flat[%to0] {alignment = 16 : i64} : !flat, !outs
          %own1 = vector.load %flat[%to1] {alignment = 16 : i64} : !flat, !outs
          %held0 = func.call @widen_out_lanes(%own0) : (!outs) -> !accs
          %held1 = func.call @widen_out_lanes(%own1) : (!outs) -> !accs
          %start0 = arith.select %overwrites, %zeros, %held0 : !accs
          %start1 = arith.select %overwrites, %zeros, %held1 : !accs
          %lseHeld = memref.load %sums[%lsePlace] : !lses
          %m0 = arith.select %overwrites, %minusInf, %lseHeld : !acc
          %level0, %nonempty0 = func.call @level(%m0) : (!acc) -> (!acc, i1)
          %l0 = arith.select %nonempty0, %unit, %zero : !acc
          // The log-sum-exp of all so far, the sum of their weights relative to it, the
          // sums of what they weigh, and where the next part is.
          %m1, %l, %sum0, %sum1, %x, %y = scf.for %p = %none to %parts step %two
              iter_args(%before = %m0, %weight = %l0, %some0 = %start0, %some1 = %start1, %part0 = %place2, %lsePart0 = %lsePlace2)
              -> (!acc, !acc, !accs, !accs, index, index) : i32 {
            %next = arith.addi %p, %one : i32
            %another = arith.cmpi ult, %next, %parts : i32
            %far = arith.select %another, %s2#0, %c0 : index
            %lseFar = arith.select %another, %ls2#0, %c0 : index
            %part1 = arith.addi %part0, %far : index
            %lsePart1 = arith.addi %lsePart0, %lseFar : index
            %from00 = arith.addi %part0, %e0 : index
            %from01 = arith.addi %part0, %e1 : index
            %from10 = arith.addi %part1, %e0 : index
            %from11 = arith.addi %part1, %e1 : index
            %lsePart = memref.load %partSums[%lsePart0] : !lses
            %lseOther = memref.load %partSums[%lsePart1] : !lses
            %x00 = vector.load %partFlat[%from00] {alignment = 16 : i64} : !partFlat, !ins
            %x01 = vector.load %partFlat[%from01] {alignment = 16 : i64} : !partFlat, !ins
            %x10 = vector.load %partFlat[%from10] {alignment = 16 : i64} : !partFlat, !ins
            %x11 = vector.load %partFlat[%from11] {alignment = 16 : i64} : !partFlat, !ins
            %lseNext = arith.select %another, %lseOther, %minusInf : !acc
            %larger = arith.maximumf %before, %lsePart : !acc
            %now = arith.maximumf %larger, %lseNext : !acc
            %level, %nonempty = func.call @level(%now) : (!acc) -> (!acc, i1)
            %kept = func.call @weight(%before, %level) : (!acc, !acc) -> !acc
            %w0 = func.call @weight(%lsePart, %level) : (!acc, !acc) -> !acc
            %w1 = func.call @weight(%lseNext, %level) : (!acc, !acc) -> !acc
            %still = arith.mulf %weight, %kept : !acc
            %more = arith.addf %still, %w0 : !acc
            %all = arith.addf %more, %w1 : !acc
            %all0 = func.call @add_two(%some0, %kept, %x00, %w0, %x10, %w1) : (!accs, !acc, !ins, !acc, !ins, !acc) -> !accs
            %all1 = func.call @add_two(%some1, %kept, %x01, %w0, %x11, %w1) : (!accs, !acc, !ins, !acc, !ins, !acc) -> !accs
            %part2 = arith.addi %part1, %s2#0 : index
            %lsePart2 = arith.addi %lsePart1, %ls2#0 : index
            scf.yield %now, %all, %all0, %all1, %part2, %lsePart2 : !acc, !acc, !accs, !accs, index, index
          }
          %level, %nonempty = func.call @level(%m1) : (!acc) -> (!acc, i1)
          %share = arith.divf %unit, %l : !acc
          %result0 = func.call @finish(%sum0, %share, %nonempty) : (!accs, !acc, i1) -> !outs
          %result1 = func.call @finish(%sum1, %share, %nonempty) : (!accs, !acc, i1) -> !outs
          // Empty rows alone are the identity, which (o, lse) holds if it counts.
          %stores = arith.ori %nonempty, %overwrites : i1
          scf.if %stores {
            vector.store %result0, %flat[%to0] {alignment = 16 : i64} : !flat, !outs
            %more = arith.cmpi ult, %ahead, %end : i32
            scf.if %more {
              vector.store %result1, %flat[%to1] {alignment = 16 : i64} : !flat, !outs
            }
          }
          scf.yield %m1, %l : !acc, !acc
        }
        nvvm.bar.warp.sync %warp : i32
        %writes = arith.andi %first, %inside : i1
        scf.if %writes {
          %whole = func.call @whole(%most, %total) : (!acc, !acc) -> !acc
          memref.store %whole, %sums[%lsePlace] : !lses
        }
      }
    } else {
      %begin = arith.muli %walk#4, %walk#5 : index
      %apart = arith.shli %walk#5, %walk#3 : index
      scf.for %row0 = %walk#0 to %walk#2 step %walk#1 {
        %b, %i, %h, %inside = func.call @row_of_group(%row0, %walk#2, %n#1, %n#2, %walk#3) : (index, index, index, index, index) -> (index, index, index, i1)
        %end = arith.select %inside, %n#3, %c0 : index
        %lseHeld = memref.load %lse[%b, %h, %i] : !acc3
        %m0 = arith.select %overwrites, %minusInf, %lseHeld : !acc
        %most = scf.for %p = %c0 to %m#0 step %c1 iter_args(%most = %m0) -> !acc {
          %x = memref.load %lse2[%p, %b, %h, %i] : !parts4
          %next = arith.maximumf %most, %x : !acc
          scf.yield %next : !acc
        }
        %level, %nonempty = func.call @level(%most) : (!acc) -> (!acc, i1)
        %w0 = func.call @weight(%m0, %level) : (!acc, !acc) -> !acc
        %total = scf.for %p = %c0 to %m#0 step %c1 iter_args(%sum = %w0) -> !acc {
          %x = memref.load %lse2[%p, %b, %h, %i] : !parts4
          %w = func.call @weight(%x, %level) : (!acc, !acc) -> !acc
          %next = arith.addf %sum, %w : !acc
          scf.yield %next : !acc
        }
        %stores = arith.ori %nonempty, %overwrites : i1
        %last = arith.select %stores, %end, %c0 : index
        scf.for %e = %begin to %last step %apart {
          %x0 = memref.load %o[%b, %i, %h, %e] : !out4
          %widened0 = func.call @widen_out(%x0) : (!out) -> !acc
          %y0 = arith.mulf %widened0, %w0 : !acc
          %start = arith.select %overwrites, %zero, %y0 : !acc
          %sum = scf.for %p = %c0 to %m#0 step %c1 iter_args(%partial = %start) -> !acc {
            %x2 = memref.load %lse2[%p, %b, %h, %i] : !parts4
            %w = func.call @weight(%x2, %level) : (!acc, !acc) -> !acc
            %x = memref.load %o2[%p, %b, %i, %h, %e] : !parts5
            %widened = func.call @widen(%x) : (!in) -> !acc
            %next = math.fma %widened, %w, %partial : !acc
            scf.yield %next : !acc
          }
          %y = arith.divf %sum, %total : !acc
          %z = arith.select %nonempty, %y, %zero : !acc
          %narrowed = func.call @narrow(%z) : (!acc) -> !out
          memref.store %narrowed, %o[%b, %i, %h, %e] : !out4
        }
        nvvm.bar.warp.sync %warp : i32
        %writes = arith.andi %first, %inside : i1
        scf.if %writes {
          %whole = func.call @whole(%most, %total) : (!acc, !acc) -> !acc
          memref.store %whole, %lse[%b, %h, %i] : !acc3
        }
      }
    }
    gpu.return
  }
}
