// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 9)
commir.program @more_steps on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  // expected-remark@below {{the steps of 'i' run one after the other: there are 9, and at most 8 are in the text one by one}}
  commir.for i of 9 shift(by j on gpu), j of 9 parallel(gpu), k {
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
  // expected-remark@below {{the steps of 'i' run one after the other: a chunk of the next step comes under one of this}}
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
  // expected-remark@below {{the steps of 'i' run one after the other: results that move leave one after the other}}
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
  // expected-remark@below {{the steps of 'k' run one after the other: both of two steps merge into 'C', unless that is deferred}}
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
  // expected-remark@below {{the steps of 'k' run one after the other: loop 'i_outer' repeats them}}
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

commir.mesh @mesh(node = 2, gpu = 2)
commir.program @nested on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], bf16>, %B: !commir.buffer<[k, j], bf16>)
    outputs(%C: !commir.buffer<[i, j], bf16>) {
  // expected-remark@below {{the steps of 'i_node' run one after the other: the parts of 'i_gpu' inside come one at a time}}
  commir.for i_node in i of 2 shift(by j on node), i_gpu in i of 2 shift(by j on gpu), j of 4 parallel(node, gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], bf16>
    %b = commir.load %B : !commir.buffer<[k, j], bf16>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], bf16>, !commir.tile<[k, j], bf16>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], bf16>
  } {commir.overlap = "i_node"}
}
