// RUN: mercury-opt %s --commir-check-plan --verify-diagnostics --split-input-file

// Two outputs that are made in the same way hold the same.

commir.mesh @one(gpu = 1)
commir.program @same.source on @one axes(i = 2, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [], %B: !commir.buffer<[k, j], f32> at [], %E: !commir.buffer<[k, j], f32> at [])
    outputs(%C: !commir.buffer<[i, j], f32> at [], %D: !commir.buffer<[i, j], f32> at [], %F: !commir.buffer<[i, j], f32> at [])
    attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
  commir.for i_ in i, j_ in j, k_ in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %D merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
  commir.for i__ in i, j__ in j, k__ in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %E : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %F merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

func.func @each_for_itself(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @same.source} {
  %c0 = arith.constant 0 : index
  %arena = commir.memory local : memref<?xi8>
  %sum = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %A = commir.memory argument 0 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %B = commir.memory argument 1 : memref<?xi8>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %E = commir.memory argument 2 : memref<?xi8>
  %e = memref.view %E[%c0][] : memref<?xi8> to memref<2x2xf32>
  %C = commir.memory argument 3 : memref<?xi8>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<2x2xf32>
  %D = commir.memory argument 4 : memref<?xi8>
  %d = memref.view %D[%c0][] : memref<?xi8> to memref<2x2xf32>
  %F = commir.memory argument 5 : memref<?xi8>
  %f = memref.view %F[%c0][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %sum with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%sum : memref<2x2xf32>) at()
  commir.copy %sum to %c : memref<2x2xf32> to memref<2x2xf32>
  commir.fill %d with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%d : memref<2x2xf32>) at()
  commir.fill %f with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %e : memref<2x2xf32>, memref<2x2xf32>) outs(%f : memref<2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @same.source on @one axes(i = 2, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [], %B: !commir.buffer<[k, j], f32> at [], %E: !commir.buffer<[k, j], f32> at [])
    outputs(%C: !commir.buffer<[i, j], f32> at [], %D: !commir.buffer<[i, j], f32> at [], %F: !commir.buffer<[i, j], f32> at [])
    attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
  commir.for i_ in i, j_ in j, k_ in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %D merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
  commir.for i__ in i, j__ in j, k__ in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %E : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %F merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

func.func @one_for_both(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @same.source} {
  %c0 = arith.constant 0 : index
  %arena = commir.memory local : memref<?xi8>
  %sum = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %A = commir.memory argument 0 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %B = commir.memory argument 1 : memref<?xi8>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %E = commir.memory argument 2 : memref<?xi8>
  %e = memref.view %E[%c0][] : memref<?xi8> to memref<2x2xf32>
  %C = commir.memory argument 3 : memref<?xi8>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<2x2xf32>
  %D = commir.memory argument 4 : memref<?xi8>
  %d = memref.view %D[%c0][] : memref<?xi8> to memref<2x2xf32>
  %F = commir.memory argument 5 : memref<?xi8>
  %f = memref.view %F[%c0][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %sum with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%sum : memref<2x2xf32>) at()
  commir.copy %sum to %c : memref<2x2xf32> to memref<2x2xf32>
  commir.copy %sum to %d : memref<2x2xf32> to memref<2x2xf32>
  commir.fill %sum with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %e : memref<2x2xf32>, memref<2x2xf32>) outs(%sum : memref<2x2xf32>) at()
  commir.copy %sum to %f : memref<2x2xf32> to memref<2x2xf32>
  %s = commir.status
  return %s : i32
}

// -----

commir.mesh @one(gpu = 1)
commir.program @same.source on @one axes(i = 2, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [], %B: !commir.buffer<[k, j], f32> at [], %E: !commir.buffer<[k, j], f32> at [])
    outputs(%C: !commir.buffer<[i, j], f32> at [], %D: !commir.buffer<[i, j], f32> at [], %F: !commir.buffer<[i, j], f32> at [])
    attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
  commir.for i_ in i, j_ in j, k_ in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %D merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
  commir.for i__ in i, j__ in j, k__ in k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %E : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %F merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// expected-error@+1 {{at the end, output 'F' (i [0, 2), j [0, 2)) holds 'C' (i [0, 2), j [0, 2))}}
func.func @another_output(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @one, commir.source = @same.source} {
  %c0 = arith.constant 0 : index
  %arena = commir.memory local : memref<?xi8>
  %sum = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %A = commir.memory argument 0 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %B = commir.memory argument 1 : memref<?xi8>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %E = commir.memory argument 2 : memref<?xi8>
  %e = memref.view %E[%c0][] : memref<?xi8> to memref<2x2xf32>
  %C = commir.memory argument 3 : memref<?xi8>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<2x2xf32>
  %D = commir.memory argument 4 : memref<?xi8>
  %d = memref.view %D[%c0][] : memref<?xi8> to memref<2x2xf32>
  %F = commir.memory argument 5 : memref<?xi8>
  %f = memref.view %F[%c0][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %sum with 0.0 : memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%sum : memref<2x2xf32>) at()
  commir.copy %sum to %c : memref<2x2xf32> to memref<2x2xf32>
  commir.copy %sum to %d : memref<2x2xf32> to memref<2x2xf32>
  commir.copy %sum to %f : memref<2x2xf32> to memref<2x2xf32>
  %s = commir.status
  return %s : i32
}
