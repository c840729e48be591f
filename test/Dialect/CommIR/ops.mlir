// RUN: mercury-opt %s | mercury-opt | FileCheck %s
// RUN: mercury-opt --mlir-print-op-generic %s | mercury-opt | FileCheck %s
// RUN: mercury-opt -mlir-print-debuginfo -mlir-print-local-scope %s | mercury-opt -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=LOC

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

// CHECK: commir.mesh @one_device(gpu = 1)
commir.mesh @one_device(gpu = 1)

// CHECK: commir.mesh @cluster(node = 2, gpu = 4)
// LOC: commir.mesh @cluster(node = 2, gpu = 4) loc("cluster.py":3:1)
commir.mesh @cluster(node = 2, gpu = 4) loc("cluster.py":3:1)

// CHECK: commir.mesh @odd_names("my level" = 2, of = 3)
commir.mesh @odd_names("my level" = 2, of = 3)

//===----------------------------------------------------------------------===//
// Axes, layouts and dimensions
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @layouts on @cluster
// CHECK-SAME: axes(a = 8, b = 16 zigzag, c = 12 striped(2), d = 10 bounds[0, 3, 3, 10], e = 0)
commir.program @layouts on @cluster axes(a = 8 block, b = 16 zigzag, c = 12 striped(2), d = 10 bounds[0, 3, 3, 10], e = 0)
    inputs() outputs() {}

// CHECK-LABEL: commir.program @dimensions on @cluster
// CHECK: inputs(%X: !commir.buffer<[b, h/4, 128], bf16>,
// CHECK-NEXT: %S: !commir.buffer<[], f32>,
// CHECK-NEXT: %Z: !commir.buffer<[0, "odd axis"], f64>)
// CHECK-NEXT: outputs() {
commir.program @dimensions on @cluster axes(b = 2, h = 8, "odd axis" = 3)
    inputs(%X: !commir.buffer<[b, h/4, 128], bf16>,
           %S: !commir.buffer<[], f32>,
           %Z: !commir.buffer<[0, "odd axis"], f64>)
    outputs() {}

//===----------------------------------------------------------------------===//
// Placements and bindings
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @placements on @cluster
// CHECK: inputs(%A: !commir.buffer<[i, j], f32> at [],
// CHECK-NEXT: %B: !commir.buffer<[i, j], f32> at [i -> gpu, j -> node],
// CHECK-NEXT: %C: !commir.buffer<[i, j], f32> at [i -> (node, gpu)],
// CHECK-NEXT: %D: !commir.buffer<[i, j], f32> at [i -> (4, gpu)],
// CHECK-NEXT: %E: !commir.buffer<[i, j], f32> at [i -> gpu zigzag, j -> node striped(8)],
// CHECK-NEXT: %F: !commir.buffer<[i, j], f32> at [i -> gpu bounds[0, 1, 1, 9, 16]],
// CHECK-NEXT: %G: !commir.buffer<[i, j], f32> at [i -> gpu block] shard [j -> gpu] replicate [node] inside [j -> gpu],
// CHECK-NEXT: %H: !commir.buffer<[i, j], f32> replicate [node, gpu],
// CHECK-NEXT: %I: !commir.buffer<[i, j], f32> at [i -> 2])
commir.program @placements on @cluster axes(i = 16, j = 32)
    inputs(%A: !commir.buffer<[i, j], f32> at [],
           %B: !commir.buffer<[i, j], f32> at [i -> gpu, j -> node],
           %C: !commir.buffer<[i, j], f32> at [i -> (node, gpu)],
           %D: !commir.buffer<[i, j], f32> at [i -> (4, gpu)],
           %E: !commir.buffer<[i, j], f32> at [i -> gpu zigzag, j -> node striped(8)],
           %F: !commir.buffer<[i, j], f32> at [i -> gpu bounds[0, 1, 1, 9, 16]],
           %G: !commir.buffer<[i, j], f32> at [i -> gpu block] shard [j -> gpu] replicate [node] inside [j -> gpu],
           %H: !commir.buffer<[i, j], f32> replicate [node, gpu],
           %I: !commir.buffer<[i, j], f32> at [i -> 2])
    outputs() {}

