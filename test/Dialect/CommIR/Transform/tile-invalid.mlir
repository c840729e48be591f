// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: tile.whole
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @cut_already on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk of 2 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': a loop to tile must not be cut yet, 'sk' has 2 parts}}
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.into
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_parts on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': a loop must be tiled into a number of parts or a level, got 0}}
    transform.commir.tile "sk" into 0 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.into
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
    // expected-error@below {{cannot tile loop 'sk': a loop must be tiled into a number of parts or a level, got 'rack'; the levels are 'node', 'gpu'}}
    transform.commir.tile "sk" into "rack" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @one_name on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the outer and the inner loop must have two new names, got 1}}
    transform.commir.tile "sk" into 4 as ["a"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.names
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
    // expected-error@below {{cannot tile loop 'sk': the outer and the inner loop must have two new names, got 'a' and 'a'}}
    transform.commir.tile "sk" into 4 as ["a", "a"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @name_taken on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the outer and the inner loop must have two new names, got 'sq' and 'a'}}
    transform.commir.tile "sk" into 4 as ["sq", "a"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @empty_name on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the outer and the inner loop must have two new names, got '' and 'a'}}
    transform.commir.tile "sk" into 4 as ["", "a"] in %program : !transform.any_op
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
    // expected-error@below {{cannot tile loop 'sj': a step must name a loop of the program, 'sj' is none; the loops are 'b', 'h', 'sq', 'sk'}}
    transform.commir.tile "sj" into 4 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.parts
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @too_many_parts on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the parts of axis 'sk' must be at most 2^20}}
    transform.commir.tile "sk" into 9223372036854775807 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.layout
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @parts_do_not_fit_the_layout on @mesh axes(b = 2, h = 4, sq = 64, sk = 64 bounds[0, 1, 2, 64])
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the parts of axis 'sk' must fit its layout: bounds name 3 shards, which neither divides nor is a multiple of 4}}
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.axis-shared
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @joined_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b_h in (b, h), sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'b_h': axis 'b' in joined loop 'b_h_outer' must have no other loop, got 'b_h_inner'}}
    transform.commir.tile "b_h" into 2 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: step.program
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  commir.program @not_a_program on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.mesh"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the handle of a step must hold commir.program ops, got 'commir.mesh'}}
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.sizes
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @too_few on @mesh axes(b = 8, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'b': the sizes of parts must add up to the extent of an axis in blocks that nothing else cuts, got [1, 2] for 'b' of 8}}
    transform.commir.tile "b" into [1, 2] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.sizes
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @too_many on @mesh axes(b = 8, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'b': the sizes of parts must add up to the extent of an axis in blocks that nothing else cuts, got [1, 9, -2] for 'b' of 8}}
    transform.commir.tile "b" into [1, 9, -2] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.sizes
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @in_zigzag on @mesh axes(b = 8, h = 4, sq = 64 zigzag, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sq': the sizes of parts must add up to the extent of an axis in blocks that nothing else cuts, got [4, 60] for 'sq' of 64, which is cut already}}
    transform.commir.tile "sq" into [4, 60] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.sizes
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @at_a_boundary on @mesh axes(b = 8, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32> at [sk -> gpu])
      outputs() {
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'sk': the sizes of parts must add up to the extent of an axis in blocks that nothing else cuts, got [4, 60] for 'sk' of 64, which is cut already}}
    transform.commir.tile "sk" into [4, 60] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: tile.sizes-axis
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @two_axes on @mesh axes(b = 8, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for bh in (b, h), sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot tile loop 'bh': the sizes of parts must be of a loop over one axis, 'bh' is over 2}}
    transform.commir.tile "bh" into [4, 28] in %program : !transform.any_op
    transform.yield
  }
}
