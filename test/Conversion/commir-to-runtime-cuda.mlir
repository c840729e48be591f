// RUN: mercury-opt %s --convert-commir-to-runtime=target=cuda --cse -split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

// A generated kernel is launched while nothing has failed; its status is kept. Two
// launches of one type share a launcher, which says how many blocks, and a kernel of
// the device module. The host reads and writes no tile.
// CHECK-DAG: llvm.mlir.global external constant @mercury_device_image()
// CHECK-DAG: llvm.mlir.global external constant @mercury_device_image_bytes()
// CHECK-DAG: llvm.mlir.global internal constant @mercury_text_matmul_bf16_f32_f32("matmul_bf16_f32_f32\00")
// CHECK-LABEL: func.func @two_launches(
// CHECK-SAME: %[[CONTEXT:[^:]*]]: !llvm.ptr, %{{[^:]*}}: !llvm.ptr, %[[A:[^:]*]]: memref<?x?xbf16, {{.*}}>, %[[C:[^:]*]]: memref<?x?xf32,
// CHECK: scf.if
// CHECK-NEXT: %[[CODE:.*]] = func.call @mercury_launch_matmul_bf16_f32_f32(%[[CONTEXT]], %[[A]], %[[A]], %[[C]])
// CHECK: arith.select %{{.*}}, %[[CODE]],
// CHECK: scf.if
// CHECK-NEXT: func.call @mercury_launch_matmul_bf16_f32_f32(%[[CONTEXT]], %[[A]], %[[A]], %[[C]])
// CHECK-NOT: memref.{{load|store}}
// CHECK: gpu.module @mercury_device {
// CHECK-NEXT: gpu.func @matmul_bf16_f32_f32(%{{.*}}: memref<?x?xbf16,
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 256, 1, 1>}
// CHECK-NOT: call
// CHECK: func.func private @mercury_blocks_matmul_bf16_f32_f32(
// CHECK: func.func private @mercury_launch_matmul_bf16_f32_f32(%[[OWN:[^:]*]]: !llvm.ptr, %[[X:[^:]*]]: memref
// CHECK-SAME: attributes {no_inline}
// CHECK: %[[BLOCKS:.*]] = call @mercury_blocks_matmul_bf16_f32_f32(%[[X]],
// CHECK: %[[WIDE:.*]] = arith.index_cast %[[BLOCKS]] : index to i64
// CHECK: %[[LIMIT:.*]] = arith.constant 2147483647 : i64
// CHECK: %[[GRID:.*]] = arith.minui %[[WIDE]], %[[LIMIT]]
// CHECK: memref.extract_strided_metadata %[[X]]
// CHECK-DAG: llvm.mlir.addressof @mercury_device_image
// CHECK-DAG: llvm.mlir.addressof @mercury_device_image_bytes
// CHECK-DAG: llvm.mlir.addressof @mercury_text_matmul_bf16_f32_f32
// CHECK-DAG: llvm.store %[[GRID]]
// CHECK: %[[STATUS:.*]] = call @mercury_rt_device_launch(%[[OWN]], %{{.*}})
// CHECK-NEXT: return %[[STATUS]] : i32
// CHECK-NOT: memref.{{load|store}}
!in = memref<?x?xbf16, strided<[?, ?], offset: ?>>
!acc = memref<?x?xf32, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @two_launches(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !in, %c: !acc) -> i32
    attributes {commir.mesh = @mesh} {
  commir.launch "matmul" ins(%a, %a : !in, !in) outs(%c : !acc) at()
  commir.launch "matmul" ins(%a, %a : !in, !in) outs(%c : !acc) at()
  %s = commir.status
  return %s : i32
}

// -----

// A kernel that another has is looked up by its name as on the CPU, and told which
// results it writes: here the second. A plan of such kernels alone has no image.
// CHECK-NOT: mercury_device_image
// CHECK-DAG: @mercury_text_cudnn.attention_fwd("cudnn.attention_fwd\00")
// CHECK-DAG: @mercury_text_overwrite("overwrite\00")
// CHECK-LABEL: func.func @named_kernel(
// CHECK-DAG: arith.constant 2 : i64
// CHECK: call @mercury_rt_launch(
// CHECK-NOT: gpu.module
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @named_kernel(%context: !llvm.ptr, %buffers: !llvm.ptr, %p: index, %q: !t4, %l: !t3)
    -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "attention_fwd" ins(%q, %q, %q : !t4, !t4, !t4) outs(%q, %l : !t4, !t3)
      at(%p, %p, %p, %p) impl("cudnn") {overwrite = array<i1: false, true>}
  %s = commir.status
  return %s : i32
}

// -----

