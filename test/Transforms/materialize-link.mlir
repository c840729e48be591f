// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --canonicalize --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// What is read is rounded once, by its owner
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @rotate
// CHECK: %[[OWN:.*]] = commir.alloc slots 1 placement [k -> gpu] parts {} : !commir.buffer<[k, j], bf16>
// CHECK: commir.copy %{{.*}} to %{{.*}} : !commir.tile<[k, j], f32> to !commir.tile<[k, j], bf16>
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {k = 4 : i64} : !commir.buffer<[k, j], bf16>
// CHECK: %[[WIDE:.*]] = commir.alloc slots 1 placement [] parts {k = 4 : i64} : !commir.buffer<[k, j], f32>
// CHECK: scf.for
// CHECK: commir.exchange.start %{{.*}} to {{.*}} : !commir.tile<[k, j], bf16>, !commir.tile<[k, j], bf16>
// CHECK: %[[PART:.*]] = commir.part %[[WIDE]]
// CHECK: commir.copy %{{.*}} to %[[PART]] : !commir.tile<[k, j], bf16> to !commir.tile<[k, j], f32>
// CHECK: commir.launch "matmul" ins(%{{.*}}, %[[PART]] :
commir.mesh @mesh(gpu = 4)
commir.program @rotate on @mesh axes(i = 8, j = 8, k = 7)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, link bf16) {
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

// What is pulled lies in the owner's staging.
// CHECK-LABEL: commir.program @pull
// CHECK: %[[OWN:.*]] = commir.alloc slots 1 placement [k -> gpu] parts {} : !commir.buffer<[k, j], f16>
// CHECK: commir.copy
// CHECK: commir.lease.open %[[OWN]] on "gpu"
// CHECK: commir.pull.start %{{.*}} into {{.*}} : !commir.tile<[k, j], f16>, !commir.tile<[k, j], f16>
commir.mesh @mesh(gpu = 4)
commir.program @pull on @mesh axes(i = 8, j = 8, k = 7)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, reads pull, chunks 2, link f16) {
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

// What is no wider than the link moves as it is.
// CHECK-LABEL: commir.program @narrow_already
// CHECK-NOT: commir.copy %{{.*}} : !commir.tile<[k, j]
commir.mesh @mesh(gpu = 4)
commir.program @narrow_already on @mesh axes(i = 8, j = 8, k = 7)
    inputs(%A: !commir.buffer<[i, k], bf16>,
           %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, link f32) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

//===----------------------------------------------------------------------===//
// Partial results are rounded as they leave, and added in the sum's type
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @travel
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 2 {{.*}} : !commir.buffer<[i, j], f32>
// CHECK: %[[IN:.*]] = commir.alloc slots 1 {{.*}} : !commir.buffer<[i, j], bf16>
// CHECK: %[[OUT:.*]] = commir.alloc slots 1 {{.*}} : !commir.buffer<[i, j], bf16>
// CHECK: scf.for
// CHECK: %[[LEAVES:.*]] = commir.part %[[OUT]]
// CHECK: commir.exchange.start %[[LEAVES]] to
// CHECK: commir.launch "matmul" ins({{.*}}) outs(%[[SUM:.*]] :
// CHECK: commir.accumulate %{{.*}} to %[[SUM]] : !commir.tile<[i, j], bf16> to !commir.tile<[i, j], f32>
// CHECK: commir.copy %[[SUM]] to %{{.*}} : !commir.tile<[i, j], f32> to !commir.tile<[i, j], bf16>
commir.mesh @mesh(gpu = 4)
commir.program @travel on @mesh axes(i = 9, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, link bf16) {
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

// What waits for one merge is rounded on its way alone: the own part is not, and what came waits in the sum's type.
// CHECK-LABEL: commir.program @deferred
// CHECK: %[[WAITS:.*]] = commir.alloc slots 4 {{.*}} : !commir.buffer<[i, j], f32>
// CHECK: %[[IN:.*]] = commir.alloc slots 1 {{.*}} : !commir.buffer<[i, j], bf16>
// CHECK: scf.for %[[STEP:.*]] = %c0
// CHECK: %[[COMES:.*]] = commir.part %[[IN]]
// CHECK: commir.exchange.start %{{.*}} to %{{.*}}, %[[COMES]] from
// CHECK: %[[STAYS:.*]] = commir.part %[[WAITS]] slot %[[STEP]]
// CHECK: commir.copy %{{.*}} to %[[STAYS]] : !commir.tile<[i, j], bf16> to !commir.tile<[i, j], f32>
// CHECK: commir.launch "sum_all"
commir.mesh @mesh(gpu = 4)
commir.program @deferred on @mesh axes(i = 9, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, results deliver, link bf16) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) deferred
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Along nested rings what is read is rounded once, to the narrowest of their links, and moves so along both.
// CHECK-LABEL: commir.program @nested
// CHECK: commir.copy %{{.*}} to %{{.*}} : !commir.tile<[k, j], f32> to !commir.tile<[k, j], bf16>
// CHECK-NOT: commir.copy %{{.*}} : !commir.tile<[k, j], f32>
// CHECK: commir.exchange.start {{.*}} on "node" {{.*}} : !commir.tile<[k, j], bf16>, !commir.tile<[k, j], bf16>
// CHECK: commir.exchange.start {{.*}} on "gpu" {{.*}} : !commir.tile<[k, j], bf16>, !commir.tile<[k, j], bf16>
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @nested on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i_outer in i of 2 parallel(node), i_inner in i of 2 parallel(gpu), j,
      k_outer in k of 2 shift(by i_outer on node), k_inner in k of 2 shift(by i_inner on gpu, link bf16) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
