// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --canonicalize --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// R6 in chunks: each leaves while the next is made, and the own part is made
// in what has come, a chunk as soon as it is there
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @two_ranks_two_chunks
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 2 placement [] parts {i = 4 : i64}
// CHECK-NOT: commir.alloc
// CHECK: %[[FIRST:.*]] = commir.part %[[PARTIAL]] slot %c0 [i : %{{.*}} of 4]
// CHECK-NOT: commir.fill
// CHECK: commir.launch "matmul" ins({{.*}}) outs(%[[FIRST]] : {{.*}}overwrite = array<i1: true>}
// CHECK: %[[C0:.*]] = commir.part %C [i : %{{.*}} of 4]
// CHECK: %[[T0:.*]] = commir.exchange.start %[[FIRST]] to %{{.*}}, %[[C0]] from %{{.*}} on "gpu"
// CHECK: %[[SECOND:.*]] = commir.part %[[PARTIAL]] slot %c1 [i : %{{.*}} of 4]
// CHECK: commir.launch "matmul" ins({{.*}}) outs(%[[SECOND]] :
// CHECK-NOT: commir.wait
// CHECK: %[[C1:.*]] = commir.part %C [i : %{{.*}} of 4]
// CHECK: %[[T1:.*]] = commir.exchange.start %[[SECOND]] to %{{.*}}, %[[C1]] from %{{.*}} on "gpu"
// CHECK: commir.wait %[[T0]]
// CHECK-NOT: commir.fill
// CHECK: commir.launch "matmul" ins({{.*}}) outs(%[[C0]] :
// CHECK-NOT: overwrite
// CHECK: commir.wait %[[T1]]
// CHECK: commir.launch "matmul" ins({{.*}}) outs(%[[C1]] :
// CHECK-NOT: overwrite
// CHECK-NOT: commir.accumulate
commir.mesh @mesh(gpu = 2)
commir.program @two_ranks_two_chunks on @mesh axes(i = 9, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 2 parallel(gpu), i of 2 shift(by k on gpu, offset 1, results deliver, chunks 2) {
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

// Of more ranks, what comes later is added; the text does not grow with them.
// CHECK-LABEL: commir.program @eight_ranks
// CHECK: %[[IN:.*]] = commir.alloc slots 1 placement [] parts {i = 16 : i64}
// CHECK: scf.for
// CHECK: commir.exchange.start
// CHECK: scf.for
// CHECK: commir.exchange.start %{{.*}} to %{{.*}}, %[[CAME:.*]] from
// CHECK: commir.launch "matmul"
// CHECK: commir.accumulate %[[CAME]] to
commir.mesh @mesh(gpu = 8)
commir.program @eight_ranks on @mesh axes(i = 9, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 8 parallel(gpu), i of 8 shift(by k on gpu, offset 1, results deliver, chunks 2) {
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

// Parts along an inner dimension do not lie together: a message of one waits
// beside the result, a read of one does not.
// CHECK-LABEL: commir.program @inner_dimension
// CHECK: commir.exchange.start
// CHECK: commir.accumulate
commir.mesh @mesh(gpu = 2)
commir.program @inner_dimension on @mesh axes(i = 8, j = 9, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [j -> gpu]) {
  commir.for i, k of 2 parallel(gpu), j of 2 shift(by k on gpu, offset 1, results deliver, chunks 2) {
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

//===----------------------------------------------------------------------===//
// R6 by fetch: the owner reads what was made, where it was made
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @fetch
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 2 placement [] parts {j = 4 : i64}
// CHECK: commir.launch "matmul"
// CHECK: %[[C0:.*]] = commir.part %C [j : %{{.*}} of 4]
// CHECK: %[[LEASE:.*]] = commir.lease.open %[[PARTIAL]] slot %c0 on "gpu"
// CHECK: %[[THEIRS:.*]] = commir.lease.memory %[[LEASE]] of %[[FROM:.*]] :
// CHECK: %[[SOURCE:.*]] = commir.part %[[THEIRS]] [j : %{{.*}} of 4]
// CHECK: %[[TOKEN:.*]] = commir.pull.start %[[SOURCE]] into %[[C0]] of %[[LEASE]] from %[[FROM]]
// CHECK: commir.launch "matmul"
// CHECK: commir.wait %[[TOKEN]]
// CHECK: commir.launch "matmul"
// CHECK: commir.launch "matmul"
// CHECK: commir.lease.close %{{.*}}
// CHECK: commir.lease.close %[[LEASE]]
// CHECK-NOT: commir.exchange.start
// CHECK-NOT: commir.accumulate
commir.mesh @mesh(gpu = 2)
commir.program @fetch on @mesh axes(i = 8, j = 9, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [j -> gpu]) {
  commir.for i, k of 2 parallel(gpu), j of 2 shift(by k on gpu, offset 1, via {C = "fetch"}, chunks 2) {
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

//===----------------------------------------------------------------------===//
// A narrow link of the result's type: what leaves is written rounded, and of
// two ranks the own part is added to what came, in the result itself. Launches
// of different chunks run beside each other
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @narrow on
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 3 {{.*}} : !commir.buffer<[i, j], bf16>
// CHECK-NOT: commir.alloc
// CHECK-NOT: commir.fill
// CHECK-NOT: commir.copy
// CHECK-NOT: commir.accumulate
// CHECK: commir.launch "matmul" {{.*}} outs(%{{.*}} : !commir.tile<[i, j], bf16>) {{.*}}commir.lane = 0 : i64, overwrite
// CHECK: commir.launch "matmul" {{.*}}commir.lane = 1 : i64, overwrite
// CHECK: commir.launch "matmul" {{.*}}commir.lane = 0 : i64, overwrite
// CHECK-NOT: commir.copy
// CHECK-NOT: commir.accumulate
// CHECK: commir.launch "matmul" {{.*}}commir.lane = 0 : i64}
// CHECK: commir.launch "matmul" {{.*}}commir.lane = 1 : i64}
// CHECK: commir.launch "matmul" {{.*}}commir.lane = 0 : i64}
// CHECK: commir.lease.close
commir.mesh @mesh(gpu = 2)
commir.program @narrow on @mesh axes(i = 9, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>,
           %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16> shard [i -> gpu]) {
  commir.for i of 2 shift(by k on gpu, offset 1, results fetch, chunks 3, link bf16), j, k of 2 parallel(gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

// Of three, sums wait for more, and stay wide.
// CHECK-LABEL: commir.program @narrow_of_three on
// CHECK: %[[SUM:.*]] = commir.alloc slots 1 {{.*}} : !commir.buffer<[i, j], f32>
// CHECK: commir.fill
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 2 {{.*}} : !commir.buffer<[i, j], bf16>
// CHECK: %[[IN:.*]] = commir.alloc slots 1 {{.*}} : !commir.buffer<[i, j], bf16>
// CHECK: commir.launch "matmul" {{.*}}overwrite
// CHECK: commir.accumulate {{.*}} : !commir.tile<[i, j], bf16> to !commir.tile<[i, j], f32>
commir.mesh @mesh(gpu = 3)
commir.program @narrow_of_three on @mesh axes(i = 9, j = 8, k = 9)
    inputs(%A: !commir.buffer<[i, k], bf16>,
           %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16> shard [i -> gpu]) {
  commir.for i of 3 shift(by k on gpu, offset 1, results fetch, chunks 2, link bf16), j, k of 3 parallel(gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

//===----------------------------------------------------------------------===//
// Accumulators travel in chunks: each leaves while the next is made, and waits
// in a slot of its own for the rank that makes its chunk next
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @travel_in_chunks
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 2 placement [] parts {i = 8 : i64}
// CHECK: %[[INCOMING:.*]] = commir.alloc slots 2 placement [] parts {i = 8 : i64}
// CHECK: scf.for %[[STEP:.*]] = %c0 to %c4
// CHECK: scf.for %[[CHUNK:.*]] = %c0 to %c2
// CHECK: %[[LEAVES:.*]] = commir.part %[[PARTIAL]] slot %{{.*}} [i : %{{.*}} of 8]
// CHECK: %[[COMES:.*]] = commir.part %[[INCOMING]] slot %{{.*}} [i : %{{.*}} of 8]
// CHECK: %[[TOKEN:.*]] = commir.exchange.start %[[LEAVES]] to %{{.*}}, %[[COMES]] from
// CHECK: commir.launch "matmul"
// CHECK: commir.wait %[[TOKEN]]
// CHECK: scf.if
// CHECK: %[[CAME:.*]] = commir.part %[[INCOMING]] slot %[[CHUNK]]
// CHECK: commir.accumulate %[[CAME]]
// CHECK: scf.if
// CHECK: %[[HOME:.*]] = commir.part %C [i : %{{.*}} of 8]
// CHECK: commir.copy %{{.*}} to %[[HOME]]
commir.mesh @mesh(gpu = 4)
commir.program @travel_in_chunks on @mesh axes(i = 9, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, chunks 2) {
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

// Where the own part does not come last, each chunk takes a closing hop, the
// last one after the loop.
// CHECK-LABEL: commir.program @travel_in_chunks_and_home
// CHECK: commir.exchange.start
// CHECK: commir.launch "matmul"
// CHECK: commir.exchange.start
// CHECK: commir.wait
// CHECK: commir.copy
commir.mesh @mesh(gpu = 4)
commir.program @travel_in_chunks_and_home on @mesh axes(i = 9, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, chunks 3) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