// CHECK-LABEL: commir.program @buffer_name_not_an_identifier
// CHECK: inputs(%[[Q:.*]]: !commir.buffer<[i], f32> named "the query" at [i -> gpu],
// CHECK-NEXT: %[[N:.*]]: !commir.buffer<[i], f32> named "0")
commir.program @buffer_name_not_an_identifier on @cluster axes(i = 4)
    inputs(%q: !commir.buffer<[i], f32> named "the query" at [i -> gpu],
           %0: !commir.buffer<[i], f32>)
    outputs() {}

// CHECK-LABEL: commir.program @more_attributes on @cluster
// CHECK: outputs() attributes {author = "me"} {
commir.program @more_attributes on @cluster axes() inputs() outputs()
    attributes {author = "me"} {}

//===----------------------------------------------------------------------===//
// Nests
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @matmul on @cluster axes(i = 8, j = 6, k = 4)
// LOC-LABEL: commir.program @matmul
// LOC: %A: !commir.buffer<[i, k], f32> loc("matmul.py":1:9) at [i -> gpu]
commir.program @matmul on @cluster axes(i = 8, j = 6, k = 4)
    inputs(%A: !commir.buffer<[i, k], f32> loc("matmul.py":1:9) at [i -> gpu],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // CHECK: commir.for i, j, k {
  commir.for i, j, k {
    // CHECK: %[[A:.*]] = commir.load %A : !commir.buffer<[i, k], f32>
    // LOC: commir.load %A : !commir.buffer<[i, k], f32> loc("matmul.py":2:3)
    %a = commir.load %A : !commir.buffer<[i, k], f32> loc("matmul.py":2:3)
    // CHECK: %[[B:.*]] = commir.load %B {hint = 1 : i64} : !commir.buffer<[k, j], f32>
    %b = commir.load %B {hint = 1 : i64} : !commir.buffer<[k, j], f32>
    // CHECK: %[[C:.*]] = commir.kernel "matmul"(%[[A]], %[[B]]) impl("cublas") {alpha = 2.000000e+00 : f64} :
    // LOC: commir.kernel "matmul"
    // LOC-SAME: loc("matmul.py":4:3)
    %c = commir.kernel "matmul"(%a, %b) impl("cublas") {alpha = 2.0 : f64}
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32> loc("matmul.py":4:3)
    // CHECK: commir.store %[[C]] to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    // LOC: commir.store
    // LOC-SAME: loc("matmul.py":5:3)
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32> loc("matmul.py":5:3)
    // LOC: } loc("matmul.py":6:1)
  } loc("matmul.py":6:1)
}

// CHECK-LABEL: commir.program @explicit_signature
commir.program @explicit_signature on @cluster axes(i = 8, j = 6)
    inputs(%X: !commir.buffer<[i, j], f32>)
    outputs(%R: !commir.buffer<[i], f32>, %M: !commir.buffer<[i], f32>) {
  commir.for i, j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    // CHECK: commir.kernel "row_stats"({{.*}}) signature("m n -> m, m")
    %r, %m = commir.kernel "row_stats"(%x) signature("m n -> m, m")
        : (!commir.tile<[i, j], f32>)
        -> (!commir.tile<[i], f32>, !commir.tile<[i], f32>)
    // CHECK: commir.store {{.*}} to %R merge(sum) over(j)
    commir.store %r to %R merge(sum) over(j)
        : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
    // CHECK: commir.store {{.*}} to %M merge(max) over(j)
    commir.store %m to %M merge(max) over(j)
        : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
}

