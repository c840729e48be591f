// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: defer.reduced
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @input on @mesh axes(i = 8, j = 6, k = 4)
      inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
      outputs(%C: !commir.buffer<[i, j], f32>) {
    commir.for i, j, k {
      %a = commir.load %A : !commir.buffer<[i, k], f32>
      %b = commir.load %B : !commir.buffer<[k, j], f32>
      %c = commir.kernel "matmul"(%a, %b)
          : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
      commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot defer the merge of buffer 'A': a buffer to defer must be an output that is merged, 'A' is an input}}
    transform.commir.defer "A" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: defer.again
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @again on @mesh axes(i = 8, j = 6, k = 4)
      inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
      outputs(%C: !commir.buffer<[i, j], f32>) {
    commir.for i, j, k {
      %a = commir.load %A : !commir.buffer<[i, k], f32>
      %b = commir.load %B : !commir.buffer<[k, j], f32>
      %c = commir.kernel "matmul"(%a, %b)
          : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
      commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.defer "C" in %program : !transform.any_op
    // expected-error@below {{cannot defer the merge of buffer 'C': a buffer to defer must not be deferred already, 'C' is}}
    transform.commir.defer "C" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: defer.partial
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @integers on @mesh axes(i = 8, j = 6, k = 4)
      inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
      outputs(%C: !commir.buffer<[i, j], f32>) {
    commir.for i, j, k {
      %a = commir.load %A : !commir.buffer<[i, k], f32>
      %b = commir.load %B : !commir.buffer<[k, j], f32>
      %c = commir.kernel "matmul"(%a, %b)
          : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
      commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot defer the merge of buffer 'C': partial results must wait in a float type, got i32}}
    transform.commir.defer "C" partial i32 in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: step.buffer
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @unknown on @mesh axes(i = 8, j = 6, k = 4)
      inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
      outputs(%C: !commir.buffer<[i, j], f32>) {
    commir.for i, j, k {
      %a = commir.load %A : !commir.buffer<[i, k], f32>
      %b = commir.load %B : !commir.buffer<[k, j], f32>
      %c = commir.kernel "matmul"(%a, %b)
          : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
      commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot defer the merge of buffer 'X': a step must name a buffer of the program, 'X' is none; the buffers are 'A', 'B', 'C'}}
    transform.commir.defer "X" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: defer.reduced
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @not_merged on @mesh axes(i = 8, j = 6)
      inputs(%A: !commir.buffer<[i, j], f32>)
      outputs(%C: !commir.buffer<[i, j], f32>) {
    commir.for i, j {
      %a = commir.load %A : !commir.buffer<[i, j], f32>
      %c = commir.kernel "copy"(%a) signature("m n -> m n") : (!commir.tile<[i, j], f32>) -> !commir.tile<[i, j], f32>
      commir.store %c to %C : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot defer the merge of buffer 'C': a buffer to defer must be an output that is merged, 'C' is written once}}
    transform.commir.defer "C" in %program : !transform.any_op
    transform.yield
  }
}
