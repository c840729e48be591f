// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --cse -split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// R1: each access falls in the rank's own shard, so nothing moves
//===----------------------------------------------------------------------===//

// What the program means stays beside what every rank does.
// CHECK-LABEL: commir.program @column_parallel.source on
// CHECK: attributes {commir.is_source}
// CHECK-NEXT: commir.for i, j of 4 parallel(gpu), k {
// CHECK-LABEL: commir.program @column_parallel on
// CHECK: attributes {commir.source = @column_parallel.source}
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[A:.*]] = commir.part %A [] :
// CHECK: %[[B:.*]] = commir.part %B [j : %[[R]] of 4] :
// CHECK: %[[C:.*]] = commir.part %C [j : %[[R]] of 4] :
// CHECK: commir.launch "matmul" ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] : {{.*}}) at() {overwrite = array<i1: true>}
// CHECK-NOT: commir.{{exchange|all_gather|wait|for|load|store|alloc|copy|fill}}
commir.mesh @mesh(gpu = 4)
commir.program @column_parallel on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j of 4 parallel(gpu), k {
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

// Part (node, gpu, outer) of i is one index, row-major, as the loops nest.
// CHECK-LABEL: commir.program @parallel_and_sequential_loops
// CHECK-DAG: %[[NODE:.*]] = commir.group_rank "node"
// CHECK-DAG: %[[GPU:.*]] = commir.group_rank "gpu"
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %c2{{.*}} step
// CHECK: %[[OUTER:.*]] = arith.muli %[[NODE]], %c4
// CHECK: %[[RANK:.*]] = arith.addi %[[OUTER]], %[[GPU]]
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c3{{.*}} step
// CHECK: %[[BASE:.*]] = arith.muli %[[RANK]], %c3
// CHECK: %[[PART:.*]] = arith.addi %[[BASE]], %[[I]]
// CHECK: commir.part %A [i : %[[PART]] of 24, k : %[[K]] of 2] :
// CHECK: commir.part %B [k : %[[K]] of 2] :
// CHECK: commir.part %C [i : %[[PART]] of 24] :
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @parallel_and_sequential_loops on @mesh axes(i = 48, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for k of 2, i_outer in i of 8 parallel(node, gpu), i_inner in i of 3, j {
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

// CHECK-LABEL: commir.program @joined_loop
// CHECK-DAG: %[[NODE:.*]] = commir.group_rank "node"
// CHECK-DAG: %[[GPU:.*]] = commir.group_rank "gpu"
// CHECK: commir.part %A [i : %[[NODE]] of 2] :
// CHECK: commir.part %B [j : %[[GPU]] of 4] :
// CHECK: commir.part %C [i : %[[NODE]] of 2, j : %[[GPU]] of 4] :
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @joined_loop on @mesh axes(i = 2, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for ij in (i, j) of 8 parallel(node, gpu), k {
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

// A level of one rank cuts nothing, whatever names it: placements that differ
// only there are the same, and a shift over it is a plain loop.
// CHECK-LABEL: commir.program @levels_of_one_rank
// CHECK-NOT: commir.{{exchange|all_gather}}
// CHECK: commir.part %A [i : %{{.*}} of 4] :
// CHECK: commir.part %B [] :
commir.mesh @mesh(node = 1, gpu = 4)
commir.program @levels_of_one_rank on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> at [i -> (node, gpu)],
           %B: !commir.buffer<[k, j], f32> at [j -> node])
    outputs(%C: !commir.buffer<[i, j], f32> at [i -> gpu block]) {
  commir.for i of 4 parallel(node, gpu), j, k of 1 shift(by i on node) {
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

// A rank that holds more than it works on takes its part of it.
// CHECK-LABEL: commir.program @replicated_over_the_inner_level
// CHECK: %A: {{.*}} inside [i -> row],
// CHECK-NOT: commir.{{exchange|all_gather}}
// CHECK: commir.part %A [i : %{{.*}} of 4] :
commir.mesh @mesh(row = 2, col = 2)
commir.program @replicated_over_the_inner_level on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> replicate [col], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(row, col), j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

//===----------------------------------------------------------------------===//
// R2: all_gather before the loops
//===----------------------------------------------------------------------===//

// -----

// Each buffer is gathered once, before the loop over heads that both are read in.
// CHECK-LABEL: commir.program @context_parallel
// CHECK: %[[KSLOTS:.*]] = commir.alloc slots 4 placement [] parts {sk = 4 : i64} : !commir.buffer<[b, sk, h, 8], f32>
// CHECK: %[[KALL:.*]] = commir.alloc slots 1 placement [] parts {} : !commir.buffer<[b, sk, h, 8], f32>
// CHECK: %[[KOWN:.*]] = commir.part %K [] :
// CHECK: %[[TOKEN:.*]] = commir.all_gather.start %[[KOWN]] into %[[KSLOTS]] on "gpu" along sk :
// CHECK-NEXT: commir.wait %[[TOKEN]]
// CHECK: scf.for %[[M:.*]] = %c0{{.*}} to %c4{{.*}} step
// CHECK-NEXT: %[[FROM:.*]] = commir.part %[[KSLOTS]] slot %[[M]] [sk : %[[M]] of 4] :
// CHECK-NEXT: %[[TO:.*]] = commir.part %[[KALL]] [sk : %[[M]] of 4] :
// CHECK-NEXT: commir.copy %[[FROM]] to %[[TO]]
// CHECK: %[[VSLOTS:.*]] = commir.alloc slots 4 placement [] parts {sk = 4 : i64} : !commir.buffer<[b, sk, h, 6], f32>
// CHECK: %[[VALL:.*]] = commir.alloc slots 1
// CHECK: commir.all_gather.start {{.*}} into %[[VSLOTS]] on "gpu" along sk :
// CHECK: scf.for
// CHECK: commir.copy
// CHECK: scf.for %[[H:.*]] = %c0{{.*}} to %c2{{.*}} step
// CHECK-NOT: all_gather
// CHECK: commir.part %[[KALL]] [h : %[[H]] of 2] :
// CHECK: commir.part %[[VALL]] [h : %[[H]] of 2] :
// CHECK: commir.launch "attention_fwd"
commir.mesh @mesh(gpu = 4)
commir.program @context_parallel on @mesh axes(b = 1, h = 4, sq = 64, sk = 64)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>,
           %K: !commir.buffer<[b, sk, h, 8], f32> shard [sk -> gpu],
           %V: !commir.buffer<[b, sk, h, 6], f32> shard [sk -> gpu])
    outputs(%O: !commir.buffer<[b, sq, h, 6], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h of 2, sq of 4 parallel(gpu), sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 6], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) {scale = 0.125 : f64}
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 6], f32>)
        -> (!commir.tile<[b, sq, h, 6], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 6], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 6], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

// What is cut over other levels stays so: panels of A come along rows.
// CHECK-LABEL: commir.program @gather_over_one_of_two_levels
// CHECK: commir.alloc slots 3 placement [i -> row] parts {k = 3 : i64} : !commir.buffer<[i, k], f32>
// CHECK: %[[AALL:.*]] = commir.alloc slots 1 placement [i -> row] parts {} :
// CHECK: commir.all_gather.start {{.*}} on "col" along k
// CHECK: commir.alloc slots 2 placement [j -> col] parts {k = 2 : i64} : !commir.buffer<[k, j], f32>
// CHECK: %[[BALL:.*]] = commir.alloc slots 1 placement [j -> col] parts {} :
// CHECK: commir.all_gather.start {{.*}} on "row" along k
// CHECK: commir.part %[[AALL]] [i : %{{.*}} of 2] :
// CHECK: commir.part %[[BALL]] [j : %{{.*}} of 3] :
commir.mesh @mesh(row = 2, col = 3)
commir.program @gather_over_one_of_two_levels on @mesh axes(i = 12, j = 12, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col],
           %B: !commir.buffer<[k, j], f32> shard [k -> row])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 parallel(row), j of 3 parallel(col), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

