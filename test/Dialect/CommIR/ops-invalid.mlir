// RUN: mercury-opt %s -split-input-file -verify-diagnostics

// CONSTRAINT: mesh.empty
// expected-error@below {{mesh 'mesh' must have at least one level}}
commir.mesh @mesh()

// -----

// CONSTRAINT: mesh.level-twice
// expected-error@below {{mesh 'mesh' must not name a level twice, got 'gpu' again}}
commir.mesh @mesh(gpu = 2, gpu = 4)

// -----

// CONSTRAINT: mesh.ranks
// expected-error@below {{mesh 'mesh' must have at most 2^20 ranks}}
commir.mesh @mesh(node = 1048576, gpu = 2)

// -----

// The product would leave 64 bits.
// CONSTRAINT: mesh.ranks
// expected-error@below {{mesh 'mesh' must have at most 2^20 ranks}}
commir.mesh @mesh(a = 9223372036854775807, b = 9223372036854775807)

// -----

// CONSTRAINT: program.mesh
// expected-error@below {{program 'program' must run on a commir.mesh, 'mesh' is none}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs() outputs() {}

// -----

// CONSTRAINT: program.mesh
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{program 'program' must run on a commir.mesh, 'other' is none}}
commir.program @program on @other axes(i = 8, j = 6) inputs() outputs() {}
commir.program @other on @mesh axes(i = 8, j = 6) inputs() outputs() {}

// -----

// CONSTRAINT: program.axis-twice
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{program 'program' must not name an axis twice, got 'i' again}}
commir.program @program on @mesh axes(i = 8, i = 8) inputs() outputs() {}

// -----

// CONSTRAINT: program.binding
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{each argument must be a buffer with one binding, got 2 bindings for 1 arguments}}
"commir.program"() <{axes = [#commir.axis<i = 8>], bindings = [#commir.binding<A>, #commir.binding<B>], mesh = @mesh, num_inputs = 1 : i64, sym_name = "program"}> ({
^bb0(%a: !commir.buffer<[i], f32>):
}) : () -> ()

// -----

// CONSTRAINT: program.binding
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{each argument must be a buffer with one binding, got 1 bindings for 1 arguments}}
"commir.program"() <{axes = [#commir.axis<i = 8>], bindings = [#commir.binding<A>], mesh = @mesh, num_inputs = 1 : i64, sym_name = "program"}> ({
^bb0(%a: !commir.tile<[i], f32>):
}) : () -> ()

// -----

// CONSTRAINT: program.inputs
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{num_inputs must be from 0 to 1, got 2}}
"commir.program"() <{axes = [#commir.axis<i = 8>], bindings = [#commir.binding<A>], mesh = @mesh, num_inputs = 2 : i64, sym_name = "program"}> ({
^bb0(%a: !commir.buffer<[i], f32>):
}) : () -> ()

// -----

// CONSTRAINT: program.inputs
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{num_inputs must be from 0 to 1, got -1}}
"commir.program"() <{axes = [#commir.axis<i = 8>], bindings = [#commir.binding<A>], mesh = @mesh, num_inputs = -1 : i64, sym_name = "program"}> ({
^bb0(%a: !commir.buffer<[i], f32>):
}) : () -> ()

// -----

// CONSTRAINT: program.attribute
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{attribute 'axes' must not be given twice, the syntax of 'commir.program' gives it already}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs() outputs() attributes {axes = []} {}

// -----

// CONSTRAINT: program.attribute
// expected-error@below {{attribute 'identity' must not be given twice, the syntax of 'commir.merge' gives it already}}
commir.merge @merge identity(0.0 : f32) (%a: f32, %b: f32) attributes {identity = 1.0 : f32} {
  commir.yield %a : f32
}

// -----

// CONSTRAINT: program.buffer-twice
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{program 'program' must not name a buffer twice, got 'A' again}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32>, %B: !commir.buffer<[i, j], f32> named "A") outputs() {}

// -----

// CONSTRAINT: program.buffer-axis
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{buffer 'A' must use axes of the program, 'k' is none}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[k], f32>) outputs() {}

// -----

// CONSTRAINT: program.divisor
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the divisor of a dimension of buffer 'A' must divide its axis, 'i' of extent 8 by 3}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i/3], f32>) outputs() {}

// -----

// CONSTRAINT: program.cut-axis
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the placement of 'A' must cut axes of its buffer, 'k' is none}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> at [k -> gpu]) outputs() {}

// -----

// CONSTRAINT: program.cut-axis
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the placement of 'A' must cut axes of its buffer, 'k' is none}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> inside [k -> gpu]) outputs() {}

// -----

