// RUN: mercury-opt %s --commir-check-plan | FileCheck %s

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

// A peer reads what lies in the symmetric arena, into the local one.
// CHECK-LABEL: func.func @lent_from_the_symmetric_arena
func.func @lent_from_the_symmetric_arena(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.symmetric_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
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
  %slot = memref.view %local[%c0][] : memref<?xi8> to memref<2x2xf32>
  %copy = memref.view %symmetric[%c16][] : memref<?xi8> to memref<16xi8>
  %own = memref.view %copy[%c0][] : memref<16xi8> to memref<2x2xf32>
  commir.copy %a to %own : memref<2x2xf32> to memref<2x2xf32>
  %lease = commir.lease.open %copy on "gpu" : memref<16xi8>
  %bytes = commir.lease.memory %lease of %peer : memref<?xi8>
  %remote = memref.view %bytes[%c0][] : memref<?xi8> to memref<2x2xf32>
  %t = commir.pull.start %remote into %slot of %lease from %peer when %true : memref<2x2xf32>, memref<2x2xf32>
  commir.wait %t
  commir.lease.close %lease
  commir.launch "matmul" ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_mine : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%slot, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%c_theirs : memref<2x2xf32>) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}
