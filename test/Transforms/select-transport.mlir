// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --commir-select-transport=transports=p2p -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --commir-select-transport=transports=p2p,collective,symm -split-input-file | FileCheck %s --check-prefix=ALL
// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --commir-select-transport=transports=sim,p2p -split-input-file | FileCheck %s --check-prefix=SIM

// Each plan is proved whatever its transports.
// RUN: mercury-opt %s "--commir-to-spmd=transports=p2p" -split-input-file | FileCheck %s --check-prefix=PLAN
// RUN: mercury-opt %s "--commir-to-spmd=transports=p2p,collective depth=2" -split-input-file -o /dev/null
// PLAN-NOT: commir.all_
// PLAN-NOT: commir.reduce_scatter
// PLAN: commir.exchange.start {{.*}} {commir.transport = "p2p"}

// R2, one message from each to each.
// CHECK-LABEL: commir.program @gathered
// CHECK: %[[OWN:.*]] = commir.part %A []
// CHECK: %[[MINE:.*]] = commir.part %[[SLOTS:.*]] slot %[[R:.*]] [i : %[[R]] of 3]
// CHECK: commir.copy %[[OWN]] to %[[MINE]]
// CHECK: scf.for %{{.*}} = %c1{{.*}} to %c3
// CHECK:   %[[THEIRS:.*]] = commir.part %[[SLOTS]] slot %[[FROM:.*]] [i : %[[FROM]] of 3]
// CHECK:   commir.exchange.start %[[OWN]] to %{{.*}}, %[[THEIRS]] from %[[FROM]] on "gpu" when %{{.*}} {commir.transport = "p2p"}
// ALL-LABEL: commir.program @gathered
// ALL: commir.all_gather.start {{.*}} {commir.transport = "collective"}
// SIM-LABEL: commir.program @gathered
// SIM: commir.all_gather.start {{.*}} {commir.transport = "sim"}
commir.mesh @mesh(gpu = 3)
commir.program @gathered on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [i -> gpu],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j of 3 parallel(gpu), k {
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

// R4: the partial results of all, added in the order of ranks.
// CHECK-LABEL: commir.program @all_reduced
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 3
// CHECK: commir.exchange.start
// CHECK: %[[FIRST:.*]] = commir.part %[[SLOTS]] slot %c0
// CHECK: commir.copy %[[FIRST]] to %[[SUM:.*]] :
// CHECK: scf.for %[[MEMBER:.*]] = %c1{{.*}} to %c3
// CHECK:   %[[MORE:.*]] = commir.part %[[SLOTS]] slot %[[MEMBER]]
// CHECK:   commir.accumulate %[[MORE]] to %[[SUM]]
// ALL-LABEL: commir.program @all_reduced
// ALL: commir.all_reduce.start {{.*}} {commir.transport = "collective"}
commir.mesh @mesh(gpu = 3)
commir.program @all_reduced on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> replicate [gpu]) {
  commir.for i, j, k of 3 parallel(gpu) {
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

// R5: each part is summed where it belongs.
// CHECK-LABEL: commir.program @scattered
// CHECK: %[[OUT:.*]] = commir.alloc slots 1 placement [] parts {i = 3 : i64}
// CHECK: %[[IN:.*]] = commir.alloc slots 1 placement [] parts {i = 3 : i64}
// CHECK: scf.for
// CHECK:   %[[LEAVES:.*]] = commir.part %[[OUT]]
// CHECK:   %[[COMES:.*]] = commir.part %[[IN]]
// CHECK:   commir.copy %{{.*}} to %[[LEAVES]]
// CHECK:   commir.exchange.start %[[LEAVES]] to %{{.*}}, %[[COMES]] from
// CHECK:   commir.accumulate %[[COMES]] to
// ALL-LABEL: commir.program @scattered
// ALL: commir.reduce_scatter.start {{.*}} {commir.transport = "collective"}
commir.mesh @mesh(gpu = 3)
commir.program @scattered on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for i, j, k of 3 parallel(gpu) {
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

// R7: the exchange of boxes, at once or message by message.
// CHECK-LABEL: commir.program @redistributed
// CHECK: commir.redistribute {{.*}} {commir.transport = "p2p"}
// ALL-LABEL: commir.program @redistributed
// ALL: commir.redistribute {{.*}} {commir.transport = "collective"}
commir.mesh @mesh(gpu = 3)
commir.program @redistributed on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32> at [k -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j of 3 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
