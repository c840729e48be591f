// RUN: mercury-opt %s --transform-interpreter -split-input-file -verify-diagnostics

// CONSTRAINT: overlap.steps
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @no_steps on @mesh axes(i = 8, j = 6, k = 4)
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
    // expected-error@below {{cannot overlap the steps of loop 'i': a loop whose steps overlap must be shifted or cut into steps, 'i' is neither}}
    transform.commir.overlap "i" in %program : !transform.any_op
    transform.yield
  }
}

// -----

// CONSTRAINT: overlap.again
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(node = 2, gpu = 4)
  // expected-note@below {{the program is here}}
  commir.program @again on @mesh axes(i = 8, j = 6, k = 4)
      inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
      outputs(%C: !commir.buffer<[i, j], f32>) {
    commir.for i of 2 shift(by j on node), j of 2 parallel(node), k {
      %a = commir.load %A : !commir.buffer<[i, k], f32>
      %b = commir.load %B : !commir.buffer<[k, j], f32>
      %c = commir.kernel "matmul"(%a, %b)
          : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
      commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    } {commir.overlap = "i"}
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{cannot overlap the steps of loop 'i': the steps of a loop must not overlap already, those of "i" do}}
    transform.commir.overlap "i" in %program : !transform.any_op
    transform.yield
  }
}