// CONSTRAINT: program.cut-level
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the placement of 'A' must name levels of the mesh ('node', 'gpu'), got 'rack'}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> shard [i -> rack]) outputs() {}

// -----

// CONSTRAINT: program.cut-level
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the placement of 'A' must name levels of the mesh ('node', 'gpu'), got 'rack'}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> replicate [rack]) outputs() {}

// -----

// CONSTRAINT: program.cut-layout
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the layout of the cut of 'A' along 'i' must fit the axis: bounds must rise from 0 to the extent 8}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> at [i -> gpu bounds[0, 9]]) outputs() {}

// -----

// CONSTRAINT: program.cut-layout
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the layout of the cut of 'A' along 'i' must fit the axis: bounds name 3 shards, which neither divides nor is a multiple of 4}}
commir.program @program on @mesh axes(i = 8 bounds[0, 1, 2, 8], j = 6) inputs(%A: !commir.buffer<[i, j], f32> at [i -> gpu]) outputs() {}

// -----

// CONSTRAINT: program.cut-shards
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{the placement of 'A' must cut into at most 2^20 shards}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> at [i -> (9223372036854775807, gpu)]) outputs() {}

// -----

// CONSTRAINT: program.replicate
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{level 'gpu' must not be both replicated and sharded for 'A'}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> shard [i -> gpu] replicate [gpu]) outputs() {}

// -----

// CONSTRAINT: program.replicate-twice
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{a buffer must not be replicated twice over a level, 'A' is over 'gpu' already}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> replicate [gpu, gpu]) outputs() {}

// -----

// CONSTRAINT: program.broadcast
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{what is broadcast must be an input, along an axis that it is sharded on, 'A' along 'j' is not}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> shard [i -> gpu] broadcast [j]) outputs() {}

// -----

commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{what is broadcast must be an input, along an axis that it is sharded on, 'A' along 'i' is not}}
commir.program @strided on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i, j], f32> shard [i -> (2, gpu)] broadcast [i]) outputs() {}

// -----

// CONSTRAINT: program.output
commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{output 'A' must be stored to}}
commir.program @program on @mesh axes(i = 8, j = 6) inputs() outputs(%A: !commir.buffer<[i, j], f32>) {}

// -----

// CONSTRAINT: program.loop-twice
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6) inputs() outputs() {
  commir.for i {
  }
  // expected-error@below {{a program must not name a loop twice, got 'i' again}}
  commir.for j, i {
  }
}

// -----

// CONSTRAINT: for.loops
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6) inputs() outputs() {
  // expected-error@below {{a nest must have at least one loop}}
  "commir.for"() <{loops = []}> ({
  ^bb0:
  }) : () -> ()
}

// -----

// CONSTRAINT: for.axis
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{loop 'l' must run over an axis of the program, 'z' is none}}
  commir.for l in z {
  }
}

// -----

// CONSTRAINT: for.axis-shared
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{axis 'i' in joined loop 'ij' must have no other loop, got 'i'}}
  commir.for ij in (i, j), i {
  }
}

// -----

// CONSTRAINT: for.parallel-level
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{parallel loop 'i' must name levels of the mesh ('node', 'gpu'), got 'rack'}}
  commir.for i of 4 parallel(rack) {
  }
}

// -----

// CONSTRAINT: for.parallel-parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{parallel loop 'i' must have as many parts as its levels have ranks, 4, got 8}}
  commir.for i of 8 parallel(gpu) {
  }
}

// -----

// CONSTRAINT: for.level-taken
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{level 'gpu' must not run two parallel loops, 'i' is parallel on it already}}
  commir.for i of 4 parallel(gpu), j of 4 parallel(gpu) {
  }
}

// -----

// CONSTRAINT: for.level-taken
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{level 'gpu' must not run two parallel loops, 'i' is parallel on it already}}
  commir.for i of 16 parallel(gpu, gpu) {
  }
}

// -----

// CONSTRAINT: for.shift-by
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{loop 'k' must be shifted by a parallel loop of the nest, 'i' is not parallel; parallelize it first}}
  commir.for i of 4, k of 4 shift(by i on gpu) {
  }
}

// -----

// CONSTRAINT: for.shift-by
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{loop 'k' must be shifted by a parallel loop of the nest, 'z' is none}}
  commir.for i of 4 parallel(gpu), k of 4 shift(by z on gpu) {
  }
}

// -----

// CONSTRAINT: for.shift-level
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{loop 'k' must be shifted on a level of the loop it is shifted by, 'i' is not parallel on 'node'}}
  commir.for i of 4 parallel(gpu), k of 4 shift(by i on node) {
  }
}

// -----

