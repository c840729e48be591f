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

// -----

//===----------------------------------------------------------------------===//
// R3 and R9 of slices: what moves is put aside first
//===----------------------------------------------------------------------===//

// Under a loop over the columns, half of each part of B goes around.
// CHECK-LABEL: commir.program @r3_of_a_slice on
// CHECK: %[[RANK:.*]] = commir.group_rank "gpu"
// CHECK: %[[OWN:.*]] = commir.alloc slots 1 placement [] parts {j = 2 : i64, k = 4 : i64}
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {j = 2 : i64, k = 4 : i64}
// CHECK: scf.for %[[J:.*]] =
// CHECK:   %[[SLICE:.*]] = commir.part %B [k : %[[RANK]] of 4, j : %[[J]] of 2]
// CHECK:   %[[ASIDE:.*]] = commir.part %[[OWN]] [k : %[[RANK]] of 4, j : %[[J]] of 2]
// CHECK:   commir.copy %[[SLICE]] to %[[ASIDE]]
// CHECK:   scf.for
// CHECK:     %[[NOW:.*]] = arith.select %{{.*}}, %[[ASIDE]], %{{.*}}
// CHECK:     commir.exchange.start %[[NOW]] to
// CHECK-NOT: commir.part %B
commir.mesh @mesh(gpu = 4)
commir.program @r3_of_a_slice on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j of 2, k of 4 shift(by i on gpu) {
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

// Of a strided placement, one part of each rank's goes around at a time; who
// pull it are lent it afresh.
// CHECK-LABEL: commir.program @r3_of_a_strided_placement on
// CHECK: %B: !commir.buffer<[k, j], f32> at [k -> (2, gpu)] inside [k -> (2, gpu)]
// CHECK: %[[RANK:.*]] = commir.group_rank "gpu"
// CHECK: %[[OWN:.*]] = commir.alloc slots 1 placement [] parts {k = 8 : i64}
// CHECK: scf.for %[[OUTER:.*]] =
// CHECK:   %[[FIRST:.*]] = arith.muli %[[OUTER]], %c4
// CHECK:   %[[PART:.*]] = arith.addi %[[FIRST]], %[[RANK]]
// CHECK:   %[[SLICE:.*]] = commir.part %B [k : %[[PART]] of 8]
// CHECK:   %[[ASIDE:.*]] = commir.part %[[OWN]] [k : %[[PART]] of 8]
// CHECK:   commir.copy %[[SLICE]] to %[[ASIDE]]
// CHECK:   %[[LEASE:.*]] = commir.lease.open %[[OWN]] on "gpu"
// CHECK:   scf.for
// CHECK:     commir.pull.start %{{.*}} into %{{.*}} of %[[LEASE]]
// CHECK:   commir.lease.close %[[LEASE]]
commir.mesh @mesh(gpu = 4)
commir.program @r3_of_a_strided_placement on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k_outer in k of 2,
      k_inner in k of 4 shift(by i on gpu, reads pull) {
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

// What an outer ring brought is put aside for those who pull it.
// CHECK-LABEL: commir.program @r9_rotate_then_pull on
// CHECK: %[[OUTER:.*]] = commir.alloc slots 2 placement [] parts {k = 4 : i64}
// CHECK: %[[OWN:.*]] = commir.alloc slots 1 placement [] parts {k = 4 : i64}
// CHECK: scf.for
// CHECK:   %[[CAME:.*]] = commir.part %[[OUTER]] slot
// CHECK:   arith.select %{{.*}}, %{{.*}}, %[[CAME]]
// CHECK:   %[[NEXT:.*]] = commir.exchange.start %{{.*}} on "node"
// CHECK:   %[[NOW:.*]] = arith.select
// CHECK:   %[[ASIDE:.*]] = commir.part %[[OWN]]
// CHECK:   commir.copy %[[NOW]] to %[[ASIDE]]
// CHECK:   %[[LEASE:.*]] = commir.lease.open %[[OWN]] on "gpu"
// CHECK:   scf.for
// CHECK:     commir.pull.start %{{.*}} of %[[LEASE]]
// CHECK:   commir.lease.close %[[LEASE]]
// CHECK:   commir.wait %[[NEXT]]
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @r9_rotate_then_pull on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i_outer in i of 2 parallel(node), i_inner in i of 2 parallel(gpu), j,
      k_outer in k of 2 shift(by i_outer on node),
      k_inner in k of 2 shift(by i_inner on gpu, reads pull) {
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

// Only the outer loop pulls: from the rank of the other node that is at this
// rank's place.
// CHECK-LABEL: commir.program @r9_pull_then_rotate on
// CHECK: %[[LEASE:.*]] = commir.lease.open %B on "node"
// CHECK: scf.for
// CHECK:   %[[NEXT:.*]] = commir.pull.start %{{.*}} of %[[LEASE]]
// CHECK:   scf.for
// CHECK:     commir.exchange.start {{.*}} on "gpu"
// CHECK:   commir.wait %[[NEXT]]
// CHECK: commir.lease.close %[[LEASE]]
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @r9_pull_then_rotate on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i_outer in i of 2 parallel(node), i_inner in i of 2 parallel(gpu), j,
      k_outer in k of 2 shift(by i_outer on node, reads pull),
      k_inner in k of 2 shift(by i_inner on gpu) {
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

// The sum of one part of a strided placement at a time.
// CHECK-LABEL: commir.program @r6_of_a_strided_placement on
// CHECK: %C: !commir.buffer<[i, j], f32> at [i -> (2, gpu)] inside [i -> (2, gpu)]
// CHECK: %[[RANK:.*]] = commir.group_rank "gpu"
// CHECK: %[[MADE:.*]] = commir.alloc slots 2 placement [] parts {i = 8 : i64}
// CHECK: scf.for %[[OUTER:.*]] =
// CHECK:   scf.for
// CHECK:     commir.exchange.start {{.*}} on "gpu"
// CHECK:   %[[FIRST:.*]] = arith.muli %[[OUTER]], %c4
// CHECK:   %[[PART:.*]] = arith.addi %[[FIRST]], %[[RANK]]
// CHECK:   %[[OWN:.*]] = commir.part %C [i : %[[PART]] of 8]
// CHECK:   commir.accumulate %{{.*}} to %[[OWN]]
commir.mesh @mesh(gpu = 4)
commir.program @r6_of_a_strided_placement on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for k of 4 parallel(gpu), j, i_outer in i of 2,
      i_inner in i of 4 shift(by k on gpu, offset 1) {
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
// Several parts a rank: what the neighbour worked on two steps before is passed
// on, so there are three at hand
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @rotate_two_parts_a_rank
// CHECK: %[[RANK:.*]] = commir.group_rank "gpu"
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 3 placement [] parts {k = 8 : i64}
// CHECK-NOT: commir.copy
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %[[PARTS:.*]] step
// CHECK: %[[BEFORE:.*]] = arith.subi %{{.*}}, %c2
// CHECK: %[[OWN:.*]] = commir.part %B [k : %[[PART:.*]] of 8]
// CHECK: %[[CAME:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [k : %[[PART]] of 8]
// CHECK: %[[LEAVES:.*]] = arith.select %{{.*}}, %[[OWN]], %[[CAME]]
// CHECK: commir.exchange.start %[[LEAVES]] to %{{.*}} on "gpu" when
// CHECK: commir.launch "matmul"
commir.mesh @mesh(gpu = 4)
commir.program @rotate_two_parts_a_rank on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 8 shift(by i on gpu) {
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

// Of two batches, a part of k is no run of memory: the rank's own is put together
// before it leaves.
// CHECK-LABEL: commir.program @rotate_slices
// CHECK: %[[OUT:.*]] = commir.alloc slots 1 placement [] parts {k = 4 : i64}
// CHECK: scf.for
// CHECK: %[[TOGETHER:.*]] = commir.part %[[OUT]] [k : %{{.*}} of 4]
// CHECK: scf.if
// CHECK: commir.copy %{{.*}} to %[[TOGETHER]]
// CHECK: commir.exchange.start
commir.mesh @mesh(gpu = 2)
commir.program @rotate_slices on @mesh axes(b = 2, h = 2, sq = 8, k = 8)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>,
           %K: !commir.buffer<[b, k, h, 4], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 4], f32>,
            %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 2 parallel(gpu), k of 4 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, k, h, 4], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) {scale = 0.5 : f64}
        : (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, k, h, 4], f32>, !commir.tile<[b, k, h, 4], f32>)
        -> (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(k)
        : !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 4], f32>, !commir.buffer<[b, h, sq], f32>
  }
}
