// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: patch.match
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_such_kernel on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
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
    // expected-error@below {{cannot patch kernels 'attention': the pattern must match a kernel of the program, 'attention' matches none}}
    transform.commir.patch "attention" with "cudnn" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: patch.match
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_kernel_starts_so on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
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
    // expected-error@below {{cannot patch kernels 'matmul*': the pattern must match a kernel of the program, 'matmul*' matches none}}
    transform.commir.patch "matmul*" with "cublas" in %program : !transform.any_op
    transform.yield
  }
}
