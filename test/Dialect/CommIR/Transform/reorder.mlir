// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @two_loops
// CHECK: commir.for b, h, sk, sq {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @two_loops on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.reorder ["sk", "sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @all_loops
// CHECK: commir.for sk, sq, h, b {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @all_loops on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.reorder ["sk", "sq", "h", "b"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @others_keep_their_places
// CHECK: commir.for sk, h, sq, b {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @others_keep_their_places on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.reorder ["sk", "b"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @tiles_of_one_axis_keep_their_order
// CHECK: commir.for b, h, sk_outer in sk of 4, sq, sk_inner in sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @tiles_of_one_axis_keep_their_order on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk_outer in sk of 4, sk_inner in sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.reorder ["sk_outer", "sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @shift_outside_the_loop_it_is_shifted_by
// CHECK: commir.for b, h, sk of 4 shift(by sq on gpu), sq of 4 parallel(gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @shift_outside_the_loop_it_is_shifted_by on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.reorder ["sk", "sq"] in %program : !transform.any_op
    transform.yield
  }
}
