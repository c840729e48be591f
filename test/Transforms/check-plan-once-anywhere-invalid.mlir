// RUN: mercury-opt %s --commir-check-plan --split-input-file --verify-diagnostics

// What enters once may lie anywhere along the queries, but not twice, not for
// another head, and not rounded where more is to come. The first query sees no
// key here.

commir.mesh @one(gpu = 1)
commir.program @sink.source on @one axes(b = 1, h = 2, sq = 2, sk = 2)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], bf16> at [], %K: !commir.buffer<[b, sk, h, 1], bf16> at [],
           %V: !commir.buffer<[b, sk, h, 1], bf16> at [], %SINK: !commir.buffer<[h], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 1], bf16> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 1], bf16>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 1], bf16>
    %sink = commir.load %SINK : !commir.buffer<[h], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal(-1))
        : (!commir.tile<[b, sq, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    %so, %sl = commir.kernel "softmax_sink"(%sink)
        : (!commir.tile<[h], f32>) -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) once(%so, %sl : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 1], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}

// expected-error@+1 {{at the end, output 'O' (b [0, 1), sq [1, 2), h [0, 2)) lacks sk [0, 2)}}
func.func @for_the_query_that_sees_a_key(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33328, commir.mesh = @one, commir.source = @sink.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at_o = arith.constant 33280 : index
  %at_l = arith.constant 33296 : index
  %at_n = arith.constant 33312 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %SINK = commir.memory argument 3 : memref<?xi8>
  %O = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %O_all = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %L_all = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  %o = memref.view %arena[%at_o][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %arena[%at_l][] : memref<?xi8> to memref<1x2x2xf32>
  %n = memref.view %arena[%at_n][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %q_last = memref.subview %q[0, 1, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  %o_first = memref.subview %o[0, 0, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xf32> to memref<1x1x2x1xf32, strided<[4, 2, 1, 1]>>
  %o_last = memref.subview %o[0, 1, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xf32> to memref<1x1x2x1xf32, strided<[4, 2, 1, 1], offset: 2>>
  %l_first = memref.subview %l[0, 0, 0] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1]>>
  %l_last = memref.subview %l[0, 0, 1] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>
  %O_first = memref.subview %O_all[0, 0, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1]>>
  %O_last = memref.subview %O_all[0, 1, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>
  %L_first = memref.subview %L_all[0, 0, 0] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1]>>
  %L_last = memref.subview %L_all[0, 0, 1] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>
  commir.launch "attention_fwd" ins(%q_last, %k, %v : memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>, memref<1x2x2x1xbf16>, memref<1x2x2x1xbf16>) outs(%o_first, %l_first : memref<1x1x2x1xf32, strided<[4, 2, 1, 1]>>, memref<1x2x1xf32, strided<[4, 2, 1]>>) at(%c1, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>) mask(causal(-1))
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  commir.copy %o_last to %O_first : memref<1x1x2x1xf32, strided<[4, 2, 1, 1], offset: 2>> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1]>>
  commir.copy %o_last to %O_last : memref<1x1x2x1xf32, strided<[4, 2, 1, 1], offset: 2>> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>
  commir.copy %l_last to %L_first : memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>> to memref<1x2x1xf32, strided<[4, 2, 1]>>
  commir.copy %l_last to %L_last : memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>> to memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @sink.source on @one axes(b = 1, h = 2, sq = 2, sk = 2)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], bf16> at [], %K: !commir.buffer<[b, sk, h, 1], bf16> at [],
           %V: !commir.buffer<[b, sk, h, 1], bf16> at [], %SINK: !commir.buffer<[h], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 1], bf16> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 1], bf16>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 1], bf16>
    %sink = commir.load %SINK : !commir.buffer<[h], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal(-1))
        : (!commir.tile<[b, sq, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    %so, %sl = commir.kernel "softmax_sink"(%sink)
        : (!commir.tile<[h], f32>) -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) once(%so, %sl : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 1], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}

func.func @twice(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33328, commir.mesh = @one, commir.source = @sink.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at_o = arith.constant 33280 : index
  %at_l = arith.constant 33296 : index
  %at_n = arith.constant 33312 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %SINK = commir.memory argument 3 : memref<?xi8>
  %O = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %O_all = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %L_all = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  %o = memref.view %arena[%at_o][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %arena[%at_l][] : memref<?xi8> to memref<1x2x2xf32>
  %n = memref.view %arena[%at_n][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %q_last = memref.subview %q[0, 1, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  // expected-error@+1 {{merges what enters once into 'O' (h [0, 2)) a second time}}
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @sink.source on @one axes(b = 1, h = 2, sq = 2, sk = 2)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], bf16> at [], %K: !commir.buffer<[b, sk, h, 1], bf16> at [],
           %V: !commir.buffer<[b, sk, h, 1], bf16> at [], %SINK: !commir.buffer<[h], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 1], bf16> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 1], bf16>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 1], bf16>
    %sink = commir.load %SINK : !commir.buffer<[h], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal(-1))
        : (!commir.tile<[b, sq, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    %so, %sl = commir.kernel "softmax_sink"(%sink)
        : (!commir.tile<[h], f32>) -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) once(%so, %sl : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 1], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}

