// RUN: mercury-opt %s --commir-check-plan -o %t
// RUN: mercury-opt %s | diff - %t

// Softmax pairs that merge by rows; check-plan-pairs-invalid.mlir has what goes wrong.

commir.mesh @one(gpu = 1)
commir.program @attention.source on @one axes(b = 1, h = 2, sq = 1, sk = 2)
    inputs(%Q: !commir.buffer<[b, sq, h, 2], f32> at [], %K: !commir.buffer<[b, sk, h, 2], f32> at [],
           %V: !commir.buffer<[b, sk, h, 2], f32> at [])
    outputs(%O: !commir.buffer<[b, sq, h, 2], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 2], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 2], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h, 2], f32>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) {scale = 0.5 : f64}
        : (!commir.tile<[b, sq, h, 2], f32>, !commir.tile<[b, sk, h, 2], f32>, !commir.tile<[b, sk, h, 2], f32>)
        -> (!commir.tile<[b, sq, h, 2], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 2], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 2], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

func.func @head_by_head(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 24, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c20 = arith.constant 20 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %k0 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %v0 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %k1 = memref.view %K[%c16][] : memref<?xi8> to memref<1x1x2x2xf32>
  %v1 = memref.view %V[%c16][] : memref<?xi8> to memref<1x1x2x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x1xf32>
  %o2 = memref.view %arena[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %l2 = memref.view %arena[%c16][] : memref<?xi8> to memref<1x2x1xf32>
  commir.fill %o with 0.0 : memref<1x1x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x1xf32>
  commir.fill %o2 with 0.0 : memref<1x1x2x2xf32>
  commir.fill %l2 with 0xFFF0000000000000 : memref<1x2x1xf32>
  commir.launch "attention_fwd" ins(%q, %k0, %v0 : memref<1x1x2x2xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32>) outs(%o, %l : memref<1x1x2x2xf32>, memref<1x2x1xf32>) at(%c0, %c0, %c0, %c0) {scale = 0.5 : f64}
  commir.launch "attention_fwd" ins(%q, %k1, %v1 : memref<1x1x2x2xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32>) outs(%o2, %l2 : memref<1x1x2x2xf32>, memref<1x2x1xf32>) at(%c0, %c0, %c0, %c0) {scale = 0.5 : f64}
  %o_0 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l_0 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x1x1xf32>
  %o2_0 = memref.view %arena[%c0][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l2_0 = memref.view %arena[%c16][] : memref<?xi8> to memref<1x1x1xf32>
  %o_1 = memref.view %O[%c8][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l_1 = memref.view %LSE[%c4][] : memref<?xi8> to memref<1x1x1xf32>
  %o2_1 = memref.view %arena[%c8][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l2_1 = memref.view %arena[%c20][] : memref<?xi8> to memref<1x1x1xf32>
  commir.launch "softmax_merge" ins(%o2_0, %l2_0 : memref<1x1x1x2xf32>, memref<1x1x1xf32>) outs(%o_0, %l_0 : memref<1x1x1x2xf32>, memref<1x1x1xf32>) at()
  commir.launch "softmax_merge" ins(%o2_1, %l2_1 : memref<1x1x1x2xf32>, memref<1x1x1xf32>) outs(%o_1, %l_1 : memref<1x1x1x2xf32>, memref<1x1x1xf32>) at()
  %s = commir.status
  return %s : i32
}

func.func @stacks_head_by_head(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 24, commir.mesh = @one, commir.source = @attention.source} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c20 = arith.constant 20 : index
  %arena = commir.memory local : memref<?xi8>
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %LSE = commir.memory argument 4 : memref<?xi8>
  %q = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %k0 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %v0 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %k1 = memref.view %K[%c16][] : memref<?xi8> to memref<1x1x2x2xf32>
  %v1 = memref.view %V[%c16][] : memref<?xi8> to memref<1x1x2x2xf32>
  %o = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %l = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x1xf32>
  %o2 = memref.view %arena[%c0][] : memref<?xi8> to memref<1x1x2x2xf32>
  %l2 = memref.view %arena[%c16][] : memref<?xi8> to memref<1x2x1xf32>
  commir.fill %o with 0.0 : memref<1x1x2x2xf32>
  commir.fill %l with 0xFFF0000000000000 : memref<1x2x1xf32>
  commir.fill %o2 with 0.0 : memref<1x1x2x2xf32>
  commir.fill %l2 with 0xFFF0000000000000 : memref<1x2x1xf32>
  commir.launch "attention_fwd" ins(%q, %k0, %v0 : memref<1x1x2x2xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32>) outs(%o, %l : memref<1x1x2x2xf32>, memref<1x2x1xf32>) at(%c0, %c0, %c0, %c0) {scale = 0.5 : f64}
  commir.launch "attention_fwd" ins(%q, %k1, %v1 : memref<1x1x2x2xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32>) outs(%o2, %l2 : memref<1x1x2x2xf32>, memref<1x2x1xf32>) at(%c0, %c0, %c0, %c0) {scale = 0.5 : f64}
  %o_0 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l_0 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x1x1xf32>
  %o2_0 = memref.view %arena[%c0][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l2_0 = memref.view %arena[%c16][] : memref<?xi8> to memref<1x1x1xf32>
  %o_1 = memref.view %O[%c8][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l_1 = memref.view %LSE[%c4][] : memref<?xi8> to memref<1x1x1xf32>
  %o2_1 = memref.view %arena[%c8][] : memref<?xi8> to memref<1x1x1x2xf32>
  %l2_1 = memref.view %arena[%c20][] : memref<?xi8> to memref<1x1x1xf32>
  %os_0 = memref.view %arena[%c0][] : memref<?xi8> to memref<1x1x1x1x2xf32>
  %ls_0 = memref.view %arena[%c16][] : memref<?xi8> to memref<1x1x1x1xf32>
  %os_1 = memref.view %arena[%c8][] : memref<?xi8> to memref<1x1x1x1x2xf32>
  %ls_1 = memref.view %arena[%c20][] : memref<?xi8> to memref<1x1x1x1xf32>
  commir.launch "softmax_merge_all" ins(%os_0, %ls_0 : memref<1x1x1x1x2xf32>, memref<1x1x1x1xf32>) outs(%o_0, %l_0 : memref<1x1x1x2xf32>, memref<1x1x1xf32>) at()
  commir.launch "softmax_merge_all" ins(%os_1, %ls_1 : memref<1x1x1x1x2xf32>, memref<1x1x1x1xf32>) outs(%o_1, %l_1 : memref<1x1x1x2xf32>, memref<1x1x1xf32>) at()
  %s = commir.status
  return %s : i32
}
