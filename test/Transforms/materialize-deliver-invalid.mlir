// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

// What R6 does not do in chunks, or by fetch.

commir.mesh @mesh(gpu = 4)
commir.program @in_two_ways on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu],
            %D: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 in two ways in chunks (let all results of the loop travel, or none)}}
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1, results deliver, via {D = "travel"}, chunks 2) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    %d = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %d to %D merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @own_part_first on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 in chunks with offset 0 (the own part must come last: give offset 1)}}
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, results deliver, chunks 2) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @own_part_first_backward on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 in chunks with offset 0 (the own part must come last: give offset -1)}}
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, direction -1, results fetch) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(a = 2, b = 2, c = 2)
commir.program @in_pieces_along_nested_loops on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> a, j -> c] replicate [b]) {
  // expected-error@below {{needs rule R6 in chunks along nested loops (what the loops inside bring of a chunk is in pieces; let 'i_outer' move in one chunk)}}
  commir.for k of 8 parallel(a, b, c), i_outer in i of 2 shift(by k on a, offset 1, results deliver, chunks 2), i_inner in i of 2 shift(by k on b), j of 2 shift(by k on c, offset 1) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// Chunks of a part, and parts of it that another loop moves over the same ranks,
// cut it in two ways.
commir.mesh @mesh(gpu = 2)
commir.program @around_a_ring_over_the_same_ranks on @mesh axes(i = 12, j = 8, k = 15)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 in chunks along nested loops (loop 'i_inner' moves parts of a chunk over the same ranks; let 'i_outer' have a part a rank, in one chunk)}}
  commir.for i_outer in i of 2 shift(by k on gpu, offset 1, reads pull, chunks 3), i_inner in i of 2 shift(by k on gpu, offset 1), j, k of 2 parallel(gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @several_parts_own_part_first on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 in chunks with offset 0 (the own part must come last: give offset 2)}}
  commir.for j, k of 4 parallel(gpu), i of 8 shift(by k on gpu, results deliver) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @several_parts_out_of_order on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 with several parts a rank (loop 'i' has 8 parts on 4 ranks, and does not walk those of a rank one after the other; give it direction 1 and an offset that is a multiple of 2)}}
  commir.for j, k of 4 parallel(gpu), i of 8 shift(by k on gpu, offset 1) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @several_parts_from_behind on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  // expected-error@below {{needs rule R6 with several parts a rank (loop 'i' has 8 parts on 4 ranks, and does not walk those of a rank one after the other; give it direction 1 and an offset that is a multiple of 2)}}
  commir.for j, k of 4 parallel(gpu), i of 8 shift(by k on gpu, direction -1) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
