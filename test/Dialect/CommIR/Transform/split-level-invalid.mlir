// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: split.level
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
    // expected-error@below {{cannot split level 'rack': a level to split must be a level of the mesh ('node', 'gpu')}}
    transform.commir.split_level "rack" into (a = 2) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: split.sizes
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @sizes_do_not_multiply on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot split level 'gpu': the new sizes must multiply to the size of the level, 4, got 6}}
    transform.commir.split_level "gpu" into (a = 2, b = 3) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: split.sizes
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @too_large on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot split level 'gpu': the new sizes must multiply to the size of the level, 4, got 9223372036854775807 for 'a'}}
    transform.commir.split_level "gpu" into (a = 9223372036854775807, b = 2) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: split.sizes
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 1)
  // expected-note@below {{the program is here}}
  commir.program @into_nothing on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot split level 'gpu': the new sizes must multiply to the size of the level, 1, got 1}}
    transform.commir.split_level "gpu" into () in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: split.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @name_of_another_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot split level 'gpu': the new levels must have new names, got 'node' again}}
    transform.commir.split_level "gpu" into (node = 2, b = 2) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: split.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @same_names on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot split level 'gpu': the new levels must have new names, got 'a' again}}
    transform.commir.split_level "gpu" into (a = 2, a = 2) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: split.shifted
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @shifted_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot split level 'gpu': a level to split must not have shifted loops, 'sk' is shifted on it; split first}}
    transform.commir.split_level "gpu" into (a = 2, b = 2) in %program : !transform.any_op
    transform.yield
  }
}

// -----

// Another program on the same mesh has the shifted loop.
// CONSTRAINT: split.shifted
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @shifted on @mesh axes(b = 2, h = 4, sq = 64, sk = 64) inputs() outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
    }
  }
  // expected-note@below {{the program is here}}
  commir.program @plain on @mesh axes()
      inputs() outputs() attributes {tag = "plain"} {
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %plain = transform.structured.match ops{["commir.program"]} attributes {tag = "plain"} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot split level 'gpu': a level to split must not have shifted loops, 'sk' is shifted on it; split first}}
    transform.commir.split_level "gpu" into (a = 2, b = 2) in %plain : !transform.any_op
    transform.yield
  }
}
