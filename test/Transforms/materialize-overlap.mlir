// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-spmd -split-input-file | FileCheck %s --check-prefix=SPMD

//===----------------------------------------------------------------------===//
// Both products are in the text, each in a lane of its own. The second waits for
// its rows, which are read while the first is made, and for nothing else
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @products on
// CHECK-NOT: scf.for
// CHECK: %[[TOKEN:.*]] = commir.pull.start
// CHECK: commir.launch "matmul" {{.*}}commir.lane = 0 : i64
// CHECK: commir.wait %[[TOKEN]]
// CHECK-NOT: commir.pull.start
// CHECK: commir.launch "matmul" {{.*}}commir.lane = 1 : i64
// CHECK: commir.lease.close

// SPMD-LABEL: func.func @products
// SPMD: commir.pull.start
// SPMD: commir.lane.order 0 before 1
// SPMD: commir.launch "matmul"
// SPMD-NEXT: commir.lane.use 1
// SPMD-NEXT: commir.wait
// SPMD: commir.launch "matmul"
// SPMD-NEXT: commir.lane.use 0
// SPMD-NEXT: commir.lane.order 1 before 0
// SPMD: commir.lease.close
commir.mesh @mesh(gpu = 2)
commir.program @products on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 shift(by j on gpu, reads pull), j of 2 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}

// -----

//===----------------------------------------------------------------------===//
// Attention whose partial results wait: one merge of both after the lanes joined.
// Pieces of a zigzag part that one launch takes stay in its lane
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @attention on
// CHECK: commir.launch "attention_fwd" {{.*}}commir.lane = 0 : i64
// CHECK: commir.launch "attention_fwd" {{.*}}commir.lane = 1 : i64
// CHECK: commir.launch "softmax_merge_all"

// SPMD-LABEL: func.func @attention
// SPMD: commir.lane.order 0 before 1
// SPMD: commir.launch "attention_fwd"
// SPMD: commir.lane.use 1
// SPMD: commir.launch "attention_fwd"
// SPMD: commir.lane.order 1 before 0
// SPMD: commir.launch "softmax_merge_all"
commir.mesh @mesh(gpu = 2)
commir.program @attention on @mesh axes(b = 1, h = 2, sq = 16 zigzag, sk = 16 zigzag)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>, %K: !commir.buffer<[b, sk, h, 8], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 2 parallel(gpu), sk of 2 shift(by sq on gpu, reads pull) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal)
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) deferred
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], f32>, !commir.buffer<[b, h, sq], f32>
  } {commir.overlap = "sk"}
}

// -----

//===----------------------------------------------------------------------===//
// More steps take turns in two lanes. Two parts are read while a third comes: of a
// ring, as of what is pulled, three slots. What the steps merge into is deferred
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @more_steps on
// CHECK: commir.alloc slots 3 placement [] parts {i = 4 : i64}
// CHECK-COUNT-3: commir.exchange.start
// CHECK-NOT: commir.exchange.start

// SPMD-LABEL: func.func @more_steps
// SPMD: commir.exchange.start
// SPMD: commir.lane.order 0 before 1
// SPMD: commir.launch "matmul"
// SPMD: commir.lane.use 1
// SPMD-NEXT: commir.wait
// SPMD: commir.exchange.start
// SPMD: commir.launch "matmul"
// SPMD: commir.lane.use 0
// SPMD-NEXT: commir.wait
// SPMD: commir.exchange.start
// SPMD: commir.launch "matmul"
// SPMD: commir.lane.use 1
// SPMD-NEXT: commir.wait
// SPMD: commir.launch "matmul"
// SPMD-NEXT: commir.lane.use 0
// SPMD-NEXT: commir.lane.order 1 before 0
commir.mesh @mesh(gpu = 4)
commir.program @more_steps on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 shift(by j on gpu), j of 4 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}

// -----

//===----------------------------------------------------------------------===//
// Pieces of a part, launched one after the other in a loop, are all in its lane
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @in_pieces on

// SPMD-LABEL: func.func @in_pieces
// SPMD: commir.lane.order 0 before 1
// SPMD-NOT: commir.lane
// SPMD: commir.launch "matmul"
// SPMD: commir.lane.use 1
// SPMD-NEXT: commir.wait
// SPMD-NOT: commir.lane
// SPMD: commir.launch "matmul"
// SPMD: commir.lane.use 0
// SPMD-NEXT: commir.lane.order 1 before 0
commir.mesh @mesh(gpu = 2)
commir.program @in_pieces on @mesh axes(i = 16 zigzag, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  commir.for i of 2 shift(by j on gpu), j of 2 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "i"}
}
