// RUN: not mercury-opt %s --commir-pipeline-communication=depth=0 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: not mercury-opt %s --commir-pipeline-communication=depth=2 2>&1 | FileCheck %s

// DEPTH: error: commir-pipeline-communication: the depth must be at least 1, got 0
// CHECK: error: 'func.func' op has its memory planned; pipeline its communication before commir-plan-memory
commir.mesh @mesh(gpu = 2)
func.func @planned(%ctx: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.local_bytes = 0, commir.mesh = @mesh} {
  %s = commir.status
  return %s : i32
}