//===----------------------------------------------------------------------===//
// R3: one part a step
//===----------------------------------------------------------------------===//

// -----

// Step t of rank r works on part t + r, its own at step 0 and one in slot t mod 2
// after that, while part t + 1 + r arrives from rank r + 1. Nothing arrives in
// the last step. %A is addressed by the part, too, and does not move.
// CHECK-LABEL: commir.program @ring
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {k = 4 : i64} : !commir.buffer<[k, j], f32>
// CHECK-NOT: commir.exchange.start
// CHECK: scf.for %[[T:.*]] = %c0{{.*}} to %[[N:c4.*]] step %[[ONE:c1.*]] {
// CHECK: %[[AHEAD:.*]] = arith.addi %[[T]], %[[R]]
// CHECK: %[[AWRAP:.*]] = arith.addi %[[AHEAD]], %[[N]]
// CHECK: %[[PART:.*]] = arith.remui %[[AWRAP]], %[[N]]
// CHECK: %[[T1:.*]] = arith.addi %[[T]], %[[ONE]]
// CHECK: %[[BEYOND:.*]] = arith.addi %[[T1]], %[[R]]
// CHECK: %[[BWRAP:.*]] = arith.addi %[[BEYOND]], %[[N]]
// CHECK: %[[NEXT:.*]] = arith.remui %[[BWRAP]], %[[N]]
// CHECK: %[[WHEN:.*]] = arith.cmpi ult, %[[T1]], %[[N]]
// CHECK: %[[NEXTSLOT:.*]] = arith.remui %[[T1]], %c2
// CHECK: %[[LEFT:.*]] = arith.addi %[[R]], %c-1
// CHECK: %[[LWRAP:.*]] = arith.addi %[[LEFT]], %[[N]]
// CHECK: %[[TO:.*]] = arith.remui %[[LWRAP]], %[[N]]
// CHECK: %[[RIGHT:.*]] = arith.addi %[[R]], %[[ONE]]
// CHECK: %[[RWRAP:.*]] = arith.addi %[[RIGHT]], %[[N]]
// CHECK: %[[FROM:.*]] = arith.remui %[[RWRAP]], %[[N]]
// CHECK: %[[SLOT:.*]] = arith.remui %[[T]], %c2
// CHECK: %[[KEPT:.*]] = commir.part %B [k : %[[R]] of 4] :
// CHECK: %[[CAME:.*]] = commir.part %[[SLOTS]] slot %[[SLOT]] [k : %[[PART]] of 4] :
// CHECK: %[[OWN:.*]] = arith.cmpi eq, %[[PART]], %[[R]]
// CHECK: %[[NOW:.*]] = arith.select %[[OWN]], %[[KEPT]], %[[CAME]]
// CHECK: %[[INTO:.*]] = commir.part %[[SLOTS]] slot %[[NEXTSLOT]] [k : %[[NEXT]] of 4] :
// CHECK: %[[TOKEN:.*]] = commir.exchange.start %[[NOW]] to %[[TO]], %[[INTO]] from %[[FROM]] on "gpu" when %[[WHEN]] :
// CHECK: %[[A:.*]] = commir.part %A [i : %[[R]] of 4, k : %[[PART]] of 4] :
// CHECK: %[[MINE:.*]] = commir.part %B [k : %[[PART]] of 4] :
// CHECK: %[[B:.*]] = arith.select %[[OWN]], %[[MINE]], %[[CAME]]
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[STEP:.*]], %c0
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: commir.launch "matmul" ins(%[[A]], %[[B]] : {{.*}} {overwrite = array<i1: true>}
// CHECK-NEXT: } else {
// CHECK-NEXT: commir.launch "matmul" ins(%[[A]], %[[B]] : {{.*}} at(){{$}}
// CHECK-NEXT: }
// CHECK-NEXT: commir.wait %[[TOKEN]]
// CHECK-NEXT: }
// CHECK-NOT: commir.exchange.start
commir.mesh @mesh(gpu = 4)
commir.program @ring on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu) {
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

// The other way round: part r - t, from rank r - 1.
// CHECK-LABEL: commir.program @ring_backwards
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %[[N:c4.*]] step
// CHECK: %[[BACK:.*]] = arith.subi %[[N]], %[[T]]
// CHECK: %[[SUM:.*]] = arith.addi %[[BACK]], %[[R]]
// CHECK: %[[WRAP:.*]] = arith.addi %[[SUM]], %[[N]]
// CHECK: %[[PART:.*]] = arith.remui %[[WRAP]], %[[N]]
// CHECK: %[[RIGHT:.*]] = arith.addi %[[R]], %c1
// CHECK: %[[RWRAP:.*]] = arith.addi %[[RIGHT]], %[[N]]
// CHECK: %[[TO:.*]] = arith.remui %[[RWRAP]], %[[N]]
// CHECK: %[[LEFT:.*]] = arith.addi %[[R]], %c-1
// CHECK: %[[LWRAP:.*]] = arith.addi %[[LEFT]], %[[N]]
// CHECK: %[[FROM:.*]] = arith.remui %[[LWRAP]], %[[N]]
// CHECK: commir.exchange.start %{{.*}} to %[[TO]], %{{.*}} from %[[FROM]] on "gpu"
// CHECK: commir.part %A [i : %[[R]] of 4, k : %[[PART]] of 4] :
commir.mesh @mesh(gpu = 4)
commir.program @ring_backwards on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, direction -1) {
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

// An offset opens the ring with a hop over that many ranks. A part is not sent
// to the rank that owns it, which is where step 3 of 4 finds it.
// CHECK-LABEL: commir.program @ring_with_an_offset
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2
// CHECK: %[[PHASE:.*]] = arith.addi %[[R]], %c1
// CHECK: %[[AHEAD:.*]] = arith.addi %{{.*}}, %[[PHASE]]
// CHECK: %[[WRAP:.*]] = arith.addi %[[AHEAD]], %[[N:c4.*]] :
// CHECK: %[[FIRST:.*]] = arith.remui %[[WRAP]], %[[N]]
// CHECK: %[[HOP:.*]] = arith.remui %c1{{.*}}, %[[N]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[R]], %[[HOP]]
// CHECK: %[[OWN:.*]] = commir.part %B [k : %[[R]] of 4] :
// CHECK: %[[SLOT0:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [k : %[[FIRST]] of 4] :
// CHECK: %[[TOKEN:.*]] = commir.exchange.start %[[OWN]] to %[[TO:.*]], %[[SLOT0]] from %[[FROM:.*]] on "gpu" when %true
// CHECK-NEXT: commir.wait %[[TOKEN]]
// CHECK: scf.for %[[T:.*]] = %
// CHECK: %[[T1:.*]] = arith.addi %[[T]], %c1
// CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[T1]], %[[N]]
// CHECK: %[[NOTHOME:.*]] = arith.cmpi ne, %[[T1]], %c3
// CHECK: %[[WHEN:.*]] = arith.andi %[[MORE]], %[[NOTHOME]]
// CHECK: commir.exchange.start {{.*}} when %[[WHEN]]
commir.mesh @mesh(gpu = 4)
commir.program @ring_with_an_offset on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, offset 1) {
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

// An offset counts modulo the parts; -6 is 2. Backwards, step 2 comes home.
// CHECK-LABEL: commir.program @ring_backwards_with_a_negative_offset
// CHECK: arith.remui %c2{{.*}}, %c4
// CHECK: commir.exchange.start {{.*}} when %true
// CHECK: scf.for
// CHECK: %[[NOTHOME:.*]] = arith.cmpi ne, %{{.*}}, %c2
// CHECK: %[[WHEN:.*]] = arith.andi %{{.*}}, %[[NOTHOME]]
// CHECK: commir.exchange.start {{.*}} when %[[WHEN]]
commir.mesh @mesh(gpu = 4)
commir.program @ring_backwards_with_a_negative_offset on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, direction -1, offset -6) {
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

// Both buffers start their hop before the kernel and are waited for after it; a
// loop outside the ring runs all of it again.
// CHECK-LABEL: commir.program @two_buffers_on_one_ring_repeated
// CHECK-DAG: %[[KSLOTS:.*]] = commir.alloc slots 2 placement [] parts {sk = 4 : i64} : !commir.buffer<[b, sk, h, 8], f32>
// CHECK-DAG: %[[VSLOTS:.*]] = commir.alloc slots 2 placement [] parts {sk = 4 : i64} : !commir.buffer<[b, sk, h, 6], f32>
// CHECK: scf.for %{{.*}} to %c2
// CHECK: scf.for %{{.*}} to %c4
// CHECK: %[[KTOKEN:.*]] = commir.exchange.start {{.*}}<[b, sk, h, 8], f32>
// CHECK: %[[VTOKEN:.*]] = commir.exchange.start {{.*}}<[b, sk, h, 6], f32>
// CHECK: scf.if
// CHECK-NEXT: commir.launch {{.*}}overwrite = array<i1: true, true>
// CHECK-NEXT: } else {
// CHECK-NEXT: commir.launch {{.*}}{{$}}
// CHECK-NEXT: }
// CHECK-NEXT: commir.wait %[[KTOKEN]]
// CHECK-NEXT: commir.wait %[[VTOKEN]]
// CHECK-NEXT: }
// CHECK-NEXT: }
commir.mesh @mesh(gpu = 4)
commir.program @two_buffers_on_one_ring_repeated on @mesh axes(b = 1, h = 4, sq = 64, sk = 64)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>, %K: !commir.buffer<[b, sk, h, 8], f32>,
           %V: !commir.buffer<[b, sk, h, 6], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 6], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq_outer in sq of 4 parallel(gpu), sq_inner in sq of 2,
      sk of 4 shift(by sq_outer on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 6], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) {scale = 0.125 : f64}
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 6], f32>)
        -> (!commir.tile<[b, sq, h, 6], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 6], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 6], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

