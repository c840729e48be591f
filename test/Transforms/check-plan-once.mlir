// RUN: mercury-opt %s --commir-check-plan -o %t
// RUN: mercury-opt %s | diff - %t

// What enters a merge once; check-plan-once-invalid.mlir has what goes wrong.

commir.mesh @mesh(gpu = 2)
commir.program @biased.source on @mesh axes(i = 2, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu], %B: !commir.buffer<[k, j], f32> at [k -> gpu],
           %L: !commir.buffer<[i, 1], f32> at [], %R: !commir.buffer<[1, j], f32> at [])
    outputs(%C: !commir.buffer<[i, j], f32> at []) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %l = commir.load %L : !commir.buffer<[i, 1], f32>
    %r = commir.load %R : !commir.buffer<[1, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    %bias = commir.kernel "matmul"(%l, %r) : (!commir.tile<[i, 1], f32>, !commir.tile<[1, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) once(%bias : !commir.tile<[i, j], f32>)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

func.func @after_the_ranks_have_merged(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @biased.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %L = commir.memory argument 2 : memref<?xi8>
  %R = commir.memory argument 3 : memref<?xi8>
  %C = commir.memory argument 4 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x1xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<1x2xf32>
  %l = memref.view %L[%c0][] : memref<?xi8> to memref<2x1xf32>
  %r = memref.view %R[%c0][] : memref<?xi8> to memref<1x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<2x2xf32>
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %c with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x1xf32>, memref<1x2xf32>) outs(%c : memref<2x2xf32>) at()
  %t = commir.exchange.start %c to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.accumulate %slot to %c : memref<2x2xf32> to memref<2x2xf32>
  commir.launch "matmul" ins(%l, %r : memref<2x1xf32>, memref<1x2xf32>) outs(%c : memref<2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// It is a partial result like others: one of the ranks may bring it.
func.func @on_one_rank_before_they_merge(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @biased.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %L = commir.memory argument 2 : memref<?xi8>
  %R = commir.memory argument 3 : memref<?xi8>
  %C = commir.memory argument 4 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x1xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<1x2xf32>
  %l = memref.view %L[%c0][] : memref<?xi8> to memref<2x1xf32>
  %r = memref.view %R[%c0][] : memref<?xi8> to memref<1x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<2x2xf32>
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %c with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x1xf32>, memref<1x2xf32>) outs(%c : memref<2x2xf32>) at()
  %isFirst = arith.cmpi eq, %rank, %c0 : index
  scf.if %isFirst {
    commir.launch "matmul" ins(%l, %r : memref<2x1xf32>, memref<1x2xf32>) outs(%c : memref<2x2xf32>) at()
  }
  %t = commir.exchange.start %c to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.accumulate %slot to %c : memref<2x2xf32> to memref<2x2xf32>
  %s = commir.status
  return %s : i32
}

commir.mesh @one(gpu = 1)
commir.program @sink.source on @one axes(b = 1, h = 2, sq = 2, sk = 2)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h, 1], f32> at [], %SINK: !commir.buffer<[h], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 1], f32>
    %sink = commir.load %SINK : !commir.buffer<[h], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v)
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h, 1], f32>, !commir.tile<[b, sk, h, 1], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    %so, %sl = commir.kernel "softmax_sink"(%sink)
        : (!commir.tile<[h], f32>) -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) once(%so, %sl : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 1], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

func.func @sink(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %SINK = commir.memory argument 3 : memref<?xi8>
  %O = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>)
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

func.func @sink_by_heads(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %SINK = commir.memory argument 3 : memref<?xi8>
  %O = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>)
  %o_first = memref.subview %o[0, 0, 0, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x2x1xf32> to memref<1x2x1x1xf32, strided<[4, 2, 1, 1]>>
  %o_last = memref.subview %o[0, 0, 1, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x2x1xf32> to memref<1x2x1x1xf32, strided<[4, 2, 1, 1], offset: 1>>
  %l_first = memref.subview %l[0, 0, 0] [1, 1, 2] [1, 1, 1] : memref<1x2x2xf32> to memref<1x1x2xf32, strided<[4, 2, 1]>>
  %l_last = memref.subview %l[0, 1, 0] [1, 1, 2] [1, 1, 1] : memref<1x2x2xf32> to memref<1x1x2xf32, strided<[4, 2, 1], offset: 2>>
  %sink_first = memref.view %SINK[%c0][] : memref<?xi8> to memref<1xf32>
  %sink_last = memref.view %SINK[%c4][] : memref<?xi8> to memref<1xf32>
  commir.launch "softmax_sink" ins(%sink_first : memref<1xf32>) outs(%o_first, %l_first : memref<1x2x1x1xf32, strided<[4, 2, 1, 1]>>, memref<1x1x2xf32, strided<[4, 2, 1]>>) at()
  commir.launch "softmax_sink" ins(%sink_last : memref<1xf32>) outs(%o_last, %l_last : memref<1x2x1x1xf32, strided<[4, 2, 1, 1], offset: 1>>, memref<1x1x2xf32, strided<[4, 2, 1], offset: 2>>) at()
  %s = commir.status
  return %s : i32
}

// Row 0 sees no key, and no launch makes it: what enters once says where it is.
commir.program @later.source on @one axes(b = 1, h = 2, sq = 2, sk = 1)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h, 1], f32> at [], %SINK: !commir.buffer<[h], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 1], f32>
    %sink = commir.load %SINK : !commir.buffer<[h], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal(-1))
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h, 1], f32>, !commir.tile<[b, sk, h, 1], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    %so, %sl = commir.kernel "softmax_sink"(%sink)
        : (!commir.tile<[h], f32>) -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) once(%so, %sl : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 1], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

func.func @beside_rows_that_see_nothing(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @later.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %SINK = commir.memory argument 3 : memref<?xi8>
  %O = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %q = memref.view %Q[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  %o1 = memref.view %O[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %l1 = memref.subview %l[0, 0, 1] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>) outs(%o1, %l1 : memref<1x1x2x1xf32>, memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>) at(%c1, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>) mask(causal(-1))
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}