// The shift comes before the loop it is shifted by.
// CONSTRAINT: for.parallel-level
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{parallel loop 'i' must name levels of the mesh ('node', 'gpu'), got 'rack'}}
  commir.for k of 4 shift(by i on rack), i of 4 parallel(rack) {
  }
}

// -----

// CONSTRAINT: for.shift-own-level
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{shifted loop 'i' must not be parallel on the level it is shifted on, 'gpu'}}
  commir.for i of 4 parallel(gpu) shift(by i on gpu) {
  }
}

// -----

// CONSTRAINT: for.shift-parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{the parts of shifted loop 'k' must be a multiple of the ranks it is shifted over, 4 on 'gpu', got 6}}
  commir.for i of 4 parallel(gpu), k of 6 shift(by i on gpu) {
  }
}

// -----

// CONSTRAINT: for.shift-joined
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{shifted loop 'jk' must run over one axis, got 2}}
  commir.for i of 4 parallel(gpu), jk in (j, k) of 4 shift(by i on gpu) {
  }
}

// -----

// CONSTRAINT: for.shift-via
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{the shift's via must name buffers of the program, 'A' is none}}
  commir.for i of 4 parallel(gpu), k of 4 shift(by i on gpu, via {A = "pull"}) {
  }
}

// -----

// CONSTRAINT: for.shift-via-mode
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i], f32>) outputs() {
  // expected-error@below {{the shift's via must move an input by rotate or pull, an output by travel, deliver or fetch, 'A' is an input and has travel}}
  commir.for i of 4 parallel(gpu), k of 4 shift(by i on gpu, via {A = "travel"}) {
  }
}

// -----

// CONSTRAINT: for.broadcast-level
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[k], f32> shard [k -> gpu] broadcast [k]) outputs() {
  // expected-error@below {{loop 'k' must not be shifted over a level that its axis is broadcast on, 'gpu' of 'A'}}
  commir.for i of 4 parallel(gpu), k of 4 shift(by i on gpu) {
    %a = commir.load %A : !commir.buffer<[k], f32>
  }
}

// -----

// CONSTRAINT: for.broadcast-parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[k], f32> shard [k -> gpu] broadcast [k]) outputs() {
  // expected-error@below {{the outermost cut of an axis must be a multiple of the shards that are broadcast along it, 4 of 'A', got 2 in loop 'k_outer'}}
  commir.for k_outer in k of 2, k_inner in k of 4 {
    %a = commir.load %A : !commir.buffer<[k], f32>
  }
}

// -----

// CONSTRAINT: for.joined-parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{joined loop 'ij' must be cut along whole axes, 12 parts are not; split the level, or parallelize its axes one by one}}
  commir.for ij in (i, j) of 12 {
  }
}

// -----

// Level `gpu` would be cut between the axes.
// CONSTRAINT: for.joined-parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 2, j = 8) inputs() outputs() {
  // expected-error@below {{joined loop 'ij' must be cut along whole axes, 8 parts are not; split the level, or parallelize its axes one by one}}
  commir.for ij in (i, j) of 8 parallel(gpu, node) {
  }
}

// -----

// CONSTRAINT: for.parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{the parts of axis 'i' must be at most 2^20}}
  commir.for i of 9223372036854775807 {
  }
}

// -----

// CONSTRAINT: for.parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{the parts of axis 'i' must be at most 2^20}}
  commir.for a in i of 1048576, b in i of 2 {
  }
}

// -----

// CONSTRAINT: for.layout
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8 bounds[0, 1, 2, 8]) inputs() outputs() {
  // expected-error@below {{the parts of axis 'i' must fit its layout: bounds name 3 shards, which neither divides nor is a multiple of 4}}
  commir.for i of 4 {
  }
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @program on @mesh axes(i = 8, j = 6 bounds[0, 1, 2, 3, 4, 5, 6]) inputs() outputs() {
  // expected-error@below {{the parts of axis 'j' must fit its layout: bounds name 6 shards, which neither divides nor is a multiple of 4}}
  commir.for i of 2 parallel(gpu), j of 2 shift(by i on gpu, chunks 2) {
  }
}

// -----

// CONSTRAINT: for.body
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs() {
  // expected-error@below {{the body of a nest must hold loads, kernels and stores only, got 'commir.status'}}
  commir.for i {
    %s = commir.status
  }
}

// -----

commir.mesh @mesh(node = 2, gpu = 4)
// expected-error@below {{expects parent op 'commir.program'}}
commir.for i {
}

// -----

// CONSTRAINT: load.tile
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, k {
    // expected-error@below {{must give the tile of its buffer, '!commir.tile<[i, k], f32>', got '!commir.tile<[k, i], f32>'}}
    %a = "commir.load"(%A) : (!commir.buffer<[i, k], f32>) -> !commir.tile<[k, i], f32>
  }
}

