// RUN: mercury-opt %s --commir-infer-placement -split-input-file -verify-diagnostics

commir.mesh @mesh(node = 2, gpu = 4)
commir.program @nests_that_disagree on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i, j], f32>) outputs() {
  // expected-note@below {{the earlier nest is here}}
  commir.for i of 4 parallel(gpu), j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
  }
  // expected-error@below {{'commir.for' op wants buffer 'X' in another place than an earlier nest: #commir.placement<[j -> gpu]>, not #commir.placement<[i -> gpu]>; shard or replicate it explicitly}}
  commir.for i2 in i, j2 in j of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
  }
}

// -----

// Between two that agree, an unrelated nest changes nothing.
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @third_nest_disagrees on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i], f32>, %Y: !commir.buffer<[j], f32>)
    outputs() {
  // expected-note@below {{the earlier nest is here}}
  commir.for i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
  commir.for j of 4 parallel(gpu) {
    %y = commir.load %Y : !commir.buffer<[j], f32>
  }
  // expected-error@below {{wants buffer 'X' in another place}}
  commir.for i2 in i of 2 parallel(node) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}
