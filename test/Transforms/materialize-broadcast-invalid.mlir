// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -verify-diagnostics

commir.mesh @mesh(row = 3, col = 3)
commir.program @narrower_link on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R2 by broadcast ('k' moves parts over a narrower link; give it no link, or read 'A' by gather)}}
  commir.for i of 3 parallel(row), j of 3 parallel(col), k of 3 shift(by i on row, link bf16) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
