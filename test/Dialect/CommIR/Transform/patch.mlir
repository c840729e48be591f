// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @one_kernel
// CHECK: commir.kernel "attention_scores"(%{{.*}}) signature
// CHECK: commir.kernel "attention_mix"(%{{.*}}) impl("cudnn") signature
// CHECK: commir.kernel "scale"(%{{.*}}) impl("torch")
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @one_kernel on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {
      %q = commir.load %Q : !commir.buffer<[b, sq, h], f32>
      %x = commir.kernel "attention_scores"(%q) signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
      %y = commir.kernel "attention_mix"(%x) signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
      %z = commir.kernel "scale"(%y) impl("torch") signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.patch "attention_mix" with "cudnn" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @kernels_by_pattern
// CHECK: commir.kernel "attention_scores"(%{{.*}}) impl("cudnn")
// CHECK: commir.kernel "attention_mix"(%{{.*}}) impl("cudnn")
// CHECK: commir.kernel "scale"(%{{.*}}) impl("torch")
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @kernels_by_pattern on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {
      %q = commir.load %Q : !commir.buffer<[b, sq, h], f32>
      %x = commir.kernel "attention_scores"(%q) signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
      %y = commir.kernel "attention_mix"(%x) signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
      %z = commir.kernel "scale"(%y) impl("torch") signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.patch "attention*" with "cudnn" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @again
// CHECK: commir.kernel "attention_scores"(%{{.*}}) impl("generated")
// CHECK: commir.kernel "attention_mix"(%{{.*}}) impl("generated")
// CHECK: commir.kernel "scale"(%{{.*}}) impl("inductor")
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @again on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {
      %q = commir.load %Q : !commir.buffer<[b, sq, h], f32>
      %x = commir.kernel "attention_scores"(%q) signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
      %y = commir.kernel "attention_mix"(%x) signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
      %z = commir.kernel "scale"(%y) impl("torch") signature("a b c -> a b c")
          : (!commir.tile<[b, sq, h], f32>) -> !commir.tile<[b, sq, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.patch "*" with "generated" in %program : !transform.any_op
    transform.commir.patch "scale" with "inductor" in %program : !transform.any_op
    transform.yield
  }
}
