// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @one_level
// CHECK: %K: !commir.buffer<[b, sk, h], f32> shard [sk -> gpu])
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
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @two_levels
// CHECK: %K: !commir.buffer<[b, sk, h], f32> shard [sk -> (node, gpu)])
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
    transform.commir.shard "K" along "sk" over ["node", "gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @two_axes
// CHECK: shard [sk -> gpu, h -> node])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @two_axes on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.commir.shard "K" along "h" over ["node"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @one_axis_in_two_steps
// CHECK: shard [sk -> (node, gpu)])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @one_axis_in_two_steps on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "sk" over ["node"] in %program : !transform.any_op
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// A placement found earlier is not true any more.
// CHECK-LABEL: commir.program @boundary_stays_inside_goes
// CHECK: %K: !commir.buffer<[b, sk, h], f32> at [h -> gpu] shard [sk -> gpu] replicate [node])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @boundary_stays_inside_goes on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32> at [h -> gpu] replicate [node] inside [h -> gpu])
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @grouped_heads
// CHECK: %K: !commir.buffer<[b, sk, h/2], f32> shard [h -> gpu])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @grouped_heads on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h/2], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "h" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// How it is read is remembered with the axis; another shard of it leaves that as it is.
// CHECK-LABEL: commir.program @read_by_broadcast
// CHECK: %K: !commir.buffer<[b, sk, h], f32> shard [sk -> gpu, h -> node] broadcast [sk])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @read_by_broadcast on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // CHECK: transform.commir.shard "K" along "sk" over ["gpu"] reads broadcast in
    transform.commir.shard "K" along "sk" over ["gpu"] reads broadcast in %program : !transform.any_op
    transform.commir.shard "K" along "h" over ["node"] in %program : !transform.any_op
    transform.yield
  }
}
