// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 2)
commir.program @nothing_moves on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-remark@below {{the steps of 'i' run one after the other: nothing that they use or make moves slice by slice}}
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
  // expected-remark@below {{the steps of 'i' run one after the other: a loop around repeats them}}
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
  // expected-remark@+2 {{'A' is exchanged whole, not under the steps of 'i' (R7): it has shards along 'i' that no part of the loops is within}}
  // expected-remark@below {{the steps of 'i' run one after the other: nothing that they use or make moves slice by slice}}
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
  // expected-remark@+2 {{'C' is exchanged whole, not under the steps of 'i' (R7): a step leaves it unfinished}}
  // expected-remark@below {{the steps of 'i' run one after the other: nothing that they use or make moves slice by slice}}
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
  // expected-remark@+2 {{'A' is exchanged whole, not under the steps of 'i' (R7): 9 ranks exchange it, and at most 8 read from each other at once}}
  // expected-remark@below {{the steps of 'i' run one after the other: nothing that they use or make moves slice by slice}}
  commir.for i of 3, j of 9 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}
