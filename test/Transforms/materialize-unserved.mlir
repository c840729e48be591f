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
