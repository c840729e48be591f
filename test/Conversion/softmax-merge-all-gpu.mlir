// RUN: mercury-opt %s --commir-spmd-to-cuda | sed 's/\\0A/\n/g' | FileCheck %s

// Overwriting, the kernel that ends every deferred merge reads its parts and neither of
// its results. A thread has two chunks of 16 bytes of two parts under way with their
// log-sum-exps, behind no condition, and finds its row without division of 64 bits. What
// it weighs a part with it divides once, not each element.

// CHECK: .entry softmax_merge_all_bf16_f32_bf16_overwrite(
// CHECK-NOT: {{local|ld\.global|div\.u64}}
// CHECK: div.u32
// CHECK-NOT: {{local|ld\.global|div\.u64}}
// CHECK: ld.global.b32
// CHECK-NOT: {{local|ld\.global|div\.|bra}}
// CHECK: ld.global.b32
// CHECK-NOT: {{local|ld\.global\.b|div\.|bra}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global\.b|div\.|bra}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global\.b|div\.|bra}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global\.b|div\.|bra}}
// CHECK: ld.global.v4.b32
// CHECK-NOT: {{local|ld\.global|div\.}}
// CHECK: rcp.rn.f32
// CHECK-NOT: {{local|ld\.global|div\.}}
// CHECK: st.global.v4.b32
// CHECK-NOT: {{local|ld\.global|div\.}}
// CHECK: st.global.v4.b32
// CHECK-NOT: {{local|ld\.global|div\.}}
// CHECK: bar.warp.sync
// CHECK-NOT: {{local|ld\.global\.v4}}
// CHECK: llvm.func @plan(
!x5 = memref<?x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?], offset: ?>>
!x4 = memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 2)
func.func @plan(%context: !llvm.ptr, %buffers: !llvm.ptr, %x: !x5, %y: !x4, %sums: !t4, %l: !t3)
    -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "softmax_merge_all" ins(%x, %sums : !x5, !t4) outs(%y, %l : !x4, !t3) at()
      {overwrite = array<i1: true, true>}
  %s = commir.status
  return %s : i32
}
