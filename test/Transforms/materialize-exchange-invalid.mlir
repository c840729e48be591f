// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 2)
commir.program @nothing_moves on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R7 in slices (nothing that its steps use or make is owned by other ranks outside of the loops; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 3, j of 2 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @inside_another on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R7 in slices (loop 'k' repeats its steps; leave out overlap(i)), which this version does not lower yet}}
  commir.for k of 2, i of 3, j of 2 parallel(gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @other_shards on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32> at [i -> gpu], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R7 in slices ('A' has shards along 'i' that no part of the loops is within; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 3, j of 2 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @unfinished on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> at []) {
  // expected-error@below {{needs rule R7 in slices (a step leaves 'C' unfinished; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 3, j of 2 parallel(gpu), k of 2 {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}

// -----

commir.mesh @mesh(gpu = 9)
commir.program @many_ranks on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R7 in slices ('A' is exchanged by 9 ranks, and at most 8 read from each other at once; leave out overlap(i)), which this version does not lower yet}}
  commir.for i of 3, j of 9 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}
