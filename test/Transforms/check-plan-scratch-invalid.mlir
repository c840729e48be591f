// RUN: mercury-opt %s --commir-check-plan --verify-diagnostics --split-input-file

// A launch may leave anything in its scratch.

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

func.func @too_small(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
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
  %small = memref.view %arena[%c0][] : memref<?xi8> to memref<8319xf32>
  // expected-error@+1 {{works in 8320 elements of scratch, but is given 8319}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%small : memref<8319xf32>)
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

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

func.func @outside_of_the_arena(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33276, commir.mesh = @one, commir.source = @sink.source} {
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
  // expected-error@+1 {{works on the local arena at bytes [0, 33280), outside of the 33276 bytes that are there}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>)
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

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

func.func @where_an_input_lies(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
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
  %keys = memref.view %arena[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  commir.copy %k to %keys : memref<1x2x2x1xf32> to memref<1x2x2x1xf32>
  // expected-error@+1 {{works in the local arena at bytes [0, 33280), which overlaps what it reads, the local arena at bytes [0, 16)}}
  commir.launch "attention_fwd" ins(%q, %keys, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>)
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

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

func.func @where_a_result_lies(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
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
  %o = memref.view %arena[%c0][] : memref<?xi8> to memref<1x2x2x1xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x2xf32>
  %sink = memref.view %SINK[%c0][] : memref<?xi8> to memref<2xf32>
  %scratch = memref.view %arena[%c0][] : memref<?xi8> to memref<8320xf32>
  commir.fill %o with 0.0 : memref<1x2x2x1xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x2xf32>
  // expected-error@+1 {{works in the local arena at bytes [0, 33280), which overlaps what it merges into, the local arena at bytes [0, 16)}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>)
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

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

func.func @where_an_input_of_the_program_lies(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
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
  %q_bytes = memref.view %Q[%c0][] : memref<?xi8> to memref<4xf32>
  // expected-error@+1 {{writes 'Q' at bytes [0, 16), which is an input of the program}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%q_bytes : memref<4xf32>)
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

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

func.func @of_what_is_read_later(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
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
  %sinks = memref.view %arena[%c0][] : memref<?xi8> to memref<2xf32>
  commir.copy %sink to %sinks : memref<2xf32> to memref<2xf32>
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>)
  // expected-error@+1 {{reads the local arena at bytes [0, 8), where 2 of 2 elements were never written in this shape}}
  commir.launch "softmax_sink" ins(%sinks : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

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

func.func @of_a_transfer(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 33280, commir.mesh = @one, commir.source = @sink.source} {
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
  %true = arith.constant true
  %sinks = memref.view %arena[%c0][] : memref<?xi8> to memref<2xf32>
  // expected-note@+1 {{the transfer starts here}}
  %t = commir.exchange.start %sink to %c0, %sinks from %c0 on "gpu" when %true : memref<2xf32>, memref<2xf32>
  // expected-error@+1 {{writes the local arena at bytes [0, 33280) before the transfer that writes it is waited for}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x2x2x1xf32>, memref<1x2x2x1xf32>, memref<1x2x2x1xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at(%c0, %c0, %c0, %c0) scratch(%scratch : memref<8320xf32>)
  commir.wait %t
  commir.launch "softmax_sink" ins(%sink : memref<2xf32>) outs(%o, %l : memref<1x2x2x1xf32>, memref<1x2x2xf32>) at()
  %s = commir.status
  return %s : i32
}
