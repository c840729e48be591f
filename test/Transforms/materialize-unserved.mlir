// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// R8 of what a ring does not serve: it comes whole before the loops, and a
// remark says so
//===----------------------------------------------------------------------===//

// A rank has not the parts that it starts with.
// CHECK-LABEL: commir.program @several_parts_around_a_ring on
// CHECK: commir.redistribute %B
// CHECK-NOT: commir.exchange.start
// CHECK: commir.launch "matmul"
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @several_parts_around_a_ring on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32> shard [k -> (node, gpu)])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'B' is exchanged whole before the loops (R8): no ring over 'k' serves its placement}}
  commir.for i_outer in i of 2 parallel(node), i_inner in i of 2 parallel(gpu), j,
      k_outer in k of 4 shift(by i_outer on node), k_inner in k of 2 shift(by i_inner on gpu) {
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

// Two ranks start with one part.
// CHECK-LABEL: commir.program @two_terms_that_cut_one_axis on
// CHECK: commir.redistribute %B
// CHECK-NOT: commir.exchange.start
// CHECK: commir.launch "matmul"
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @two_terms_that_cut_one_axis on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'B' is exchanged whole before the loops (R8): no ring over 'k' serves its placement}}
  commir.for i_outer in i of 2 parallel(node), i_inner in i of 2 parallel(gpu), j,
      k of 4 shift(by i_outer on node, by i_inner on gpu) {
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

// The loop over the parts of a rank's shard lies inside the ring.
// CHECK-LABEL: commir.program @strided_inside_a_ring on
// CHECK: commir.redistribute %B
// CHECK-NOT: commir.exchange.start
// CHECK: commir.launch "matmul"
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @strided_inside_a_ring on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'B' is exchanged whole before the loops (R8): no ring over 'k' serves its placement}}
  commir.for i_outer in i of 2 parallel(node), i_inner in i of 2 parallel(gpu), j,
      k_outer in k of 2 shift(by i_outer on node), k_middle in k of 2,
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

// Each rank would be at another slice of B.
// CHECK-LABEL: commir.program @unlike_slices on
// CHECK: commir.redistribute %B
// CHECK: commir.launch "matmul"
commir.mesh @mesh(gpu = 4)
commir.program @unlike_slices on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32> shard [k -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'B' is exchanged whole before the loops (R8): no ring over 'k' serves its placement}}
  // expected-remark@below {{no ring over 'j' serves its placement}}
  commir.for i of 4 parallel(gpu), j of 4 shift(by i on gpu), k of 4 shift(by i on gpu) {
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
// R2 of panels that would not be the same for all ranks: all of it is gathered
//===----------------------------------------------------------------------===//

// Each rank is at other rows of A.
// CHECK-LABEL: commir.program @panels_of_unlike_slices on
// CHECK: commir.all_gather.start {{.*}} along k
// CHECK-NOT: commir.broadcast.start
// CHECK: commir.launch "matmul"
commir.mesh @mesh(gpu = 3)
commir.program @panels_of_unlike_slices on @mesh axes(i = 9, j = 7, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> gpu] broadcast [k],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'A' comes whole before the loops, not panel by panel: a loop around 'k' has its ranks at unlike slices}}
  commir.for j of 3 parallel(gpu), i of 3 shift(by j on gpu), k of 3 {
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

// What moves along the loop is rounded, a panel is not.
// CHECK-LABEL: commir.program @panels_beside_a_narrower_link on
// CHECK: commir.all_gather.start {{.*}} along k
// CHECK-NOT: commir.broadcast.start
// CHECK: commir.exchange.start
// CHECK: commir.launch "matmul"
commir.mesh @mesh(row = 3, col = 3)
commir.program @panels_beside_a_narrower_link on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{'A' comes whole before the loops, not panel by panel: 'k' moves parts over a narrower link}}
  commir.for i of 3 parallel(row), j of 3 parallel(col), k of 3 shift(by i on row, link bf16) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
