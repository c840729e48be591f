// RUN: mercury-opt %s --commir-plan-memory -split-input-file | FileCheck %s
// Planning again finds nothing more to place.
// RUN: mercury-opt %s --commir-plan-memory --commir-plan-memory -split-input-file | FileCheck %s

// The largest is placed first, each at a whole cache line of 64 bytes. A loop needs
// all that it touches at the same time; what nothing touches takes no room.
// CHECK-LABEL: func.func @needed_together
// CHECK-SAME: commir.local_bytes = 384 : i64
// CHECK: %[[ARENA:.*]] = commir.memory local : memref<?xi8>
// CHECK: memref.view %[[ARENA]][%c128{{.*}}][] : memref<?xi8> to memref<100xi8>
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<99xi8>
// CHECK: memref.view %[[ARENA]][%c256{{.*}}][] : memref<?xi8> to memref<52xi8>
// CHECK: scf.for
// CHECK: memref.view %[[ARENA]][%c320{{.*}}][] : memref<?xi8> to memref<36xi8>
// CHECK-NOT: memref.alloc
commir.mesh @mesh(gpu = 4)
func.func @needed_together(%n: index) attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<100xi8>
  %b = memref.alloc() : memref<128xi8>
  %e = memref.alloc() : memref<99xi8>
  %d = memref.alloc() : memref<52xi8>
  scf.for %i = %c0 to %n step %c1 {
    %f = memref.alloc() : memref<36xi8>
    memref.copy %f, %f : memref<36xi8> to memref<36xi8>
    memref.copy %a, %a : memref<100xi8> to memref<100xi8>
    memref.copy %b, %b : memref<128xi8> to memref<128xi8>
    memref.copy %d, %d : memref<52xi8> to memref<52xi8>
  }
  return
}

// -----

// What is needed one after the other shares bytes; making a view needs nothing.
// CHECK-LABEL: func.func @one_after_the_other
// CHECK-SAME: commir.local_bytes = 256 : i64
// CHECK: %[[ARENA:.*]] = commir.memory local
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<256xi8>
// CHECK: memref.view %[[ARENA]][%c128{{.*}}][] : memref<?xi8> to memref<120xi8>
commir.mesh @mesh(gpu = 4)
func.func @one_after_the_other() attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<128xi8>
  %a = memref.alloc() : memref<256xi8>
  %c = memref.alloc() : memref<120xi8>
  %x = memref.view %a[%c0][] : memref<256xi8> to memref<64xf32>
  %y = memref.view %b[%c0][] : memref<128xi8> to memref<32xf32>
  %z = memref.view %c[%c0][] : memref<120xi8> to memref<30xf32>
  commir.fill %x with 0.0 : memref<64xf32>
  commir.fill %y with 0.0 : memref<32xf32>
  commir.fill %z with 0.0 : memref<30xf32>
  commir.fill %y with 0.0 : memref<32xf32>
  return
}

// -----

// The first and the third leave gaps of 512 and 128 bytes, and the last takes the
// smaller.
// CHECK-LABEL: func.func @smallest_gap
// CHECK-SAME: commir.local_bytes = 1216 : i64
// CHECK: %[[ARENA:.*]] = commir.memory local
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<512xi8>
// CHECK: memref.view %[[ARENA]][%c512{{.*}}][] : memref<?xi8> to memref<448xi8>
// CHECK: memref.view %[[ARENA]][%c960{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[ARENA]][%c1088{{.*}}][] : memref<?xi8> to memref<120xi8>
// CHECK: memref.view %[[ARENA]][%c960{{.*}}][] : memref<?xi8> to memref<64xi8>
commir.mesh @mesh(gpu = 4)
func.func @smallest_gap() attributes {commir.mesh = @mesh} {
  %a = memref.alloc() : memref<512xi8>
  %b = memref.alloc() : memref<448xi8>
  %c = memref.alloc() : memref<128xi8>
  %d = memref.alloc() : memref<120xi8>
  %e = memref.alloc() : memref<64xi8>
  memref.copy %a, %a : memref<512xi8> to memref<512xi8>
  memref.copy %c, %c : memref<128xi8> to memref<128xi8>
  memref.copy %b, %b : memref<448xi8> to memref<448xi8>
  memref.copy %d, %d : memref<120xi8> to memref<120xi8>
  memref.copy %a, %a : memref<512xi8> to memref<512xi8>
  memref.copy %c, %c : memref<128xi8> to memref<128xi8>
  memref.copy %e, %e : memref<64xi8> to memref<64xi8>
  memref.copy %b, %b : memref<448xi8> to memref<448xi8>
  memref.copy %d, %d : memref<120xi8> to memref<120xi8>
  return
}

// -----

