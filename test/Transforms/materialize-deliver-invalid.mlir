// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

// What does not move would not be rounded as the schedule asks.
commir.mesh @mesh(gpu = 4)
commir.program @kept_back_from_a_link on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 over a link ('C' does not move along 'i', as it does not walk the 2 parts of a rank one after the other, as direction 1 does with an offset that is a multiple of their number; give the loop no link)}}
  commir.for j, k of 4 parallel(gpu), i of 8 shift(by k on gpu, offset 1, link bf16) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
