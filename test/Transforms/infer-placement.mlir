// RUN: mercury-opt %s --commir-infer-placement -split-input-file | FileCheck %s
// Inferring again changes nothing.
// RUN: mercury-opt %s --commir-infer-placement --commir-infer-placement -split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// For each level: shard or replicate > parallel loop > shifted loop > replicas
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @replicated
// CHECK: %X: !commir.buffer<[i, j], f32> at [] inside [])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @replicated on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i, j], f32>) outputs() {
  commir.for i of 4, j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
  }
}

// -----

// The level where neither axis of %Y runs holds replicas of it.
// CHECK-LABEL: commir.program @parallel_loop
// CHECK: %X: !commir.buffer<[i, j], f32> at [i -> gpu] inside [i -> gpu],
// CHECK-NEXT: %Y: !commir.buffer<[j, k], f32> at [] inside [],
// CHECK-NEXT: %Z: !commir.buffer<[8, i/2], f32> at [i -> gpu] inside [i -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @parallel_loop on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%X: !commir.buffer<[i, j], f32>, %Y: !commir.buffer<[j, k], f32>,
           %Z: !commir.buffer<[8, i/2], f32>)
    outputs() {
  commir.for i of 4 parallel(gpu), j, k {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    %y = commir.load %Y : !commir.buffer<[j, k], f32>
    %z = commir.load %Z : !commir.buffer<[8, i/2], f32>
  }
}

// -----

// CHECK-LABEL: commir.program @parallel_loop_over_two_levels
// CHECK: %X: {{.*}} inside [i -> (node, gpu)])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @parallel_loop_over_two_levels on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32>) outputs() {
  commir.for i of 8 parallel(node, gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}

// -----

// %Y has the shifted axis alone, so that cuts it; in %X the parallel axis wins.
// CHECK-LABEL: commir.program @shifted_loop
// CHECK: %X: {{.*}} inside [i -> gpu],
// CHECK-NEXT: %Y: {{.*}} inside [j -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @shifted_loop on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i, j], f32>, %Y: !commir.buffer<[j], f32>)
    outputs() {
  commir.for i of 4 parallel(gpu), j of 4 shift(by i on gpu) {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    %y = commir.load %Y : !commir.buffer<[j], f32>
  }
}

// -----

// CHECK-LABEL: commir.program @nested_shift
// CHECK: %Y: {{.*}} inside [j -> (node, gpu)])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @nested_shift on @mesh axes(i = 8, j = 8)
    inputs(%Y: !commir.buffer<[j], f32>) outputs() {
  commir.for i of 8 parallel(node, gpu), j_node in j of 2 shift(by i on node),
      j_gpu in j of 4 shift(by i on gpu) {
    %y = commir.load %Y : !commir.buffer<[j], f32>
  }
}

// -----

// Each rank owns the parts that it starts with, of which there are two.
// CHECK-LABEL: commir.program @several_parts_a_rank
// CHECK: %Y: {{.*}} inside [j -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @several_parts_a_rank on @mesh axes(i = 8, j = 8)
    inputs(%Y: !commir.buffer<[j], f32>) outputs() {
  commir.for i of 4 parallel(gpu), j of 8 shift(by i on gpu) {
    %y = commir.load %Y : !commir.buffer<[j], f32>
  }
}

// -----

// A level cuts a buffer once: the outermost of the loops shifted on it does.
// CHECK-LABEL: commir.program @two_loops_shifted_on_one_level
// CHECK: %X: {{.*}} inside [j -> gpu],
// CHECK-NEXT: %Y: {{.*}} inside [k -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @two_loops_shifted_on_one_level on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%X: !commir.buffer<[k, j], f32>, %Y: !commir.buffer<[k], f32>)
    outputs() {
  commir.for i of 4 parallel(gpu), j of 4 shift(by i on gpu),
      k of 4 shift(by i on gpu) {
    %x = commir.load %X : !commir.buffer<[k, j], f32>
    %y = commir.load %Y : !commir.buffer<[k], f32>
  }
}

// -----