// The rows of A are parallel over the nodes and rotate within one: what moves is
// part (node, step), whole; the loop inside the ring reads tiles of it.
// CHECK-LABEL: commir.program @ring_inside_a_parallel_loop_over_its_axis
// CHECK-DAG: %[[NODE:.*]] = commir.group_rank "node"
// CHECK-DAG: %[[GPU:.*]] = commir.group_rank "gpu"
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {i = 6 : i64} : !commir.buffer<[i, k], f32>
// CHECK: scf.for
// CHECK: %[[PART:.*]] = arith.remui %{{.*}}, %c3
// CHECK: %[[BASE:.*]] = arith.muli %[[NODE]], %c3
// CHECK: %[[STEP:.*]] = arith.addi %[[BASE]], %[[PART]]
// CHECK: %[[MINE:.*]] = arith.addi %[[BASE]], %[[GPU]]
// CHECK: %[[KEPT:.*]] = commir.part %A [i : %[[MINE]] of 6] :
// CHECK: %[[CAME:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [i : %[[STEP]] of 6] :
// CHECK: commir.exchange.start {{.*}} on "gpu"
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c2
// CHECK: %[[TWO:.*]] = arith.muli %[[STEP]], %c2
// CHECK: %[[TILE:.*]] = arith.addi %[[TWO]], %[[I]]
// CHECK: commir.part %A [i : %[[TILE]] of 12] :
// CHECK: commir.part %[[SLOTS]] slot %{{.*}} [i : %[[TILE]] of 12] :
// CHECK: commir.part %C [i : %[[TILE]] of 12, j : %[[GPU]] of 3] :
commir.mesh @mesh(node = 2, gpu = 3)
commir.program @ring_inside_a_parallel_loop_over_its_axis on @mesh axes(i = 24, j = 9, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i0 in i of 2 parallel(node), j of 3 parallel(gpu), i1 in i of 3 shift(by j on gpu),
      i2 in i of 2, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

//===----------------------------------------------------------------------===//
// Results, positions, nests
//===----------------------------------------------------------------------===//

// -----

// Partial results narrower than float32 are kept in float32 and rounded once.
// CHECK-LABEL: commir.program @narrow_result
// CHECK: %[[ACC:.*]] = commir.alloc slots 1 placement [i -> gpu] parts {} : !commir.buffer<[i, j], f32>
// CHECK-NOT: commir.fill
// CHECK: scf.for
// CHECK: %[[TILE:.*]] = commir.part %[[ACC]] [i : %{{.*}} of 4] :
// CHECK: commir.launch "matmul" ins({{.*}}bf16>, {{.*}}bf16>) outs(%[[TILE]] : !commir.tile<[i, j], f32>)
// CHECK: }
// CHECK: %[[ALL:.*]] = commir.part %[[ACC]] [] :
// CHECK: %[[OUT:.*]] = commir.part %C [] :
// CHECK: commir.copy %[[ALL]] to %[[OUT]] : !commir.tile<[i, j], f32> to !commir.tile<[i, j], bf16>
commir.mesh @mesh(gpu = 4)
commir.program @narrow_result on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  commir.for i of 4 parallel(gpu), j, k of 2 {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

// The widest tensor of a kernel says how its partial results are kept.
// CHECK-LABEL: commir.program @double_inputs
// CHECK: commir.alloc slots 1 placement [] parts {} : !commir.buffer<[i, j], f64>
// CHECK: commir.copy {{.*}} : !commir.tile<[i, j], f64> to !commir.tile<[i, j], f32>
commir.mesh @mesh(gpu = 4)
commir.program @double_inputs on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f64>, %B: !commir.buffer<[k, j], f64>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f64>
    %b = commir.load %B : !commir.buffer<[k, j], f64>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f64>, !commir.tile<[k, j], f64>)
        -> !commir.tile<[i, j], f64>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f64> to !commir.buffer<[i, j], f32>
  }
}