// -----

// CONSTRAINT: load.looped
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i {
    // expected-error@below {{each axis of a loaded or stored buffer must have a loop in the nest, 'k' has none}}
    %a = commir.load %A : !commir.buffer<[i, k], f32>
  }
}

// -----

// CONSTRAINT: load.input
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs() outputs(%A: !commir.buffer<[i, k], f32>) {
  commir.for i, k {
    // expected-error@below {{must read an input; outputs are only stored to}}
    %a = commir.load %A : !commir.buffer<[i, k], f32>
  }
}

// -----

// CONSTRAINT: kernel.known
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{kernel 'matmull' must be known or give a signature, as in signature("m k, k n -> m n"); known are 'matmul', 'attention_fwd', 'attention_bwd', 'softmax_sink', 'softmax_sink_bwd'}}
    %c = commir.kernel "matmull"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.signature
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{signature "m k, k n" must list operands and results, as in "m k, k n -> m n"}}
    %c = commir.kernel "f"(%a, %b) signature("m k, k n") : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.signature
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{signature "m k, -> m" must list operands and results, as in "m k, k n -> m n"}}
    %c = commir.kernel "f"(%a, %b) signature("m k, -> m") : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.signature
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{signature "m k/ -> m" must list operands and results, as in "m k, k n -> m n"}}
    %c = commir.kernel "f"(%a, %b) signature("m k/ -> m") : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.signature
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{signature "m k -> m -> n" must list operands and results, as in "m k, k n -> m n"}}
    %c = commir.kernel "f"(%a, %b) signature("m k -> m -> n") : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.signature
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{signature " -> m" must list operands and results, as in "m k, k n -> m n"}}
    %c = commir.kernel "f"(%a, %b) signature(" -> m") : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.operands
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{kernel 'matmul' must have the operands of its signature, 2, got 1}}
    %c = commir.kernel "matmul"(%a) : (!commir.tile<[i, k], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.operands
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{kernel 'matmul' must have the operands of its signature, 2, got 0}}
    %c = commir.kernel "matmul"() : () -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.results
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{kernel 'matmul' must have the results of its signature, 1, got 2}}
    %c:2 = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> (!commir.tile<[i, j], f32>, !commir.tile<[i, j], f32>)
  }
}

// -----

// CONSTRAINT: kernel.rank
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{result 0 of kernel 'matmul' must have as many dimensions as its signature, 2, got 1}}
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i], f32>
  }
}

// -----

// CONSTRAINT: kernel.shape
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{dimension 'k' must agree across the kernel, expected 'k' but operand 1 has 'i'}}
    %c = commir.kernel "matmul"(%a, %a) : (!commir.tile<[i, k], f32>, !commir.tile<[i, k], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.shape
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{dimension 'm' must agree across the kernel, expected 'i' but result 0 has 8}}
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[8, j], f32>
  }
}

// -----

// The divided dimension is a fraction of the whole one, not the reverse.
// CONSTRAINT: kernel.shape
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(h = 8) inputs(%X: !commir.buffer<[h/2], f32>, %Y: !commir.buffer<[h/4], f32>) outputs() {
  commir.for h {
    %x = commir.load %X : !commir.buffer<[h/2], f32>
    %y = commir.load %Y : !commir.buffer<[h/4], f32>
    // expected-error@below {{dimension 'h/g' must agree across the kernel, expected 'h/4' but operand 1 has 'h/2'}}
    %c = commir.kernel "f"(%y, %x) signature("h, h/g -> h") : (!commir.tile<[h/4], f32>, !commir.tile<[h/2], f32>) -> !commir.tile<[h/4], f32>
  }
}

// -----

// CONSTRAINT: kernel.shape
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(h = 8) inputs(%X: !commir.buffer<[h/2], f32>, %Y: !commir.buffer<[h/4], f32>) outputs() {
  commir.for h {
    %x = commir.load %X : !commir.buffer<[h/2], f32>
    %y = commir.load %Y : !commir.buffer<[h/4], f32>
    // expected-error@below {{dimension 'h' must agree across the kernel, expected 'h/2' but operand 1 has 'h/4'}}
    %c = commir.kernel "f"(%x, %y) signature("h/g, h -> h") : (!commir.tile<[h/2], f32>, !commir.tile<[h/4], f32>) -> !commir.tile<[h/4], f32>
  }
}

// -----

