// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// What does not serve in the way that the schedule asks comes in a simpler one,
// and a remark says so
//===----------------------------------------------------------------------===//

// One result travels, so that the other is delivered, each in one chunk.
// CHECK-LABEL: commir.program @in_two_ways on
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK-COUNT-2: commir.exchange.start
// CHECK: commir.launch "attention_bwd"
commir.mesh @mesh(gpu = 4)
commir.program @in_two_ways on @mesh axes(b = 1, h = 2, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>)
    outputs(%dQ: !commir.buffer<[b, sq, h, 4], f32>, %dK: !commir.buffer<[b, sk, h, 4], f32>, %dV: !commir.buffer<[b, sk, h, 4], f32>) {
  // expected-remark@below {{'sk' moves what it moves in one chunk: other results of the loop move in another way}}
  commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu, offset 1, reads pull, results deliver, via {dV = "travel"}, chunks 2) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 4], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %k, %q, %q, %l)
        : (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>,
           !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>)
    commir.store %dq to %dQ merge(sum) over(sk)
        : !commir.tile<[b, sq, h, 4], f32> to !commir.buffer<[b, sq, h, 4], f32>
    commir.store %dk to %dK merge(sum) over(sq)
        : !commir.tile<[b, sk, h, 4], f32> to !commir.buffer<[b, sk, h, 4], f32>
    commir.store %dv to %dV merge(sum) over(sq)
        : !commir.tile<[b, sk, h, 4], f32> to !commir.buffer<[b, sk, h, 4], f32>
  }
}

// -----

