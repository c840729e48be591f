// RUN: mercury-opt %s --commir-check-plan -o /dev/null

// Tiles of a masked kernel that the checker accepts.

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

func.func @whole(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
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
  commir.launch "attention_fwd" ins(%q, %k, %v : memref<1x4x2x2xf32>, memref<1x4x1x2xf32>, memref<1x4x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

// Keys in any order, each told where it begins.
func.func @by_keys(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
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
  commir.launch "attention_fwd" ins(%q, %k0, %v0 : memref<1x4x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o, %l : memref<1x4x2x2xf32>, memref<1x2x4xf32>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}

// No query of the first half sees a key of the second; all of the other half see all of
// the first.
func.func @without_what_is_masked(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 128, commir.mesh = @one, commir.source = @attention.source} {
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
  %q0 = memref.view %Q[%c0][] : memref<?xi8> to memref<1x2x2x2xf32>
  %q1 = memref.view %Q[%c32][] : memref<?xi8> to memref<1x2x2x2xf32>
  %o0 = memref.view %O[%c0][] : memref<?xi8> to memref<1x2x2x2xf32>
  %o1 = memref.view %O[%c32][] : memref<?xi8> to memref<1x2x2x2xf32>
  %l0 = memref.subview %l[0, 0, 0] [1, 2, 2] [1, 1, 1] : memref<1x2x4xf32> to memref<1x2x2xf32, strided<[8, 4, 1]>>
  %l1 = memref.subview %l[0, 0, 2] [1, 2, 2] [1, 1, 1] : memref<1x2x4xf32> to memref<1x2x2xf32, strided<[8, 4, 1], offset: 2>>
  commir.launch "attention_fwd" ins(%q0, %k0, %v0 : memref<1x2x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o0, %l0 : memref<1x2x2x2xf32>, memref<1x2x2xf32, strided<[8, 4, 1]>>) at(%c0, %c0, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  commir.launch "attention_fwd" ins(%q1, %k1, %v1 : memref<1x2x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o1, %l1 : memref<1x2x2x2xf32>, memref<1x2x2xf32, strided<[8, 4, 1], offset: 2>>) at(%c2, %c2, %c0, %c0) mask(causal) {group = 2 : i64, scale = 0.5 : f64}
  commir.launch "attention_fwd" ins(%q1, %k0, %v0 : memref<1x2x2x2xf32>, memref<1x2x1x2xf32>, memref<1x2x1x2xf32>) outs(%o1, %l1 : memref<1x2x2x2xf32>, memref<1x2x2xf32, strided<[8, 4, 1], offset: 2>>) at(%c0, %c0, %c0, %c0) mask(full) {group = 2 : i64, scale = 0.5 : f64}
  %s = commir.status
  return %s : i32
}
