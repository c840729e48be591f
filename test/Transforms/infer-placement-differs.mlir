// RUN: mercury-opt %s --commir-infer-placement -split-input-file -verify-diagnostics | FileCheck %s

//===----------------------------------------------------------------------===//
// Nests that have a buffer in different places: the first decides
//===----------------------------------------------------------------------===//

// CHECK: %X: !commir.buffer<[i, j], f32> at [i -> gpu] inside [i -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @nests_that_differ on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i, j], f32>) outputs() {
  // expected-note@below {{the earlier nest is here}}
  commir.for i of 4 parallel(gpu), j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
  }
  // expected-remark@below {{'X' lives where an earlier nest has it, #commir.placement<[i -> gpu]>, not #commir.placement<[j -> gpu]> as here: what differs is moved (R8); shard or replicate it explicitly to have it elsewhere}}
  commir.for i2 in i, j2 in j of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
  }
}

// -----

// Between two that differ, an unrelated nest changes nothing.
// CHECK: %X: !commir.buffer<[i], f32> at [i -> gpu] inside [i -> gpu],
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @third_nest_differs on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i], f32>, %Y: !commir.buffer<[j], f32>)
    outputs() {
  // expected-note@below {{the earlier nest is here}}
  commir.for i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
  commir.for j of 4 parallel(gpu) {
    %y = commir.load %Y : !commir.buffer<[j], f32>
  }
  // expected-remark@below {{'X' lives where an earlier nest has it}}
  commir.for i2 in i of 2 parallel(node) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}

// -----

// A level of one rank makes no other place.
// CHECK: %X: !commir.buffer<[i], f32> at [i -> gpu] inside [i -> gpu])
commir.mesh @mesh(node = 1, gpu = 4)
commir.program @level_of_one_rank on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32>) outputs() {
  commir.for i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
  commir.for i2 in i of 4 parallel(node, gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}