// CHECK-LABEL: commir.program @nothing_reduced
commir.program @nothing_reduced on @cluster axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32>) outputs(%Y: !commir.buffer<[i], bf16>) {
  commir.for i {
    %x = commir.load %X : !commir.buffer<[i], f32>
    %y = commir.kernel "double"(%x) signature("m -> m")
        : (!commir.tile<[i], f32>) -> !commir.tile<[i], f32>
    // CHECK: commir.store {{.*}} to %Y : !commir.tile<[i], f32> to !commir.buffer<[i], bf16>
    commir.store %y to %Y : !commir.tile<[i], f32> to !commir.buffer<[i], bf16>
  }
}

// CHECK-LABEL: commir.program @attention
commir.program @attention on @cluster
    axes(b = 1, h = 8, sq = 64 zigzag, sk = 64 zigzag)
    inputs(%Q: !commir.buffer<[b, sq, h, 128], bf16>,
           %K: !commir.buffer<[b, sk, h/4, 128], bf16>,
           %V: !commir.buffer<[b, sk, h/4, 64], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 64], bf16>,
            %LSE: !commir.buffer<[b, h, sq], f32>) {
  // CHECK: commir.for b, h, sq of 8 parallel(node, gpu), sk_node in sk of 2 shift(by sq on node), sk_gpu in sk of 4 shift(by sq on gpu) {
  commir.for b, h, sq of 8 parallel(node, gpu),
      sk_node in sk of 2 shift(by sq on node),
      sk_gpu in sk of 4 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 128], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h/4, 128], bf16>
    %v = commir.load %V : !commir.buffer<[b, sk, h/4, 64], bf16>
    // CHECK: commir.kernel "attention_fwd"({{.*}}) mask(causal) impl("cudnn") {scale = 1.250000e-01 : f64}
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal)
        impl("cudnn") {scale = 0.125 : f64}
        : (!commir.tile<[b, sq, h, 128], bf16>,
           !commir.tile<[b, sk, h/4, 128], bf16>,
           !commir.tile<[b, sk, h/4, 64], bf16>)
        -> (!commir.tile<[b, sq, h, 64], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: commir.store {{.*}} to %O, %LSE merge(softmax) over(sk)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 64], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 64], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}

