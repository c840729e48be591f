// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @one_level
// CHECK: %K: !commir.buffer<[b, sk, h], f32> replicate [gpu])
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
    transform.commir.replicate "K" over "gpu" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @two_levels
// CHECK: replicate [gpu, node])
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
    transform.commir.replicate "K" over "gpu" in %program : !transform.any_op
    transform.commir.replicate "K" over "node" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @beside_a_shard
// CHECK: shard [sk -> gpu] replicate [node])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @beside_a_shard on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.commir.replicate "K" over "node" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @an_output
// CHECK: outputs(%O: !commir.buffer<[b, sq, h], f32> replicate [gpu])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @an_output on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs(%O: !commir.buffer<[b, sq, h], f32>) {
    commir.for b, h, sq, sk {
      %q = commir.load %Q : !commir.buffer<[b, sq, h], f32>
      %k = commir.load %K : !commir.buffer<[b, sk, h], f32>
      commir.store %q to %O merge(sum) over(sk)
          : !commir.tile<[b, sq, h], f32> to !commir.buffer<[b, sq, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.replicate "O" over "gpu" in %program : !transform.any_op
    transform.yield
  }
}
