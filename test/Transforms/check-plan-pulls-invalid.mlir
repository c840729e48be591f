// RUN: mercury-opt %s --commir-check-plan -verify-diagnostics

// A pull moves rows that are equally far apart, as the runtime has it.

commir.mesh @mesh(gpu = 2)
commir.program @matmul.source on @mesh axes(i = 36, j = 4, k = 1)
    inputs(%A: !commir.buffer<[i, k], f32> at [i -> gpu], %B: !commir.buffer<[k, j], f32> at [])
    outputs(%C: !commir.buffer<[i, j], f32> at [i -> gpu]) attributes {commir.is_source} {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b) : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// Rows of two elements: 12 bytes apart, but 36 from the first box of them to
// the second.
func.func @rows_of_two_distances(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 64, commir.mesh = @mesh, commir.source = @matmul.source} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %rank = commir.group_rank "gpu"
  %peer = arith.subi %c1, %rank : index
  %arena = commir.memory local : memref<?xi8>
  %A = commir.memory argument 0 : memref<?xi8>
  %slot = memref.view %arena[%c0][] : memref<?xi8> to memref<2x2x2xf32>
  %lease = commir.lease.open %A on "gpu" : memref<?xi8>
  %bytes = commir.lease.memory %lease of %peer : memref<?xi8>
  %remote = memref.view %bytes[%c0][] : memref<?xi8> to memref<2x3x3xf32>
  %box = memref.subview %remote[0, 0, 0] [2, 2, 2] [1, 1, 1] : memref<2x3x3xf32> to memref<2x2x2xf32, strided<[9, 3, 1]>>
  // expected-error@+1 {{breaks the plan on rank 1: pulls memory leased by group rank 0 at bytes [0, 56), which is not rows that are equally far apart}}
  %t = commir.pull.start %box into %slot of %lease from %peer when %true : memref<2x2x2xf32, strided<[9, 3, 1]>>, memref<2x2x2xf32>
  commir.wait %t
  commir.lease.close %lease
  %s = commir.status
  return %s : i32
}
