// RUN: mercury-opt %s --commir-check-plan --verify-diagnostics --split-input-file

// Heads 2r and 2r + 1 add to row r of dK and dV, from one launch or from two.

commir.mesh @one(gpu = 1)
commir.program @grouped.source on @one axes(b = 1, h = 4, sq = 1, sk = 1)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h/2, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h/2, 1], f32> at [], %O: !commir.buffer<[b, sq, h, 1], f32> at [],
           %dO: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at [])
    outputs(%dQ: !commir.buffer<[b, sq, h, 1], f32> at [], %dK: !commir.buffer<[b, sk, h/2, 1], f32> at [],
            %dV: !commir.buffer<[b, sk, h/2, 1], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/2, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h/2, 1], f32>
    %o = commir.load %O : !commir.buffer<[b, sq, h, 1], f32>
    %do = commir.load %dO : !commir.buffer<[b, sq, h, 1], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %v, %o, %do, %l)
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>,
           !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>)
    commir.store %dq to %dQ merge(sum) over(sk) : !commir.tile<[b, sq, h, 1], f32> to !commir.buffer<[b, sq, h, 1], f32>
    commir.store %dk to %dK merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
    commir.store %dv to %dV merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
  }
}

func.func @a_group_in_two_parts(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @grouped.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %dO = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %dQ = commir.memory argument 6 : memref<?xi8>
  %dK = commir.memory argument 7 : memref<?xi8>
  %dV = commir.memory argument 8 : memref<?xi8>
  %dQ_all = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  commir.fill %dQ_all with 0.0 : memref<1x1x4x1xf32>
  %dK_all = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dK_all with 0.0 : memref<1x1x2x1xf32>
  %dV_all = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dV_all with 0.0 : memref<1x1x2x1xf32>
  %Q_0_3 = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %K_0_3 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %V_0_3 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %O_0_3 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dO_0_3 = memref.view %dO[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %LSE_0_3 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x3x1xf32>
  %dQ_0_3 = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dK_0_3 = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dV_0_3 = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.launch "attention_bwd" ins(%Q_0_3, %K_0_3, %V_0_3, %O_0_3, %dO_0_3, %LSE_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x1x3x1xf32>, memref<1x1x3x1xf32>, memref<1x3x1xf32>) outs(%dQ_0_3, %dK_0_3, %dV_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>) at(%c0, %c0, %c0, %c0) {group = 2 : i64}
  %Q_3_4 = memref.view %Q[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %K_3_4 = memref.view %K[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %V_3_4 = memref.view %V[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %O_3_4 = memref.view %O[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dO_3_4 = memref.view %dO[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %LSE_3_4 = memref.view %LSE[%c12][] : memref<?xi8> to memref<1x1x1xf32>
  %dQ_3_4 = memref.view %dQ[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dK_3_4 = memref.view %dK[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dV_3_4 = memref.view %dV[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  commir.launch "attention_bwd" ins(%Q_3_4, %K_3_4, %V_3_4, %O_3_4, %dO_3_4, %LSE_3_4 : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1xf32>) outs(%dQ_3_4, %dK_3_4, %dV_3_4 : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>) at(%c0, %c0, %c3, %c1) {group = 2 : i64}
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @grouped.source on @one axes(b = 1, h = 4, sq = 1, sk = 1)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h/2, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h/2, 1], f32> at [], %O: !commir.buffer<[b, sq, h, 1], f32> at [],
           %dO: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at [])
    outputs(%dQ: !commir.buffer<[b, sq, h, 1], f32> at [], %dK: !commir.buffer<[b, sk, h/2, 1], f32> at [],
            %dV: !commir.buffer<[b, sk, h/2, 1], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/2, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h/2, 1], f32>
    %o = commir.load %O : !commir.buffer<[b, sq, h, 1], f32>
    %do = commir.load %dO : !commir.buffer<[b, sq, h, 1], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %v, %o, %do, %l)
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>,
           !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>)
    commir.store %dq to %dQ merge(sum) over(sk) : !commir.tile<[b, sq, h, 1], f32> to !commir.buffer<[b, sq, h, 1], f32>
    commir.store %dk to %dK merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
    commir.store %dv to %dV merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
  }
}

func.func @all_at_once(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @grouped.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %dO = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %dQ = commir.memory argument 6 : memref<?xi8>
  %dK = commir.memory argument 7 : memref<?xi8>
  %dV = commir.memory argument 8 : memref<?xi8>
  %dQ_all = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  commir.fill %dQ_all with 0.0 : memref<1x1x4x1xf32>
  %dK_all = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dK_all with 0.0 : memref<1x1x2x1xf32>
  %dV_all = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dV_all with 0.0 : memref<1x1x2x1xf32>
  %Q_0_4 = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  %K_0_4 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %V_0_4 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %O_0_4 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  %dO_0_4 = memref.view %dO[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  %LSE_0_4 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x4x1xf32>
  %dQ_0_4 = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  %dK_0_4 = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dV_0_4 = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.launch "attention_bwd" ins(%Q_0_4, %K_0_4, %V_0_4, %O_0_4, %dO_0_4, %LSE_0_4 : memref<1x1x4x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x1x4x1xf32>, memref<1x1x4x1xf32>, memref<1x4x1xf32>) outs(%dQ_0_4, %dK_0_4, %dV_0_4 : memref<1x1x4x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>) at(%c0, %c0, %c0, %c0) {group = 2 : i64}
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @grouped.source on @one axes(b = 1, h = 4, sq = 1, sk = 1)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h/2, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h/2, 1], f32> at [], %O: !commir.buffer<[b, sq, h, 1], f32> at [],
           %dO: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at [])
    outputs(%dQ: !commir.buffer<[b, sq, h, 1], f32> at [], %dK: !commir.buffer<[b, sk, h/2, 1], f32> at [],
            %dV: !commir.buffer<[b, sk, h/2, 1], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/2, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h/2, 1], f32>
    %o = commir.load %O : !commir.buffer<[b, sq, h, 1], f32>
    %do = commir.load %dO : !commir.buffer<[b, sq, h, 1], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %v, %o, %do, %l)
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>,
           !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>)
    commir.store %dq to %dQ merge(sum) over(sk) : !commir.tile<[b, sq, h, 1], f32> to !commir.buffer<[b, sq, h, 1], f32>
    commir.store %dk to %dK merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
    commir.store %dv to %dV merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
  }
}