// CONSTRAINT: kernel.mask
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{mask must be given to a kernel over sq and sk, 'matmul' is not}}
    %c = commir.kernel "matmul"(%a, %b) mask(causal) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.documents
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{document bounds must end at the extent of both axes, got 6 for axis 'i' of extent 8}}
    %c = commir.kernel "f"(%a, %b) mask(causal documents[0, 6]) signature("sq d, d sk -> sq sk") : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.count
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{must have one buffer for each tile, got 2 tiles and 1 buffers}}
    commir.store %c, %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32>, !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.count
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{must have one buffer for each tile, got 0 tiles and 0 buffers}}
    "commir.store"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> ()
  }
}

// -----

// CONSTRAINT: store.tile
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{a stored tile must have the dimensions of its buffer, '!commir.buffer<[i, j], f32>', got '!commir.tile<[i, k], f32>'}}
    commir.store %a to %C merge(sum) over(k) : !commir.tile<[i, k], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.output
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs() {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{must write an output; inputs are only loaded}}
    commir.store %a to %A merge(sum) over(j) : !commir.tile<[i, k], f32> to !commir.buffer<[i, k], f32>
  }
}

// -----

// CONSTRAINT: load.looped
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[j], f32>) outputs(%C: !commir.buffer<[i], f32>) {
  commir.for j {
    %a = commir.load %A : !commir.buffer<[j], f32>
    %c = commir.kernel "f"(%a) signature("n -> m") : (!commir.tile<[j], f32>) -> !commir.tile<[i], f32>
    // expected-error@below {{each axis of a loaded or stored buffer must have a loop in the nest, 'i' has none}}
    commir.store %c to %C : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
}

// -----

// CONSTRAINT: store.over
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{over must name the loop axes that the buffer lacks: 'k' is not a dimension of '!commir.buffer<[i, j], f32>'}}
    commir.store %c to %C merge(sum) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.over
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{over must name the loop axes that the buffer lacks: 'i' is a dimension of '!commir.buffer<[i, j], f32>'}}
    commir.store %c to %C merge(sum) over(k, i) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.over
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{over must name the loop axes that the buffer lacks: no loop runs over 'z'}}
    commir.store %c to %C merge(sum) over(k, z) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.over
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>) outputs(%C: !commir.buffer<[i, k], f32>) {
  commir.for i, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    // expected-error@below {{over must name the loop axes that the buffer lacks, got none}}
    "commir.store"(%a, %C) <{operandSegmentSizes = array<i32: 1, 1, 0>, over = []}> : (!commir.tile<[i, k], f32>, !commir.buffer<[i, k], f32>) -> ()
  }
}

// -----

// CONSTRAINT: store.merge
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{a reduced result must name its merge, as in merge(sum)}}
    commir.store %c to %C over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.merge-unused
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>) outputs(%C: !commir.buffer<[i, k], f32>) {
  commir.for i, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    // expected-error@below {{a result that is not reduced must not name a merge}}
    commir.store %a to %C merge(sum) : !commir.tile<[i, k], f32> to !commir.buffer<[i, k], f32>
  }
}

// -----

// CONSTRAINT: store.softmax
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{a softmax merge must store a pair, (o, lse), got 1}}
    commir.store %c to %C merge(softmax) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.merge-symbol
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{the merge symbol must name a commir.merge, 'mesh' does not}}
    commir.store %c to %C merge(@mesh) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.once
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{a buffer must be stored to once}}
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.once
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{a buffer must be stored to once}}
    commir.store %c, %c to %C, %C merge(softmax) over(k) : !commir.tile<[i, j], f32>, !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>, !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: merge.arguments
// expected-error@below {{must take two values of the identity's type, 'f32'}}
commir.merge @merge identity(0.0 : f32) (%a: f32) {
  commir.yield %a : f32
}

// -----

// CONSTRAINT: merge.arguments
// expected-error@below {{must take two values of the identity's type, 'f32'}}
commir.merge @merge identity(0.0 : f32) (%a: f32, %b: f64) {
  commir.yield %a : f32
}

// -----

// CONSTRAINT: merge.yield
commir.merge @merge identity(0.0 : f32) (%a: f32, %b: f32) {
  // expected-error@below {{a merge must yield one value of the identity's type, 'f32'}}
  commir.yield %a, %b : f32, f32
}

// -----

// A yield of nothing is added.
// CONSTRAINT: merge.yield
// expected-error@below {{a merge must yield one value of the identity's type, 'f32'}}
commir.merge @merge identity(0.0 : f32) (%a: f32, %b: f32) {}

// -----

// CONSTRAINT: position.parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{the parts of axis 'sk' must be from 1 to 2^20, got 0}}
  %p = commir.position sk : %r of 0
}

// -----

// CONSTRAINT: position.divisor
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{the divisor of a position must be at least 1, got 0}}
  %p = commir.position sk : %r of 4 per 0
}

// -----

// CONSTRAINT: alloc.slots
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{the slots of local memory must be from 1 to 2^20, got 0}}
  %s = commir.alloc slots 0 placement [] parts {} : !commir.buffer<[b, sk], f32>
}

