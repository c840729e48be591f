// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

// Each step writes a slot of its own, and one kernel merges the slots into the
// output, in its own type. The pair may be stored in either order.
// CHECK-LABEL: commir.program @ring on
// CHECK: %[[LSLOTS:.*]] = commir.alloc slots 4 placement [sq -> gpu] parts {} : !commir.buffer<[b, h, sq], f32>
// CHECK: %[[OSLOTS:.*]] = commir.alloc slots 4 placement [sq -> gpu] parts {} : !commir.buffer<[b, sq, h, 8], f32>
// CHECK: scf.for %[[STEP:.*]] = %c0
// CHECK: %[[O:.*]] = commir.part %[[OSLOTS]] slot %[[STEP]]
// CHECK: %[[L:.*]] = commir.part %[[LSLOTS]] slot %[[STEP]]
// CHECK: commir.launch "attention_fwd" ins({{.*}}) outs(%[[O]], %[[L]] : {{.*}}overwrite = array<i1: true, true>
// CHECK-NOT: commir.{{fill|copy|launch}}
// CHECK: %[[LALL:.*]] = commir.part %[[LSLOTS]] stack 4 [] : {{.*}} -> !commir.tile<[4, b, h, sq], f32>
// CHECK: %[[OALL:.*]] = commir.part %[[OSLOTS]] stack 4 [] : {{.*}} -> !commir.tile<[4, b, sq, h, 8], f32>
// CHECK: commir.launch "softmax_merge_all" ins(%[[OALL]], %[[LALL]] : {{.*}}) outs(%{{.*}}, %{{.*}} : !commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, h, sq], f32>) at() {overwrite = array<i1: true, true>}
// CHECK-NOT: commir.{{fill|copy|launch}}
commir.mesh @mesh(gpu = 4)
commir.program @ring on @mesh axes(b = 1, h = 2, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) 
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %l, %o to %LSE, %O merge(softmax) over(sk) deferred
        : !commir.tile<[b, h, sq], f32>, !commir.tile<[b, sq, h, 8], f32>
        to !commir.buffer<[b, h, sq], f32>, !commir.buffer<[b, sq, h, 8], bf16>
  }
}

// -----

// The type of what waits is that of the output, but for the log-sum-exp: what the
// first step makes waits where the output is, and the others are merged into it.
// CHECK-LABEL: commir.program @narrow on
// CHECK: %[[LSLOTS:.*]] = commir.alloc slots 3 {{.*}} : !commir.buffer<[b, h, sq], f32>
// CHECK: %[[OSLOTS:.*]] = commir.alloc slots 3 {{.*}} : !commir.buffer<[b, sq, h, 8], bf16>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[STEP:.*]], %c0
// CHECK: %[[LATER:.*]] = arith.cmpi uge, %[[STEP]], %c1
// CHECK: %[[SLOT:.*]] = arith.select %[[LATER]], %{{.*}}, %[[STEP]]
// CHECK: %[[HOME:.*]] = commir.part %O
// CHECK: %[[WAITS:.*]] = commir.part %[[OSLOTS]] slot %[[SLOT]]
// CHECK: %[[O:.*]] = arith.select %[[FIRST]], %[[HOME]], %[[WAITS]]
// CHECK: commir.launch "attention_fwd" {{.*}} outs(%[[O]], {{.*}}overwrite = array<i1: true, true>
// CHECK: commir.part %[[LSLOTS]] stack 3
// CHECK: commir.launch "softmax_merge_all" {{.*}} at(){{$}}
commir.mesh @mesh(gpu = 4)
commir.program @narrow on @mesh axes(b = 1, h = 2, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) 
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %l, %o to %LSE, %O merge(softmax) over(sk) deferred partial(bf16)
        : !commir.tile<[b, h, sq], f32>, !commir.tile<[b, sq, h, 8], f32>
        to !commir.buffer<[b, h, sq], f32>, !commir.buffer<[b, sq, h, 8], bf16>
  }
}

// -----

// Of causal zigzag parts, each piece is merged of the steps that see it. No
// launch fills what it leaves out.
// CHECK-LABEL: commir.program @pieces on
// CHECK: commir.launch "attention_fwd" {{.*}} {commir.joined, commir.leaves_out = array<i1: true, true>, overwrite = array<i1: true, true>}
// CHECK: commir.launch "softmax_merge_all" {{.*}} at(%{{.*}}) {commir.made_by = {direction = 1 : i64, home = 3 : i64, mask = {{.*}}, moves = "sk", parts = 4 : i64, queries = true, stays = "sq"}}
commir.mesh @mesh(gpu = 4)
commir.program @pieces on @mesh axes(b = 1, h = 2, sq = 16 zigzag, sk = 16 zigzag)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu, offset 1) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal)
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) deferred partial(bf16)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

