// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK: commir.mesh @mesh(node = 2, gpu0 = 2, gpu1 = 4)
// CHECK-LABEL: commir.program @loops_and_placements
// CHECK: inputs(%Q: !commir.buffer<[b, sq, h], f32> at [sq -> (node, gpu0, gpu1)],
// CHECK-NEXT: %K: !commir.buffer<[b, sk, h], f32> at [sk -> (4, gpu0, gpu1) zigzag] shard [h -> (gpu0, gpu1)] replicate [node] inside [h -> (gpu0, gpu1)],
// CHECK-NEXT: %V: !commir.buffer<[b, sk, h], f32> replicate [gpu0, gpu1])
// CHECK: commir.for b, h, sq of 16 parallel(node, gpu0, gpu1), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 8)
  commir.program @loops_and_placements on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32> at [sq -> (node, gpu)],
             %K: !commir.buffer<[b, sk, h], f32> at [sk -> (4, gpu) zigzag] shard [h -> gpu] replicate [node] inside [h -> gpu],
             %V: !commir.buffer<[b, sk, h], f32> replicate [gpu])
      outputs() {
    commir.for b, h, sq of 16 parallel(node, gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.split_level "gpu" into (gpu0 = 2, gpu1 = 4) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK: commir.mesh @mesh(gpu = 2, ring = 4)
// CHECK-LABEL: commir.program @one_name_stays
// CHECK: commir.for b, h, sq of 8 parallel(gpu, ring), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 8)
  commir.program @one_name_stays on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 8 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.split_level "gpu" into (gpu = 2, ring = 4) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK: commir.mesh @mesh(gpu = 7, one = 1)
// CHECK-LABEL: commir.program @prime
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 7)
  commir.program @prime on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.split_level "gpu" into (gpu = 7, one = 1) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// Programs that share a mesh are split together, and once; another mesh stays.
// CHECK: commir.mesh @mesh(gpu0 = 2, gpu1 = 4)
// CHECK: commir.mesh @other(gpu = 8)
// CHECK-LABEL: commir.program @on_another_mesh
// CHECK: inputs(%A: !commir.buffer<[i], f32> at [i -> gpu])
// CHECK-LABEL: commir.program @on_the_same_mesh
// CHECK: inputs(%A: !commir.buffer<[i], f32> at [i -> (gpu0, gpu1)])
// CHECK-LABEL: commir.program @several_programs
// CHECK: inputs(%Q: !commir.buffer<[sq], f32> at [sq -> (gpu0, gpu1)])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 8)
  commir.mesh @other(gpu = 8)
  commir.program @on_another_mesh on @other axes(i = 8)
      inputs(%A: !commir.buffer<[i], f32> at [i -> gpu]) outputs() {
  }
  commir.program @on_the_same_mesh on @mesh axes(i = 8)
      inputs(%A: !commir.buffer<[i], f32> at [i -> gpu]) outputs()
      attributes {tag = "same"} {
  }
  commir.program @several_programs on @mesh axes(sq = 8)
      inputs(%Q: !commir.buffer<[sq], f32> at [sq -> gpu])
      outputs() {
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %same = transform.structured.match ops{["commir.program"]} attributes {tag = "same"} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.split_level "gpu" into (gpu0 = 2, gpu1 = 4) in %same : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK: commir.mesh @mesh(gpu0 = 2, gpu1 = 4)
// CHECK-LABEL: commir.program @both_programs_of_the_handle
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 8)
  commir.program @first on @mesh axes(i = 8)
      inputs(%A: !commir.buffer<[i], f32> at [i -> gpu]) outputs() {
  }
  commir.program @both_programs_of_the_handle on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.split_level "gpu" into (gpu0 = 2, gpu1 = 4) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK: commir.mesh @mesh(gpu0 = 2, gpu1 = 4)
// CHECK-LABEL: commir.program @then_ulysses_and_a_ring
// CHECK: commir.for b, h of 4 parallel(gpu1), sq of 2 parallel(gpu0), sk of 2 shift(by sq on gpu0) {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 8)
  commir.program @then_ulysses_and_a_ring on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.split_level "gpu" into (gpu0 = 2, gpu1 = 4) in %program : !transform.any_op
    transform.commir.parallelize "h" over ["gpu1"] in %program : !transform.any_op
    transform.commir.parallelize "sq" over ["gpu0"] in %program : !transform.any_op
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}
