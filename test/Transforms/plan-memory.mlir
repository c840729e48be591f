// RUN: mercury-opt %s --commir-plan-memory -split-input-file | FileCheck %s
// Planning again finds nothing more to place.
// RUN: mercury-opt %s --commir-plan-memory --commir-plan-memory -split-input-file | FileCheck %s

// Offsets follow one another, each at a whole cache line of 64 bytes; loops hold
// no memory of their own.
// CHECK-LABEL: func.func @offsets
// CHECK-SAME: commir.arena_bytes = 384 : i64
// CHECK: %[[ARENA:.*]] = commir.memory arena : memref<?xi8>
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[ARENA]][%c128{{.*}}][] : memref<?xi8> to memref<100xi8>
// CHECK: memref.view %[[ARENA]][%c256{{.*}}][] : memref<?xi8> to memref<0xi8>
// CHECK: scf.for
// CHECK: memref.view %[[ARENA]][%c256{{.*}}][] : memref<?xi8> to memref<65xi8>
// CHECK-NOT: memref.alloc
commir.mesh @mesh(gpu = 4)
func.func @offsets(%n: index) attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<128xi8>
  %b = memref.alloc() : memref<100xi8>
  %e = memref.alloc() : memref<0xi8>
  scf.for %i = %c0 to %n step %c1 {
    %d = memref.alloc() : memref<65xi8>
    %v = memref.view %d[%i][] : memref<65xi8> to memref<4xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @nothing_to_place
// CHECK-SAME: commir.arena_bytes = 0 : i64
// CHECK-NOT: commir.memory
commir.mesh @mesh(gpu = 4)
func.func @nothing_to_place() attributes {commir.mesh = @mesh} {
  return
}

// -----

// Memory of a function that is no plan is its own.
// CHECK-LABEL: func.func @no_plan
// CHECK-NOT: commir
// CHECK: memref.alloc() : memref<128xi8>
func.func @no_plan() {
  %a = memref.alloc() : memref<128xi8>
  return
}
