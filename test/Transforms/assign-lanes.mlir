// RUN: mercury-opt %s --commir-assign-lanes -split-input-file | FileCheck %s

!t = memref<2x2xf32>
commir.mesh @mesh(gpu = 2)

// Lanes fork before the first launch that names one and join before what is not of
// them. A start stays in the lane of the launch before it, a wait is in that of the
// launch behind it.
// CHECK-LABEL: func.func @fork_and_join
// CHECK: commir.fill
// CHECK-NEXT: commir.lane.order 0 before 1
// CHECK-NEXT: commir.launch "matmul"
// CHECK-NOT: lane
// CHECK: commir.exchange.start
// CHECK-NEXT: commir.lane.use 1
// CHECK-NEXT: commir.launch "matmul"
// CHECK-NEXT: commir.lane.use 0
// CHECK-NEXT: commir.wait
// CHECK-NEXT: commir.launch "matmul"
// CHECK-NEXT: commir.lane.order 1 before 0
// CHECK-NEXT: commir.copy
// CHECK-NOT: lane
func.func @fork_and_join(%a: !t, %b: !t, %c: !t, %d: !t) attributes {commir.mesh = @mesh} {
  %zero = arith.constant 0 : index
  %true = arith.constant true
  commir.fill %a with 0.0 : !t
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at() {commir.lane = 0 : i64}
  %token = commir.exchange.start %c to %zero, %d from %zero on "gpu" when %true : !t, !t
  commir.launch "matmul" ins(%a, %a : !t, !t) outs(%b : !t) at() {commir.lane = 1 : i64}
  commir.wait %token
  commir.launch "matmul" ins(%a, %d : !t, !t) outs(%c : !t) at() {commir.lane = 0 : i64}
  commir.copy %a to %b : !t to !t
  commir.fill %d with 0.0 : !t
  return
}

// What is waited for before they fork is there for all of them; they fork again.
// CHECK-LABEL: func.func @wait_before_they_fork
// CHECK: commir.exchange.start
// CHECK-NEXT: commir.wait
// CHECK-NEXT: commir.lane.order 0 before 1
// CHECK-NEXT: commir.lane.order 0 before 2
// CHECK-NEXT: commir.lane.use 2
// CHECK-NEXT: commir.launch
// CHECK-NEXT: commir.lane.use 0
// CHECK-NEXT: commir.lane.order 1 before 0
// CHECK-NEXT: commir.lane.order 2 before 0
// CHECK-NEXT: commir.fill
// CHECK-NEXT: commir.lane.order 0 before 1
// CHECK-NEXT: commir.lane.order 0 before 2
// CHECK-NEXT: commir.lane.use 1
// CHECK-NEXT: commir.launch
// CHECK-NEXT: commir.lane.use 0
// CHECK-NEXT: commir.lane.order 1 before 0
// CHECK-NEXT: commir.lane.order 2 before 0
// CHECK-NEXT: commir.status
func.func @wait_before_they_fork(%a: !t, %b: !t, %c: !t) attributes {commir.mesh = @mesh} {
  %zero = arith.constant 0 : index
  %true = arith.constant true
  %token = commir.exchange.start %a to %zero, %b from %zero on "gpu" when %true : !t, !t
  commir.wait %token
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at() {commir.lane = 2 : i64}
  commir.fill %c with 0.0 : !t
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at() {commir.lane = 1 : i64}
  %s = commir.status
  return
}

// One lane alone is none, nor is there any within a loop that several are named in.
// CHECK-LABEL: func.func @loop
// CHECK-NOT: lane
// CHECK: return
func.func @loop(%a: !t, %b: !t, %c: !t, %n: index) attributes {commir.mesh = @mesh} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at() {commir.lane = 1 : i64}
  }
  scf.for %i = %zero to %n step %one {
    commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at() {commir.lane = 0 : i64}
    commir.launch "matmul" ins(%a, %a : !t, !t) outs(%b : !t) at() {commir.lane = 1 : i64}
  }
  return
}

// A loop whose launches name one lane is in it, as are the fills before them. A start
// behind a wait passes on what has come: both are in the lane of the launch behind.
// CHECK-LABEL: func.func @steps
// CHECK: commir.exchange.start
// CHECK-NEXT: commir.lane.order 0 before 1
// CHECK-NEXT: commir.fill
// CHECK-NEXT: scf.for
// CHECK-NOT: commir.lane
// CHECK: commir.lane.use 1
// CHECK-NEXT: commir.wait
// CHECK-NEXT: commir.exchange.start
// CHECK-NEXT: commir.launch
// CHECK-NEXT: commir.lane.use 0
// CHECK-NEXT: commir.lane.order 1 before 0
// CHECK-NEXT: commir.wait
// CHECK-NEXT: commir.status
func.func @steps(%a: !t, %b: !t, %c: !t, %d: !t, %n: index) attributes {commir.mesh = @mesh} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %true = arith.constant true
  %first = commir.exchange.start %a to %zero, %b from %zero on "gpu" when %true : !t, !t
  commir.fill %c with 0.0 {commir.lane = 0 : i64} : !t
  scf.for %i = %zero to %n step %one {
    commir.launch "matmul" ins(%a, %a : !t, !t) outs(%c : !t) at() {commir.lane = 0 : i64}
  }
  commir.wait %first
  %second = commir.exchange.start %b to %zero, %a from %zero on "gpu" when %true : !t, !t
  commir.launch "matmul" ins(%b, %b : !t, !t) outs(%d : !t) at() {commir.lane = 1 : i64}
  commir.wait %second
  %s = commir.status
  return
}