// -----

// CONSTRAINT: alloc.parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{parts must give each axis a number from 1 to 2^20, got 0 : i64 for 'sk'}}
  %s = commir.alloc slots 1 placement [] parts {sk = 0} : !commir.buffer<[b, sk], f32>
}

// -----

// CONSTRAINT: alloc.parts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{parts must give each axis a number from 1 to 2^20, got "four" for 'sk'}}
  %s = commir.alloc slots 1 placement [] parts {sk = "four"} : !commir.buffer<[b, sk], f32>
}

// -----

// CONSTRAINT: alloc.axis
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{local memory must be cut along axes of its buffer, 'h' is none}}
  %s = commir.alloc slots 1 placement [] parts {h = 4} : !commir.buffer<[b, sk], f32>
}

// -----

// CONSTRAINT: alloc.axis
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{local memory must be cut along axes of its buffer, 'h' is none}}
  %s = commir.alloc slots 1 placement [h -> gpu] parts {} : !commir.buffer<[b, sk], f32>
}

// -----

// CONSTRAINT: part.counts
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{must have an axis and a number of parts for each index, got 1 axes and 0 numbers for 0 indices}}
  %p = "commir.part"(%K) <{axes = ["sk"], counts = array<i64>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!commir.buffer<[b, sk], f32>) -> !commir.tile<[b, sk], f32>
}

// -----

// CONSTRAINT: part.number
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{the number of parts must be from 1 to 2^20, got -4}}
  %p = commir.part %K [sk : %r of -4] : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
}

// -----

// CONSTRAINT: part.axis
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{a part must be of axes of its buffer, each once, got 'h' of '!commir.buffer<[b, sk], f32>'}}
  %p = commir.part %K [h : %r of 4] : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
}

// -----

// CONSTRAINT: part.axis
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{a part must be of axes of its buffer, each once, got 'sk' of '!commir.buffer<[b, sk], f32>'}}
  %p = commir.part %K [sk : %r of 4, sk : %r of 4] : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
}

// -----

// CONSTRAINT: part.tile
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{must give the tile of its buffer, '!commir.tile<[b, sk], f32>', got '!commir.tile<[sk], f32>'}}
  %p = commir.part %K [] : !commir.buffer<[b, sk], f32> -> !commir.tile<[sk], f32>
}

// -----

// CONSTRAINT: memory.kind
func.func @memory_of_nothing() {
  // expected-error@below {{must be of an argument or of an arena, got neither}}
  %m = "commir.memory"() : () -> memref<?xi8>
  return
}

// -----

func.func @memory_of_both() {
  // expected-error@below {{must be of an argument or of an arena, got both}}
  %m = "commir.memory"() {argument = 0 : i64, arena = 1 : i32} : () -> memref<?xi8>
  return
}

// -----

// CONSTRAINT: memory.argument
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{the number of an argument must not be negative, got -1}}
  %m = commir.memory argument -1 : memref<?xi8>
}

// -----

// CONSTRAINT: lane.number
func.func @lanes() {
  // expected-error@below {{the number of a lane must be from 0 to 7, got 8}}
  commir.lane.use 8
  return
}

// -----

func.func @lanes() {
  // expected-error@below {{the number of a lane must be from 0 to 7, got -1}}
  commir.lane.order 0 before -1
  return
}

// -----

// CONSTRAINT: lane.place
func.func @lanes(%condition: i1) {
  scf.if %condition {
    // expected-error@below {{must be in the body of a function, outside of loops and branches}}
    commir.lane.use 1
  }
  return
}

// -----

// CONSTRAINT: store.over-twice
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{over must not name an axis twice, got 'k' again}}
    commir.store %c to %C merge(sum) over(k, k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.mask-axis
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(b = 1, h = 2, sq = 8, sk = 8) inputs(%Q: !commir.buffer<[b, sq/2, h, 4], f32>, %K: !commir.buffer<[b, sk, h, 4], f32>) outputs(%O: !commir.buffer<[b, sq/2, h, 4], f32>, %LSE: !commir.buffer<[b, h, sq/2], f32>) {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq/2, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 4], f32>
    // expected-error@below {{mask must speak of whole axes, got 'sq/2'}}
    %o, %lse = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal) : (!commir.tile<[b, sq/2, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>) -> (!commir.tile<[b, sq/2, h, 4], f32>, !commir.tile<[b, h, sq/2], f32>)
    commir.store %o, %lse to %O, %LSE merge(softmax) over(sk) : !commir.tile<[b, sq/2, h, 4], f32>, !commir.tile<[b, h, sq/2], f32> to !commir.buffer<[b, sq/2, h, 4], f32>, !commir.buffer<[b, h, sq/2], f32>
  }
}

