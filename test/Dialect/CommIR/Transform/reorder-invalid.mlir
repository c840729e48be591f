// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: reorder.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @one_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot reorder loops 'sk': loops to reorder must be at least two different loops of one nest}}
    transform.commir.reorder ["sk"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: reorder.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @same_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot reorder loops 'sk', 'sk': loops to reorder must be at least two different loops of one nest}}
    transform.commir.reorder ["sk", "sk"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: reorder.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @different_nests on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for other in sq {
    }
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot reorder loops 'sk', 'other': loops to reorder must be at least two different loops of one nest}}
    transform.commir.reorder ["sk", "other"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: reorder.axis
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @tiles_of_one_axis on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk_outer in sk of 4, sk_inner in sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot reorder loops 'sk_inner', 'sk_outer': a loop must stay inside the loop that cuts its axis first, 'sk_inner' of axis 'sk' would not}}
    transform.commir.reorder ["sk_inner", "sk_outer"] in %program : !transform.any_op
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
    // expected-error@below {{cannot reorder loops 'sk', 'x': a step must name a loop of the program, 'x' is none; the loops are 'b', 'h', 'sq', 'sk'}}
    transform.commir.reorder ["sk", "x"] in %program : !transform.any_op
    transform.yield
  }
}
