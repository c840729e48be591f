// RUN: mercury-opt %s --commir-localize -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 4)
// expected-error@below {{'commir.program' op still has loops to schedule; run commir-materialize-communication first}}
commir.program @not_materialized on @mesh axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32> inside []) outputs() {
  commir.for i {
    %a = commir.load %A : !commir.buffer<[i], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
// expected-error@below {{has no placement for buffer 'A'; run commir-infer-placement first}}
commir.program @not_placed on @mesh axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32>) outputs() {
}

// -----

// A rank has some of the 8 parts, so none of 2.
commir.mesh @mesh(gpu = 4)
commir.program @part_of_another_cut on @mesh axes(i = 64)
    inputs() outputs(%A: !commir.buffer<[i], f32> inside [i -> (2, gpu)]) {
  %r = commir.group_rank "gpu"
  // expected-error@below {{must name a part of the 8 of axis 'i' that its memory holds some of, got one of 4}}
  %a = commir.part %A [i : %r of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @other_layout on @mesh axes(i = 64)
    inputs() outputs(%A: !commir.buffer<[i], f32> inside [i -> gpu zigzag]) {
  // expected-error@below {{lives in another layout than that of axis 'i'}}
  %a = commir.part %A [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @part_of_slots_not_named on @mesh axes(i = 64) inputs() outputs() {
  %s = commir.alloc slots 1 placement [] parts {i = 4 : i64} : !commir.buffer<[i], f32>
  // expected-error@below {{must name one of the 4 parts of axis 'i'}}
  %a = commir.part %s [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @sent_slice on @mesh axes(i = 64, j = 64)
    inputs(%A: !commir.buffer<[i, j], f32> inside []) outputs() {
  %r = commir.group_rank "gpu"
  %on = arith.constant 1 : i1
  %a = commir.part %A [j : %r of 4] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  // expected-error@below {{'commir.exchange.start' op works on a slice of its memory, which must be packed first; this version does not yet}}
  %t = commir.exchange.start %a to %r, %a from %r on "gpu" when %on : !commir.tile<[i, j], f32>, !commir.tile<[i, j], f32>
  commir.wait %t
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @gathered_slice on @mesh axes(i = 64, j = 64)
    inputs(%A: !commir.buffer<[i, j], f32> inside []) outputs() {
  %r = commir.group_rank "gpu"
  %g = commir.alloc slots 4 placement [] parts {j = 4 : i64} : !commir.buffer<[i, j], f32>
  %a = commir.part %A [j : %r of 4] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  // expected-error@below {{'commir.all_gather.start' op works on a slice of its memory}}
  %t = commir.all_gather.start %a into %g on "gpu" along j : !commir.tile<[i, j], f32>, !commir.buffer<[i, j], f32>
  commir.wait %t
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @more_than_there_is on @mesh axes(i = 1099511627776, j = 1099511627776)
    inputs() outputs() {
  // expected-error@below {{needs more memory than there are addresses}}
  %s = commir.alloc slots 1 placement [] parts {} : !commir.buffer<[i, j], f32>
}