// CHECK-LABEL: commir.program @explicit_shard
// CHECK: %X: {{.*}} shard [j -> gpu] inside [j -> gpu],
// CHECK-NEXT: %Y: {{.*}} shard [j -> node] inside [j -> (node, gpu)],
// CHECK-NEXT: %Z: {{.*}} shard [j -> gpu] inside [i -> node, j -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @explicit_shard on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%X: !commir.buffer<[k, j], f32> shard [j -> gpu],
           %Y: !commir.buffer<[j], f32> shard [j -> node],
           %Z: !commir.buffer<[i, j], f32> shard [j -> gpu])
    outputs() {
  commir.for k of 4 parallel(gpu), i of 2 parallel(node),
      j of 4 shift(by k on gpu) {
    %x = commir.load %X : !commir.buffer<[k, j], f32>
    %y = commir.load %Y : !commir.buffer<[j], f32>
    %z = commir.load %Z : !commir.buffer<[i, j], f32>
  }
}

// -----

// CHECK-LABEL: commir.program @explicit_replicate
// CHECK: %X: {{.*}} replicate [gpu] inside [],
// CHECK-NEXT: %Y: {{.*}} replicate [gpu] inside [],
// CHECK-NEXT: %Z: {{.*}} replicate [node] inside [j -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @explicit_replicate on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i], f32> replicate [gpu],
           %Y: !commir.buffer<[j], f32> replicate [gpu],
           %Z: !commir.buffer<[j], f32> replicate [node])
    outputs() {
  commir.for i of 4 parallel(gpu), j of 4 shift(by i on gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
    %y = commir.load %Y : !commir.buffer<[j], f32>
    %z = commir.load %Z : !commir.buffer<[j], f32>
  }
}

//===----------------------------------------------------------------------===//
// Cuts of one axis by several loops
//===----------------------------------------------------------------------===//

// -----

// CHECK-LABEL: commir.program @strided_by_a_parallel_inner_loop
// CHECK: %X: {{.*}} inside [i -> (4, gpu)])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @strided_by_a_parallel_inner_loop on @mesh axes(i = 64)
    inputs(%X: !commir.buffer<[i], f32>) outputs() {
  commir.for i_outer in i of 4, i_inner in i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}

// -----

// What a rank walks in sequence inside its shard cuts nothing.
// CHECK-LABEL: commir.program @sequential_inner_loop
// CHECK: %X: {{.*}} inside [i -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @sequential_inner_loop on @mesh axes(i = 64)
    inputs(%X: !commir.buffer<[i], f32>) outputs() {
  commir.for i_outer in i of 4 parallel(gpu), i_inner in i of 4 {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}

// -----

// Two batches take the two nodes; each batch's heads take the GPUs of one.
// CHECK-LABEL: commir.program @joined_loop_over_two_levels
// CHECK: %X: {{.*}} inside [b -> node, h -> gpu],
// CHECK-NEXT: %Y: {{.*}} inside [h -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @joined_loop_over_two_levels on @mesh axes(b = 2, h = 8)
    inputs(%X: !commir.buffer<[b, h], f32>, %Y: !commir.buffer<[h], f32>)
    outputs() {
  commir.for bh in (b, h) of 8 parallel(node, gpu) {
    %x = commir.load %X : !commir.buffer<[b, h], f32>
    %y = commir.load %Y : !commir.buffer<[h], f32>
  }
}

//===----------------------------------------------------------------------===//
// Boundaries
//===----------------------------------------------------------------------===//

// -----

// CHECK-LABEL: commir.program @boundary_defaulted_and_kept
// CHECK: %X: !commir.buffer<[i, j], f32> at [i -> gpu] inside [i -> gpu],
// CHECK-NEXT: %Y: !commir.buffer<[i, j], f32> at [j -> gpu] inside [i -> gpu],
// CHECK-NEXT: %Z: !commir.buffer<[i, j], f32> at [] inside [i -> gpu],
// CHECK-NEXT: %N: !commir.buffer<[i, j], f32> at [] inside [])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @boundary_defaulted_and_kept on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i, j], f32>,
           %Y: !commir.buffer<[i, j], f32> at [j -> gpu],
           %Z: !commir.buffer<[i, j], f32> at [],
           %N: !commir.buffer<[i, j], f32>)
    outputs() {
  commir.for i of 4 parallel(gpu), j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    %y = commir.load %Y : !commir.buffer<[i, j], f32>
    %z = commir.load %Z : !commir.buffer<[i, j], f32>
  }
}

// -----

// More ranks than positions, and shards of different sizes, are like any others.
// CHECK-LABEL: commir.program @uneven_and_empty
// CHECK: %X: {{.*}} inside [i -> gpu, e -> node],
// CHECK-NEXT: %Y: {{.*}} inside [j -> gpu])
commir.mesh @mesh(node = 2, gpu = 5)
commir.program @uneven_and_empty on @mesh axes(i = 7, j = 3, e = 0)
    inputs(%X: !commir.buffer<[i, e], f32>, %Y: !commir.buffer<[j], f32>)
    outputs() {
  commir.for i of 5 parallel(gpu), e of 2 parallel(node),
      j of 5 shift(by i on gpu) {
    %x = commir.load %X : !commir.buffer<[i, e], f32>
    %y = commir.load %Y : !commir.buffer<[j], f32>
  }
}

