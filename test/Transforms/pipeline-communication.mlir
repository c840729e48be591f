// RUN: mercury-opt %s --commir-pipeline-communication=depth=2 --split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-pipeline-communication --split-input-file | FileCheck %s --check-prefix=ONE

// The second transfer starts before what the first brought is used; each wait
// comes just before the first use of what it waits for.
// CHECK-LABEL: func.func @two_exchanges
// CHECK: %[[T:.*]] = commir.exchange.start %[[A:.*]] to %{{.*}}, %[[K:.*]] from
// CHECK: %[[U:.*]] = commir.exchange.start %[[A]] to %{{.*}}, %[[V:.*]] from
// CHECK-NOT: commir.copy
// CHECK: commir.wait %[[T]]
// CHECK-NEXT: commir.copy %[[K]] to
// CHECK-NEXT: commir.wait %[[U]]
// CHECK-NEXT: commir.copy %[[V]] to
// ONE-LABEL: func.func @two_exchanges
// ONE: commir.exchange.start
// ONE: commir.wait
// ONE: commir.copy
// ONE: commir.exchange.start
commir.mesh @mesh(gpu = 2)
func.func @two_exchanges(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %always = arith.constant true
  %peer = commir.group_rank "gpu"
  %A = commir.memory argument 0 : memref<?xi8>
  %C = commir.memory argument 1 : memref<?xi8>
  %a = memref.view %A[%c0][] : memref<?xi8> to memref<4xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4xf32>
  %k_bytes = memref.alloc() : memref<64xi8>
  %k = memref.view %k_bytes[%c0][] : memref<64xi8> to memref<4xf32>
  %t = commir.exchange.start %a to %peer, %k from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %t
  commir.copy %k to %c : memref<4xf32> to memref<4xf32>
  %v_bytes = memref.alloc() : memref<64xi8>
  %v = memref.view %v_bytes[%c0][] : memref<64xi8> to memref<4xf32>
  %u = commir.exchange.start %a to %peer, %v from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %u
  commir.copy %v to %c : memref<4xf32> to memref<4xf32>
  %s = commir.status
  return %s : i32
}

// -----

// No more than two are under way.
// CHECK-LABEL: func.func @three_exchanges
// CHECK: %[[T:.*]] = commir.exchange.start
// CHECK: %[[U:.*]] = commir.exchange.start
// CHECK-NOT: commir.exchange.start
// CHECK: commir.wait %[[T]]
// CHECK-NEXT: %[[V:.*]] = commir.exchange.start
commir.mesh @mesh(gpu = 2)
func.func @three_exchanges(%ctx: !llvm.ptr, %buffers: !llvm.ptr, %a: memref<4xf32>) -> i32 attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %always = arith.constant true
  %peer = commir.group_rank "gpu"
  %A = commir.memory argument 0 : memref<?xi8>
  %own = memref.view %A[%c0][] : memref<?xi8> to memref<4xf32>
  %x = memref.alloc() : memref<4xf32>
  %y = memref.alloc() : memref<4xf32>
  %z = memref.alloc() : memref<4xf32>
  %t = commir.exchange.start %own to %peer, %x from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %t
  %u = commir.exchange.start %own to %peer, %y from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %u
  %v = commir.exchange.start %own to %peer, %z from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %v
  %s = commir.status
  return %s : i32
}

// -----

// What sends what came before must wait for it, and what is read must not be
// overwritten.
// CHECK-LABEL: func.func @dependent
// CHECK: %[[T:.*]] = commir.exchange.start
// CHECK: commir.wait %[[T]]
// CHECK: %[[U:.*]] = commir.exchange.start
// CHECK: commir.wait %[[U]]
// CHECK: commir.copy %[[Y:.*]] to %{{.*}}
// CHECK: commir.exchange.start %{{.*}} to %{{.*}}, %[[Y]] from
commir.mesh @mesh(gpu = 2)
func.func @dependent(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %always = arith.constant true
  %peer = commir.group_rank "gpu"
  %A = commir.memory argument 0 : memref<?xi8>
  %C = commir.memory argument 1 : memref<?xi8>
  %own = memref.view %A[%c0][] : memref<?xi8> to memref<4xf32>
  %c = memref.view %C[%c0][] : memref<?xi8> to memref<4xf32>
  %x = memref.alloc() : memref<4xf32>
  %y = memref.alloc() : memref<4xf32>
  %t = commir.exchange.start %own to %peer, %x from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %t
  %u = commir.exchange.start %x to %peer, %y from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %u
  commir.copy %y to %c : memref<4xf32> to memref<4xf32>
  %v = commir.exchange.start %own to %peer, %y from %peer on "gpu" when %always : memref<4xf32>, memref<4xf32>
  commir.wait %v
  %s = commir.status
  return %s : i32
}
