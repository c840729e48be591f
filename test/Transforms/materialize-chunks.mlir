// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --canonicalize --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

// Chunks of what moves, beside other loops over its axis.

// Ranks share out the rows of a part: a chunk is cut within theirs.
// CHECK-LABEL: commir.program @parallel_inside
// CHECK: commir.alloc slots 2 placement [] parts {i = 8 : i64}
// CHECK: commir.pull.start
// CHECK: commir.launch "matmul" {{.*}} outs(%{{.*}} : !commir.tile<[i, j], f32>)
commir.mesh @mesh(x = 2, y = 2)
commir.program @parallel_inside on @mesh axes(i = 48, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> (y, x)]) {
  commir.for j, k of 2 parallel(y), i_outer in i of 2 shift(by k on y, offset 1, results fetch, chunks 2), i_inner in i of 2 parallel(x) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// A loop in sequence walks a chunk: part 3 of 4, of which it takes 3 tiles.
// CHECK-LABEL: commir.program @in_sequence_inside
// CHECK: commir.alloc slots 2 placement [] parts {i = 4 : i64}
// CHECK: scf.for %[[TILE:.*]] = %c0 to %c3
// CHECK: %[[OF:.*]] = arith.addi %{{.*}}, %[[TILE]]
// CHECK: commir.part %{{.*}} [i : %[[OF]] of 12]
commir.mesh @mesh(x = 2)
commir.program @in_sequence_inside on @mesh axes(i = 48, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> x]) {
  commir.for j, k of 2 parallel(x), i_outer in i of 2 shift(by k on x, offset 1, results fetch, chunks 2), i_inner in i of 3 {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// The result does not move along the ring inside: a chunk has rows of each of
// its parts, in a slot each, and they leave one by one.
// CHECK-LABEL: commir.program @a_ring_inside
// CHECK: %[[MADE:.*]] = commir.alloc slots 4 placement [] parts {i = 8 : i64}
// CHECK: commir.launch "matmul"
// CHECK: commir.lease.open %[[MADE]] slot
// CHECK: %[[FIRST:.*]] = commir.pull.start
// CHECK: commir.lease.open %[[MADE]] slot
// CHECK: %[[SECOND:.*]] = commir.pull.start
// CHECK: commir.wait %[[FIRST]]
// CHECK: commir.wait %[[SECOND]]
commir.mesh @mesh(x = 2, y = 2)
commir.program @a_ring_inside on @mesh axes(i = 48, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> x] replicate [y]) {
  commir.for j, k of 4 parallel(x, y), i_outer in i of 2 shift(by k on x, offset 1, results fetch, chunks 2), i_inner in i of 2 shift(by k on y) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Many of them come one after the other: the text does not grow with the ranks.
// CHECK-LABEL: commir.program @a_long_ring_inside
// CHECK: %[[MADE:.*]] = commir.alloc slots 12 placement [] parts {i = 24 : i64}
// CHECK: scf.for %{{.*}} = %c0 to %c6
// CHECK: %[[LEASE:.*]] = commir.lease.open %[[MADE]] slot
// CHECK-NEXT: commir.lease.memory
// CHECK: %[[TOKEN:.*]] = commir.pull.start
// CHECK-NEXT: commir.wait %[[TOKEN]]
// CHECK-NEXT: commir.lease.close %[[LEASE]]
commir.mesh @mesh(x = 2, y = 6)
commir.program @a_long_ring_inside on @mesh axes(i = 48, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> x] replicate [y]) {
  commir.for j, k of 12 parallel(x, y), i_outer in i of 2 shift(by k on x, offset 1, results fetch, chunks 2), i_inner in i of 6 shift(by k on y) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// The sum of the inner ring is what the outer one made of its chunk.
// CHECK-LABEL: commir.program @nested
// CHECK: %[[OUTER:.*]] = commir.alloc slots 2 placement [] parts {i = 8 : i64}
// CHECK: %[[INNER:.*]] = commir.alloc slots 2 placement [] parts {i = 16 : i64}
// CHECK: commir.fill
// CHECK: commir.launch "matmul" {{.*}}overwrite
// CHECK: commir.pull.start
// CHECK: commir.accumulate
commir.mesh @mesh(x = 2, y = 2)
commir.program @nested on @mesh axes(i = 48, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> (x, y)]) {
  commir.for j, k of 4 parallel(x, y), i_outer in i of 2 shift(by k on x, offset 1, results fetch, chunks 2), i_inner in i of 2 shift(by k on y, offset 1, results fetch, chunks 2) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Several parts a rank are chunks of one.
// CHECK-LABEL: commir.program @several_parts
// CHECK: commir.alloc slots 2 placement [] parts {i = 8 : i64}
// CHECK: commir.exchange.start
commir.mesh @mesh(x = 4)
commir.program @several_parts on @mesh axes(i = 48, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> x]) {
  commir.for j, k of 4 parallel(x), i of 8 shift(by k on x, offset 2, results deliver) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
