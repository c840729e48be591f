// RUN: mercury-opt %s --convert-commir-to-runtime=target=cuda --cse | FileCheck %s
// RUN: mercury-opt %s --convert-commir-to-runtime=target=cpu | FileCheck %s --check-prefix=SIM

// Lanes are as the text says; where a call computes at once there are none.
// SIM-NOT: @mercury_rt_lane

!t = memref<?x?xbf16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 2)

// An order marks the one lane and waits in the other, and goes back to that in use.
// CHECK-LABEL: func.func @beside
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c0
// CHECK: call @mercury_rt_lane_mark
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK: call @mercury_rt_wait
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c0
// CHECK: call @mercury_launch_matmul
// CHECK: call @mercury_rt_exchange_start
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK-NOT: mercury_rt_lane
// CHECK: call @mercury_rt_wait
// CHECK-NOT: mercury_rt_lane
// CHECK: call @mercury_launch_matmul
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK: call @mercury_rt_lane_mark
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c0
// CHECK: call @mercury_rt_wait
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK-NOT: mercury_rt_lane
// CHECK: return
func.func @beside(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !t, %b: !t, %c: !t, %d: !t) -> i32
    attributes {commir.mesh = @mesh} {
  %one = arith.constant 1 : index
  %true = arith.constant true
  commir.lane.order 0 before 1
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at()
      {overwrite = array<i1: true>}
  %token = commir.exchange.start %c to %one, %d from %one on "gpu" when %true : !t, !t
  commir.lane.use 1
  commir.wait %token
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%d : !t) at()
  commir.lane.order 1 before 0
  %s = commir.status
  return %s : i32
}