// CHECK-LABEL: commir.program @two_nests
commir.program @two_nests on @cluster axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i], f32>, %Y: !commir.buffer<[j], f32>)
    outputs(%A: !commir.buffer<[i], f32>, %B: !commir.buffer<[j], f32>) {
  // CHECK: commir.for i of 4 parallel(gpu)
  commir.for i of 4 parallel(gpu) {
    %x = commir.load %X : !commir.buffer<[i], f32>
    %a = commir.kernel "f"(%x) signature("m -> m")
        : (!commir.tile<[i], f32>) -> !commir.tile<[i], f32>
    commir.store %a to %A : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
  // CHECK: commir.for j of 4 parallel(gpu)
  commir.for j of 4 parallel(gpu) {
    %y = commir.load %Y : !commir.buffer<[j], f32>
    %b = commir.kernel "f"(%y) signature("m -> m")
        : (!commir.tile<[j], f32>) -> !commir.tile<[j], f32>
    commir.store %b to %B : !commir.tile<[j], f32> to !commir.buffer<[j], f32>
  }
}

// CHECK-LABEL: commir.program @loops
commir.program @loops on @cluster axes(b = 2, h = 8, i = 64, j = 0)
    inputs(%A: !commir.buffer<[i], f32>) outputs() {
  // CHECK: commir.for bh in (b, h) of 8 parallel(node, gpu), i_outer in i of 4, i_inner in i of 2 {
  commir.for bh in (b, h) of 8 parallel(node, gpu), i_outer in i of 4, i_inner in i of 2 {
  }
  // CHECK: commir.for "an odd name" in i {
  commir.for "an odd name" in i of 1 {
  }
  // An axis without positions can be joined and cut: all its parts are empty.
  // CHECK: commir.for jb in (j, b) of 4 parallel(gpu) {
  commir.for jb in (j, b) of 4 parallel(gpu) {
  }
}

//===----------------------------------------------------------------------===//
// Shifts
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @shifts
commir.program @shifts on @cluster axes(i = 64, j = 64, k = 64)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // CHECK: commir.for i of 2 parallel(node), j of 4 parallel(gpu),
  // CHECK-SAME: k of 4 shift(by i on node, by j on gpu, direction -1, offset 3, reads pull, results deliver, via {A = "rotate", B = "pull", C = "travel"}, chunks 2, link bf16) {
  commir.for i of 2 parallel(node), j of 4 parallel(gpu),
      k of 4 shift(by i on node, by j on gpu, direction -1, offset 3, reads pull,
                   results deliver, via {A = "rotate", B = "pull", C = "travel"},
                   chunks 2, link bf16) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// What is the default is not printed.
// CHECK-LABEL: commir.program @shift_defaults
commir.program @shift_defaults on @cluster axes(i = 64, k = 64)
    inputs() outputs() {
  // CHECK: commir.for k of 4 shift(by i on gpu), i of 4 parallel(gpu) {
  commir.for k of 4 shift(by i on gpu, direction 1, offset 0, reads rotate,
                          results travel, chunks 1),
      i of 4 parallel(gpu) {
  }
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @masks
commir.program @masks on @cluster axes(b = 1, h = 2, sq = 14, sk = 14)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>,
           %K: !commir.buffer<[b, sk, h, 8], f32>)
    outputs() {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    // CHECK: mask(full)
    %0:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(full) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: mask(causal)
    %1:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: mask(causal(7))
    %2:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal(7)) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: mask(causal(-3))
    %3:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal(-3)) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: mask(window(4, 0))
    %4:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(window(4, 0)) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: mask(window(4, -2))
    %5:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(window(4, -2)) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: mask(causal documents[0, 5, 5, 14])
    %6:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(causal documents[0, 5, 5, 14]) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    // CHECK: mask(full documents[0, 14])
    %7:2 = commir.kernel "attention_fwd"(%q, %k, %k) mask(full documents[0, 14]) : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>) -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
  }
}

//===----------------------------------------------------------------------===//
// Merges given by the user
//===----------------------------------------------------------------------===//

// CHECK: commir.merge @first identity(0x7F800000 : f32) (%[[X:.*]]: f32, %[[Y:.*]]: f32) {
// CHECK-NEXT: commir.yield %[[X]] : f32
commir.merge @first identity(0x7F800000 : f32) (%x: f32, %y: f32) {
  commir.yield %x : f32
}

// CHECK-LABEL: commir.program @user_merge
commir.program @user_merge on @cluster axes(i = 8, j = 6)
    inputs(%X: !commir.buffer<[i, j], f32>) outputs(%Y: !commir.buffer<[i], f32>) {
  commir.for i, j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    %y = commir.kernel "row"(%x) signature("m n -> m")
        : (!commir.tile<[i, j], f32>) -> !commir.tile<[i], f32>
    // CHECK: commir.store {{.*}} to %Y merge(@first) over(j)
    commir.store %y to %Y merge(@first) over(j)
        : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
}

//===----------------------------------------------------------------------===//
// Attributes on their own
//===----------------------------------------------------------------------===//

