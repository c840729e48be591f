// RUN: mercury-opt %s --commir-spmd-to-cuda | sed 's/\\0A/\n/g' | FileCheck %s

// The kernels that are bound by memory, each as it moves 16 bytes at a time: all that a
// thread has under way is loaded before any of it is used, nothing lies in local memory,
// and a row is found without division of 64 bits.

// CHECK: .entry softmax_merge_f32_f32_f32(
// CHECK: .minnctapersm 6
// CHECK-NOT: {{local|ld\.global\.v4|div\.u64}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|st\.global|div\.|bra}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|st\.global|div\.|bra}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|st\.global|div\.|bra}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global|div\.}}
// CHECK: st.global.v4.b32
// CHECK-NOT: {{local|ld\.global|div\.}}
// CHECK: st.global.v4.b32

// CHECK: .entry softmax_sink_bf16_f32_f32(
// CHECK: .minnctapersm 4
// CHECK-NOT: {{local|ld\.global\.v4|div\.u64}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|st\.global|div\.|bra}}
// CHECK-COUNT-7: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global|div\.}}
// CHECK-COUNT-8: st.global.v4.b32

// CHECK: .entry sum_all_bf16_f32_bf16_overwrite(
// CHECK: .minnctapersm 4
// CHECK-NOT: {{local|ld\.global}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|st\.global}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global}}
// CHECK: st.global.v4.b32
// CHECK-NOT: {{local|ld\.global}}
// CHECK: st.global.v4.b32

// CHECK: .entry accumulate_bf16_f32_f32(
// CHECK-NOT: {{local|ld\.global|st\.global}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|st\.global}}
// CHECK-COUNT-5: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global}}
// CHECK-COUNT-4: st.global.v4.b32
// CHECK: llvm.func @plan(
!x5 = memref<?x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?], offset: ?>>
!x4 = memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>
!x1 = memref<?xbf16, strided<[?], offset: ?>>
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 2)
func.func @plan(%context: !llvm.ptr, %buffers: !llvm.ptr, %x: !x5, %y: !x4, %sink: !x1, %o: !t4, %l: !t3,
                %o2: !t4, %l2: !t3) -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "softmax_merge" ins(%o2, %l2 : !t4, !t3) outs(%o, %l : !t4, !t3) at()
  commir.launch "softmax_sink" ins(%sink : !x1) outs(%o, %l : !t4, !t3) at()
  commir.launch "sum_all" ins(%x : !x5) outs(%y : !x4) at() {overwrite = array<i1: true>}
  commir.accumulate %y to %o : !x4 to !t4
  %s = commir.status
  return %s : i32
}
