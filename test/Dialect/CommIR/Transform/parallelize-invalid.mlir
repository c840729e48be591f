// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: parallelize.levels
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
    // expected-error@below {{cannot parallelize loop 'sq' over : a loop must be spread over at least one level, got none}}
    transform.commir.parallelize "sq" over [] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: parallelize.again
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @parallel_already on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'sq' over 'node': a loop to parallelize must not be parallel or shifted already, 'sq' is}}
    transform.commir.parallelize "sq" over ["node"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: parallelize.again
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @shifted_already on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'sk' over 'node': a loop to parallelize must not be parallel or shifted already, 'sk' is}}
    transform.commir.parallelize "sk" over ["node"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: step.loop
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_such_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'i' over 'gpu': a step must name a loop of the program, 'i' is none; the loops are 'b', 'h', 'sq', 'sk'}}
    transform.commir.parallelize "i" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.parallel-level
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
    // expected-error@below {{cannot parallelize loop 'sq' over 'rack': parallel loop 'sq' must name levels of the mesh ('node', 'gpu'), got 'rack'}}
    transform.commir.parallelize "sq" over ["rack"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.level-taken
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @level_taken on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'h' over 'gpu': level 'gpu' must not run two parallel loops, 'h' is parallel on it already}}
    transform.commir.parallelize "h" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.level-taken
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @level_named_twice on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'sq' over 'gpu', 'gpu': level 'gpu' must not run two parallel loops, 'sq' is parallel on it already}}
    transform.commir.parallelize "sq" over ["gpu", "gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.level-taken
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 1048576)
  // expected-note@below {{the program is here}}
  commir.program @ranks_would_overflow on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'sq' over 'gpu', 'gpu', 'gpu', 'gpu': level 'gpu' must not run two parallel loops, 'sq' is parallel on it already}}
    transform.commir.parallelize "sq" over ["gpu", "gpu", "gpu", "gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.parallel-parts
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @parts_are_not_the_ranks on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk of 6 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'sk' over 'gpu': parallel loop 'sk' must have as many parts as its levels have ranks, 4, got 6}}
    transform.commir.parallelize "sk" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.joined-parts
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @joined_loop_not_on_whole_axes on @mesh axes(b = 3, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for bh in (b, h), sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'bh' over 'gpu': joined loop 'bh' must be cut along whole axes, 4 parts are not; split the level, or parallelize its axes one by one}}
    transform.commir.parallelize "bh" over ["gpu"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.joined-parts
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @level_between_two_axes on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for bh in (b, h), sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot parallelize loop 'bh' over 'gpu', 'node': joined loop 'bh' must be cut along whole axes, 8 parts are not; split the level, or parallelize its axes one by one}}
    transform.commir.parallelize "bh" over ["gpu", "node"] in %program : !transform.any_op
    transform.yield
  }
}
