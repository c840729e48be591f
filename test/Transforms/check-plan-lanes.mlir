// RUN: mercury-opt %s --commir-check-plan -o /dev/null

// What lanes may leave unordered; check-plan-lanes-invalid.mlir has what they may not.

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

// Products of different rows, each in a lane; the second waits for its own.
func.func @beside(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %copy = memref.view %arena[%c16][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.lane.order 0 before 1
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 1
  commir.wait %t
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 0
  commir.lane.order 1 before 0
  %s = commir.status
  return %s : i32
}

// A lane begins after what lane 0 holds; a run ends when all of them have.
func.func @first_use(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %copy = memref.view %arena[%c16][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.lane.use 1
  commir.launch "matmul" ins(%copy, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 0
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// Two lanes may read the same memory.
func.func @both_read(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %copy = memref.view %arena[%c16][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.lane.order 0 before 1
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 1
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// A transfer comes after the lane that starts it, and orders that before the lane of the wait.
func.func @by_a_transfer(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %copy = memref.view %arena[%c16][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  commir.lane.order 0 before 1
  commir.lane.use 1
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  %t = commir.exchange.start %copy to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.lane.use 0
  commir.wait %t
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// Order goes on from lane to lane.
func.func @through_a_third(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %copy = memref.view %arena[%c16][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.lane.order 0 before 1
  commir.lane.order 0 before 2
  commir.lane.use 1
  commir.fill %c_mine with 0.0 : memref<2x2xf32>
  commir.lane.order 1 before 2
  commir.lane.use 2
  commir.lane.order 2 before 0
  commir.lane.use 0
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at()
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// A lease is opened after what its own lane wrote, and closed after its pulls.
func.func @lent(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2xf32>
  %copy = memref.view %arena[%c16][] : memref<?xi8> to memref<2x2xf32>
  %mine = arith.muli %rank, %c16 : index
  %theirs = arith.muli %peer, %c16 : index
  %c_mine = memref.view %C[%mine][] : memref<?xi8> to memref<2x2xf32>
  %c_theirs = memref.view %C[%theirs][] : memref<?xi8> to memref<2x2xf32>
  %lease = commir.lease.open %A on "gpu" : memref<?xi8>
  %bytes = commir.lease.memory %lease of %peer : memref<?xi8>
  %remote = memref.view %bytes[%c0][] : memref<?xi8> to memref<2x2xf32>
  commir.lane.order 0 before 1
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 1
  %t = commir.pull.start %remote into %slot of %lease from %peer when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lease.close %lease
  %s = commir.status
  return %s : i32
}