// CHECK: module @attributes attributes
// CHECK-SAME: test.axis = #commir.axis<sq = 64 zigzag>
// CHECK-SAME: test.binding = #commir.binding<K at [sk -> gpu] shard [h -> gpu] replicate [node] broadcast [h] inside [h -> gpu]>
// CHECK-SAME: test.cut = #commir.cut<sk -> (4, gpu) striped(8)>
// CHECK-SAME: test.dim = #commir.dim<h/4>
// CHECK-SAME: test.dim_constant = #commir.dim<128>
// CHECK-SAME: test.layout = #commir.layout<block>
// CHECK-SAME: test.layout_bounds = #commir.layout<bounds[0, 7]>
// CHECK-SAME: test.level = #commir.level<gpu = 4>
// CHECK-SAME: test.loop = #commir.loop<sk_outer in sk of 4 shift(by sq on gpu)>
// CHECK-SAME: test.mask = #commir.mask<window(3, 5) documents[0, 9]>
// CHECK-SAME: test.merge = #commir.merge<softmax>
// CHECK-SAME: test.placement = #commir.placement<[sq -> gpu, h -> node]>
// CHECK-SAME: test.shift = #commir.shift<by sq on gpu, direction -1>
// CHECK-SAME: test.token = !commir.token
builtin.module @attributes attributes {
  test.axis = #commir.axis<sq = 64 zigzag>,
  test.binding = #commir.binding<K at [sk -> gpu] shard [h -> gpu] replicate [node] broadcast [h] inside [h -> gpu]>,
  test.cut = #commir.cut<sk -> (4, gpu) striped(8)>,
  test.dim = #commir.dim<h/4>,
  test.dim_constant = #commir.dim<128>,
  test.layout = #commir.layout<block>,
  test.layout_bounds = #commir.layout<bounds[0, 7]>,
  test.level = #commir.level<gpu = 4>,
  test.loop = #commir.loop<sk_outer in sk of 4 shift(by sq on gpu)>,
  test.mask = #commir.mask<window(3, 5) documents[0, 9]>,
  test.merge = #commir.merge<softmax>,
  test.placement = #commir.placement<[sq -> gpu, h -> node]>,
  test.shift = #commir.shift<by sq on gpu, direction -1>,
  test.token = !commir.token
} {}

//===----------------------------------------------------------------------===//
// The lowered plan
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @group_rank
commir.program @group_rank on @cluster axes() inputs() outputs() {
  // CHECK: commir.group_rank "gpu"
  %r = commir.group_rank "gpu"
}

// CHECK-LABEL: commir.program @position
commir.program @position on @cluster axes(sk = 8) inputs() outputs() {
  %r = commir.group_rank "gpu"
  // CHECK: commir.position sk : %{{.*}} of 4{{$}}
  %p = commir.position sk : %r of 4
  // CHECK: commir.position sk : %{{.*}} of 4 per 2
  %q = commir.position sk : %r of 4 per 2
}

