// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

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
    // expected-error@below {{cannot shard buffer 'V' along 'sk' over 'gpu': a step must name a buffer of the program, 'V' is none; the buffers are 'Q', 'K'}}
    transform.commir.shard "V" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shard.levels
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_levels on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shard buffer 'K' along 'sk' over : a buffer must be sharded over at least one level, got none}}
    transform.commir.shard "K" along "sk" over [] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shard.twice
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @level_twice on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shard buffer 'K' along 'sk' over 'gpu', 'gpu': a buffer must not be sharded twice over a level, 'K' is over 'gpu' already}}
    transform.commir.shard "K" along "sk" over ["gpu", "gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shard.twice
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @level_used_by_another_axis on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32> shard [h -> gpu])
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shard buffer 'K' along 'sk' over 'gpu': a buffer must not be sharded twice over a level, 'K' is over 'gpu' already}}
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: program.cut-axis
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_such_axis on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shard buffer 'K' along 'sq' over 'gpu': the placement of 'K' must cut axes of its buffer, 'sq' is none}}
    transform.commir.shard "K" along "sq" over ["gpu"] in %program : !transform.any_op
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
    // expected-error@below {{cannot shard buffer 'K' along 'sk' over 'rack': the placement of 'K' must name levels of the mesh ('node', 'gpu'), got 'rack'}}
    transform.commir.shard "K" along "sk" over ["rack"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: program.replicate
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @replicated_over_the_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32> replicate [gpu])
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shard buffer 'K' along 'sk' over 'gpu': level 'gpu' must not be both replicated and sharded for 'K'}}
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: program.cut-layout
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @layout_does_not_fit on @mesh axes(b = 2, h = 4, sq = 64, sk = 64 bounds[0, 1, 2, 64])
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shard buffer 'K' along 'sk' over 'gpu': the layout of the cut of 'K' along 'sk' must fit the axis: bounds name 3 shards, which neither divides nor is a multiple of 4}}
    transform.commir.shard "K" along "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @panels_do_not_fit_a_cut on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {
      %k = commir.load %K : !commir.buffer<[b, sk, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.tile "sk" into 6 in %program : !transform.any_op
    // expected-error@below {{cannot shard buffer 'K' along 'sk' over 'gpu': the outermost cut of an axis must be a multiple of the shards that are broadcast along it, 4 of 'K', got 6 in loop 'sk_outer'}}
    transform.commir.shard "K" along "sk" over ["gpu"] reads broadcast in %program : !transform.any_op
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @a_cut_does_not_fit_the_panels on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {
      %k = commir.load %K : !commir.buffer<[b, sk, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "sk" over ["gpu"] reads broadcast in %program : !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the outermost cut of an axis must be a multiple of the shards that are broadcast along it, 4 of 'K', got 6 in loop 'sk_outer'}}
    transform.commir.tile "sk" into 6 in %program : !transform.any_op
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @broadcasts_do_not_rotate on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {
      %k = commir.load %K : !commir.buffer<[b, sk, h], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.shard "K" along "sk" over ["gpu"] reads broadcast in %program : !transform.any_op
    transform.commir.parallelize "sq" over ["gpu"] in %program : !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': loop 'sk' must not be shifted over a level that its axis is broadcast on, 'gpu' of 'K'}}
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}