//===----------------------------------------------------------------------===//
// Whole programs
//===----------------------------------------------------------------------===//

// -----

// Both inputs lose k to the level where their other axis does not run.
// CHECK-LABEL: commir.program @cannon
// CHECK: %A: {{.*}} inside [i -> row, k -> col],
// CHECK-NEXT: %B: {{.*}} inside [k -> row, j -> col])
// CHECK: %C: {{.*}} inside [i -> row, j -> col])
commir.mesh @grid(row = 2, col = 3)
commir.program @cannon on @grid axes(i = 12, j = 12, k = 12)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 2 parallel(row), j of 3 parallel(col),
      k of 6 shift(by i on row, by j on col) {
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

// CHECK-LABEL: commir.program @two_nests_that_agree
// CHECK: %X: {{.*}} inside [i -> gpu])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @two_nests_that_agree on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32>) outputs() {
  commir.for i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
  commir.for i_again in i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}

// -----

// CHECK-LABEL: commir.program @first_of_two_programs
// CHECK: inside [i -> gpu])
// CHECK-LABEL: commir.program @second_of_two_programs
// CHECK: inside [i -> node])
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @first_of_two_programs on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32>) outputs() {
  commir.for i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}
commir.program @second_of_two_programs on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32>) outputs() {
  commir.for i of 2 parallel(node) {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}

// -----

// A program that is lowered already has no loops to infer from, and stays.
// CHECK-LABEL: commir.program @lowered_already
// CHECK: %X: {{.*}} inside [i -> gpu])
// CHECK: commir.part %X
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @lowered_already on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32> at [i -> gpu] inside [i -> gpu])
    outputs() {
  %x = commir.part %X [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
}

// -----

// Nests that no step speaks of run where their inputs lie.
// CHECK-LABEL: commir.program @a_nest_that_follows
// CHECK: %X: {{.*}} inside [i -> gpu, j -> node]
// CHECK: %Y: {{.*}} inside [i -> gpu]
// CHECK: %Z: {{.*}} inside [k -> (2, node)]
// CHECK: commir.for i of 4 parallel(gpu), j of 2 parallel(node)
// CHECK: commir.for i_again in i of 4 parallel(gpu), j_again in j of 2 parallel(node) {
// CHECK: commir.for k_again in k of 2, k_again_ in k of 2 parallel(node) {
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @a_nest_that_follows on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%X: !commir.buffer<[i, j], f32>, %Y: !commir.buffer<[i], f32>,
           %Z: !commir.buffer<[k], f32>) outputs() {
  commir.for i of 4 parallel(gpu), j of 2 parallel(node) {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    %y = commir.load %Y : !commir.buffer<[i], f32>
  }
  commir.for k_outer in k of 2, k_inner in k of 2 parallel(node) {
    %z = commir.load %Z : !commir.buffer<[k], f32>
  }
  commir.for i_again in i, j_again in j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    %y = commir.load %Y : !commir.buffer<[i], f32>
  }
  commir.for k_again in k {
    %z = commir.load %Z : !commir.buffer<[k], f32>
  }
}

// -----

// What a shift makes lie so is followed, too; a level serves one axis.
// CHECK-LABEL: commir.program @a_nest_that_follows_a_ring
// CHECK: commir.for i_again in i of 4 parallel(gpu), k_again in k {
commir.mesh @mesh(gpu = 4)
commir.program @a_nest_that_follows_a_ring on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%X: !commir.buffer<[i], f32>, %Y: !commir.buffer<[j], f32>,
           %Z: !commir.buffer<[k], f32> shard [k -> gpu]) outputs() {
  commir.for j of 4 parallel(gpu), i of 4 shift(by j on gpu), k {
    %x = commir.load %X : !commir.buffer<[i], f32>
    %y = commir.load %Y : !commir.buffer<[j], f32>
    %z = commir.load %Z : !commir.buffer<[k], f32>
  }
  commir.for i_again in i, k_again in k {
    %x = commir.load %X : !commir.buffer<[i], f32>
    %z = commir.load %Z : !commir.buffer<[k], f32>
  }
}
