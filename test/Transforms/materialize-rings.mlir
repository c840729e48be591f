// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// R3 by pull: each step reads the next part out of its owner's memory
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @pull on
// CHECK: %[[LEASE:.*]] = commir.lease.open %B on "gpu" : !commir.buffer<[k, j], f32>
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2
// CHECK: scf.for
// CHECK:   %[[THEIRS:.*]] = commir.lease.memory %[[LEASE]] of %[[NEXT:.*]] : !commir.buffer<[k, j], f32>
// CHECK:   %[[FROM:.*]] = commir.part %[[THEIRS]] [k : %[[NEXT]] of 4]
// CHECK:   %[[INTO:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [k : %[[NEXT]] of 4]
// CHECK:   %[[TOKEN:.*]] = commir.pull.start %[[FROM]] into %[[INTO]] of %[[LEASE]] from %[[NEXT]] when
// CHECK:   commir.launch "matmul"
// CHECK:   commir.wait %[[TOKEN]]
// CHECK: commir.lease.close %[[LEASE]]
commir.mesh @mesh(gpu = 4)
commir.program @pull on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, reads pull) {
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

// Half of the next part arrives while half of this one is worked on.
// CHECK-LABEL: commir.program @pull_in_chunks on
// CHECK: scf.for
// CHECK:   scf.for %[[CHUNK:.*]] = %c0{{.*}} to %c2
// CHECK:     %[[TOKEN:.*]] = commir.pull.start
// CHECK:     commir.launch "matmul"
// CHECK:     commir.wait %[[TOKEN]]
commir.mesh @mesh(gpu = 4)
commir.program @pull_in_chunks on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, reads pull, chunks 2) {
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

// Terms add: a block of A comes from its owner in the row, one of B from its
// owner in the column. The first is not the rank's own.
// CHECK-LABEL: commir.program @cannon_by_pull on
// CHECK-DAG: commir.lease.open %A on "col"
// CHECK-DAG: commir.lease.open %B on "row"
// CHECK: commir.pull.start
// CHECK: commir.pull.start
// CHECK: commir.wait
// CHECK: commir.wait
// CHECK: scf.for
// CHECK: commir.pull.start
// CHECK: commir.pull.start
commir.mesh @mesh(row = 2, col = 2)
commir.program @cannon_by_pull on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 parallel(row), j of 2 parallel(col),
      k of 2 shift(by i on row, by j on col, reads pull) {
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

// Blocks rotate as well, once each has hopped as far as the other rank says.
// CHECK-LABEL: commir.program @cannon on
// CHECK: commir.exchange.start {{.*}} on "col" when %true
// CHECK: commir.exchange.start {{.*}} on "row" when %true
// CHECK: scf.for
// CHECK: commir.exchange.start {{.*}} on "col"
// CHECK: commir.exchange.start {{.*}} on "row"
commir.mesh @mesh(row = 2, col = 2)
commir.program @cannon on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 parallel(row), j of 2 parallel(col),
      k of 2 shift(by i on row, by j on col) {
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
// R6 by deliver: partial results go straight to their owners. The first that
// comes is the sum so far, and the own part is added to it by its launch.
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r6_deliver on
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: scf.for
// CHECK:   %[[CAME:.*]] = commir.part %{{[0-9]+}} [i : %[[R]] of 4]
// CHECK:   %[[SUM:.*]] = commir.part %C [i : %[[R]] of 4]
// CHECK:   %[[INTO:.*]] = arith.select %{{.*}}, %[[SUM]], %[[CAME]]
// CHECK:   %[[TOKEN:.*]] = commir.exchange.start %{{.*}} to %{{.*}}, %[[INTO]] from
// CHECK:   %[[HERE:.*]] = arith.select
// CHECK:   scf.if
// CHECK-NEXT: commir.launch "matmul" ins({{.*}}) outs(%[[HERE]] : {{.*}} {overwrite = array<i1: true>}
// CHECK-NEXT: } else {
// CHECK-NEXT: commir.launch "matmul" ins({{.*}}) outs(%[[HERE]] : {{.*}} at(){{$}}
// CHECK:   commir.wait %[[TOKEN]]
// CHECK:   scf.if
// CHECK-NEXT: commir.accumulate %[[CAME]] to %[[SUM]] :
// CHECK-NOT: commir.{{fill|copy|accumulate}}
commir.mesh @mesh(gpu = 4)
commir.program @r6_deliver on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, results deliver) {
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
// R9 of results: the sum of the inner ring is what the outer one passes on
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r9_results_travel_twice on
// CHECK: scf.for
// CHECK:   commir.exchange.start {{.*}} on "node"
// CHECK:   scf.for
// CHECK:     commir.exchange.start {{.*}} on "gpu"
// CHECK:     commir.launch "matmul"
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @r9_results_travel_twice on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> (node, gpu)]) {
  commir.for j, k of 4 parallel(node, gpu), i_node in i of 2 shift(by k on node, offset 1),
      i_gpu in i of 2 shift(by k on gpu, offset 1) {
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
// Windows: the steps that no rank needs are left out
//===----------------------------------------------------------------------===//

// Behind a window of one shard, two steps see all, when the part before the own
// one comes next.
// CHECK-LABEL: commir.program @window_behind on
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2
// CHECK: commir.exchange.start
commir.mesh @mesh(gpu = 8)
commir.program @window_behind on @mesh axes(b = 1, h = 1, sq = 64, sk = 64)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h, 4], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 8 parallel(gpu), sk of 8 shift(by sq on gpu, direction -1) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 4], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(window(8, 0))
        : (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>)
        -> (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 4], f32>, !commir.buffer<[b, h, sq], f32>
  }
}
