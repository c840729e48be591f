// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// The loop would get 4 parts before the rule refuses it.
// CHECK-LABEL: commir.program @step_that_a_loop_rule_refuses
// CHECK: commir.for b, h, sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @step_that_a_loop_rule_refuses on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.sequence %root : !transform.any_op failures(suppress) {
    ^bb0(%all: !transform.any_op):
      %p = transform.structured.match ops{["commir.program"]} in %all
          : (!transform.any_op) -> !transform.any_op
      transform.commir.shift "sk" by ["sq"] in %p : !transform.any_op
    }
    transform.yield
  }
}

// -----

// The first level is nested before the second fails for its name.
// CHECK-LABEL: commir.program @shift_that_nests
// CHECK: commir.for b, sk_gpu in h, sq of 8 parallel(node, gpu), sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @shift_that_nests on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, sk_gpu in h, sq of 8 parallel(node, gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.sequence %root : !transform.any_op failures(suppress) {
    ^bb0(%all: !transform.any_op):
      %p = transform.structured.match ops{["commir.program"]} in %all
          : (!transform.any_op) -> !transform.any_op
      transform.commir.shift "sk" by ["sq"] in %p : !transform.any_op
    }
    transform.yield
  }
}

// -----

// The first program could be tiled, the second cannot: both are left as they were.
// CHECK-LABEL: commir.program @first
// CHECK: commir.for b, h, sq, sk {
// CHECK-LABEL: commir.program @second_of_two_programs
// CHECK: commir.for b, h, sq, sk of 2 {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @first on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs() outputs() {
    commir.for b, h, sq, sk {
    }
  }
  commir.program @second_of_two_programs on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk of 2 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.sequence %root : !transform.any_op failures(suppress) {
    ^bb0(%all: !transform.any_op):
      %p = transform.structured.match ops{["commir.program"]} in %all
          : (!transform.any_op) -> !transform.any_op
      transform.commir.tile "sk" into 4 in %p : !transform.any_op
    }
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @first
// CHECK: inputs(%K: !commir.buffer<[b, sk, h], f32> at [sk -> gpu])
// CHECK-LABEL: commir.program @second_buffer
// CHECK: inputs(%Q: !commir.buffer<[sq], f32>)
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @first on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%K: !commir.buffer<[b, sk, h], f32> at [sk -> gpu]) outputs() {
    commir.for b, h, sq, sk {
    }
  }
  commir.program @second_buffer on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[sq], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.sequence %root : !transform.any_op failures(suppress) {
    ^bb0(%all: !transform.any_op):
      %p = transform.structured.match ops{["commir.program"]} in %all
          : (!transform.any_op) -> !transform.any_op
      transform.commir.shard "K" along "sk" over ["gpu"] in %p : !transform.any_op
    }
    transform.yield
  }
}

// -----

// CHECK-LABEL: commir.program @first
// CHECK: commir.kernel "scale"({{.*}}) signature
// CHECK-LABEL: commir.program @second_kernel
// CHECK: commir.for b, h, sq, sk {
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @first on @mesh axes(sq = 64) inputs(%Q: !commir.buffer<[sq], f32>) outputs() {
    commir.for sq {
      %q = commir.load %Q : !commir.buffer<[sq], f32>
      %x = commir.kernel "scale"(%q) signature("a -> a")
          : (!commir.tile<[sq], f32>) -> !commir.tile<[sq], f32>
    }
  }
  commir.program @second_kernel on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.sequence %root : !transform.any_op failures(suppress) {
    ^bb0(%all: !transform.any_op):
      %p = transform.structured.match ops{["commir.program"]} in %all
          : (!transform.any_op) -> !transform.any_op
      transform.commir.patch "scale" with "cudnn" in %p : !transform.any_op
    }
    transform.yield
  }
}

// -----

// The first mesh could be split, the second cannot.
// CHECK: commir.mesh @mesh(gpu = 6)
// CHECK: commir.mesh @eight(gpu = 8)
// CHECK-LABEL: commir.program @first
// CHECK: inputs(%A: !commir.buffer<[i], f32> at [i -> gpu])
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 6)
  commir.mesh @eight(gpu = 8)
  commir.program @first on @eight axes(i = 8)
      inputs(%A: !commir.buffer<[i], f32> at [i -> gpu]) outputs() {
  }
  commir.program @second_mesh on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.sequence %root : !transform.any_op failures(suppress) {
    ^bb0(%all: !transform.any_op):
      %p = transform.structured.match ops{["commir.program"]} in %all
          : (!transform.any_op) -> !transform.any_op
      transform.commir.split_level "gpu" into (gpu0 = 2, gpu1 = 4) in %p : !transform.any_op
    }
    transform.yield
  }
}
