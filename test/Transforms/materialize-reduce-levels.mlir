// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null
// RUN: mercury-opt %s --commir-to-llvm=transports=p2p -split-input-file -o /dev/null
// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --commir-select-transport=transports=p2p --cse -split-input-file | FileCheck %s --check-prefix=P2P

// A sum over two levels: the fast one first, for each part of the slow one in
// turn. What the slow one shares out is in the slots of its ranks by then.

//===----------------------------------------------------------------------===//
// R5 along one axis
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r5_fast_level_first
// CHECK-DAG: %[[NODE:.*]] = commir.group_rank "node"
// CHECK-DAG: %[[GPU:.*]] = commir.group_rank "gpu"
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 1 placement [] parts {}
// CHECK: commir.launch "matmul"
// CHECK: %[[WITHIN:.*]] = commir.alloc slots 2 placement [] parts {i = 6 : i64}
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 3 placement [] parts {i = 6 : i64}
// CHECK: scf.for %[[OTHER:.*]] = %c0{{.*}} to %c2
// CHECK:   scf.for %[[MEMBER:.*]] = %c0{{.*}} to %c3
// CHECK:     %[[FIRST:.*]] = arith.muli %[[OTHER]], %c3
// CHECK:     %[[AT:.*]] = arith.addi %[[FIRST]], %[[MEMBER]]
// CHECK:     %[[PART:.*]] = commir.part %[[PARTIAL]] [i : %[[AT]] of 6]
// CHECK:     %[[SLOT:.*]] = commir.part %[[SLOTS]] slot %[[MEMBER]] [i : %[[AT]] of 6]
// CHECK:     commir.copy %[[PART]] to %[[SLOT]]
// CHECK:   %[[MINE:.*]] = commir.part %[[WITHIN]] slot %[[OTHER]] [i : %{{.*}} of 6]
// CHECK:   commir.reduce_scatter.start %[[SLOTS]] into %[[MINE]] merge(sum) on "gpu" along i :
// CHECK: %[[SUM:.*]] = commir.alloc slots 1 placement [i -> (node, gpu)] parts {}
// CHECK-NOT: commir.copy
// CHECK: commir.reduce_scatter.start %[[WITHIN]] into %{{.*}} merge(sum) on "node" along i {commir.stride = 3 : i64}
// P2P-LABEL: commir.program @r5_fast_level_first
// P2P: commir.exchange.start {{.*}} on "gpu"
// P2P: commir.exchange.start {{.*}} on "node"
// P2P-NOT: commir.reduce_scatter
commir.mesh @mesh(node = 2, gpu = 3)
commir.program @r5_fast_level_first on @mesh axes(i = 7, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> (node, gpu)]) {
  commir.for i, j, k of 6 parallel(node, gpu) {
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
// R5 along two axes: nothing waits in slots
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r5_two_axes
// CHECK: commir.launch "matmul"
// CHECK: commir.alloc slots 1 placement [j -> gpu] parts {}
// CHECK: commir.reduce_scatter.start {{.*}} on "gpu" along j
// CHECK: commir.alloc slots 1 placement [j -> gpu, i -> node] parts {}
// CHECK: commir.reduce_scatter.start {{.*}} on "node" along i
// P2P-LABEL: commir.program @r5_two_axes
commir.mesh @mesh(node = 2, gpu = 3)
commir.program @r5_two_axes on @mesh axes(i = 7, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> node, j -> gpu]) {
  commir.for i, j, k of 6 parallel(node, gpu) {
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

// What two levels share out of one axis waits while another shares out a second.
// CHECK-LABEL: commir.program @r5_around_another_axis
// CHECK: commir.launch "matmul"
// CHECK: commir.alloc slots 2 placement [] parts {i = 4 : i64}
// CHECK: commir.reduce_scatter.start {{.*}} on "c" along i
// CHECK: commir.alloc slots 2 placement [j -> b] parts {i = 4 : i64}
// CHECK: commir.reduce_scatter.start {{.*}} on "b" along j
// CHECK: commir.alloc slots 1 placement [j -> b, i -> (a, c)] parts {}
// CHECK: commir.reduce_scatter.start {{.*}} on "a" along i {commir.stride = 2 : i64}
// P2P-LABEL: commir.program @r5_around_another_axis
commir.mesh @mesh(a = 2, b = 3, c = 2)
commir.program @r5_around_another_axis on @mesh axes(i = 7, j = 8, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> (a, c), j -> b]) {
  commir.for i, j, k of 12 parallel(a, b, c) {
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
// R5 of a softmax pair
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r5_pair
// CHECK: commir.launch "attention_fwd"
// CHECK: commir.alloc slots 2 placement [] parts {sq = 4 : i64} : !commir.buffer<[b, sq, h, 4]
// CHECK: scf.for %[[OTHER:.*]] = %c0{{.*}} to %c2
// CHECK:   scf.for
// CHECK:     commir.exchange.start {{.*}} on "gpu"
// CHECK:     commir.launch "softmax_merge"
// CHECK: scf.for
// CHECK:   commir.exchange.start {{.*}} on "node"
// CHECK:   commir.launch "softmax_merge"
// CHECK-NOT: commir.exchange.start {{.*}} on "gpu"
// P2P-LABEL: commir.program @r5_pair
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @r5_pair on @mesh axes(b = 1, sq = 7, sk = 8, h = 2)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>,
           %K: !commir.buffer<[b, sk, h, 4], f32>,
           %V: !commir.buffer<[b, sk, h, 4], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 4], f32> shard [sq -> (node, gpu)],
            %L: !commir.buffer<[b, h, sq], f32> shard [sq -> (node, gpu)]) {
  commir.for b, h, sq, sk of 4 parallel(node, gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 4], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 4], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) {scale = 0.5 : f64}
        : (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>,
           !commir.tile<[b, sk, h, 4], f32>)
        -> (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %L merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 4], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

//===----------------------------------------------------------------------===//
// R4: the fast level shares the sum out for as long as the slow one merges
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r4_two_levels
// CHECK: commir.launch "matmul"
// CHECK: commir.reduce_scatter.start {{.*}} on "gpu" along j
// CHECK: commir.all_reduce.start {{.*}} on "node"
// CHECK: commir.redistribute
// P2P-LABEL: commir.program @r4_two_levels
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @r4_two_levels on @mesh axes(i = 7, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> replicate [node, gpu]) {
  commir.for i, j, k of 8 parallel(node, gpu) {
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

// One position has no shares: all of it goes over both levels.
// CHECK-LABEL: commir.program @r4_one_position
// CHECK: commir.all_reduce.start {{.*}} on "gpu"
// CHECK: commir.all_reduce.start {{.*}} on "node"
// CHECK-NOT: commir.redistribute
// P2P-LABEL: commir.program @r4_one_position
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @r4_one_position on @mesh axes(i = 1, j = 1, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> replicate [node, gpu]) {
  commir.for i, j, k of 8 parallel(node, gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
