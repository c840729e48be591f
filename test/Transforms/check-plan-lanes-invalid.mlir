// RUN: mercury-opt %s --commir-check-plan -verify-diagnostics

// Two lanes of one rank touch the same memory in no order, one of them writing.

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

func.func @two_writers(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  // expected-note@+1 {{lane 0 writes it here, on rank 1}}
  commir.fill %c_mine with 0.0 : memref<2x2xf32>
  commir.lane.use 1
  // expected-error@+1 {{breaks the plan on rank 1: writes 'C' at bytes [16, 32) in lane 1, in no order with lane 0, which writes 'C' at bytes [16, 32)}}
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at()
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

func.func @read_beside_a_writer(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  // expected-note@+1 {{lane 0 writes it here, on rank 1}}
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.lane.use 1
  // expected-error@+1 {{breaks the plan on rank 1: reads the local arena at bytes [16, 32) in lane 1, in no order with lane 0, which writes the local arena at bytes [16, 32)}}
  commir.launch "matmul" ins(%copy, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

func.func @written_beside_a_reader(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  commir.lane.order 0 before 1
  // expected-note@+1 {{lane 0 reads it here, on rank 1}}
  commir.launch "matmul" ins(%copy, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 1
  // expected-error@+1 {{breaks the plan on rank 1: writes the local arena at bytes [16, 32) in lane 1, in no order with lane 0, which reads the local arena at bytes [16, 32)}}
  commir.copy %slot to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// The second lane comes after the first; what the first does then is not before it.
func.func @not_joined(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  commir.lane.use 1
  // expected-note@+1 {{lane 1 writes it here, on rank 1}}
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.lane.use 0
  commir.lane.order 0 before 1
  // expected-error@+1 {{reads the local arena at bytes [16, 32) in lane 0, in no order with lane 1, which writes the local arena}}
  commir.launch "matmul" ins(%copy, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// What a transfer brings is there for the lane of the wait.
func.func @waited_in_another(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  // expected-note@+1 {{lane 0 writes it here, on rank 1}}
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 1
  // expected-error@+1 {{reads the local arena at bytes [0, 16) in lane 1, in no order with lane 0, which writes the local arena at bytes [0, 16)}}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// A transfer is after what the lane that starts it holds.
func.func @sent_in_another(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  // expected-note@+1 {{lane 1 writes it here, on rank 0}}
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.lane.use 0
  // expected-error@+1 {{reads the local arena at bytes [16, 32) in lane 0, in no order with lane 1, which writes the local arena}}
  %t = commir.exchange.start %copy to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// What a transfer reads is free for the lane of the wait.
func.func @source_overwritten(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  %t = commir.exchange.start %copy to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.lane.order 0 before 1
  commir.lane.use 1
  // expected-note@+1 {{lane 1 reads it here, on rank 1}}
  commir.wait %t
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 0
  // expected-error@+1 {{writes the local arena at bytes [16, 32) in lane 0, in no order with lane 1, which reads the local arena}}
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// What peers may read is written before, by all lanes.
func.func @lent_too_soon(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 0, commir.symmetric_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory symmetric : memref<?xi8>
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
  // expected-note@+1 {{lane 1 writes it here, on rank 0}}
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  commir.lane.use 0
  // expected-error@+1 {{reads the symmetric arena in lane 0, in no order with lane 1, which writes the symmetric arena at bytes [16, 32)}}
  %lease = commir.lease.open %arena on "gpu" : memref<?xi8>
  commir.lease.close %lease
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// A lease is closed after the pulls of all lanes.
func.func @closed_too_soon(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %t = commir.pull.start %remote into %slot of %lease from %peer when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.lane.use 1
  // expected-note@+1 {{lane 1 reads it here, on rank}}
  commir.wait %t
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.lane.use 0
  // expected-error@+1 {{closes a lease in lane 0, in no order with lane 1, which reads memory leased by group rank}}
  commir.lease.close %lease
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// Memory that was lent is free for the lane that closes the lease.
func.func @written_after_the_lease(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 0, commir.symmetric_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory symmetric : memref<?xi8>
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
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  %lease = commir.lease.open %arena on "gpu" : memref<?xi8>
  commir.lane.order 0 before 1
  commir.lane.use 1
  // expected-note@+1 {{lane 1 reads it here, on rank}}
  commir.lease.close %lease
  commir.lane.use 0
  // expected-error@+1 {{writes the symmetric arena at bytes [16, 32) in lane 0, in no order with lane 1, which reads the symmetric arena}}
  commir.copy %a to %copy : memref<2x2xf32> to memref<2x2xf32>
  %t = commir.exchange.start %a to %peer, %slot from %peer on "gpu" when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}