// What comes in chunks ends with the own part.
// CHECK-LABEL: commir.program @own_part_first on
// CHECK: commir.exchange.start
// CHECK: commir.launch "matmul"
commir.mesh @mesh(gpu = 4)
commir.program @own_part_first on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'i' moves what it moves in one chunk: the own part does not come last, as with offset d it does}}
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, results deliver, chunks 2) {
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

// And so does what is fetched.
// CHECK-LABEL: commir.program @own_part_first_backward on
// CHECK-NOT: commir.lease.open
// CHECK: commir.exchange.start
// CHECK: commir.launch "matmul"
commir.mesh @mesh(gpu = 4)
commir.program @own_part_first_backward on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'i' moves what it moves by messages, not by fetching it: the own part does not come last, as with offset d it does}}
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, direction -1, results fetch) {
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

// What the loop over j brings of a chunk has a tile in each part of i_inner.
// CHECK-LABEL: commir.program @in_pieces_along_nested_loops on
// CHECK: commir.exchange.start
commir.mesh @mesh(a = 2, b = 2, c = 2)
commir.program @in_pieces_along_nested_loops on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> a, j -> c] replicate [b]) {
  // expected-remark@below {{'i_outer' moves what it moves in one chunk: what the loops inside bring of a chunk is in pieces}}
  commir.for k of 8 parallel(a, b, c), i_outer in i of 2 shift(by k on a, offset 1, results deliver, chunks 2), i_inner in i of 2 shift(by k on b), j of 2 shift(by k on c, offset 1) {
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

// Chunks of a part, and parts of it that another loop moves over the same ranks, cut it in two ways.
// CHECK-LABEL: commir.program @around_a_ring_over_the_same_ranks on
// CHECK: commir.exchange.start
commir.mesh @mesh(gpu = 2)
commir.program @around_a_ring_over_the_same_ranks on @mesh axes(i = 12, j = 8, k = 15)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'i_outer' moves what it moves in one chunk: loop 'i_inner' moves parts of a chunk over the same ranks}}
  commir.for i_outer in i of 2 shift(by k on gpu, offset 1, reads pull, chunks 3), i_inner in i of 2 shift(by k on gpu, offset 1), j, k of 2 parallel(gpu) {
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

// Several parts a rank move as chunks of one do.
// CHECK-LABEL: commir.program @several_parts_own_part_first on
// CHECK: commir.launch "matmul"
// CHECK: commir.reduce_scatter.start {{.*}} on "gpu" along i
commir.mesh @mesh(gpu = 4)
commir.program @several_parts_own_part_first on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'C' does not move along 'i', but is reduced when the loops have ended: the own part does not come last, as with offset d it does}}
  commir.for j, k of 4 parallel(gpu), i of 8 shift(by k on gpu, results deliver) {
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

// A rank starts within the parts of another.
// CHECK-LABEL: commir.program @several_parts_out_of_order on
// CHECK: commir.launch "matmul"
// CHECK: commir.reduce_scatter.start {{.*}} on "gpu" along i
commir.mesh @mesh(gpu = 4)
commir.program @several_parts_out_of_order on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'C' does not move along 'i', but is reduced when the loops have ended: it does not walk the 2 parts of a rank one after the other, as direction 1 does with an offset that is a multiple of their number}}
  commir.for j, k of 4 parallel(gpu), i of 8 shift(by k on gpu, offset 1) {
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

// A rank walks the parts of another from behind.
// CHECK-LABEL: commir.program @several_parts_from_behind on
// CHECK: commir.launch "matmul"
// CHECK: commir.reduce_scatter.start {{.*}} on "gpu" along i
commir.mesh @mesh(gpu = 4)
commir.program @several_parts_from_behind on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'C' does not move along 'i', but is reduced when the loops have ended: it does not walk the 2 parts of a rank one after the other, as direction 1 does with an offset that is a multiple of their number}}
  commir.for j, k of 4 parallel(gpu), i of 8 shift(by k on gpu, direction -1) {
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

// What is merged at the end is delivered, or fetched, whole.
// CHECK-LABEL: commir.program @deferred_in_chunks on
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: commir.exchange.start
// CHECK: commir.launch "sum_all"
commir.mesh @mesh(gpu = 4)
commir.program @deferred_in_chunks on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'i' moves what it moves in one chunk: the merge of 'C' is deferred}}
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, results deliver, chunks 2) {
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

// So it is by fetch.
// CHECK-LABEL: commir.program @deferred_by_fetch on
// CHECK: commir.lease.open
// CHECK: commir.pull.start
// CHECK: commir.launch "sum_all"
commir.mesh @mesh(gpu = 4)
commir.program @deferred_by_fetch on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-remark@below {{'i' moves what it moves in one chunk: the merge of 'C' is deferred}}
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, results fetch, chunks 2) {
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

// What rotates along an outer ring is where the inner one starts.
// CHECK-LABEL: commir.program @chunks_around_a_ring on
// CHECK: commir.exchange.start {{.*}} on "node"
// CHECK: commir.exchange.start {{.*}} on "gpu"
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @chunks_around_a_ring on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'k_outer' moves what it moves in one chunk: what it brings of 'B' comes whole to the loops inside, unless it is pulled}}
  commir.for i_outer in i of 2 parallel(node), i_inner in i of 2 parallel(gpu), j,
      k_outer in k of 2 shift(by i_outer on node, chunks 2), k_inner in k of 2 shift(by i_inner on gpu) {
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

// A chunk of B would lie in each part of the ring inside.
// CHECK-LABEL: commir.program @chunks_of_a_ring_around_another on
// CHECK: commir.exchange.start {{.*}} on "node"
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @chunks_of_a_ring_around_another on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> replicate [gpu],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'k_outer' moves what it moves in one chunk: a chunk of 'B' has rows of each part of the loops inside, unless it is pulled}}
  commir.for i of 2 parallel(node), j of 2 parallel(gpu),
      k_outer in k of 2 shift(by i on node, chunks 2), k_inner in k of 2 shift(by j on gpu) {
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

// Parts of h that share a row of dK cannot move each on its own.
// CHECK-LABEL: commir.program @grouped_result on
// CHECK-COUNT-2: commir.reduce_scatter.start {{.*}} on "gpu" along h
commir.mesh @mesh(gpu = 4)
commir.program @grouped_result on @mesh axes(b = 1, h = 8, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h/4, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>)
    outputs(%dQ: !commir.buffer<[b, sq, h, 4], f32>, %dK: !commir.buffer<[b, sk, h/4, 4], f32>, %dV: !commir.buffer<[b, sk, h/4, 4], f32>) {
  // expected-remark@below {{'dK' does not move along 'h', but is reduced when the loops have ended: its parts share some of 'h/4'}}
  commir.for b, h of 4 shift(by sq on gpu), sq of 4 parallel(gpu), sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/4, 4], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %k, %q, %q, %l)
        : (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>,
           !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>)
    commir.store %dq to %dQ merge(sum) over(sk)
        : !commir.tile<[b, sq, h, 4], f32> to !commir.buffer<[b, sq, h, 4], f32>
    commir.store %dk, %dv to %dK, %dV merge(sum) over(sq, h)
        : !commir.tile<[b, sk, h/4, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>
        to !commir.buffer<[b, sk, h/4, 4], f32>, !commir.buffer<[b, sk, h/4, 4], f32>
  }
}

// -----

// In another order than the mesh's: no group has these ranks in this order.
// CHECK-LABEL: commir.program @exchanged on
// CHECK-NOT: commir.broadcast.start
// CHECK: commir.redistribute %A
commir.mesh @mesh(row = 2, col = 3)
commir.program @exchanged on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> (col, row)] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'A' comes whole before the loops, not panel by panel: no loop walks its placement}}
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Panels are walked by all ranks alike.
// CHECK-LABEL: commir.program @parallel_outside on
// CHECK: commir.all_gather.start
// CHECK-NOT: commir.broadcast.start
commir.mesh @mesh(row = 6, col = 3)
commir.program @parallel_outside on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] replicate [row] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'A' comes whole before the loops, not panel by panel: no loop walks 'k' in sequence outside those in parallel}}
  commir.for i, k_outer in k of 6 parallel(row), j of 3 parallel(col), k_inner in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// A panel comes once, whatever the chunks of the work on it.
// CHECK-LABEL: commir.program @panels_in_chunks on
// CHECK: commir.all_gather.start
// CHECK-NOT: commir.broadcast.start
commir.mesh @mesh(row = 3, col = 3)
commir.program @panels_in_chunks on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'A' comes whole before the loops, not panel by panel: 'k' moves parts in chunks}}
  commir.for i of 3 parallel(row), j of 3 parallel(col), k of 3 shift(by i on row, chunks 2) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
