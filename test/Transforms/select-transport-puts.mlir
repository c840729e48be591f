// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication "--commir-select-transport=transports=p2p,rma rma-levels=gpu" -split-input-file | FileCheck %s
// RUN: mercury-opt %s "--commir-to-spmd=transports=p2p,rma rma-levels=gpu" -split-input-file | FileCheck %s --check-prefix=PLAN
// RUN: mercury-opt %s "--commir-to-spmd=transports=sim,rma rma-levels=gpu depth=2" -split-input-file -o /dev/null

// R3: what a rank owns is copied to the plan's own memory before it is put, and
// only then; slots come around. The slots of both ends are symmetric.
// CHECK-LABEL: commir.program @rotated
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {i = 3 : i64}
// CHECK: scf.for
// CHECK:   %[[OWN:.*]] = commir.part %A [i : %{{.*}} of 3]
// CHECK:   %[[HELD:.*]] = commir.part %[[SLOTS]] slot
// CHECK:   %[[ISOWN:.*]] = arith.cmpi eq
// CHECK:   %[[COMES:.*]] = commir.part %[[SLOTS]] slot
// CHECK:   %[[NOW:.*]] = arith.andi %{{.*}}, %[[ISOWN]]
// CHECK:   %[[STAGING:.*]] = commir.alloc slots 1 placement [i -> gpu] parts {i = 3 : i64}
// CHECK:   %[[STAGED:.*]] = commir.part %[[STAGING]] [i :
// CHECK:   scf.if %[[NOW]] {
// CHECK:     commir.copy %[[OWN]] to %[[STAGED]]
// CHECK:   %[[SENT:.*]] = arith.select %[[ISOWN]], %[[STAGED]], %[[HELD]]
// CHECK:   commir.exchange.start %[[SENT]] to %{{.*}}, %[[COMES]] from %{{.*}} on "gpu" when %{{.*}} {commir.transport = "rma"}
// PLAN-LABEL: func.func @rotated
// PLAN-SAME: commir.local_bytes = 0 : i64
// PLAN-SAME: commir.symmetric_bytes = 384 : i64
// PLAN: commir.exchange.start {{.*}} {commir.transport = "rma"}
commir.mesh @mesh(gpu = 3)
commir.program @rotated on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [i -> gpu],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for j of 3 parallel(gpu), i of 3 shift(by j on gpu), k {
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

// R7 is no put: what comes of each rank has a place of its own. A ring is.
// CHECK-LABEL: commir.program @both
// CHECK: commir.redistribute {{.*}} {commir.transport = "p2p"}
// CHECK: commir.exchange.start {{.*}} {commir.transport = "rma"}
commir.mesh @mesh(gpu = 3)
commir.program @both on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [i -> gpu],
           %B: !commir.buffer<[k, j], f32> shard [k -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for j of 3 parallel(gpu), i of 3 shift(by j on gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