// CHECK-LABEL: commir.program @alloc_and_part
// CHECK: inputs(%[[K:.*]]: !commir.buffer
commir.program @alloc_and_part on @cluster axes(b = 2, sk = 8)
    inputs(%K: !commir.buffer<[b, sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  // CHECK: %[[S:.*]] = commir.alloc slots 2 placement [b -> node] parts {sk = 4 : i64} : !commir.buffer<[b, sk], f32>
  %s = commir.alloc slots 2 placement [b -> node] parts {sk = 4}
      : !commir.buffer<[b, sk], f32>
  // CHECK: commir.alloc slots 1 placement [] parts {} : !commir.buffer<[b, sk], bf16>
  %w = commir.alloc slots 1 placement [] parts {} : !commir.buffer<[b, sk], bf16>
  // CHECK: commir.part %[[K]] [] : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
  %0 = commir.part %K [] : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
  // CHECK: commir.part %[[S]] slot %[[R:.*]] [b : %[[R]] of 2, sk : %[[R]] of 4]
  %1 = commir.part %s slot %r [b : %r of 2, sk : %r of 4]
      : !commir.buffer<[b, sk], f32> -> !commir.tile<[b, sk], f32>
  // CHECK: commir.part %[[S]] stack 2 [sk : %[[R]] of 4] : !commir.buffer<[b, sk], f32> -> !commir.tile<[2, b, sk], f32>
  %2 = commir.part %s stack 2 [sk : %r of 4]
      : !commir.buffer<[b, sk], f32> -> !commir.tile<[2, b, sk], f32>
}

// CHECK-LABEL: commir.program @exchange
commir.program @exchange on @cluster axes(sk = 8)
    inputs(%K: !commir.buffer<[sk], f32>) outputs() {
  %r = commir.group_rank "gpu"
  %more = builtin.unrealized_conversion_cast to i1
  %m = builtin.unrealized_conversion_cast to memref<4xf32>
  %own = commir.part %K [] : !commir.buffer<[sk], f32> -> !commir.tile<[sk], f32>
  %s = commir.alloc slots 2 placement [] parts {sk = 4} : !commir.buffer<[sk], f32>
  %slot = commir.part %s slot %r [sk : %r of 4]
      : !commir.buffer<[sk], f32> -> !commir.tile<[sk], f32>
  // CHECK: %[[T:.*]] = commir.exchange.start %[[OWN:.*]] to %[[R:.*]], %[[SLOT:.*]] from %[[R]] on "gpu" when %[[MORE:.*]] : !commir.tile<[sk], f32>, !commir.tile<[sk], f32>
  %t = commir.exchange.start %own to %r, %slot from %r on "gpu" when %more
      : !commir.tile<[sk], f32>, !commir.tile<[sk], f32>
  // CHECK: commir.wait %[[T]]
  commir.wait %t
  // CHECK: commir.exchange.start {{.*}} : memref<4xf32>, memref<4xf32>
  %u = commir.exchange.start %m to %r, %m from %r on "gpu" when %more
      : memref<4xf32>, memref<4xf32>
}

// CHECK-LABEL: commir.program @all_gather
commir.program @all_gather on @cluster axes(sk = 8)
    inputs(%K: !commir.buffer<[sk], f32>) outputs() {
  %own = commir.part %K [] : !commir.buffer<[sk], f32> -> !commir.tile<[sk], f32>
  %s = commir.alloc slots 4 placement [] parts {sk = 4} : !commir.buffer<[sk], f32>
  // CHECK: commir.all_gather.start %{{.*}} into %{{.*}} on "gpu" along sk : !commir.tile<[sk], f32>, !commir.buffer<[sk], f32>
  %t = commir.all_gather.start %own into %s on "gpu" along sk
      : !commir.tile<[sk], f32>, !commir.buffer<[sk], f32>
  %m = builtin.unrealized_conversion_cast to memref<4xf32>
  %n = builtin.unrealized_conversion_cast to memref<?xi8>
  %b = builtin.unrealized_conversion_cast to memref<4xi64>
  // CHECK: commir.all_gather.start %{{.*}} into %{{.*}} bytes %{{.*}} : memref<4xi64> on "gpu" along sk : memref<4xf32>, memref<?xi8>
  %u = commir.all_gather.start %m into %n bytes %b : memref<4xi64> on "gpu" along sk
      : memref<4xf32>, memref<?xi8>
}

// CHECK-LABEL: commir.program @collectives
commir.program @collectives on @cluster axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32>) outputs() {
  %own = commir.part %A [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %s = commir.alloc slots 4 placement [] parts {i = 4} : !commir.buffer<[i], f32>
  // CHECK: %[[T:.*]] = commir.reduce_scatter.start %{{.*}} into %{{.*}} merge(sum) on "gpu" along i : !commir.buffer<[i], f32>, !commir.tile<[i], f32>
  %t = commir.reduce_scatter.start %s into %own merge(sum) on "gpu" along i
      : !commir.buffer<[i], f32>, !commir.tile<[i], f32>
  // CHECK: commir.wait %[[T]]
  commir.wait %t
  // CHECK: commir.all_reduce.start %[[OWN:.*]] into %[[OWN]] merge(max) on ["node", "gpu"] : !commir.tile<[i], f32>, !commir.tile<[i], f32>
  %u = commir.all_reduce.start %own into %own merge(max) on ["node", "gpu"]
      : !commir.tile<[i], f32>, !commir.tile<[i], f32>
  commir.wait %u
  %m = builtin.unrealized_conversion_cast to memref<4xf32>
  %n = builtin.unrealized_conversion_cast to memref<256xi8>
  %b = builtin.unrealized_conversion_cast to memref<4xi64>
  // CHECK: commir.reduce_scatter.start %{{.*}} into %{{.*}} bytes %{{.*}} : memref<4xi64> merge(sum) on "gpu" along i : memref<256xi8>, memref<4xf32>
  %v = commir.reduce_scatter.start %n into %m bytes %b : memref<4xi64> merge(sum)
      on "gpu" along i : memref<256xi8>, memref<4xf32>
  // CHECK: commir.all_to_all.start %[[N:.*]], %[[B:.*]] into %[[N]], %[[B]] on "gpu" : memref<256xi8>, memref<4xi64>, memref<256xi8>, memref<4xi64>
  %w = commir.all_to_all.start %n, %b into %n, %b on "gpu"
      : memref<256xi8>, memref<4xi64>, memref<256xi8>, memref<4xi64>
  // CHECK: commir.all_to_all.start {{.*}} on [] :
  %alone = commir.all_to_all.start %n, %b into %n, %b on []
      : memref<256xi8>, memref<4xi64>, memref<256xi8>, memref<4xi64>
  %root = arith.constant 1 : index
  %on = arith.constant true
  // CHECK: commir.broadcast.start %[[M:.*]] into %[[M]] of %c1 on "gpu" when %true : memref<4xf32>, memref<4xf32>
  %x = commir.broadcast.start %m into %m of %root on "gpu" when %on
      : memref<4xf32>, memref<4xf32>
  // CHECK: commir.lease.open %{{.*}} slot %c1 on "gpu" : !commir.buffer<[i], f32>
  %l = commir.lease.open %s slot %root on "gpu" : !commir.buffer<[i], f32>
  // CHECK: commir.accumulate %{{.*}} to %{{.*}} : memref<4xbf16> to memref<4xf32>
  %narrow = builtin.unrealized_conversion_cast to memref<4xbf16>
  commir.accumulate %narrow to %m : memref<4xbf16> to memref<4xf32>
}

// CHECK-LABEL: commir.program @fill_and_copy
commir.program @fill_and_copy on @cluster axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32>, %B: !commir.buffer<[i], bf16>) outputs() {
  %a = commir.part %A [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %b = commir.part %B [] : !commir.buffer<[i], bf16> -> !commir.tile<[i], bf16>
  // CHECK: commir.fill %[[A:.*]] with 0.000000e+00 : !commir.tile<[i], f32>
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
  // CHECK: commir.fill %[[A]] with 0xFFF0000000000000 : !commir.tile<[i], f32>
  commir.fill %a with 0xFFF0000000000000 : !commir.tile<[i], f32>
  // CHECK: commir.copy %[[A]] to %{{.*}} : !commir.tile<[i], f32> to !commir.tile<[i], bf16>
  commir.copy %a to %b : !commir.tile<[i], f32> to !commir.tile<[i], bf16>
  // CHECK: commir.accumulate %[[A]] to %[[A]] : !commir.tile<[i], f32> to !commir.tile<[i], f32>
  commir.accumulate %a to %a : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}

// CHECK-LABEL: commir.program @launch
commir.program @launch on @cluster axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32>) outputs() {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %m = builtin.unrealized_conversion_cast to memref<4xf32>
  // CHECK: commir.launch "f" ins(%[[A:.*]], %[[M:.*]] : !commir.tile<[i], f32>, memref<4xf32>) outs(%[[A]] : !commir.tile<[i], f32>) at(%[[R:.*]], %[[R]]) mask(causal(2)) {group = 4 : i64, scale = 5.000000e-01 : f64}
  commir.launch "f" ins(%a, %m : !commir.tile<[i], f32>, memref<4xf32>)
      outs(%a : !commir.tile<[i], f32>) at(%r, %r) mask(causal(2))
      {group = 4, scale = 0.5 : f64}
  // CHECK: commir.launch "f" ins(%[[A]] : !commir.tile<[i], f32>) outs(%[[A]] : !commir.tile<[i], f32>) at() scratch(%[[M]] : memref<4xf32>) mask(causal)
  commir.launch "f" ins(%a : !commir.tile<[i], f32>) outs(%a : !commir.tile<[i], f32>) at()
      scratch(%m : memref<4xf32>) mask(causal)
  // CHECK: commir.launch "g" ins() outs(%[[M]] : memref<4xf32>) at()
  commir.launch "g" ins() outs(%m : memref<4xf32>) at()
  // CHECK: commir.launch "g" ins() outs(%[[M]] : memref<4xf32>) at() impl("torch")
  commir.launch "g" ins() outs(%m : memref<4xf32>) at() impl("torch")
  // CHECK: commir.launch "g" ins() outs(%[[M]], %[[M]] : memref<4xf32>, memref<4xf32>) at() {overwrite = array<i1: true, false>}
  commir.launch "g" ins() outs(%m, %m : memref<4xf32>, memref<4xf32>) at()
      {overwrite = array<i1: true, false>}
}