// A transfer needs both its sides until its wait, wherever its token goes.
// CHECK-LABEL: func.func @until_the_wait
// CHECK-SAME: commir.local_bytes = 448 : i64
// CHECK: %[[ARENA:.*]] = commir.memory local
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<256xi8>
// CHECK: memref.view %[[ARENA]][%c256{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[ARENA]][%c384{{.*}}][] : memref<?xi8> to memref<64xi8>
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<60xi8>
commir.mesh @mesh(gpu = 4)
func.func @until_the_wait(%more: i1) attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<256xi8>
  %b = memref.alloc() : memref<128xi8>
  %during = memref.alloc() : memref<64xi8>
  %after = memref.alloc() : memref<60xi8>
  %x = memref.view %a[%c0][] : memref<256xi8> to memref<64xf32>
  %y = memref.view %b[%c0][] : memref<128xi8> to memref<32xf32>
  %z = memref.view %during[%c0][] : memref<64xi8> to memref<16xf32>
  %w = memref.view %after[%c0][] : memref<60xi8> to memref<15xf32>
  %t = commir.exchange.start %x to %c1, %y from %c1 on "gpu" when %more
      : memref<64xf32>, memref<32xf32>
  %u = scf.if %more -> !commir.token {
    scf.yield %t : !commir.token
  } else {
    scf.yield %t : !commir.token
  }
  commir.fill %z with 0.0 : memref<16xf32>
  commir.wait %u
  commir.fill %w with 0.0 : memref<15xf32>
  return
}

// -----

// Memory that a loop carries is needed as long as what the loop gives back.
// CHECK-LABEL: func.func @carried_by_a_loop
// CHECK-SAME: commir.local_bytes = 320 : i64
// CHECK: %[[ARENA:.*]] = commir.memory local
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[ARENA]][%c128{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[ARENA]][%c256{{.*}}][] : memref<?xi8> to memref<64xi8>
// CHECK: memref.view %[[ARENA]][%c0{{.*}}][] : memref<?xi8> to memref<32xi8>
commir.mesh @mesh(gpu = 4)
func.func @carried_by_a_loop(%n: index) attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<128xi8>
  %b = memref.alloc() : memref<128xi8>
  %between = memref.alloc() : memref<64xi8>
  %after = memref.alloc() : memref<32xi8>
  memref.copy %a, %b : memref<128xi8> to memref<128xi8>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b)
      -> (memref<128xi8>, memref<128xi8>) {
    scf.yield %q, %p : memref<128xi8>, memref<128xi8>
  }
  memref.copy %between, %between : memref<64xi8> to memref<64xi8>
  memref.copy %r#0, %r#0 : memref<128xi8> to memref<128xi8>
  memref.copy %after, %after : memref<32xi8> to memref<32xi8>
  return
}

// -----

// A choice of two may be either.
// CHECK-LABEL: func.func @chosen
// CHECK-SAME: commir.local_bytes = 192 : i64
commir.mesh @mesh(gpu = 4)
func.func @chosen(%c: i1) attributes {commir.mesh = @mesh} {
  %a = memref.alloc() : memref<64xi8>
  %b = memref.alloc() : memref<64xi8>
  %d = memref.alloc() : memref<64xi8>
  memref.copy %a, %b : memref<64xi8> to memref<64xi8>
  %e = arith.select %c, %a, %b : memref<64xi8>
  memref.copy %d, %d : memref<64xi8> to memref<64xi8>
  memref.copy %e, %e : memref<64xi8> to memref<64xi8>
  return
}

// -----

// A transfer that nothing ends, and an address that someone else may keep, need
// their memory to the end and from the start.
// CHECK-LABEL: func.func @never_free
// CHECK-SAME: commir.local_bytes = 256 : i64
commir.mesh @mesh(gpu = 4)
func.func private @keep(memref<64xi8>)
func.func @never_free(%more: i1) attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %before = memref.alloc() : memref<64xi8>
  %a = memref.alloc() : memref<64xi8>
  %b = memref.alloc() : memref<64xi8>
  %kept = memref.alloc() : memref<64xi8>
  memref.copy %before, %before : memref<64xi8> to memref<64xi8>
  call @keep(%kept) : (memref<64xi8>) -> ()
  %x = memref.view %a[%c0][] : memref<64xi8> to memref<16xf32>
  %y = memref.view %b[%c0][] : memref<64xi8> to memref<16xf32>
  %t = commir.exchange.start %x to %c0, %y from %c0 on "gpu" when %more
      : memref<16xf32>, memref<16xf32>
  return
}

// -----

// CHECK-LABEL: func.func @nothing_to_place
// CHECK-SAME: commir.local_bytes = 0 : i64
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

// -----

