// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @ring
// CHECK: commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @ring on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @every_operand
// CHECK: sk of 4 shift(by sq on gpu, direction -1, offset 3, reads pull, results deliver, via {K = "rotate", O = "travel"}, chunks 2, link bf16) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @every_operand on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs(%O: !commir.buffer<[b, sq, h], f32>) {
    commir.for b, h, sq of 4 parallel(gpu), sk {
      %q = commir.load %Q : !commir.buffer<[b, sq, h], f32>
      %k = commir.load %K : !commir.buffer<[b, sk, h], f32>
      commir.store %q to %O merge(sum) over(sk)
          : !commir.tile<[b, sq, h], f32> to !commir.buffer<[b, sq, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "sk" by ["sq"] direction -1 offset 3 reads pull results deliver via {K = "rotate", O = "travel"} chunks 2 link bf16 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @double_ring_nests
// CHECK: commir.for b, h, sq of 8 parallel(node, gpu), sk_node in sk of 2 shift(by sq on node), sk_gpu in sk of 4 shift(by sq on gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @double_ring_nests on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 8 parallel(node, gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @over_one_level_of_two
// CHECK: commir.for b, h, sq of 8 parallel(node, gpu), sk of 4 shift(by sq on gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @over_one_level_of_two on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 8 parallel(node, gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "sk" by ["sq"] over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @cannon_adds
// CHECK: commir.for i of 2 parallel(node), j of 4 parallel(gpu), k of 4 shift(by i on node, by j on gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @cannon_adds on @mesh axes(i = 64, j = 64, k = 64)
      inputs()
      outputs() {
    commir.for i of 2 parallel(node), j of 4 parallel(gpu), k {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "k" by ["i", "j"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @cannon_least_common_multiple
// CHECK: k of 6 shift(by i on node, by j on gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 3)
  commir.program @cannon_least_common_multiple on @mesh axes(i = 64, j = 64, k = 64)
      inputs()
      outputs() {
    commir.for i of 2 parallel(node), j of 3 parallel(gpu), k {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "k" by ["i", "j"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @cut_loop_keeps_its_parts
// CHECK: sk of 8 shift(by sq on gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @cut_loop_keeps_its_parts on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 8 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @parallel_on_another_level
// CHECK: commir.for b, h, sq of 4 parallel(gpu), sk of 4 parallel(node) shift(by sq on gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 4, gpu = 4)
  commir.program @parallel_on_another_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 4 parallel(node) {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @by_an_inner_loop
// CHECK: commir.for b, h, sk of 4 shift(by sq on gpu), sq of 4 parallel(gpu) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @by_an_inner_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.reorder ["sk", "sq"] in %program : !transform.any_op
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @mesh_of_one_device
// CHECK: commir.for b, h, sq parallel(gpu), sk shift(by sq on gpu) {
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
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}