// -----

// The first step writes a softmax pair, whichever is stored first; nothing fills
// it. A mask and grouped heads ask where a tile begins in the whole tensors.
// CHECK-LABEL: commir.program @masked_attention_with_grouped_heads
// CHECK-DAG: %[[NODE:.*]] = commir.group_rank "node"
// CHECK-DAG: %[[GPU:.*]] = commir.group_rank "gpu"
// CHECK-NOT: commir.fill
// CHECK: %[[PART:.*]] = arith.remui %{{.*}}, %c4
// CHECK: %[[Q0:.*]] = commir.position sq : %[[GPU]] of 4
// CHECK: %[[K0:.*]] = commir.position sk : %[[PART]] of 4
// CHECK: %[[H0:.*]] = commir.position h : %[[NODE]] of 2{{$}}
// CHECK: %[[HK0:.*]] = commir.position h : %[[NODE]] of 2 per 4
// CHECK: commir.launch "attention_fwd" {{.*}} at(%[[Q0]], %[[K0]], %[[H0]], %[[HK0]]) scratch(%{{.*}} : !commir.tile<[9216], f32>) mask(causal) {group = 4 : i64, overwrite = array<i1: true, true>, scale = 1.250000e-01 : f64}
// CHECK: commir.launch "attention_fwd" {{.*}} at(%[[Q0]], %[[K0]], %[[H0]], %[[HK0]]) scratch(%{{.*}} : !commir.tile<[9216], f32>) mask(causal) {group = 4 : i64, scale = 1.250000e-01 : f64}
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @masked_attention_with_grouped_heads on @mesh axes(b = 1, h = 8, sq = 64, sk = 64)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>, %K: !commir.buffer<[b, sk, h/4, 8], f32>)
    outputs(%LSE: !commir.buffer<[b, h, sq], f32>, %O: !commir.buffer<[b, sq, h, 8], f32>) {
  commir.for b, h of 2 parallel(node), sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/4, 8], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal) {scale = 0.125 : f64}
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h/4, 8], f32>, !commir.tile<[b, sk, h/4, 8], f32>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %l, %o to %LSE, %O merge(softmax) over(sk)
        : !commir.tile<[b, h, sq], f32>, !commir.tile<[b, sq, h, 8], f32>
        to !commir.buffer<[b, h, sq], f32>, !commir.buffer<[b, sq, h, 8], f32>
  }
}