// What is lent is needed until the lease is closed, and lies in the symmetric arena;
// what a pull writes until its wait.
// CHECK-LABEL: func.func @until_the_lease_is_closed
// CHECK-SAME: commir.local_bytes = 192 : i64
// CHECK-SAME: commir.symmetric_bytes = 256 : i64
// CHECK-DAG: %[[LOCAL:.*]] = commir.memory local : memref<?xi8>
// CHECK-DAG: %[[SYMMETRIC:.*]] = commir.memory symmetric : memref<?xi8>
// CHECK: memref.view %[[SYMMETRIC]][%c0{{.*}}][] : memref<?xi8> to memref<256xi8>
// CHECK: memref.view %[[LOCAL]][%c0{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %[[LOCAL]][%c0{{.*}}][] : memref<?xi8> to memref<100xi8>
// CHECK: memref.view %[[LOCAL]][%c128{{.*}}][] : memref<?xi8> to memref<64xi8>
// CHECK: memref.view %[[LOCAL]][%c0{{.*}}][] : memref<?xi8> to memref<60xi8>
commir.mesh @mesh(gpu = 4)
func.func @until_the_lease_is_closed(%peer: index, %when: i1) attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %own = memref.alloc() : memref<256xi8>
  %slot = memref.alloc() : memref<128xi8>
  %pulled = memref.alloc() : memref<100xi8>
  %during = memref.alloc() : memref<64xi8>
  %after = memref.alloc() : memref<60xi8>
  %y = memref.view %slot[%c0][] : memref<128xi8> to memref<32xf32>
  %lease = commir.lease.open %own on "gpu" : memref<256xi8>
  %theirs = commir.lease.memory %lease of %peer : memref<256xi8>
  %x = memref.view %theirs[%c0][] : memref<256xi8> to memref<32xf32>
  %t = commir.pull.start %x into %y of %lease from %peer when %when : memref<32xf32>, memref<32xf32>
  memref.copy %during, %during : memref<64xi8> to memref<64xi8>
  commir.wait %t
  memref.copy %pulled, %pulled : memref<100xi8> to memref<100xi8>
  commir.lease.close %lease
  memref.copy %after, %after : memref<60xi8> to memref<60xi8>
  return
}

// -----

// What may be lent lies in the symmetric arena, through views, choices and loops.
// CHECK-LABEL: func.func @maybe_lent
// CHECK-SAME: commir.local_bytes = 64 : i64
// CHECK-SAME: commir.symmetric_bytes = 192 : i64
// CHECK-DAG: %[[LOCAL:.*]] = commir.memory local : memref<?xi8>
// CHECK-DAG: %[[SYMMETRIC:.*]] = commir.memory symmetric : memref<?xi8>
// CHECK: memref.view %[[SYMMETRIC]][%c0{{.*}}][] : memref<?xi8> to memref<64xi8>
// CHECK: memref.view %[[SYMMETRIC]][%c64{{.*}}][] : memref<?xi8> to memref<64xi8>
// CHECK: memref.view %[[SYMMETRIC]][%c128{{.*}}][] : memref<?xi8> to memref<64xi8>
// CHECK: memref.view %[[LOCAL]][%c0{{.*}}][] : memref<?xi8> to memref<64xi8>
commir.mesh @mesh(gpu = 4)
func.func @maybe_lent(%c: i1, %n: index) attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xi8>
  %b = memref.alloc() : memref<64xi8>
  %d = memref.alloc() : memref<64xi8>
  %other = memref.alloc() : memref<64xi8>
  %e = arith.select %c, %a, %b : memref<64xi8>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %e) -> (memref<64xi8>) {
    %view = memref.subview %p[0] [32] [1] : memref<64xi8> to memref<32xi8, strided<[1]>>
    %lease = commir.lease.open %view on "gpu" : memref<32xi8, strided<[1]>>
    commir.lease.close %lease
    memref.copy %other, %other : memref<64xi8> to memref<64xi8>
    scf.yield %d : memref<64xi8>
  }
  return
}

// -----

// What is in several lanes is needed together, wherever the text has it; before and
// after them its place is free.
// CHECK-LABEL: func.func @beside
// CHECK-SAME: commir.local_bytes = 256 : i64
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %{{.*}}[%c128{{.*}}][] : memref<?xi8> to memref<128xi8>
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : memref<?xi8> to memref<64xi8>
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : memref<?xi8> to memref<60xi8>
commir.mesh @mesh(gpu = 4)
func.func @beside() attributes {commir.mesh = @mesh} {
  %first = memref.alloc() : memref<128xi8>
  %second = memref.alloc() : memref<128xi8>
  %before = memref.alloc() : memref<64xi8>
  %after = memref.alloc() : memref<60xi8>
  memref.copy %before, %before : memref<64xi8> to memref<64xi8>
  commir.lane.order 0 before 1
  memref.copy %first, %first : memref<128xi8> to memref<128xi8>
  commir.lane.use 1
  memref.copy %second, %second : memref<128xi8> to memref<128xi8>
  commir.lane.use 0
  commir.lane.order 1 before 0
  memref.copy %after, %after : memref<60xi8> to memref<60xi8>
  return
}