// What a kernel is to write and merges into is given the merge's identity first.
// CHECK-LABEL: func.func @overwritten(
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x?x?x?xf32,
// CHECK: scf.if
// CHECK-NOT: @mercury_launch_fill
// CHECK: %[[MINUSINF:.*]] = arith.constant -8388608 : i32
// CHECK: call @mercury_launch_fill_i32_i32_i32(%{{.*}}, %{{.*}}, %[[MINUSINF]])
// CHECK-NOT: @mercury_launch_fill
// CHECK: call @mercury_launch_softmax_merge_f32_f32_f32(
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @overwritten(%context: !llvm.ptr, %buffers: !llvm.ptr, %q: !t4, %l: !t3)
    -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "softmax_merge" ins(%q, %l : !t4, !t3) outs(%q, %l : !t4, !t3) at()
      {overwrite = array<i1: false, true>}
  %s = commir.status
  return %s : i32
}

// -----

// Kernels that overwrite all their results do so themselves: nothing is filled, and a
// result may be as narrow as the inputs.
// CHECK-LABEL: func.func @overwritten_by_the_kernel(
// CHECK-NOT: fill
// CHECK: call @mercury_launch_softmax_merge_all_bf16_f32_bf16_overwrite(
// CHECK-NOT: fill
// CHECK: call @mercury_launch_sum_all_bf16_f32_bf16_overwrite(
// CHECK-NOT: fill
// CHECK: gpu.func @softmax_merge_all_bf16_f32_bf16_overwrite(
!x5 = memref<?x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?], offset: ?>>
!x4 = memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @overwritten_by_the_kernel(%context: !llvm.ptr, %buffers: !llvm.ptr, %x: !x5, %y: !x4, %sums: !t4, %l: !t3)
    -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "softmax_merge_all" ins(%x, %sums : !x5, !t4) outs(%y, %l : !x4, !t3) at()
      {overwrite = array<i1: true, true>}
  commir.launch "sum_all" ins(%x : !x5) outs(%y : !x4) at() {overwrite = array<i1: true>}
  %s = commir.status
  return %s : i32
}

// -----

// Where one result is merged into, the other is filled.
// CHECK-LABEL: func.func @overwritten_in_part(
// CHECK: call @mercury_launch_fill_i32_i32_i32(
// CHECK-NOT: fill
// CHECK: call @mercury_launch_softmax_merge_all_f32_f32_f32(
!t5 = memref<?x?x?x?x?xf32, strided<[?, ?, ?, ?, ?], offset: ?>>
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @overwritten_in_part(%context: !llvm.ptr, %buffers: !llvm.ptr, %x: !t5, %y: !t4, %l: !t3)
    -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "softmax_merge_all" ins(%x, %y : !t5, !t4) outs(%y, %l : !t4, !t3) at()
      {overwrite = array<i1: false, true>}
  %s = commir.status
  return %s : i32
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

// -----

// What lies in one row on both sides is copied by the runtime, the rest by a kernel
// that knows bits only.
// CHECK-LABEL: func.func @copy_of_one_type(
// CHECK-SAME: %[[CONTEXT:[^:]*]]: !llvm.ptr, %{{[^:]*}}: !llvm.ptr, %[[A:[^:]*]]: memref<?x?xbf16, {{.*}}>, %[[B:[^:]*]]: memref<?x?xbf16,
// CHECK: scf.if
// CHECK: %[[INNER:.*]] = arith.andi %true, %{{.*}} : i1
// CHECK: %[[ALIKE:.*]] = arith.ori
// CHECK-NEXT: %[[DENSE:.*]] = arith.andi %[[INNER]], %[[ALIKE]] : i1
// CHECK-NEXT: scf.if %[[DENSE]] {
// CHECK: call @mercury_rt_copy(%[[CONTEXT]], %{{.*}}, %[[BYTES:.*]], %{{.*}}, %[[BYTES]], %[[BYTES]], %c1_i64)
// CHECK: } else {
// CHECK: call @mercury_launch_copy_i16_i16_i16(%[[CONTEXT]],
// CHECK: gpu.func @copy_i16_i16_i16(
!a = memref<?x?xbf16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @copy_of_one_type(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !a, %b: !a) -> i32
    attributes {commir.mesh = @mesh} {
  commir.copy %a to %b : !a to !a
  %s = commir.status
  return %s : i32
}

// -----

// A copy that rounds is a kernel, as is a sum; tiles of more than four dimensions are
// taken four at a time.
// CHECK-LABEL: func.func @rounding_and_adding(
// CHECK-NOT: mercury_rt_copy
// CHECK: scf.for
// CHECK: call @mercury_launch_copy_f32_f32_bf16(
// CHECK: call @mercury_launch_accumulate_f32_f32_f32(
!a = memref<?x?x?x?x?xf32, strided<[?, ?, ?, ?, ?], offset: ?>>
!b = memref<?x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @rounding_and_adding(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !a, %b: !b) -> i32
    attributes {commir.mesh = @mesh} {
  commir.copy %a to %b : !a to !b
  commir.accumulate %a to %a : !a to !a
  %s = commir.status
  return %s : i32
}
