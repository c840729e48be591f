// RUN: mercury-opt %s --commir-check-plan -verify-diagnostics

// What a launch says of a mask, heads and softmax pairs, and what is so.

// expected-note@+10 {{the program's mask is #commir.mask<causal>}}
commir.mesh @one(gpu = 1)
commir.program @attention.source on @one axes(b = 1, h = 2, sq = 4, sk = 4)
    inputs(%Q: !commir.buffer<[b, sq, h, 2], f32> at [], %K: !commir.buffer<[b, sk, h/2, 2], f32> at [],
           %V: !commir.buffer<[b, sk, h/2, 2], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 2], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 2], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/2, 2], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h/2, 2], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal) {scale = 0.5 : f64}
        : (!commir.tile<[b, sq, h, 2], f32>, !commir.tile<[b, sk, h/2, 2], f32>, !commir.tile<[b, sk, h/2, 2], f32>)
        -> (!commir.tile<[b, sq, h, 2], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 2], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 2], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

func.func @wrong_scale(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  // expected-error@+1 {{breaks the plan on rank 0: has scale 1.000000e+00 : f64, the program 5.000000e-01 : f64}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x4x2x2xf32>, memref<1x4x1x2xf32>, memref<1x4x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 2 : i64, scale = 1.0 : f64}
  %s = commir.status
  return %s : i32
}

func.func @wrong_positions(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  %k0 = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v0 = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %k1 = memref.view %K[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v1 = memref.view %V[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  // expected-error@+1 {{breaks the plan on rank 0: its tiles are 'sq' [0, 4) and 'sk' [2, 4), but it is told that they begin at 0 and 0, which is another part of the mask}}
  commir.launch "attention_fwd" ins(%q, %k1, %v1 : memref<1x4x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

func.func @unmasked(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  // expected-error@+1 {{breaks the plan on rank 0: its tiles are 'sq' [0, 4) and 'sk' [0, 4), but it is told that they begin at 0 and 0}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x4x2x2xf32>, memref<1x4x1x2xf32>, memref<1x4x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(full) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

func.func @wrong_group(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  // expected-error@+1 {{breaks the plan on rank 0: groups 1 of 'h', the program 2}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x4x2x2xf32>, memref<1x4x1x2xf32>, memref<1x4x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 1 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

func.func @wrong_heads(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  // expected-error@+1 {{breaks the plan on rank 0: 'h' 1 needs 'h/2' 0, but the launch is told that its tiles, [0, 2) and [0, 1), begin at 1 and 0}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x4x2x2xf32>, memref<1x4x1x2xf32>, memref<1x4x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c1, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

func.func @other_values(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  %k0 = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v0 = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %k1 = memref.view %K[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v1 = memref.view %V[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  // expected-error@+1 {{breaks the plan on rank 0: input 2, 'V', holds sk [0, 2) where earlier inputs hold [2, 4)}}
  commir.launch "attention_fwd" ins(%q, %k1, %v0 : memref<1x4x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c2, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

// expected-error@+1 {{breaks the plan on rank 0: at the end, output 'O' (b [0, 1), sq [0, 4), h [0, 2)) lacks sk [0, 2)}}
func.func @unmasked_part_left_out(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  %k0 = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v0 = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %k1 = memref.view %K[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v1 = memref.view %V[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  commir.launch "attention_fwd" ins(%q, %k1, %v1 : memref<1x4x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c2, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

func.func @unlike_pair(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  %k0 = memref.view %K[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v0 = memref.view %V[%c0][] : memref<?xi8> to memref<1x2x1x2xf32>
  %k1 = memref.view %K[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  %v1 = memref.view %V[%c16][] : memref<?xi8> to memref<1x2x1x2xf32>
  commir.launch "attention_fwd" ins(%q, %k0, %v0 : memref<1x4x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  // expected-error@+1 {{breaks the plan on rank 0: uses a softmax pair of which one, 'LSE' (b [0, 1), h [0, 2), sq [0, 4)), has merged other parts than the other, the value 0.000000e+00}}
  commir.launch "attention_fwd" ins(%q, %k1, %v1 : memref<1x4x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c2, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

func.func @wrong_pair_identity(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %k = memref.view %K[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %v = memref.view %V[%c0][] : memref<?xi8> to memref<1x4x1x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x4x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x4xf32>
  commir.fill %o with 0.0 : memref<1x4x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x4xf32>
  commir.fill %l with 0.0 : memref<1x2x4xf32>
  // expected-error@+1 {{breaks the plan on rank 0: merges 'LSE', which holds the value 0.000000e+00; the merge's identity is -inf}}
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x4x2x2xf32>, memref<1x4x1x2xf32>, memref<1x4x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}
