// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @one_level
// CHECK: commir.for b, h, sq of 4 parallel(gpu), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @one_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.parallelize "sq" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @two_levels
// CHECK: commir.for b, h, sq of 8 parallel(node, gpu), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @two_levels on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.parallelize "sq" over ["node", "gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @levels_in_the_order_given
// CHECK: commir.for b, h, sq of 8 parallel(gpu, node), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @levels_in_the_order_given on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.parallelize "sq" over ["gpu", "node"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @two_loops
// CHECK: commir.for b, h of 4 parallel(gpu), sq of 2 parallel(node), sk {
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
    transform.commir.parallelize "sq" over ["node"] in %program : !transform.any_op
    transform.commir.parallelize "h" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @inner_loop_is_strided
// CHECK: commir.for b, h, sq, sk_outer in sk of 8, sk_inner in sk of 4 parallel(gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @inner_loop_is_strided on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 8 in %program : !transform.any_op
    transform.commir.parallelize "sk_inner" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @cut_loop_keeps_its_parts
// CHECK: commir.for b, h, sq, sk of 4 parallel(gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @cut_loop_keeps_its_parts on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk of 4 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.parallelize "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @mesh_of_one_device
// CHECK: commir.for b, h, sq parallel(gpu), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 1)
  commir.program @mesh_of_one_device on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.parallelize "sq" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @axis_shorter_than_the_ranks
// CHECK: commir.for b of 4 parallel(gpu), h, sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @axis_shorter_than_the_ranks on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.parallelize "b" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @joined_loop_on_whole_axes
// CHECK: commir.for bh in (b, h) of 8 parallel(node, gpu), sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @joined_loop_on_whole_axes on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for bh in (b, h), sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.parallelize "bh" over ["node", "gpu"] in %program : !transform.any_op
    transform.yield
  }
}
