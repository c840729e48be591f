// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @different_axes
// CHECK: commir.for b_h in (b, h), sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @different_axes on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.join "b", "h" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @with_a_name
// CHECK: commir.for heads in (b, h), sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @with_a_name on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.join "b", "h" as "heads" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @three
// CHECK: commir.for all in (b, h, sq), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @three on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.join "b", "h" in %program : !transform.any_op
    transform.commir.join "b_h", "sq" as "all" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @undoes_a_tile
// CHECK: commir.for b, h, sq, sk of 4 {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @undoes_a_tile on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.commir.join "sk_outer", "sk_inner" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @parts_multiply
// CHECK: commir.for b, h, sq, sk of 8 {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @parts_multiply on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk0 in sk of 2, sk1 in sk of 4 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.join "sk0", "sk1" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @then_parallelize
// CHECK: commir.for b_h in (b, h) of 8 parallel(node, gpu), sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @then_parallelize on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.join "b", "h" in %program : !transform.any_op
    transform.commir.parallelize "b_h" over ["node", "gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @axis_without_positions
// CHECK: commir.for b_h in (b, h) of 4 parallel(gpu), sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @axis_without_positions on @mesh axes(b = 0, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.join "b", "h" in %program : !transform.any_op
    transform.commir.parallelize "b_h" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}