// CHECK-LABEL: commir.program @memory_and_status
commir.program @memory_and_status on @cluster axes() inputs() outputs() {
  // CHECK: commir.memory argument 0 : memref<?xi8>
  %a = commir.memory argument 0 : memref<?xi8>
  // CHECK: commir.memory local : memref<?xi8>
  %w = commir.memory local : memref<?xi8>
  // CHECK: commir.memory symmetric : memref<?xi8>
  %y = commir.memory symmetric : memref<?xi8>
  // CHECK: commir.status
  %s = commir.status
}

// CHECK-LABEL: func.func @lanes
func.func @lanes() {
  // CHECK: commir.lane.use 1
  commir.lane.use 1
  // CHECK: commir.lane.order 1 before 0
  commir.lane.order 1 before 0
  return
}

// What a result is reduced over: all of an axis, or the heads of each group of
// 4; what enters once is named beside.
// CHECK-LABEL: commir.program @grouped_and_once
commir.program @grouped_and_once on @cluster axes(i = 8, h = 8)
    inputs(%A: !commir.buffer<[i, h], f32>, %D: !commir.buffer<[h/4], f32>)
    outputs(%C: !commir.buffer<[h/4], f32>) {
  commir.for i, h {
    %a = commir.load %A : !commir.buffer<[i, h], f32>
    %d = commir.load %D : !commir.buffer<[h/4], f32>
    %c = commir.kernel "column_sums"(%a) signature("m n -> n/g")
        : (!commir.tile<[i, h], f32>) -> !commir.tile<[h/4], f32>
    %o = commir.kernel "bias"(%d) signature("n -> n")
        : (!commir.tile<[h/4], f32>) -> !commir.tile<[h/4], f32>
    // CHECK: commir.store %{{.*}} to %C merge(sum) over(i, h) once(%{{.*}} : !commir.tile<[h/4], f32>) : !commir.tile<[h/4], f32> to !commir.buffer<[h/4], f32>
    commir.store %c to %C merge(sum) over(i, h) once(%o : !commir.tile<[h/4], f32>)
        : !commir.tile<[h/4], f32> to !commir.buffer<[h/4], f32>
  }
}

// CHECK-LABEL: commir.program @deferred
commir.program @deferred on @cluster axes(i = 8, j = 6, k = 4)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>, %D: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    %d = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    // CHECK: commir.store %{{.*}} to %C merge(sum) over(k) deferred : !commir.tile
    commir.store %c to %C merge(sum) over(k) deferred
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    // CHECK: commir.store %{{.*}} to %D merge(sum) over(k) deferred partial(bf16) : !commir.tile
    commir.store %d to %D merge(sum) over(k) deferred partial(bf16)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
