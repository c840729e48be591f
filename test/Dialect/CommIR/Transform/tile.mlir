// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @into_a_number
// CHECK: commir.for b, h, sq, sk_outer in sk of 4, sk_inner in sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @into_a_number on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @into_a_level
// CHECK: commir.for b, h, sq_outer in sq of 2, sq_inner in sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @into_a_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sq" into "node" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @with_names
// CHECK: commir.for b, h, sq, sk0 in sk of 4, sk1 in sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @with_names on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into "gpu" as ["sk0", "sk1"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @name_kept_for_the_inner_loop
// CHECK: commir.for b, h, sq, blocks in sk of 4, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @name_kept_for_the_inner_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 4 as ["blocks", "sk"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @twice
// CHECK: commir.for b, h, sq, sk_outer in sk of 4, sk1 in sk of 2, sk2 in sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @twice on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.commir.tile "sk_inner" into 2 as ["sk1", "sk2"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @axis_without_positions
// CHECK: commir.for b, h, sq, sk_outer in sk of 4, sk_inner in sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @axis_without_positions on @mesh axes(b = 2, h = 4, sq = 64, sk = 0)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @other_nest_is_left_alone
// CHECK: commir.for other in sq {
// CHECK: commir.for b, h, sq, sk_outer in sk of 4, sk_inner in sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @other_nest_is_left_alone on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for other in sq {
    }
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// The sizes of the parts are the bounds of the axis.
// CHECK-LABEL: commir.program @into_sizes
// CHECK-SAME: axes(b = 8 bounds[0, 1, 3, 8], h = 4,
// CHECK: commir.for b_outer in b of 3, b_inner in b, h, sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 2)
  commir.program @into_sizes on @mesh axes(b = 8, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "b" into [1, 2, 5] in %program : !transform.any_op
    transform.yield
  }
}