func.func @rounded_before_the_keys(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33328, commir.mesh = @one, commir.source = @sink.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at_o = arith.constant 33280 : index
  %at_l = arith.constant 33296 : index
  %at_n = arith.constant 33312 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %SINK = commir.memory argument 3 : memref<?xi8>
  %O = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %O_all = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %L_all = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  %o = memref.view %arena[%at_o][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %arena[%at_l][] : memref<?xi8> to memref<1x2x2xf32>
  %n = memref.view %arena[%at_n][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %q_last = memref.subview %q[0, 1, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  %n_first = memref.subview %n[0, 0, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1]>>
  %n_last = memref.subview %n[0, 1, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>
  %l_first = memref.subview %l[0, 0, 0] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1]>>
  %l_last = memref.subview %l[0, 0, 1] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  commir.copy %o to %n : memref<1x2x2x1xf32> to memref<1x2x2x1xbf16>
  // expected-error@+1 {{merges 'O' (b [0, 1), sq [1, 2), h [0, 2)), which was rounded before sk [0, 2) was merged}}
  commir.launch "attention_fwd" ins(%q_last, %k, %v : memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>, memref<1x2x2x1xbf16>, memref<1x2x2x1xbf16>) outs(%n_last, %l_last : memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>, memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>) at(%c1, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>) mask(causal(-1))
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @sink.source on @one axes(b = 1, h = 2, sq = 2, sk = 2)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], bf16> at [], %K: !commir.buffer<[b, sk, h, 1], bf16> at [],
           %V: !commir.buffer<[b, sk, h, 1], bf16> at [], %SINK: !commir.buffer<[h], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 1], bf16> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 1], bf16>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 1], bf16>
    %sink = commir.load %SINK : !commir.buffer<[h], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal(-1))
        : (!commir.tile<[b, sq, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>, !commir.tile<[b, sk, h, 1], bf16>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    %so, %sl = commir.kernel "softmax_sink"(%sink)
        : (!commir.tile<[h], f32>) -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk) once(%so, %sl : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        : !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 1], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}

// expected-error@+1 {{at the end, output 'O' (b [0, 1), sq [0, 2), h [0, 1)) holds 'O' (b [0, 1), sq [0, 2), h [1, 2))}}
func.func @of_another_head(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33328, commir.mesh = @one, commir.source = @sink.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at_o = arith.constant 33280 : index
  %at_l = arith.constant 33296 : index
  %at_n = arith.constant 33312 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %SINK = commir.memory argument 3 : memref<?xi8>
  %O = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %O_all = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %L_all = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  %o = memref.view %arena[%at_o][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %arena[%at_l][] : memref<?xi8> to memref<1x2x2xf32>
  %n = memref.view %arena[%at_n][] : memref<?xi8> to memref<1x2x2x1xbf16>
  %q_last = memref.subview %q[0, 1, 0, 0] [1, 1, 2, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x1x2x1xbf16, strided<[4, 2, 1, 1], offset: 2>>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  %l_first = memref.subview %l[0, 0, 0] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1]>>
  %l_last = memref.subview %l[0, 0, 1] [1, 2, 1] [1, 1, 1] : memref<1x2x2xf32> to memref<1x2x1xf32, strided<[4, 2, 1], offset: 1>>
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %a0 = memref.subview %o[0, 0, 0, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x2x1xf32> to memref<1x2x1x1xf32, strided<[4, 2, 1, 1]>>
  %b0 = memref.subview %O_all[0, 0, 1, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x2x1x1xbf16, strided<[4, 2, 1, 1], offset: 1>>
  commir.copy %a0 to %b0 : memref<1x2x1x1xf32, strided<[4, 2, 1, 1]>> to memref<1x2x1x1xbf16, strided<[4, 2, 1, 1], offset: 1>>
  %a1 = memref.subview %o[0, 0, 1, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x2x1xf32> to memref<1x2x1x1xf32, strided<[4, 2, 1, 1], offset: 1>>
  %b1 = memref.subview %O_all[0, 0, 0, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x2x1xbf16> to memref<1x2x1x1xbf16, strided<[4, 2, 1, 1]>>
  commir.copy %a1 to %b1 : memref<1x2x1x1xf32, strided<[4, 2, 1, 1], offset: 1>> to memref<1x2x1x1xbf16, strided<[4, 2, 1, 1]>>
  commir.copy %l to %L_all : memref<1x2x2xf32> to memref<1x2x2xf32>
  %s = commir.status
  return %s : i32
}
