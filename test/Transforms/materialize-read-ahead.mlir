// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --cse | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -o /dev/null

// Three slices on three ranks have six pulls, and a pass for what the last one
// brings. The rank's shard is lent once, as it lies.
// CHECK-LABEL: commir.program @slices on
// CHECK: %[[LEASE:.*]] = commir.lease.open %K
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {b = 3 : i64, sk = 3 : i64} : !commir.buffer<[b, sk, h, 8], f32>
// CHECK-NOT: commir.copy
// CHECK: %[[END:.*]] = arith.constant 7 : index
// CHECK: scf.for %[[PASS:.*]] = %{{.*}} to %[[END]]
// CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[PASS]], %c6
// CHECK: commir.part %{{.*}} slot %{{.*}} [b : %{{.*}} of 3, sk : %{{.*}} of 3]
// CHECK: %[[TOKEN:.*]] = commir.pull.start {{.*}}%[[LEASE]]{{.*}}when %[[MORE]]
// CHECK: scf.for
// CHECK-NOT: commir.wait
// CHECK: commir.launch "attention_fwd"
// CHECK: commir.wait %[[TOKEN]]
// CHECK: commir.lease.close %[[LEASE]]
commir.mesh @mesh(gpu = 3)
commir.program @slices on @mesh axes(b = 3, h = 2, sq = 12, sk = 12)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>, %K: !commir.buffer<[b, sk, h, 8], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b of 3, h, sq of 3 parallel(gpu), sk of 3 shift(by sq on gpu, reads pull) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k)
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], f32>, !commir.buffer<[b, h, sq], f32>
  }
}
