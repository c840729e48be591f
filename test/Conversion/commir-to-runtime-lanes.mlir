// RUN: mercury-opt %s --convert-commir-to-runtime=target=cuda --cse | FileCheck %s
// RUN: mercury-opt %s --convert-commir-to-runtime=target=cpu | FileCheck %s --check-prefix=SIM

// Launches that name lanes run beside each other: the first forks, the last
// joins, and a wait is in the lane of the launch behind it.
// SIM-NOT: @mercury_rt_lane

!t = memref<?x?xbf16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 2)

// CHECK-LABEL: func.func @beside
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c0
// CHECK: call @mercury_rt_lane_mark
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK: call @mercury_rt_wait
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c0
// CHECK: call @mercury_launch_matmul
// CHECK: call @mercury_rt_exchange_start
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK: call @mercury_rt_wait
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK: call @mercury_launch_matmul
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c1
// CHECK: call @mercury_rt_lane_mark
// CHECK: call @mercury_rt_lane_use(%{{.*}}, %c0
// CHECK: call @mercury_rt_wait
// CHECK-NOT: mercury_rt_lane
// CHECK: return
func.func @beside(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !t, %b: !t, %c: !t, %d: !t) -> i32
    attributes {commir.mesh = @mesh} {
  %one = arith.constant 1 : index
  %true = arith.constant true
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at()
      {commir.lane = 0 : i64, commir.lane_fork, overwrite = array<i1: true>}
  %token = commir.exchange.start %c to %one, %d from %one on "gpu" when %true : !t, !t
  commir.wait %token
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%d : !t) at()
      {commir.lane = 1 : i64, commir.lane_join}
  %s = commir.status
  return %s : i32
}

// Where one of them is in a loop they keep the order of the program.
// CHECK-LABEL: func.func @loop
// CHECK-NOT: mercury_rt_lane
// CHECK: call @mercury_launch_matmul
// CHECK-NOT: mercury_rt_lane
// CHECK: return
func.func @loop(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !t, %b: !t, %c: !t, %n: index) -> i32
    attributes {commir.mesh = @mesh} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at()
        {commir.lane = 1 : i64, overwrite = array<i1: true>}
  }
  %s = commir.status
  return %s : i32
}
