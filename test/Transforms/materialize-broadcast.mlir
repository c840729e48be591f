// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file | FileCheck %s

// SUMMA. The panels refine the cut of A into 3 and that of B into 2. A panel of A is half of a shard's columns:
// its owner packs it. One of B is rows of a shard, which leave from where they lie.
// CHECK-LABEL: commir.program @summa on
// CHECK-DAG: %[[ROW:.*]] = commir.group_rank "row"
// CHECK-DAG: %[[COL:.*]] = commir.group_rank "col"
// CHECK-NOT: all_gather
// CHECK: %[[PANELS_A:.*]] = commir.alloc slots 2 placement [i -> row] parts {k = 6 : i64}
// CHECK: %[[PANELS_B:.*]] = commir.alloc slots 2 placement [j -> col] parts {k = 6 : i64}
//   The first panels.
// CHECK: scf.if
// CHECK: commir.copy
// CHECK: commir.broadcast.start {{.*}} on "col"
// CHECK: commir.broadcast.start {{.*}} on "row"
// CHECK-COUNT-2: commir.wait
//   The next ones leave, this one is multiplied, then they are waited for.
// CHECK: scf.for %[[STEP:.*]] =
// CHECK: %[[NEXT_A:.*]] = commir.part %[[PANELS_A]] slot %{{.*}} [k : %[[PART:.*]] of 6]
// CHECK: scf.if
// CHECK: %[[OWN_A:.*]] = commir.part %A [k : %[[PART]] of 6]
// CHECK: commir.copy %[[OWN_A]] to %[[NEXT_A]]
// CHECK: %[[A:.*]] = commir.broadcast.start %[[NEXT_A]] into %[[NEXT_A]] of %{{.*}} on "col" when %[[MORE:.*]] :
// CHECK: %[[NEXT_B:.*]] = commir.part %[[PANELS_B]] slot %{{.*}} [k : %[[PART]] of 6]
// CHECK: %[[OWN_B:.*]] = commir.part %B [k : %{{.*}} of 6]
// CHECK: %[[B:.*]] = commir.broadcast.start %[[OWN_B]] into %[[NEXT_B]] of %{{.*}} on "row" when %[[MORE]] :
// CHECK: %[[NOW_A:.*]] = commir.part %[[PANELS_A]] slot %{{.*}} [i : %[[ROW]] of 2, k : %[[STEP_PART:.*]] of 6]
// CHECK: %[[NOW_B:.*]] = commir.part %[[PANELS_B]] slot %{{.*}} [k : %[[STEP_PART]] of 6, j : %[[COL]] of 3]
// CHECK: commir.launch "matmul" ins(%[[NOW_A]], %[[NOW_B]]
// CHECK: commir.wait %[[A]]
// CHECK: commir.wait %[[B]]
commir.mesh @mesh(row = 2, col = 3)
commir.program @summa on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k],
           %B: !commir.buffer<[k, j], f32> shard [k -> row] broadcast [k])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 parallel(row), j of 3 parallel(col), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// A shard is one panel: A is sent from where it lies, whatever its columns. B is gathered beside it.
// CHECK-LABEL: commir.program @one_of_two on
// CHECK: commir.all_gather.start {{.*}} on "row" along k
// CHECK-NOT: scf.if
// CHECK: commir.broadcast.start %{{.*}} into %{{.*}} of %{{.*}} on "col"
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: %[[OWN:.*]] = commir.part %A [k : %{{.*}} of 3]
// CHECK: commir.broadcast.start %[[OWN]] into %{{.*}} on "col"
commir.mesh @mesh(row = 2, col = 3)
commir.program @one_of_two on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k],
           %B: !commir.buffer<[k, j], f32> shard [k -> row])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 parallel(row), j of 3 parallel(col), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Fox: B rotates while A is broadcast along the level that k is not shifted on. Which panel depends on the row.
// CHECK-LABEL: commir.program @fox on
// CHECK: commir.broadcast.start {{.*}} on "col"
// CHECK: scf.for
// CHECK: commir.broadcast.start {{.*}} on "col"
// CHECK: commir.exchange.start {{.*}} on "row"
// CHECK: commir.launch "matmul"
commir.mesh @mesh(row = 3, col = 3)
commir.program @fox on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 3 parallel(row), j of 3 parallel(col), k of 3 shift(by i on row) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Under a loop over its rows a slice of A is broadcast; over two levels, by the rank of both.
// CHECK-LABEL: commir.program @slices_over_two_levels on
// CHECK: %[[PANELS:.*]] = commir.alloc slots 2 placement [] parts {i = 2 : i64, k = 4 : i64}
// CHECK: scf.for %[[I:.*]] =
// CHECK: commir.part %[[PANELS]] slot %{{.*}} [i : %[[I]] of 2, k : %{{.*}} of 4]
// CHECK: commir.broadcast.start {{.*}} on ["row", "col"]
// CHECK: scf.for
// CHECK: scf.if
// CHECK: commir.part %A [i : %[[I]] of 2, k : %{{.*}} of 4]
// CHECK: commir.broadcast.start {{.*}} on ["row", "col"]
commir.mesh @mesh(row = 2, col = 2)
commir.program @slices_over_two_levels on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> (row, col)] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i_outer in i of 2, i_inner in i, j of 4 parallel(row, col), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// A joined loop nests: the panels are of its inner axis, and come again for each part of the outer one.
// CHECK-LABEL: commir.program @joined on
// CHECK: scf.for
// CHECK: commir.broadcast.start {{.*}} on "gpu"
// CHECK: scf.for
// CHECK: commir.broadcast.start {{.*}} on "gpu"
// CHECK: commir.part %B [k : %{{.*}} of 3, j : %{{.*}} of 9]
// CHECK: commir.launch "matmul"
commir.mesh @mesh(gpu = 3)
commir.program @joined on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> gpu] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, jk in (j, k) of 9 {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Stripes are dealt in turn: panel p of 6 is of shard p mod 3 of A, and of shard p mod 2 of B.
// CHECK-LABEL: commir.program @striped on
// CHECK: scf.for
// CHECK-DAG: %[[COLS:.*]] = arith.constant 3 : index
// CHECK: %[[ROOT_A:.*]] = arith.remui %[[PANEL:.*]], %[[COLS]] : index
// CHECK: commir.copy
// CHECK: commir.broadcast.start %{{.*}} into %{{.*}} of %[[ROOT_A]] on "col"
// CHECK: commir.copy
// CHECK: commir.broadcast.start {{.*}} on "row"
commir.mesh @mesh(row = 2, col = 3)
commir.program @striped on @mesh axes(i = 8, j = 9, k = 12 striped(2))
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k], %B: !commir.buffer<[k, j], f32> shard [k -> row] broadcast [k])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 parallel(row), j of 3 parallel(col), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// A nest that runs in parallel on the level uses its own shard.
// CHECK-LABEL: commir.program @at_hand on
// CHECK-NOT: commir.broadcast.start
// CHECK-NOT: commir.all_gather.start
// CHECK: commir.launch "matmul"
// CHECK: commir.all_reduce.start
commir.mesh @mesh(gpu = 3)
commir.program @at_hand on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> gpu] broadcast [k],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
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
