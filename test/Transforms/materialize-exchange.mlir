// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null
//
// R8: what no other rule brings is exchanged, before the loops for what they
// read and after them for what they make. A shift that it replaces is told.
// REMARK: remark: 'B' is exchanged whole before the loops (R8): no ring over 'k' serves its placement
// REMARK: remark: 'A' is exchanged whole before the loops (R8): no ring over 'k' serves its placement

// CHECK-LABEL: commir.program @r6_result_along_a_shifted_axis on
// CHECK: commir.launch
// CHECK: commir.redistribute %{{.*}} to %C :
commir.mesh @mesh(gpu = 4)
commir.program @r6_result_along_a_shifted_axis on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32> replicate [gpu])
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j of 4 parallel(gpu), k, i of 4 shift(by j on gpu) {
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

// CHECK-LABEL: commir.program @r8_another_layout on
// CHECK: commir.redistribute %A to %{{.*}} :
// CHECK: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @r8_another_layout on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> at [i -> gpu zigzag],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k {
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

// CHECK-LABEL: commir.program @r8_reshard_over_two_levels on
// CHECK: commir.launch
// CHECK: commir.redistribute %{{.*}} to %C :
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @r8_reshard_over_two_levels on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> at [j -> (node, gpu)]) {
  commir.for i of 4 parallel(node, gpu), j, k {
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

// CHECK-LABEL: commir.program @r8_two_axes_move on
// CHECK: commir.redistribute %A to %{{.*}} :
// CHECK: commir.launch
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @r8_two_axes_move on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [i -> gpu, k -> node],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j of 8 parallel(node, gpu), k {
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

// CHECK-LABEL: commir.program @r8_gather_where_another_axis_runs on
// CHECK: commir.redistribute %A to %{{.*}} :
// CHECK: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @r8_gather_where_another_axis_runs on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> gpu],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k {
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

// The rank that computes part (row, col) holds part (col, row).
// CHECK-LABEL: commir.program @r8_levels_in_another_order on
// CHECK: commir.redistribute %A to %{{.*}} :
// CHECK: commir.launch
commir.mesh @mesh(row = 2, col = 2)
commir.program @r8_levels_in_another_order on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [i -> (col, row)],
           %B: !commir.buffer<[k, j], f32>)
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

// -----

// CHECK-LABEL: commir.program @r8_result_in_another_order on
// CHECK: commir.launch
// CHECK: commir.redistribute %{{.*}} to %C :
commir.mesh @mesh(row = 2, col = 2)
commir.program @r8_result_in_another_order on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> (col, row)]) {
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

// -----

// CHECK-LABEL: commir.program @r8_result_where_no_loop_runs on
// CHECK: commir.launch
// CHECK: commir.redistribute %{{.*}} to %C :
commir.mesh @mesh(gpu = 4)
commir.program @r8_result_where_no_loop_runs on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for i of 4, j, k {
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

// CHECK-LABEL: commir.program @r8_result_along_another_axis on
// CHECK: commir.launch
// CHECK: commir.redistribute %{{.*}} to %C :
commir.mesh @mesh(gpu = 4)
commir.program @r8_result_along_another_axis on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [j -> gpu]) {
  commir.for i of 4 parallel(gpu), j, k {
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

// CHECK-LABEL: commir.program @r8_result_whole_everywhere on
// CHECK: commir.launch
// CHECK: commir.redistribute %{{.*}} to %C :
commir.mesh @mesh(gpu = 4)
commir.program @r8_result_whole_everywhere on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> replicate [gpu]) {
  commir.for i of 4 parallel(gpu), j, k {
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

// CHECK-LABEL: commir.program @r8_shifted_on_one_level_of_two on
// CHECK: commir.redistribute %B to %{{.*}} :
// CHECK: commir.launch
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @r8_shifted_on_one_level_of_two on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32> shard [k -> node])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 8 parallel(node, gpu), j, k of 4 shift(by i on gpu) {
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

// CHECK-LABEL: commir.program @r8_ring_where_another_axis_runs on
// CHECK: commir.redistribute %A to %{{.*}} :
// CHECK: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @r8_ring_where_another_axis_runs on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> gpu],
           %B: !commir.buffer<[k, j], f32>)
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

// What travels is brought home at the end: C is cut over the nodes first, and
// travels among the GPUs of a node.
// CHECK-LABEL: commir.program @r8_results_that_travel on
// CHECK: scf.for
// CHECK:   commir.exchange.start {{.*}} on "gpu"
// CHECK: commir.all_gather.start %{{.*}} on "node"
// CHECK: %[[MADE:.*]] = commir.alloc slots 1 placement [i -> gpu]
// CHECK: commir.launch "sum_all"
// CHECK: commir.redistribute %[[MADE]] to %C
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @r8_results_that_travel on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> node]) {
  commir.for k_outer in k of 2 parallel(node), k_inner in k of 2 parallel(gpu), j,
      i of 2 shift(by k_inner on gpu, offset 1) {
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

// Results are made in the parts that loops in sequence leave to a rank.
// CHECK-LABEL: commir.program @r8_of_several_parts on
// CHECK: %[[MADE:.*]] = commir.alloc slots 1 placement [i -> (2, gpu)]
// CHECK: commir.redistribute %[[MADE]] to %C
commir.mesh @mesh(gpu = 4)
commir.program @r8_of_several_parts on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [j -> gpu]) {
  commir.for i_outer in i of 2, i_inner in i of 4 parallel(gpu), j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