// -----

// CONSTRAINT: accumulate.type
func.func @accumulate_wider(%a: memref<?xf64>, %b: memref<?xf32>) {
  // expected-error@below {{a tile to add must have the shape of the sum and no wider elements, 'memref<?xf32>', got 'memref<?xf64>'}}
  commir.accumulate %a to %b : memref<?xf64> to memref<?xf32>
  return
}

// -----

func.func @accumulate_other_shape(%a: memref<?x?xbf16>, %b: memref<?xf32>) {
  // expected-error@below {{a tile to add must have the shape of the sum and no wider elements, 'memref<?xf32>', got 'memref<?x?xbf16>'}}
  commir.accumulate %a to %b : memref<?x?xbf16> to memref<?xf32>
  return
}

// -----

// CONSTRAINT: reduce_scatter.merge
func.func @reduce_scatter_softmax(%a: memref<128xi8>, %b: memref<?xf32>) {
  // expected-error@below {{what ranks reduce together must merge by sum or max, got softmax}}
  %t = commir.reduce_scatter.start %a into %b merge(softmax) on "gpu" : memref<128xi8>, memref<?xf32>
  commir.wait %t
  return
}

// -----

// CONSTRAINT: reduce_scatter.type
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8) inputs(%A: !commir.buffer<[i], f32>, %B: !commir.buffer<[i], bf16>) outputs() {
  %own = commir.part %B [] : !commir.buffer<[i], bf16> -> !commir.tile<[i], bf16>
  // expected-error@below {{the tile of a reduce_scatter must be one of its source, '!commir.tile<[i], f32>', got '!commir.tile<[i], bf16>'}}
  %t = commir.reduce_scatter.start %A into %own merge(sum) on "gpu" along i : !commir.buffer<[i], f32>, !commir.tile<[i], bf16>
}

// -----

// CONSTRAINT: all_reduce.merge
func.func @all_reduce_softmax(%a: memref<?xf32>) {
  // expected-error@below {{what ranks reduce together must merge by sum or max, got softmax}}
  %t = commir.all_reduce.start %a into %a merge(softmax) on "gpu" : memref<?xf32>, memref<?xf32>
  commir.wait %t
  return
}

// -----

func.func @merge_unknown(%a: memref<?xf32>) {
  // expected-error@below {{expected 'sum', 'max' or 'softmax', got 'min'}}
  %t = commir.all_reduce.start %a into %a merge(min) on "gpu" : memref<?xf32>, memref<?xf32>
  return
}

// -----

// CONSTRAINT: store.loaded
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4, z = 3) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k, z {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{a reduced axis must be a dimension of a loaded buffer, 'z' is none}}
    commir.store %c to %C merge(sum) over(k, z) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: kernel.axis-twice
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(b = 1, h = 2, s = 8) inputs(%Q: !commir.buffer<[b, s, h, 4], f32>) outputs(%O: !commir.buffer<[b, s, h, 4], f32>, %LSE: !commir.buffer<[b, h, s], f32>) {
  commir.for b, h, s {
    %q = commir.load %Q : !commir.buffer<[b, s, h, 4], f32>
    // expected-error@below {{dimensions 'sk' and 'sq' of a kernel must not run over one axis, 's'; declare an axis for each}}
    %o, %lse = commir.kernel "attention_fwd"(%q, %q, %q) : (!commir.tile<[b, s, h, 4], f32>, !commir.tile<[b, s, h, 4], f32>, !commir.tile<[b, s, h, 4], f32>) -> (!commir.tile<[b, s, h, 4], f32>, !commir.tile<[b, h, s], f32>)
    commir.store %o, %lse to %O, %LSE : !commir.tile<[b, s, h, 4], f32>, !commir.tile<[b, h, s], f32> to !commir.buffer<[b, s, h, 4], f32>, !commir.buffer<[b, h, s], f32>
  }
}

// -----

// CONSTRAINT: redistribute.type
commir.mesh @mesh(gpu = 4)
commir.program @redistribute_type on @mesh axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32>) outputs(%B: !commir.buffer<[i], bf16>) {
  // expected-error@below {{a buffer to redistribute must keep its type}}
  commir.redistribute %A to %B : !commir.buffer<[i], f32>, !commir.buffer<[i], bf16>
}

// -----