// expected-error@+1 {{at the end, output 'dQ' (b [0, 1), sq [0, 1), h [3, 4)) lacks sk [0, 1)}}
func.func @a_head_is_missing(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @grouped.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %dO = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %dQ = commir.memory argument 6 : memref<?xi8>
  %dK = commir.memory argument 7 : memref<?xi8>
  %dV = commir.memory argument 8 : memref<?xi8>
  %dQ_all = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  commir.fill %dQ_all with 0.0 : memref<1x1x4x1xf32>
  %dK_all = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dK_all with 0.0 : memref<1x1x2x1xf32>
  %dV_all = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dV_all with 0.0 : memref<1x1x2x1xf32>
  %Q_0_3 = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %K_0_3 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %V_0_3 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %O_0_3 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dO_0_3 = memref.view %dO[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %LSE_0_3 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x3x1xf32>
  %dQ_0_3 = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dK_0_3 = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dV_0_3 = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.launch "attention_bwd" ins(%Q_0_3, %K_0_3, %V_0_3, %O_0_3, %dO_0_3, %LSE_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x1x3x1xf32>, memref<1x1x3x1xf32>, memref<1x3x1xf32>) outs(%dQ_0_3, %dK_0_3, %dV_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>) at(%c0, %c0, %c0, %c0) {group = 2 : i64}
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @grouped.source on @one axes(b = 1, h = 4, sq = 1, sk = 1)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h/2, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h/2, 1], f32> at [], %O: !commir.buffer<[b, sq, h, 1], f32> at [],
           %dO: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at [])
    outputs(%dQ: !commir.buffer<[b, sq, h, 1], f32> at [], %dK: !commir.buffer<[b, sk, h/2, 1], f32> at [],
            %dV: !commir.buffer<[b, sk, h/2, 1], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/2, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h/2, 1], f32>
    %o = commir.load %O : !commir.buffer<[b, sq, h, 1], f32>
    %do = commir.load %dO : !commir.buffer<[b, sq, h, 1], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %v, %o, %do, %l)
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>,
           !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>)
    commir.store %dq to %dQ merge(sum) over(sk) : !commir.tile<[b, sq, h, 1], f32> to !commir.buffer<[b, sq, h, 1], f32>
    commir.store %dk to %dK merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
    commir.store %dv to %dV merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
  }
}