// -----

// Without a mask or groups, positions do not matter, and any layout will do.
// CHECK-LABEL: commir.program @unmasked_attention
// CHECK-NOT: commir.position
// CHECK: commir.launch "attention_fwd" {{.*}} at(%[[Z:.*]], %[[Z]], %[[Z]], %[[Z]]) scratch({{.*}}) mask(full)
commir.mesh @mesh(gpu = 4)
commir.program @unmasked_attention on @mesh axes(b = 1, h = 4, sq = 64 zigzag, sk = 64)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>, %K: !commir.buffer<[b, sk, h, 8], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 4 parallel(gpu), sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(full)
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

// A joined loop in sequence is a loop over each axis, cut along whole axes.
// CHECK-LABEL: commir.program @joined_loop_in_sequence
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c8
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %c2
// CHECK: commir.part %A [i : %[[I]] of 8]
// CHECK: commir.part %B [j : %[[J]] of 2]
// CHECK: commir.part %C [i : %[[I]] of 8, j : %[[J]] of 2]
commir.mesh @mesh(gpu = 4)
commir.program @joined_loop_in_sequence on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for ij in (i, j) of 16, k {
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

// Nests follow one another.
// CHECK-LABEL: commir.program @two_nests
// CHECK: commir.part %C [i : %{{.*}} of 4] :
// CHECK: commir.launch
// CHECK: commir.part %D [j : %{{.*}} of 4] :
// CHECK: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @two_nests on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>,
           %E: !commir.buffer<[i, k], f32>, %F: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>, %D: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
  commir.for i2 in i, j2 in j of 4 parallel(gpu), k2 in k {
    %a = commir.load %E : !commir.buffer<[i, k], f32>
    %b = commir.load %F : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %D merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

//===----------------------------------------------------------------------===//
// R9: the inner ring starts with what the outer one brought, which is sent on
// while the inner one runs
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r9_double_ring
// CHECK-DAG: %[[NODE:.*]] = commir.group_rank "node"
// CHECK-DAG: %[[GPU:.*]] = commir.group_rank "gpu"
// CHECK: %[[OUTER:.*]] = commir.alloc slots 2 placement [] parts {k = 8 : i64}
// CHECK: %[[INNER:.*]] = commir.alloc slots 2 placement [] parts {k = 8 : i64}
// CHECK: scf.for
// CHECK:   %[[START:.*]] = arith.select
// CHECK:   %[[FAR:.*]] = commir.exchange.start %[[START]] to %{{.*}} on "node" when
// CHECK:   scf.for
// CHECK:     %[[NEAR:.*]] = commir.exchange.start %{{.*}} to %{{.*}} on "gpu" when
// CHECK:     %[[HELD:.*]] = arith.select
// CHECK:     %[[NOW:.*]] = arith.select %{{.*}}, %[[HELD]],
// CHECK:     commir.launch "matmul" ins(%{{.*}}, %[[NOW]] :
// CHECK:     commir.wait %[[NEAR]]
// CHECK:   commir.wait %[[FAR]]
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @r9_double_ring on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 8 parallel(node, gpu), j,
      k_node in k of 2 shift(by i on node), k_gpu in k of 4 shift(by i on gpu) {
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

// Who has the kernel is said at its launch, unless it is the compiler.
// CHECK-LABEL: commir.program @patched_kernels
// CHECK: commir.launch "matmul" {{.*}} at() impl("torch")
// CHECK-LABEL: commir.program @generated_kernel
// CHECK: commir.launch "matmul" {{.*}} at() {overwrite = array<i1: true>}{{$}}
commir.mesh @mesh(gpu = 4)
commir.program @patched_kernels on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) impl("torch")
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
commir.program @generated_kernel on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) impl("generated")
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Whole groups on each rank: what reduces their heads is the kernel alone.
// CHECK-LABEL: commir.program @whole_groups
// CHECK-NOT: commir.{{exchange|all_gather|wait|copy|accumulate}}
// CHECK: commir.launch "attention_bwd" {{.*}} scratch({{.*}}) {group = 4 : i64, overwrite = array<i1: true, true, true>}
// CHECK-NOT: commir.{{exchange|all_gather|wait|copy|accumulate}}
commir.mesh @mesh(gpu = 2)
commir.program @whole_groups on @mesh axes(b = 1, h = 8, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h/4, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>)
    outputs(%dQ: !commir.buffer<[b, sq, h, 4], f32>, %dK: !commir.buffer<[b, sk, h/4, 4], f32>, %dV: !commir.buffer<[b, sk, h/4, 4], f32>) {
  commir.for b, h of 2 parallel(gpu), sq, sk {
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

// Half a group on each rank: those that share one add theirs, by R5.
// CHECK-LABEL: commir.program @shared_groups
// CHECK: %[[DK:.*]] = commir.alloc slots 1 placement [] parts {} : !commir.buffer<[b, sk, h/4, 4], f32>
// CHECK: commir.launch "attention_bwd"
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 4 placement [] parts {h = 4 : i64}
// CHECK: commir.part %[[DK]] [h : %{{.*}} of 4]
// CHECK: commir.reduce_scatter.start %[[SLOTS]] into %{{.*}} merge(sum) on "gpu" along h
commir.mesh @mesh(gpu = 4)
commir.program @shared_groups on @mesh axes(b = 1, h = 8, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h/4, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>)
    outputs(%dQ: !commir.buffer<[b, sq, h, 4], f32>, %dK: !commir.buffer<[b, sk, h/4, 4], f32>, %dV: !commir.buffer<[b, sk, h/4, 4], f32>) {
  commir.for b, h of 4 parallel(gpu), sq, sk {
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

// One nest, two directions: keys rotate, and their gradients travel with them.
// CHECK-LABEL: commir.program @backward_ring
// CHECK: scf.for
// CHECK: commir.exchange.start {{.*}}h/4, 4], f32
// CHECK: commir.exchange.start {{.*}}h/4, 4], f32
// CHECK: commir.launch "attention_bwd"
// CHECK: commir.accumulate
// CHECK: }
// CHECK: commir.exchange.start
commir.mesh @mesh(gpu = 4)
commir.program @backward_ring on @mesh axes(b = 1, h = 8, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h/4, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>)
    outputs(%dQ: !commir.buffer<[b, sq, h, 4], f32>, %dK: !commir.buffer<[b, sk, h/4, 4], f32>, %dV: !commir.buffer<[b, sk, h/4, 4], f32>) {
  commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
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

// The sink enters when the result is whole: after the ranks have merged.
// CHECK-LABEL: commir.program @sink
// CHECK: commir.launch "attention_fwd"
// CHECK: commir.all_gather.start
// CHECK: commir.launch "softmax_merge_all"
// CHECK: %[[S:.*]] = commir.part %SINK []
// CHECK: commir.launch "softmax_sink" ins(%[[S]] : {{.*}}) outs(
// CHECK-NOT: softmax_sink
commir.mesh @mesh(gpu = 4)
commir.program @sink on @mesh axes(b = 1, h = 8, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>, %K: !commir.buffer<[b, sk, h, 8], f32>, %SINK: !commir.buffer<[h], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq, sk of 4 parallel(gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    %s = commir.load %SINK : !commir.buffer<[h], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k)
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    %so, %sl = commir.kernel "softmax_sink"(%s)
        : (!commir.tile<[h], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        once(%so, %sl : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

// A level of one rank cuts nothing, so no group gathers what it cut, though
// a ring cuts the axis into stripes, and no shard is a union of finer stripes.
// CHECK-LABEL: commir.program @level_of_one_rank on
// CHECK-NOT: all_gather
// CHECK: commir.launch "matmul"
// CHECK-NOT: all_gather
commir.mesh @mesh(node = 1, gpu = 2)
commir.program @level_of_one_rank on @mesh axes(i = 8 striped(1), j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> replicate [gpu], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i_node in i shift(by j on node), i_gpu in i of 2 shift(by j on gpu), j of 2 parallel(node, gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
