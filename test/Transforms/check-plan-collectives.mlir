// RUN: mercury-opt %s --commir-check-plan --verify-diagnostics --split-input-file

// What a whole group does together, each plan right.

commir.mesh @mesh(gpu = 2)
commir.program @matmul.source on @mesh axes(i = 4, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu], %B: !commir.buffer<[k, j], f32> at [k -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32> at []) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
func.func @all_reduce_in_place(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32
    attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rank = commir.group_rank "gpu"
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<4x1xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<1x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %apart = memref.view %arena[%c0][] : memref<?xi8> to memref<4x2xf32>
  commir.fill %c with 0.0 : memref<4x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<4x1xf32>, memref<1x2xf32>) outs(%c : memref<4x2xf32>) at()
  %t = commir.all_reduce.start %c into %c merge(sum) on "gpu" : memref<4x2xf32>, memref<4x2xf32>
  commir.wait %t
  %status = commir.status
  return %status : i32
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @matmul.source on @mesh axes(i = 4, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu], %B: !commir.buffer<[k, j], f32> at [k -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32> at []) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
func.func @all_reduce_apart(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32
    attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rank = commir.group_rank "gpu"
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<4x1xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<1x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %apart = memref.view %arena[%c0][] : memref<?xi8> to memref<4x2xf32>
  commir.fill %c with 0.0 : memref<4x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<4x1xf32>, memref<1x2xf32>) outs(%c : memref<4x2xf32>) at()
  %t = commir.all_reduce.start %c into %apart merge(sum) on "gpu" : memref<4x2xf32>, memref<4x2xf32>
  commir.wait %t
  commir.copy %apart to %c : memref<4x2xf32> to memref<4x2xf32>
  %status = commir.status
  return %status : i32
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @matmul.source on @mesh axes(i = 3, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu], %B: !commir.buffer<[k, j], f32> at [k -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32> at [i -> gpu]) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
func.func @reduce_scatter_of_uneven_parts(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32
    attributes {commir.local_bytes = 128, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %first = arith.constant 16 : i64
  %second = arith.constant 8 : i64
  %rank = commir.group_rank "gpu"
  %rows = arith.subi %c2, %rank : index
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<3x1xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<1x2xf32>
  %c = memref.view %C[%c0][%rows] : memref<?xi8> to memref<?x2xf32>
  %slots = memref.view %arena[%c0][] : memref<?xi8> to memref<64xi8>
  %top = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %bottom = memref.view %arena[%c32][] : memref<?xi8> to memref<1x2xf32>
  %a_top = memref.subview %a[0, 0] [2, 1] [1, 1] : memref<3x1xf32> to memref<2x1xf32, strided<[1, 1]>>
  %a_bottom = memref.subview %a[2, 0] [1, 1] [1, 1] : memref<3x1xf32> to memref<1x1xf32, strided<[1, 1], offset: 2>>
  commir.fill %top with 0.0 : memref<2x2xf32>
  commir.fill %bottom with 0.0 : memref<1x2xf32>
  commir.launch "matmul" ins(%a_top, %b : memref<2x1xf32, strided<[1, 1]>>, memref<1x2xf32>) outs(%top : memref<2x2xf32>) at()
  commir.launch "matmul" ins(%a_bottom, %b : memref<1x1xf32, strided<[1, 1], offset: 2>>, memref<1x2xf32>) outs(%bottom : memref<1x2xf32>) at()
  %lengths = memref.alloca() : memref<2xi64>
  memref.store %first, %lengths[%c0] : memref<2xi64>
  memref.store %second, %lengths[%c1] : memref<2xi64>
  %t = commir.reduce_scatter.start %slots into %c bytes %lengths : memref<2xi64> merge(sum) on "gpu" along i : memref<64xi8>, memref<?x2xf32>
  commir.wait %t
  %status = commir.status
  return %status : i32
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @matmul.source on @mesh axes(i = 4, j = 4, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [i -> gpu], %B: !commir.buffer<[k, j], f32> at [j -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32> at [j -> gpu]) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
func.func @two_broadcasts(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32
    attributes {commir.local_bytes = 192, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %always = arith.constant true
  %rank = commir.group_rank "gpu"
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %top = memref.view %C[%c0][] : memref<?xi8> to memref<2x2xf32>
  %bottom = memref.view %C[%c16][] : memref<?xi8> to memref<2x2xf32>
  %one = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %two = memref.view %arena[%c64][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %c with 0.0 : memref<4x2xf32>
  %t = commir.broadcast.start %a into %one of %c0 on "gpu" when %always : memref<2x2xf32>, memref<2x2xf32>
  %u = commir.broadcast.start %a into %two of %c1 on "gpu" when %always : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %u
  commir.wait %t
  commir.launch "matmul" ins(%one, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%top : memref<2x2xf32>) at()
  commir.launch "matmul" ins(%two, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%bottom : memref<2x2xf32>) at()
  %status = commir.status
  return %status : i32
}

// -----

commir.mesh @mesh(gpu = 2)
commir.program @matmul.source on @mesh axes(i = 4, j = 4, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [i -> gpu], %B: !commir.buffer<[k, j], f32> at [j -> gpu])
    outputs(%C: !commir.buffer<[i, j], f32> at [j -> gpu]) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
func.func @broadcasts_in_place(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32
    attributes {commir.local_bytes = 192, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %always = arith.constant true
  %rank = commir.group_rank "gpu"
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %top = memref.view %C[%c0][] : memref<?xi8> to memref<2x2xf32>
  %bottom = memref.view %C[%c16][] : memref<?xi8> to memref<2x2xf32>
  %one = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %two = memref.view %arena[%c64][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %c with 0.0 : memref<4x2xf32>
  commir.copy %a to %one : memref<2x2xf32> to memref<2x2xf32>
  commir.copy %a to %two : memref<2x2xf32> to memref<2x2xf32>
  %t = commir.broadcast.start %one into %one of %c0 on "gpu" when %always : memref<2x2xf32>, memref<2x2xf32>
  %u = commir.broadcast.start %two into %two of %c1 on "gpu" when %always : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %u
  commir.wait %t
  commir.launch "matmul" ins(%one, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%top : memref<2x2xf32>) at()
  commir.launch "matmul" ins(%two, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%bottom : memref<2x2xf32>) at()
  %status = commir.status
  return %status : i32
}
