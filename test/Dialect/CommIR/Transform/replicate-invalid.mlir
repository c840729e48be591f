// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: program.replicate-twice
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @twice on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.replicate "K" over "gpu" in %program : !transform.any_op
    // expected-error@below {{cannot replicate buffer 'K' over 'gpu': a buffer must not be replicated twice over a level, 'K' is over 'gpu' already}}
    transform.commir.replicate "K" over "gpu" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: program.cut-level
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_such_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot replicate buffer 'K' over 'rack': the placement of 'K' must name levels of the mesh ('node', 'gpu'), got 'rack'}}
    transform.commir.replicate "K" over "rack" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: program.replicate
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @sharded_over_the_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    // expected-error@below {{cannot replicate buffer 'K' over 'gpu': level 'gpu' must not be both replicated and sharded for 'K'}}
    transform.commir.replicate "K" over "gpu" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: step.buffer
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_such_buffer on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot replicate buffer 'V' over 'gpu': a step must name a buffer of the program, 'V' is none; the buffers are 'Q', 'K'}}
    transform.commir.replicate "V" over "gpu" in %program : !transform.any_op
    transform.yield
  }
}
