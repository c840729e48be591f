// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 3)
commir.program @more_steps on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  // expected-error@below {{needs rule R3 of steps that overlap (a ring of 3 steps is a loop in the text, two steps are not; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 3 shift(by j on gpu), j of 3 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "i"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @chunks on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  // expected-error@below {{needs rule R3 of steps that overlap (what comes in chunks, or in a narrower type, shares the memory that it is worked on in; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 2 shift(by j on gpu, reads pull, chunks 2), j of 2 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "i"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @results on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16> shard [i -> gpu]) {
  // expected-error@below {{needs rule R3 of steps that overlap (results that move leave one after the other; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 2 shift(by k on gpu, offset 1), j, k of 2 parallel(gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "i"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @merged on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  // expected-error@below {{needs rule R3 of steps that overlap (both steps merge into 'C', unless that is deferred; leave out overlap(k)), which this version does not lower yet}}
  commir.for k of 2 shift(by i on gpu), i of 2 parallel(gpu), j {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "k"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @tiled on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  // expected-error@below {{needs rule R3 of steps that overlap (loop 'i_outer' repeats its steps; leave out overlap(k)), which this version does not lower yet}}
  commir.for i_outer in i of 2, k of 2 shift(by j on gpu), j of 2 parallel(gpu), i_inner in i {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "k"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @in_pieces on @mesh axes(i = 16 zigzag, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  // expected-error@below {{needs rule R3 of steps that overlap (a step takes its pieces in several launches; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 2 shift(by j on gpu), j of 2 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "i"}
}
