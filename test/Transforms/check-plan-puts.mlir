// RUN: mercury-opt %s --commir-check-plan -split-input-file -verify-diagnostics

// The part of a shifted loop is put into the slot of the other rank. Proved.
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

func.func @put_into_the_slot(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.symmetric_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %local = commir.memory local : memref<?xi8>
  %symmetric = commir.memory symmetric : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %at = arith.addi %mine, %c16 : index
  %own = memref.view %symmetric[%c0][] : memref<?xi8> to memref<2x2xf32>
  %slot = memref.view %symmetric[%c16][] : memref<?xi8> to memref<2x2xf32>
  commir.copy %a to %own : memref<2x2xf32> to memref<2x2xf32>
  %t = commir.exchange.start %own to %peer, %slot from %peer on "gpu" when %true {commir.transport = "rma"} : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}
// -----

// Each rank would be put to where the other does not wait.
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

func.func @put_elsewhere(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.symmetric_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %local = commir.memory local : memref<?xi8>
  %symmetric = commir.memory symmetric : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %at = arith.addi %mine, %c16 : index
  %own = memref.view %symmetric[%c0][] : memref<?xi8> to memref<2x2xf32>
  %slot = memref.view %symmetric[%at][] : memref<?xi8> to memref<2x2xf32>
  commir.copy %a to %own : memref<2x2xf32> to memref<2x2xf32>
  // expected-error@+2 {{breaks the plan on rank 1: puts to byte 32 of the symmetric arena, and rank 0 waits for it at byte 16; a put is received at the same offset on every rank}}
  // expected-note@+1 {{it is received here, on rank 0}}
  %t = commir.exchange.start %own to %peer, %slot from %peer on "gpu" when %true {commir.transport = "rma"} : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}
// -----

// No peer puts into the local arena, and NCCL sends nothing out of it.
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

func.func @put_into_the_local_arena(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.symmetric_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %local = commir.memory local : memref<?xi8>
  %symmetric = commir.memory symmetric : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %at = arith.addi %mine, %c16 : index
  %own = memref.view %symmetric[%c0][] : memref<?xi8> to memref<2x2xf32>
  %slot = memref.view %local[%c0][] : memref<?xi8> to memref<2x2xf32>
  commir.copy %a to %own : memref<2x2xf32> to memref<2x2xf32>
  // expected-error@+1 {{puts from or to the local arena at bytes [0, 16); both ends of a put must lie in the symmetric arena}}
  %t = commir.exchange.start %own to %peer, %slot from %peer on "gpu" when %true {commir.transport = "rma"} : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
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

func.func @put_out_of_an_argument(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.symmetric_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %local = commir.memory local : memref<?xi8>
  %symmetric = commir.memory symmetric : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %B = commir.memory argument 1 : memref<?xi8>
  %C = commir.memory argument 2 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<2x2xf32>
  %b = memref.view %B[%c0][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %at = arith.addi %mine, %c16 : index
  %own = memref.view %symmetric[%c0][] : memref<?xi8> to memref<2x2xf32>
  %slot = memref.view %symmetric[%c16][] : memref<?xi8> to memref<2x2xf32>
  commir.copy %a to %own : memref<2x2xf32> to memref<2x2xf32>
  // expected-error@+1 {{puts from or to 'A' at bytes [0, 16); both ends of a put must lie in the symmetric arena}}
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true {commir.transport = "rma"} : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}