// CONSTRAINT: store.over
commir.mesh @mesh(gpu = 4)
commir.program @grouped on @mesh axes(b = 1, h = 8, sq = 16, sk = 16)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h/4, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>)
    outputs(%dQ: !commir.buffer<[b, sq, h, 4], f32>, %dK: !commir.buffer<[b, sk, h/4, 4], f32>, %dV: !commir.buffer<[b, sk, h/4, 4], f32>) {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/4, 4], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %k, %q, %q, %l)
        : (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>,
           !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>)
    commir.store %dq to %dQ merge(sum) over(sk)
        : !commir.tile<[b, sq, h, 4], f32> to !commir.buffer<[b, sq, h, 4], f32>
    // expected-error@below {{over must name the loop axes that the buffer lacks: the kernel takes 'h', the buffer has 'h/4' of it}}
    commir.store %dk, %dv to %dK, %dV merge(sum) over(sq)
        : !commir.tile<[b, sk, h/4, 4], f32>, !commir.tile<[b, sk, h/4, 4], f32>
        to !commir.buffer<[b, sk, h/4, 4], f32>, !commir.buffer<[b, sk, h/4, 4], f32>
  }
}

// -----

// CONSTRAINT: store.once-count
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>, %D: !commir.buffer<[j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %d = commir.load %D : !commir.buffer<[j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    %o = commir.kernel "bias"(%d) signature("n -> m n") : (!commir.tile<[j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{what enters once must be one tile for each buffer, got 2 tiles and 1 buffers}}
    commir.store %c to %C merge(sum) over(k) once(%o, %o : !commir.tile<[i, j], f32>, !commir.tile<[i, j], f32>) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.once-tile
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>, %D: !commir.buffer<[j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %d = commir.load %D : !commir.buffer<[j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    %o = commir.kernel "bias"(%d) signature("n -> m n") : (!commir.tile<[j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{a tile that enters once must have the dimensions of its buffer, '!commir.buffer<[i, j], f32>', got '!commir.tile<[j], f32>'}}
    commir.store %c to %C merge(sum) over(k) once(%d : !commir.tile<[j], f32>) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.once-axes
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>, %D: !commir.buffer<[j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %d = commir.load %D : !commir.buffer<[j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    %o = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{what enters once must not depend on a reduced axis, its kernel takes 'k'}}
    commir.store %c to %C merge(sum) over(k) once(%o : !commir.tile<[i, j], f32>) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.once-merge
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6) inputs(%A: !commir.buffer<[i], f32>) outputs(%C: !commir.buffer<[i], f32>) {
  commir.for i {
    %a = commir.load %A : !commir.buffer<[i], f32>
    // expected-error@below {{what enters once must have a merge to enter, as in merge(sum)}}
    commir.store %a to %C once(%a : !commir.tile<[i], f32>) : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
}

// -----

// CONSTRAINT: part.stack
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{a stack must be of 1 to 2^20 slots, and of no single one, got 0}}
  %p = commir.part %K stack 0 [] : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
}

// -----

// CONSTRAINT: part.stack
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{a stack must be of 1 to 2^20 slots, and of no single one, got 2 and a slot}}
  %p = commir.part %K slot %r stack 2 [] : !commir.buffer<[b, sk], f32> -> !commir.tile<[2, b, sk], f32>
}

// -----

// CONSTRAINT: part.tile
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @program on @mesh axes(b = 2, sk = 8) inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // expected-error@below {{must give the tile of its buffer, '!commir.tile<[2, b, sk], f32>', got '!commir.tile<[b, sk], f32>'}}
  %p = commir.part %K stack 2 [] : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
}

// -----

// CONSTRAINT: launch.overwrite
func.func @overwrite_of_another_number(%a: memref<?xf32>) {
  // expected-error@below {{overwrite must have an entry for each result, got 2 for 1}}
  commir.launch "f" ins() outs(%a : memref<?xf32>) at() {overwrite = array<i1: true, true>}
  return
}

// -----

// CONSTRAINT: store.deferred
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8) inputs(%A: !commir.buffer<[i], f32>) outputs(%C: !commir.buffer<[i], f32>) {
  commir.for i {
    %a = commir.load %A : !commir.buffer<[i], f32>
    %c = commir.kernel "copy"(%a) signature("m -> m") : (!commir.tile<[i], f32>) -> !commir.tile<[i], f32>
    // expected-error@below {{a merge to defer must be that of a reduced result}}
    commir.store %c to %C deferred : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
}

// -----

// CONSTRAINT: store.partial
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{partial must be the float type of deferred partial results, got 'bf16', not deferred}}
    commir.store %c to %C merge(sum) over(k) partial(bf16) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// CONSTRAINT: store.partial
commir.mesh @mesh(gpu = 4)
commir.program @program on @mesh axes(i = 8, j = 6, k = 4) inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>) outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // expected-error@below {{partial must be the float type of deferred partial results, got 'i32'}}
    commir.store %c to %C merge(sum) over(k) deferred partial(i32) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
