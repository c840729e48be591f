// RUN: mercury-opt %s --commir-spmd-to-cuda -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=PTX < %t
// RUN: mercury-opt %s --commir-spmd-to-cuda="chip=sm_80 features=+ptx75" | FileCheck %s --check-prefix=OLDER

// The host becomes LLVM's dialect and carries PTX with one entry for each kernel; what
// memory a kernel works on may be chosen on the way.

// CHECK-NOT: {{commir\.|builtin.unrealized|func\.func|scf\.|memref\.|gpu\.|nvvm\.}}
// CHECK: llvm.mlir.global external constant @mercury_device_image("//
// CHECK-SAME: \00")
// CHECK: llvm.mlir.global external constant @mercury_device_image_bytes({{[1-9][0-9]*}} : i64)
// CHECK: llvm.func @plan(%{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: !llvm.ptr,
// CHECK: llvm.select
// CHECK: llvm.call @mercury_launch_copy_f32_f32_bf16(
// CHECK: llvm.func @mercury_launch_copy_f32_f32_bf16(
// CHECK: llvm.call @mercury_rt_device_launch(
// CHECK-NOT: {{commir\.|builtin.unrealized|func\.func|scf\.|memref\.|gpu\.|nvvm\.}}

// PTX: .version 8.0
// PTX-SAME: .target sm_90a
// PTX-SAME: .visible .entry fill_i32_i32_i32(
// PTX-SAME: st.global.v4.b32
// PTX-SAME: .visible .entry copy_f32_f32_bf16(
// PTX-SAME: ld.global.v4.b32
// PTX-SAME: st.global.v4.b32
// PTX-SAME: .visible .entry accumulate_f32_f32_f32(
// PTX-SAME: ld.global.v4.b32
// PTX-SAME: .visible .entry softmax_merge_f32_f32_f32(
// PTX-SAME: ld.global.v4.b32
// PTX-SAME: bar.warp.sync
// PTX-SAME: .visible .entry softmax_merge_all_f32_f32_f32(
// PTX-SAME: ld.global.v4.b32
// PTX-SAME: .visible .entry sum_all_f32_f32_f32(
// PTX-SAME: ld.global.v4.b32
// PTX-SAME: .visible .entry attention_fwd_bf16_f32_f32(
// PTX-SAME: .shared .align 16
// PTX-SAME: .visible .entry attention_bwd_bf16_f32_f32(
// PTX-SAME: .visible .entry matmul_bf16_f32_f32(
// PTX-SAME: .visible .entry softmax_sink_bf16_f32_f32(
// PTX-SAME: .visible .entry softmax_sink_bwd_bf16_f32_f32(
// PTX-SAME: .visible .entry sum_all_bf16_f32_bf16_overwrite(
// PTX-SAME: .visible .entry matmul_bf16_f32_bf16_overwrite(
// PTX-SAME: .visible .entry attention_fwd_bf16_f32_bf16_overwrite(

// OLDER: .version 7.5
// OLDER-SAME: .target sm_80
!x4 = memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>
!a5 = memref<?x?x?x?x?xf32, strided<[?, ?, ?, ?, ?], offset: ?>>
!a4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!a3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
!x2 = memref<?x?xbf16, strided<[?, ?], offset: ?>>
!a2 = memref<?x?xf32, strided<[?, ?], offset: ?>>
!x5 = memref<?x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?], offset: ?>>
!flat = memref<?xf32, strided<[1], offset: ?>>
!a1 = memref<?xf32, strided<[?], offset: ?>>
!x1 = memref<?xbf16, strided<[?], offset: ?>>
commir.mesh @mesh(gpu = 2)
func.func @plan(%context: !llvm.ptr, %buffers: !llvm.ptr, %p: index, %first: i1, %x4: !x4, %other: !x4, %a5: !a5,
                %a4: !a4, %a3: !a3, %x2: !x2, %a2: !a2, %x5: !x5, %flat: !flat, %x1: !x1, %a1: !a1) -> i32
    attributes {commir.mesh = @mesh} {
  %chosen = arith.select %first, %x4, %other : !x4
  commir.fill %a4 with 0.0 : !a4
  commir.copy %a4 to %chosen : !a4 to !x4
  commir.accumulate %a4 to %a4 : !a4 to !a4
  commir.launch "softmax_merge" ins(%a4, %a3 : !a4, !a3) outs(%a4, %a3 : !a4, !a3) at()
  commir.launch "softmax_merge_all" ins(%a5, %a4 : !a5, !a4) outs(%a4, %a3 : !a4, !a3) at()
  commir.launch "sum_all" ins(%a5 : !a5) outs(%a4 : !a4) at()
  scf.if %first {
    commir.launch "attention_fwd" ins(%chosen, %x4, %x4 : !x4, !x4, !x4) outs(%a4, %a3 : !a4, !a3)
        at(%p, %p, %p, %p) scratch(%flat : !flat) mask(causal) {scale = 0.125 : f64}
  }
  commir.launch "attention_bwd" ins(%x4, %x4, %x4, %x4, %x4, %a3 : !x4, !x4, !x4, !x4, !x4, !a3)
      outs(%a4, %a4, %a4 : !a4, !a4, !a4) at(%p, %p, %p, %p) scratch(%flat : !flat) {scale = 0.125 : f64}
  commir.launch "matmul" ins(%x2, %x2 : !x2, !x2) outs(%a2 : !a2) at()
  commir.launch "softmax_sink" ins(%x1 : !x1) outs(%a4, %a3 : !a4, !a3) at()
  commir.launch "softmax_sink_bwd" ins(%x4, %x4, %a3, %a1 : !x4, !x4, !a3, !a1) outs(%a1 : !a1) at()
  commir.launch "sum_all" ins(%x5 : !x5) outs(%x4 : !x4) at() {overwrite = array<i1: true>}
  commir.launch "matmul" ins(%x2, %x2 : !x2, !x2) outs(%x2 : !x2) at() {overwrite = array<i1: true>}
  commir.launch "attention_fwd" ins(%x4, %x4, %x4 : !x4, !x4, !x4) outs(%other, %a3 : !x4, !a3)
      at(%p, %p, %p, %p) scratch(%flat : !flat) {scale = 0.125 : f64, overwrite = array<i1: true, true>}
  %s = commir.status
  return %s : i32
}
