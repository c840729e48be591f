// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 4)
commir.program @travels on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1) {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{defers the merge of 'C', which travels from rank to rank and is merged on its way; let it be delivered, or do not defer it}}
    commir.store %c to %C merge(sum) over(k) deferred : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @wider on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  commir.for i, j, k of 4 {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{lets partial results of 'C' wait in 'f64', but that is no rounding of what they are summed in; let them wait in 'f32'}}
    commir.store %c to %C merge(sum) over(k) deferred partial(f64) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @pieces on @mesh axes(b = 1, h = 2, sq = 16 striped(2), sk = 16 striped(2))
    inputs(%Q: !commir.buffer<[b, sq, h, 8], bf16>, %K: !commir.buffer<[b, sk, h, 8], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq of 4 parallel(gpu), sk of 4 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal)
        : (!commir.tile<[b, sq, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>, !commir.tile<[b, sk, h, 8], bf16>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // expected-error@below {{lets partial results of 'O' wait in 'bf16', but several launches merge into one of them; let them wait in 'f32'}}
    commir.store %l, %o to %LSE, %O merge(softmax) over(sk) deferred partial(bf16)
        : !commir.tile<[b, h, sq], f32>, !commir.tile<[b, sq, h, 8], f32>
        to !commir.buffer<[b, h, sq], f32>, !commir.buffer<[b, sq, h, 8], bf16>
  }
}
