// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

// In another order than the mesh's: no group has these ranks in this order.
commir.mesh @mesh(row = 2, col = 3)
commir.program @exchanged on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> (col, row)] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R2 by broadcast ('A' moves as a whole, to where the loops use it; read it by gather)}}
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(row = 6, col = 3)
commir.program @parallel_outside on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] replicate [row] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R2 by broadcast (no loop walks 'k' in sequence outside those in parallel; tile it, reorder the loops, or read by gather)}}
  commir.for i, k_outer in k of 6 parallel(row), j of 3 parallel(col), k_inner in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(row = 2, col = 3)
commir.program @striped on @mesh axes(i = 8, j = 9, k = 12 striped(2))
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k], %B: !commir.buffer<[k, j], f32> shard [k -> row] broadcast [k])
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R2 by broadcast (a striped shard is no union of the 6 panels; lay 'k' out in blocks, or read by gather)}}
  commir.for i of 2 parallel(row), j of 3 parallel(col), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(row = 3, col = 3)
commir.program @narrower_link on @mesh axes(i = 8, j = 9, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32> shard [k -> col] broadcast [k], %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R2 by broadcast ('k' moves parts in chunks or over a narrower link; give it one chunk, and no link)}}
  commir.for i of 3 parallel(row), j of 3 parallel(col), k of 3 shift(by i on row, link bf16) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
