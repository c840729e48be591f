// RUN: mercury-opt %s --commir-check-plan -o %t
// RUN: mercury-opt %s | diff - %t

// What the checker accepts; check-plan-invalid.mlir has what it does not. Two ranks:
// rows of A go round, columns of B and C stay.

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

// The other part arrives while the own one is worked on.
func.func @overlapped(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %c with 0.0 : memref<4x2xf32>
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at()
  commir.wait %t
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// Contributions may come in any order, and in parts.
func.func @in_parts(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %c with 0.0 : memref<4x2xf32>
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  %half = memref.subview %slot[0, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<1x2xf32, strided<[2, 1]>>
  %rest = memref.subview %slot[1, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<1x2xf32, strided<[2, 1], offset: 2>>
  %c_half = memref.subview %c_theirs[0, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<1x2xf32, strided<[2, 1]>>
  %c_rest = memref.subview %c_theirs[1, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<1x2xf32, strided<[2, 1], offset: 2>>
  commir.launch "matmul" ins(%rest, %b : memref<1x2xf32, strided<[2, 1], offset: 2>>, memref<2x2xf32>) outs(%c_rest : memref<1x2xf32, strided<[2, 1], offset: 2>>) at()
  commir.launch "matmul" ins(%half, %b : memref<1x2xf32, strided<[2, 1]>>, memref<2x2xf32>) outs(%c_half : memref<1x2xf32, strided<[2, 1]>>) at()
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// Or it is read where it lies.
func.func @pulled(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  commir.fill %c with 0.0 : memref<4x2xf32>
  %lease = commir.lease.open %A on "gpu" : memref<?xi8>
  %bytes = commir.lease.memory %lease of %peer : memref<?xi8>
  %remote = memref.view %bytes[%c0][] : memref<?xi8> to memref<2x2xf32>
  %t = commir.pull.start %remote into %slot of %lease from %peer when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at()
  commir.wait %t
  commir.lease.close %lease
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at()
  %s = commir.status
  return %s : i32
}

// A group of several levels is row-major: the rows of A come in order.
commir.mesh @grid(node = 2, gpu = 2)
commir.program @gathered.source on @grid axes(i = 4, j = 2, k = 2)
    inputs(%A: !commir.buffer<[i, k], f32> at [i -> (node, gpu)], %B: !commir.buffer<[k, j], f32> at [])
    outputs(%C: !commir.buffer<[i, j], f32> at []) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
func.func @gathered(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @grid, commir.source = @gathered.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %length = arith.constant 8 : i64
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<1x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4x2xf32>
  %slots = memref.view %arena[%c0][] : memref<?xi8> to memref<32xi8>
  %whole = memref.view %arena[%c0][] : memref<?xi8> to memref<4x2xf32>
  %lengths = memref.alloca() : memref<4xi64>
  scf.for %member = %c0 to %c4 step %c1 {
    memref.store %length, %lengths[%member] : memref<4xi64>
  }
  commir.fill %c with 0.0 : memref<4x2xf32>
  %t = commir.all_gather.start %a into %slots bytes %lengths : memref<4xi64> on ["node", "gpu"] : memref<1x2xf32>, memref<32xi8>
  commir.wait %t
  commir.launch "matmul" ins(%whole, %b : memref<4x2xf32>, memref<2x2xf32>) outs(%c : memref<4x2xf32>) at()
  %s = commir.status
  return %s : i32
}
