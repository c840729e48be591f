// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-spmd -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// A library cannot merge: the first step writes the result, the others write in
// the operands' type what the generated merge adds to it
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @library on
// CHECK-DAG: %[[O:.*]] = commir.alloc slots 1 placement [] parts {sq = 3 : i64} : !commir.buffer<[b, sq, h, 8], bf16>
// CHECK-DAG: %[[L:.*]] = commir.alloc slots 1 placement [] parts {sq = 3 : i64} : !commir.buffer<[b, h, sq], f32>
// CHECK: scf.if
// CHECK: commir.launch "attention_fwd" {{.*}} impl("cudnn") {overwrite = array<i1: true, true>}
// CHECK: } else {
// CHECK-DAG: %[[PLACE:.*]] = commir.part %[[O]] [sq : %{{.*}} of 3] : {{.*}} -> !commir.tile<[b, sq, h, 8], bf16>
// CHECK-DAG: %[[STACK:.*]] = commir.part %[[O]] stack 1 [sq : %{{.*}} of 3]
// CHECK-DAG: %[[STACK_L:.*]] = commir.part %[[L]] stack 1 [sq : %{{.*}} of 3]
// CHECK: commir.launch "attention_fwd" {{.*}} outs(%[[PLACE]], {{.*}} impl("cudnn") {overwrite = array<i1: true, true>}
// CHECK: commir.launch "softmax_merge_all" ins(%[[STACK]], %[[STACK_L]] {{.*}} at(){{$}}
commir.mesh @mesh(gpu = 3)
commir.program @library on @mesh axes(b = 1, h = 2, sq = 12, sk = 12)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 3 parallel(gpu), sk of 3 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) impl("cudnn")
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %l, %o to %LSE, %O merge(softmax) over(sk)
        : !commir.tile<[b, h, sq], f32>, !commir.tile<[b, sq, h, 8], f32>
        to !commir.buffer<[b, h, sq], f32>, !commir.buffer<[b, sq, h, 8], bf16>
  }
}

// -----

//===----------------------------------------------------------------------===//
// The generated kernel merges itself, and so does a library where it takes
// several launches for the pieces of a part
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @generated on
// CHECK-NOT: softmax_merge_all
// CHECK: commir.launch "attention_fwd"
// CHECK-NOT: softmax_merge_all
commir.mesh @mesh(gpu = 3)
commir.program @generated on @mesh axes(b = 1, h = 2, sq = 12, sk = 12)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 3 parallel(gpu), sk of 3 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k)
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

// CHECK-LABEL: commir.program @pieces on
// CHECK-NOT: softmax_merge_all
// CHECK: commir.launch "attention_fwd"
// CHECK-NOT: softmax_merge_all
commir.mesh @mesh(gpu = 3)
commir.program @pieces on @mesh axes(b = 1, h = 2, sq = 12 striped(2), sk = 12 striped(2))
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 3 parallel(gpu), sk of 3 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal) impl("cudnn")
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}