func.func @a_head_twice(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @grouped.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %dO = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %dQ = commir.memory argument 6 : memref<?xi8>
  %dK = commir.memory argument 7 : memref<?xi8>
  %dV = commir.memory argument 8 : memref<?xi8>
  %dQ_all = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  commir.fill %dQ_all with 0.0 : memref<1x1x4x1xf32>
  %dK_all = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dK_all with 0.0 : memref<1x1x2x1xf32>
  %dV_all = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dV_all with 0.0 : memref<1x1x2x1xf32>
  %Q_0_3 = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %K_0_3 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %V_0_3 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %O_0_3 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dO_0_3 = memref.view %dO[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %LSE_0_3 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x3x1xf32>
  %dQ_0_3 = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dK_0_3 = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dV_0_3 = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.launch "attention_bwd" ins(%Q_0_3, %K_0_3, %V_0_3, %O_0_3, %dO_0_3, %LSE_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x1x3x1xf32>, memref<1x1x3x1xf32>, memref<1x3x1xf32>) outs(%dQ_0_3, %dK_0_3, %dV_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>) at(%c0, %c0, %c0, %c0) {group = 2 : i64}
  %Q_2_4 = memref.view %Q[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %K_2_4 = memref.view %K[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %V_2_4 = memref.view %V[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %O_2_4 = memref.view %O[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dO_2_4 = memref.view %dO[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %LSE_2_4 = memref.view %LSE[%c8][] : memref<?xi8> to memref<1x2x1xf32>
  %dQ_2_4 = memref.view %dQ[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dK_2_4 = memref.view %dK[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dV_2_4 = memref.view %dV[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  // expected-error@+1 {{adds sk [0, 1) to 'dQ' (b [0, 1), sq [0, 1), h [2, 3)) a second time}}
  commir.launch "attention_bwd" ins(%Q_2_4, %K_2_4, %V_2_4, %O_2_4, %dO_2_4, %LSE_2_4 : memref<1x1x2x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x2x1xf32>) outs(%dQ_2_4, %dK_2_4, %dV_2_4 : memref<1x1x2x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>) at(%c0, %c0, %c2, %c1) {group = 2 : i64}
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @grouped.source on @one axes(b = 1, h = 4, sq = 1, sk = 1)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h/2, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h/2, 1], f32> at [], %O: !commir.buffer<[b, sq, h, 1], f32> at [],
           %dO: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at [])
    outputs(%dQ: !commir.buffer<[b, sq, h, 1], f32> at [], %dK: !commir.buffer<[b, sk, h/2, 1], f32> at [],
            %dV: !commir.buffer<[b, sk, h/2, 1], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/2, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h/2, 1], f32>
    %o = commir.load %O : !commir.buffer<[b, sq, h, 1], f32>
    %do = commir.load %dO : !commir.buffer<[b, sq, h, 1], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %v, %o, %do, %l)
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>,
           !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>)
    commir.store %dq to %dQ merge(sum) over(sk) : !commir.tile<[b, sq, h, 1], f32> to !commir.buffer<[b, sq, h, 1], f32>
    commir.store %dk to %dK merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
    commir.store %dv to %dV merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
  }
}

// expected-error@+1 {{at the end, output 'dK' (b [0, 1), sk [0, 1), h/2 [1, 2)) lacks sq [0, 1), h [2, 3)}}
func.func @a_head_of_a_row_is_missing(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @grouped.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %dO = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %dQ = commir.memory argument 6 : memref<?xi8>
  %dK = commir.memory argument 7 : memref<?xi8>
  %dV = commir.memory argument 8 : memref<?xi8>
  %dQ_all = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  commir.fill %dQ_all with 0.0 : memref<1x1x4x1xf32>
  %dK_all = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dK_all with 0.0 : memref<1x1x2x1xf32>
  %dV_all = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dV_all with 0.0 : memref<1x1x2x1xf32>
  %Q_0_2 = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %K_0_2 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x1x1xf32>
  %V_0_2 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x1x1xf32>
  %O_0_2 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dO_0_2 = memref.view %dO[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %LSE_0_2 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x2x1xf32>
  %dQ_0_2 = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dK_0_2 = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dV_0_2 = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x1x1xf32>
  commir.launch "attention_bwd" ins(%Q_0_2, %K_0_2, %V_0_2, %O_0_2, %dO_0_2, %LSE_0_2 : memref<1x1x2x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x2x1xf32>) outs(%dQ_0_2, %dK_0_2, %dV_0_2 : memref<1x1x2x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>) at(%c0, %c0, %c0, %c0) {group = 2 : i64}
  %waste = memref.view %dK[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %Q_2_3 = memref.view %Q[%c8][] : memref<?xi8> to memref<1x1x1x1xf32>
  %K_2_3 = memref.view %K[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %V_2_3 = memref.view %V[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %O_2_3 = memref.view %O[%c8][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dO_2_3 = memref.view %dO[%c8][] : memref<?xi8> to memref<1x1x1x1xf32>
  %LSE_2_3 = memref.view %LSE[%c8][] : memref<?xi8> to memref<1x1x1xf32>
  %dQ_2_3 = memref.view %dQ[%c8][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dK_2_3 = memref.view %dK[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dV_2_3 = memref.view %dV[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  commir.launch "attention_bwd" ins(%Q_2_3, %K_2_3, %V_2_3, %O_2_3, %dO_2_3, %LSE_2_3 : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1xf32>) outs(%dQ_2_3, %dK_2_3, %dV_2_3 : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>) at(%c0, %c0, %c2, %c1) {group = 2 : i64}
  commir.fill %waste with 0.0 : memref<1x1x1x1xf32>
  %Q_3_4 = memref.view %Q[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %K_3_4 = memref.view %K[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %V_3_4 = memref.view %V[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %O_3_4 = memref.view %O[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dO_3_4 = memref.view %dO[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %LSE_3_4 = memref.view %LSE[%c12][] : memref<?xi8> to memref<1x1x1xf32>
  %dQ_3_4 = memref.view %dQ[%c12][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dK_3_4 = memref.view %dK[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dV_3_4 = memref.view %dV[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  commir.launch "attention_bwd" ins(%Q_3_4, %K_3_4, %V_3_4, %O_3_4, %dO_3_4, %LSE_3_4 : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1xf32>) outs(%dQ_3_4, %dK_3_4, %dV_3_4 : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>) at(%c0, %c0, %c3, %c1) {group = 2 : i64}
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @grouped.source on @one axes(b = 1, h = 4, sq = 1, sk = 1)
    inputs(%Q: !commir.buffer<[b, sq, h, 1], f32> at [], %K: !commir.buffer<[b, sk, h/2, 1], f32> at [],
           %V: !commir.buffer<[b, sk, h/2, 1], f32> at [], %O: !commir.buffer<[b, sq, h, 1], f32> at [],
           %dO: !commir.buffer<[b, sq, h, 1], f32> at [], %LSE: !commir.buffer<[b, h, sq], f32> at [])
    outputs(%dQ: !commir.buffer<[b, sq, h, 1], f32> at [], %dK: !commir.buffer<[b, sk, h/2, 1], f32> at [],
            %dV: !commir.buffer<[b, sk, h/2, 1], f32> at []) attributes {commir.is_source} {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 1], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h/2, 1], f32>
    %v = commir.load %V : !commir.buffer<[b, sk, h/2, 1], f32>
    %o = commir.load %O : !commir.buffer<[b, sq, h, 1], f32>
    %do = commir.load %dO : !commir.buffer<[b, sq, h, 1], f32>
    %l = commir.load %LSE : !commir.buffer<[b, h, sq], f32>
    %dq, %dk, %dv = commir.kernel "attention_bwd"(%q, %k, %v, %o, %do, %l)
        : (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>,
           !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, h, sq], f32>)
        -> (!commir.tile<[b, sq, h, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>, !commir.tile<[b, sk, h/2, 1], f32>)
    commir.store %dq to %dQ merge(sum) over(sk) : !commir.tile<[b, sq, h, 1], f32> to !commir.buffer<[b, sq, h, 1], f32>
    commir.store %dk to %dK merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
    commir.store %dv to %dV merge(sum) over(sq, h) : !commir.tile<[b, sk, h/2, 1], f32> to !commir.buffer<[b, sk, h/2, 1], f32>
  }
}

func.func @a_head_of_a_row_twice(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @grouped.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %Q = commir.memory argument 0 : memref<?xi8>
  %K = commir.memory argument 1 : memref<?xi8>
  %V = commir.memory argument 2 : memref<?xi8>
  %O = commir.memory argument 3 : memref<?xi8>
  %dO = commir.memory argument 4 : memref<?xi8>
  %LSE = commir.memory argument 5 : memref<?xi8>
  %dQ = commir.memory argument 6 : memref<?xi8>
  %dK = commir.memory argument 7 : memref<?xi8>
  %dV = commir.memory argument 8 : memref<?xi8>
  %dQ_all = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x4x1xf32>
  commir.fill %dQ_all with 0.0 : memref<1x1x4x1xf32>
  %dK_all = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dK_all with 0.0 : memref<1x1x2x1xf32>
  %dV_all = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %dV_all with 0.0 : memref<1x1x2x1xf32>
  %Q_0_3 = memref.view %Q[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %K_0_3 = memref.view %K[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %V_0_3 = memref.view %V[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %O_0_3 = memref.view %O[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dO_0_3 = memref.view %dO[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %LSE_0_3 = memref.view %LSE[%c0][] : memref<?xi8> to memref<1x3x1xf32>
  %dQ_0_3 = memref.view %dQ[%c0][] : memref<?xi8> to memref<1x1x3x1xf32>
  %dK_0_3 = memref.view %dK[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dV_0_3 = memref.view %dV[%c0][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.launch "attention_bwd" ins(%Q_0_3, %K_0_3, %V_0_3, %O_0_3, %dO_0_3, %LSE_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x1x3x1xf32>, memref<1x1x3x1xf32>, memref<1x3x1xf32>) outs(%dQ_0_3, %dK_0_3, %dV_0_3 : memref<1x1x3x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>) at(%c0, %c0, %c0, %c0) {group = 2 : i64}
  %other = memref.view %dQ[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  commir.fill %other with 0.0 : memref<1x1x2x1xf32>
  %Q_2_4 = memref.view %Q[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %K_2_4 = memref.view %K[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %V_2_4 = memref.view %V[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %O_2_4 = memref.view %O[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dO_2_4 = memref.view %dO[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %LSE_2_4 = memref.view %LSE[%c8][] : memref<?xi8> to memref<1x2x1xf32>
  %dQ_2_4 = memref.view %dQ[%c8][] : memref<?xi8> to memref<1x1x2x1xf32>
  %dK_2_4 = memref.view %dK[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  %dV_2_4 = memref.view %dV[%c4][] : memref<?xi8> to memref<1x1x1x1xf32>
  // expected-error@+1 {{adds sq [0, 1), h [2, 3) to 'dK' (b [0, 1), sk [0, 1), h/2 [1, 2)) a second time}}
  commir.launch "attention_bwd" ins(%Q_2_4, %K_2_4, %V_2_4, %O_2_4, %dO_2_4, %LSE_2_4 : memref<1x1x2x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x2x1xf32>, memref<1x1x2x1xf32>, memref<1x2x1xf32>) outs(%dQ_2_4, %dK_2_4, %dV_2_4 : memref<1x1x2x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>) at(%c0, %c0, %c2, %c1) {group = 2 : i64}
  %s = commir.status
  return %s : i32
}
