// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: shift-loop.again
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
    // expected-error@below {{cannot shift loop 'sk' by 'sq': a loop to shift must not be shifted already, 'sk' is}}
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.by
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @by_nothing on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by : a loop must be shifted by other loops, got none}}
    transform.commir.shift "sk" by [] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.by
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @by_itself on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sq' by 'sq': a loop must be shifted by other loops, got 'sq'}}
    transform.commir.shift "sq" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.nest
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @nested_shift_of_a_cut_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 8 parallel(node, gpu), sk of 8 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': a nested shift must be of a loop that is not cut, 'sk' has 8 parts}}
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.names
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @nested_name_taken on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, sk_gpu in h, sq of 8 parallel(node, gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the loops of a nested shift must have new names, there is a loop 'sk_gpu' already}}
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.over
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @over_another_level on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the levels to shift over must be levels of the loop it is shifted by, got 'node' for 'sq'}}
    transform.commir.shift "sk" by ["sq"] over ["node"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.over
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @over_one_level_too_many on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the levels to shift over must be levels of the loop it is shifted by, 'node' is none}}
    transform.commir.shift "sk" by ["sq"] over ["gpu", "node"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.over
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @over_nothing on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the levels to shift over must be levels of the loop it is shifted by, got none for 'sq'}}
    transform.commir.shift "sk" by ["sq"] over [] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift-loop.over
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @a_loop_without_a_term on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h of 2 parallel(node), sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq', 'h': the levels to shift over must be levels of the loop it is shifted by, got 'gpu' for 'h'}}
    transform.commir.shift "sk" by ["sq", "h"] over ["gpu"] in %program : !transform.any_op
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
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'x' by 'sq': a step must name a loop of the program, 'x' is none; the loops are 'b', 'h', 'sq', 'sk'}}
    transform.commir.shift "x" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-by
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @by_a_loop_that_is_not_parallel on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'h': loop 'sk' must be shifted by a parallel loop of the nest, 'h' is not parallel; parallelize it first}}
    transform.commir.shift "sk" by ["h"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-by
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @by_no_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'x': loop 'sk' must be shifted by a parallel loop of the nest, 'x' is none}}
    transform.commir.shift "sk" by ["x"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-by
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @by_a_loop_of_another_nest on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for other in sq of 4 parallel(gpu) {
    }
    commir.for b, h, sq, sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'other': loop 'sk' must be shifted by a parallel loop of the nest, 'other' is none}}
    transform.commir.shift "sk" by ["other"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-parts
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @parts_not_a_multiple_of_the_ranks on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 6 {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the parts of shifted loop 'sk' must be a multiple of the ranks it is shifted over, 4 on 'gpu', got 6}}
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-parts
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @parallel_parts_not_a_multiple on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk of 2 parallel(node) {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the parts of shifted loop 'sk' must be a multiple of the ranks it is shifted over, 4 on 'gpu', got 2}}
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-joined
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @joined_loop on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for sq of 4 parallel(gpu), bh in (b, h), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'bh' by 'sq': shifted loop 'bh' must run over one axis, got 2}}
    transform.commir.shift "bh" by ["sq"] in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-via
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @via_no_buffer on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the shift's via must name buffers of the program, 'X' is none}}
    transform.commir.shift "sk" by ["sq"] via {X = "pull"} in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: for.shift-via-mode
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @via_travel_of_an_input on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the shift's via must move an input by rotate or pull, an output by travel, deliver or fetch, 'K' is an input and has travel}}
    transform.commir.shift "sk" by ["sq"] via {K = "travel"} in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift.direction
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @direction_of_two on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the direction of a shift must be 1 or -1, got 2}}
    transform.commir.shift "sk" by ["sq"] direction 2 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift.offset
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @offset_beyond_any_mesh on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the offset of a shift must be from -2^20 to 2^20, got -9223372036854775807}}
    transform.commir.shift "sk" by ["sq"] offset -9223372036854775807 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift.chunks
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_chunks on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the chunks of a shift must be at least 1, got 0}}
    transform.commir.shift "sk" by ["sq"] chunks 0 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift.link
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @link_of_integers on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': the link type of a shift must be a floating-point type, got 'i8'}}
    transform.commir.shift "sk" by ["sq"] link i8 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift.via
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @via_a_number on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq': buffer 'K' in via must move by rotate, pull, travel, deliver or fetch, got 5 : i64}}
    transform.commir.shift "sk" by ["sq"] via {K = 5} in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: shift.level-twice
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @by_a_loop_twice on @mesh axes(b = 2, h = 4, sq = 64, sk = 64)
      inputs(%Q: !commir.buffer<[b, sq, h], f32>, %K: !commir.buffer<[b, sk, h], f32>)
      outputs() {
    commir.for b, h, sq of 4 parallel(gpu), sk {}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot shift loop 'sk' by 'sq', 'sq': a shift must not use a level twice, got 'gpu' again}}
    transform.commir.shift "sk" by ["sq", "sq"] in %program : !transform.any_op
    transform.yield
  }
}