// A slot for each step and each tile inside it.
// CHECK-LABEL: commir.program @tiles on
// CHECK: commir.alloc slots 8 placement [] parts {} : !commir.buffer<[i, j], f32>
// CHECK: commir.launch "sum_all" ins(%{{.*}} : !commir.tile<[8, i, j], f32>) outs(%{{.*}} : !commir.tile<[i, j], bf16>)
commir.mesh @mesh(gpu = 4)
commir.program @tiles on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  commir.for i, j, k0 in k of 4, k1 in k of 2 {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) deferred : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

// Causal parts in zigzag are several launches a step: their slot is filled.
// CHECK-LABEL: commir.program @zigzag on
// CHECK: commir.alloc slots 4
// CHECK: commir.launch "softmax_merge_all"
commir.mesh @mesh(gpu = 4)
commir.program @zigzag on @mesh axes(b = 1, h = 2, sq = 16 zigzag, sk = 16 zigzag)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal)
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %l, %o to %LSE, %O merge(softmax) over(sk) deferred
        : !commir.tile<[b, h, sq], f32>, !commir.tile<[b, sq, h, 8], f32>
        to !commir.buffer<[b, h, sq], f32>, !commir.buffer<[b, sq, h, 8], bf16>
  }
}

// -----

// What is delivered waits where it comes to, the own part in slot 0.
// CHECK-LABEL: commir.program @delivered on
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 4 placement [] parts {i = 4 : i64} : !commir.buffer<[i, j], f32>
// CHECK: scf.for %[[STEP:.*]] = %c0
// CHECK: %[[COMES:.*]] = commir.part %[[SLOTS]] slot %[[STEP]] [i : %[[R:.*]] of 4]
// CHECK: commir.exchange.start %{{.*}} to %{{.*}}, %[[COMES]] from
// CHECK: commir.launch "matmul" {{.*}}overwrite = array<i1: true>
// CHECK-NOT: commir.{{fill|copy|accumulate}}
// CHECK: %[[ALL:.*]] = commir.part %[[SLOTS]] stack 4 [i : %[[R]] of 4]
// CHECK: commir.launch "sum_all" ins(%[[ALL]] : {{.*}}) outs(%{{.*}} : !commir.tile<[i, j], bf16>)
commir.mesh @mesh(gpu = 4)
commir.program @delivered on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, results deliver) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) deferred : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

// What its owner reads waits behind the own part, and no chunk is merged as it
// comes.
// CHECK-LABEL: commir.program @fetched on
// CHECK: %[[MADE:.*]] = commir.alloc slots 1 placement [] parts {i = 2 : i64} : !commir.buffer<[i, j], f32>
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {i = 2 : i64} : !commir.buffer<[i, j], f32>
// CHECK: commir.launch "matmul" {{.*}}overwrite = array<i1: true>
// CHECK: %[[COMES:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [i : %{{.*}} of 2]
// CHECK: %[[LEASE:.*]] = commir.lease.open %[[MADE]]
// CHECK: %[[TOKEN:.*]] = commir.pull.start {{.*}}%[[COMES]]
// CHECK: %[[OWN:.*]] = commir.part %[[SLOTS]] slot %c0 [i : %{{.*}} of 2]
// CHECK: commir.launch "matmul" {{.*}}outs(%[[OWN]] {{.*}}overwrite = array<i1: true>
// CHECK: commir.wait %[[TOKEN]]
// CHECK: commir.lease.close %[[LEASE]]
// CHECK-NOT: commir.{{fill|copy|accumulate}}
// CHECK: %[[ALL:.*]] = commir.part %[[SLOTS]] stack 2
// CHECK: commir.launch "sum_all" ins(%[[ALL]] : {{.*}}) outs(%{{.*}} : !commir.tile<[i, j], bf16>)
commir.mesh @mesh(gpu = 2)
commir.program @fetched on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16> shard [i -> gpu]) {
  commir.for j, k of 2 parallel(gpu), i of 2 shift(by k on gpu, offset 1, results fetch) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) deferred : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

// R5: everybody's partial results of the own part wait side by side.
// CHECK-LABEL: commir.program @scattered on
// CHECK: commir.alloc slots 4 placement [] parts {i = 4 : i64}
// CHECK-NOT: commir.accumulate
// CHECK: commir.launch "sum_all" {{.*}} outs(%{{.*}} : !commir.tile<[i, j], bf16>)
commir.mesh @mesh(gpu = 4)
commir.program @scattered on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16> shard [i -> gpu]) {
  commir.for i, j, k of 4 parallel(gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) deferred : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}
