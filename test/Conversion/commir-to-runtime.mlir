// RUN: mercury-opt %s --convert-commir-to-runtime --cse -split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// Memory, ranks and status
//===----------------------------------------------------------------------===//

// A buffer is a pointer of the argument list, an arena one of the context; views
// state sizes, so memory itself has none. Levels are numbers, outermost first.
// CHECK-LABEL: func.func @memory_and_ranks(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %[[BUFFERS:.*]]: !llvm.ptr) -> i32 attributes {passthrough = ["noinline", "optnone"]} {
// CHECK: %[[STATUS:.*]] = llvm.alloca %{{.*}} x i32
// CHECK: llvm.store %c0_i32, %[[STATUS]] : i32, !llvm.ptr
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[BUFFERS]][1]
// CHECK: %[[A:.*]] = llvm.load %[[AT]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.insertvalue %[[A]], %{{.*}}[0]
// CHECK: llvm.insertvalue %[[A]], %{{.*}}[1]
// CHECK: %[[MEMORY:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<?xi8>
// CHECK: %[[LOCAL:.*]] = call @mercury_rt_local_arena(%[[CONTEXT]]) : (!llvm.ptr) -> !llvm.ptr
// CHECK: llvm.insertvalue %[[LOCAL]], %{{.*}}[0]
// CHECK: %[[SYMMETRIC:.*]] = call @mercury_rt_symmetric_arena(%[[CONTEXT]]) : (!llvm.ptr) -> !llvm.ptr
// CHECK: llvm.insertvalue %[[SYMMETRIC]], %{{.*}}[0]
// CHECK: %[[NODE:.*]] = call @mercury_rt_group_rank(%[[CONTEXT]], %c0_i64) : (!llvm.ptr, i64) -> i64
// CHECK: arith.index_cast %[[NODE]] : i64 to index
// CHECK: call @mercury_rt_group_rank(%[[CONTEXT]], %c1_i64)
// CHECK: %[[CODE:.*]] = llvm.load %[[STATUS]] : !llvm.ptr -> i32
// CHECK: return %[[CODE]] : i32
// CHECK: func.func private @mercury_rt_local_arena(!llvm.ptr) -> !llvm.ptr
// CHECK: func.func private @mercury_rt_symmetric_arena(!llvm.ptr) -> !llvm.ptr
// CHECK: func.func private @mercury_rt_group_rank(!llvm.ptr, i64) -> i64
// CHECK-NOT: commir
commir.mesh @mesh(node = 2, gpu = 4)
func.func @memory_and_ranks(%context: !llvm.ptr, %buffers: !llvm.ptr) -> i32 attributes {commir.mesh = @mesh} {
  %a = commir.memory argument 1 : memref<?xi8>
  %w = commir.memory local : memref<?xi8>
  %y = commir.memory symmetric : memref<?xi8>
  %node = commir.group_rank "node"
  %gpu = commir.group_rank "gpu"
  %v = memref.view %a[%node][] : memref<?xi8> to memref<4xf32>
  %u = memref.view %w[%gpu][] : memref<?xi8> to memref<4xf32>
  %z = memref.view %y[%gpu][] : memref<?xi8> to memref<4xf32>
  %s = commir.status
  return %s : i32
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

// -----

// A start that is not to happen leaves the token 0. What a call returns is kept if
// it is the first failure.
// CHECK-LABEL: func.func @exchange(
// CHECK-SAME: %[[CONTEXT:[^:]*]]: !llvm.ptr, %{{[^:]*}}: !llvm.ptr, %[[TO:[^:]*]]: index, %[[FROM:[^:]*]]: index, %[[WHEN:[^:]*]]: i1,
// CHECK-SAME: %[[SOURCE:[^:]*]]: memref<?x?xbf16, {{.*}}>, %[[TARGET:[^:]*]]: memref<?x?xbf16,
// CHECK: %[[STATUS:.*]] = llvm.alloca %{{.*}} x i32
// CHECK: %[[SLOT:.*]] = llvm.alloca %{{.*}} x i64
// CHECK: llvm.store %c0_i64, %[[SLOT]] : i64, !llvm.ptr
// CHECK: scf.if %[[WHEN]] {
// CHECK: %[[TO64:.*]] = arith.index_cast %[[TO]] : index to i64
// CHECK: %{{.*}}, %[[OFFSET:.*]], %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata %[[SOURCE]]
// CHECK: %[[START:.*]] = memref.extract_aligned_pointer_as_index %[[SOURCE]]
// CHECK: %[[BYTES:.*]] = arith.muli %[[OFFSET]], %c2
// CHECK: %[[BEGIN:.*]] = arith.addi %[[START]], %[[BYTES]]
// CHECK: %[[INT:.*]] = arith.index_cast %[[BEGIN]]
// CHECK: %[[SEND:.*]] = llvm.inttoptr %[[INT]]
// CHECK: %[[ROWS:.*]] = memref.dim %[[SOURCE]], %c0
// CHECK: %[[ROWBYTES:.*]] = arith.muli %{{.*}}, %[[ROWS]]
// CHECK: %[[COLUMNS:.*]] = memref.dim %[[SOURCE]], %c1
// CHECK: %[[SIZE:.*]] = arith.muli %[[ROWBYTES]], %[[COLUMNS]]
// CHECK: %[[SENDBYTES:.*]] = arith.index_cast %[[SIZE]]
// CHECK: %[[FROM64:.*]] = arith.index_cast %[[FROM]] : index to i64
// CHECK: memref.extract_strided_metadata %[[TARGET]]
// CHECK: %[[RECV:.*]] = llvm.inttoptr
// CHECK: %[[RECVBYTES:.*]] = arith.index_cast
// CHECK: %[[CODE:.*]] = func.call @mercury_rt_exchange_start(%[[CONTEXT]], %c1_i64, %[[TO64]], %[[SEND]], %[[SENDBYTES]], %[[FROM64]], %[[RECV]], %[[RECVBYTES]], %[[SLOT]])
// CHECK: %[[BEFORE:.*]] = llvm.load %[[STATUS]]
// CHECK: %[[FINE:.*]] = arith.cmpi eq, %[[BEFORE]], %c0_i32
// CHECK: %[[NOW:.*]] = arith.select %[[FINE]], %[[CODE]], %[[BEFORE]]
// CHECK: llvm.store %[[NOW]], %[[STATUS]]
// CHECK: }
// CHECK: %[[TOKEN:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> i64
// CHECK: call @mercury_rt_wait(%[[CONTEXT]], %[[TOKEN]]) : (!llvm.ptr, i64) -> i32
// CHECK-NOT: commir.{{exchange|wait}}
!tile = memref<?x?xbf16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(node = 2, gpu = 4)
func.func @exchange(%context: !llvm.ptr, %buffers: !llvm.ptr, %to: index, %from: index, %when: i1,
                    %source: !tile, %target: !tile) -> i32 attributes {commir.mesh = @mesh} {
  %t = commir.exchange.start %source to %to, %target from %from on "gpu" when %when : !tile, !tile
  commir.wait %t
  %s = commir.status
  return %s : i32
}

// -----

// A put takes what an exchange takes.
// CHECK-LABEL: func.func @put(
// CHECK: func.call @mercury_rt_put_start(
// CHECK-NOT: mercury_rt_exchange_start
// CHECK: call @mercury_rt_wait
!tile = memref<?x?xbf16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @put(%context: !llvm.ptr, %buffers: !llvm.ptr, %to: index, %from: index, %when: i1,
               %source: !tile, %target: !tile) -> i32 attributes {commir.mesh = @mesh} {
  %t = commir.exchange.start %source to %to, %target from %from on "gpu" when %when {commir.transport = "rma"} : !tile, !tile
  commir.wait %t
  %s = commir.status
  return %s : i32
}

// -----

// A slot is the memory divided by the members.
// CHECK-LABEL: func.func @all_gather(
// CHECK-SAME: %[[CONTEXT:[^:]*]]: !llvm.ptr,
// CHECK: %[[SLOT:.*]] = llvm.alloca %{{.*}} x i64
// CHECK: llvm.store %c0_i64, %[[SLOT]]
// CHECK: %[[SEND:.*]] = llvm.inttoptr
// CHECK: %[[SENDBYTES:.*]] = arith.index_cast
// CHECK: %[[INTO:.*]] = llvm.inttoptr
// CHECK: %[[LENGTHS:.*]] = llvm.inttoptr
// CHECK: call @mercury_rt_all_gather_start(%[[CONTEXT]], %c1_i64, %[[SEND]], %[[SENDBYTES]], %[[INTO]], %c128_i64, %[[LENGTHS]], %[[SLOT]])
// CHECK: %[[TOKEN:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> i64
// CHECK: call @mercury_rt_wait(%[[CONTEXT]], %[[TOKEN]])
!tile = memref<?xf32, strided<[?], offset: ?>>
commir.mesh @mesh(node = 2, gpu = 4)
func.func @all_gather(%context: !llvm.ptr, %buffers: !llvm.ptr, %own: !tile, %slots: memref<512xi8>,
                      %lengths: memref<4xi64>) -> i32 attributes {commir.mesh = @mesh} {
  %t = commir.all_gather.start %own into %slots bytes %lengths : memref<4xi64> on "gpu" along i : !tile, memref<512xi8>
  commir.wait %t
  %s = commir.status
  return %s : i32
}

// -----

// Slots are shared out evenly; f32 is type 3, and sum and max are 0 and 1.
// CHECK-LABEL: func.func @collectives(
// CHECK-SAME: %[[CONTEXT:[^:]*]]: !llvm.ptr,
// CHECK: call @mercury_rt_reduce_scatter_start(%[[CONTEXT]], %c1_i64, %{{.*}}, %c128_i64, %{{.*}}, %{{.*}}, %c3_i32, %c0_i32, %{{.*}})
// CHECK: call @mercury_rt_all_reduce_start(%[[CONTEXT]], %c1_i64, %{{.*}}, %{{.*}}, %{{.*}}, %c3_i32, %c1_i32, %{{.*}})
// CHECK: call @mercury_rt_all_to_all_start(%[[CONTEXT]], %c1_i64, %{{.*}}, %c128_i64, %{{.*}}, %{{.*}}, %c128_i64, %{{.*}}, %{{.*}})
// CHECK: scf.if
// CHECK: call @mercury_rt_broadcast_start(%[[CONTEXT]], %c0_i64, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
!tile = memref<?xf32, strided<[?], offset: ?>>
commir.mesh @mesh(node = 2, gpu = 4)
func.func @collectives(%context: !llvm.ptr, %buffers: !llvm.ptr, %own: !tile, %slots: memref<512xi8>,
                       %others: memref<512xi8>, %lengths: memref<4xi64>, %root: index, %when: i1)
    -> i32 attributes {commir.mesh = @mesh} {
  %t = commir.reduce_scatter.start %slots into %own bytes %lengths : memref<4xi64> merge(sum) on "gpu" along i
      : memref<512xi8>, !tile
  commir.wait %t
  %u = commir.all_reduce.start %own into %own merge(max) on "gpu" : !tile, !tile
  commir.wait %u
  %v = commir.all_to_all.start %slots, %lengths into %others, %lengths on "gpu"
      : memref<512xi8>, memref<4xi64>, memref<512xi8>, memref<4xi64>
  commir.wait %v
  %w = commir.broadcast.start %own into %own of %root on "node" when %when : !tile, !tile
  commir.wait %w
  %s = commir.status
  return %s : i32
}

// -----

// Each wait takes the token of its own start, though the slot is shared.
// CHECK-LABEL: func.func @two_under_way
// CHECK: call @mercury_rt_exchange_start
// CHECK: %[[FIRST:.*]] = llvm.load %{{.*}} -> i64
// CHECK: call @mercury_rt_exchange_start
// CHECK: %[[SECOND:.*]] = llvm.load %{{.*}} -> i64
// CHECK: call @mercury_rt_wait(%{{.*}}, %[[SECOND]])
// CHECK: call @mercury_rt_wait(%{{.*}}, %[[FIRST]])
!tile = memref<?xf32, strided<[?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @two_under_way(%context: !llvm.ptr, %buffers: !llvm.ptr, %to: index, %when: i1, %a: !tile)
    -> i32 attributes {commir.mesh = @mesh} {
  %t = commir.exchange.start %a to %to, %a from %to on "gpu" when %when : !tile, !tile
  %u = commir.exchange.start %a to %to, %a from %to on "gpu" when %when : !tile, !tile
  commir.wait %u
  commir.wait %t
  %s = commir.status
  return %s : i32
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

// -----

// A kernel runs while nothing has failed. Launches of one type share a function,
// which stays out of the inliner for its large stack arrays.
// CHECK-LABEL: func.func @two_launches(
// CHECK-SAME: %[[A:[^:]*]]: memref<?x?xbf16, {{.*}}>, %[[C:[^:]*]]: memref<?x?xf32,
// CHECK: %[[STATUS:.*]] = llvm.alloca %{{.*}} x i32
// CHECK: %[[CODE:.*]] = llvm.load %[[STATUS]]
// CHECK: %[[FINE:.*]] = arith.cmpi eq, %[[CODE]], %c0_i32
// CHECK: scf.if %[[FINE]] {
// CHECK-NEXT: call @mercury_kernel_matmul_bf16_f32_f32(%[[A]], %[[A]], %[[C]])
// CHECK: scf.if
// CHECK-NEXT: call @mercury_kernel_matmul_bf16_f32_f32(%[[A]], %[[A]], %[[C]])
// CHECK: scf.if
// CHECK-NEXT: call @mercury_kernel_matmul_f32_f32_f32(%[[C]], %[[C]], %[[C]])
// CHECK: func.func private @mercury_kernel_matmul_bf16_f32_f32({{.*}}attributes {no_inline}
// CHECK: func.func private @mercury_kernel_matmul_bf16_f32_f32_widen(%{{.*}}: bf16) -> f32
// CHECK: func.func private @mercury_kernel_matmul_f32_f32_f32(
// CHECK-NOT: func.func private @mercury_kernel_matmul_bf16_f32_f32(
!in = memref<?x?xbf16, strided<[?, ?], offset: ?>>
!acc = memref<?x?xf32, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @two_launches(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !in, %c: !acc) -> i32
    attributes {commir.mesh = @mesh} {
  commir.launch "matmul" ins(%a, %a : !in, !in) outs(%c : !acc) at()
  commir.launch "matmul" ins(%a, %a : !in, !in) outs(%c : !acc) at()
  commir.launch "matmul" ins(%c, %c : !acc, !acc) outs(%c : !acc) at()
  %s = commir.status
  return %s : i32
}

// -----

// A kernel that overwrites its result does so itself: nothing is filled, and the result
// may be narrower than the sums. One that only merges is given the identity.
// CHECK-LABEL: func.func @overwritten(
// CHECK-SAME: %[[A:[^:]*]]: memref<?x?xbf16, {{.*}}>, %[[O:[^:]*]]: memref<?x?x?x?xf32, {{.*}}>, %[[L:[^:]*]]: memref<?x?x?xf32,
// CHECK-NOT: fill
// CHECK: call @mercury_kernel_matmul_bf16_f32_bf16_overwrite(%[[A]], %[[A]], %[[A]])
// CHECK: call @mercury_kernel_fill_i32_i32_i32(
// CHECK: call @mercury_kernel_softmax_merge_f32_f32_f32(
// CHECK: func.func private @mercury_kernel_matmul_bf16_f32_bf16_overwrite_overwrites() -> i1 {
// CHECK-NEXT: %true = arith.constant true
!in = memref<?x?xbf16, strided<[?, ?], offset: ?>>
!o = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!l = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @overwritten(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !in, %o: !o, %l: !l) -> i32
    attributes {commir.mesh = @mesh} {
  commir.launch "matmul" ins(%a, %a : !in, !in) outs(%a : !in) at() {overwrite = array<i1: true>}
  commir.launch "softmax_merge" ins(%o, %l : !o, !l) outs(%o, %l : !o, !l) at()
      {overwrite = array<i1: true, true>}
  %s = commir.status
  return %s : i32
}

// -----

// A kernel that another has is looked up by its name, which both launches share. Its
// arguments lie on the stack of the function.
// CHECK-DAG: llvm.mlir.global internal constant @mercury_text_torch.matmul("torch.matmul\00")
// CHECK-LABEL: func.func @named_kernel(
// CHECK-SAME: %[[CONTEXT:[^:]*]]: !llvm.ptr
// CHECK-DAG: llvm.alloca %{{.*}} x !llvm.struct<(i64, ptr, i64, ptr, i64, ptr)>
// CHECK-DAG: llvm.alloca %{{.*}} x !llvm.struct<(ptr, i32, i64, ptr, ptr)>
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// CHECK: scf.if
// CHECK: %[[BF16:.*]] = arith.constant 2 : i32
// CHECK: llvm.store %[[BF16]]
// CHECK: %[[F32:.*]] = arith.constant 3 : i32
// CHECK: llvm.store %[[F32]]
// CHECK: %[[NAME:.*]] = llvm.mlir.addressof @mercury_text_torch.matmul
// CHECK: %[[CODE:.*]] = func.call @mercury_rt_launch(%[[CONTEXT]], %[[NAME]], %{{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
// CHECK: arith.select %{{.*}}, %[[CODE]],
// CHECK-NOT: mercury_kernel_matmul
!in = memref<?x?xbf16, strided<[?, ?], offset: ?>>
!acc = memref<?x?xf32, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @named_kernel(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !in, %c: !acc, %n: index)
    -> i32 attributes {commir.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    commir.launch "matmul" ins(%a, %a : !in, !in) outs(%c : !acc) at() impl("torch")
    commir.launch "matmul" ins(%a, %a : !in, !in) outs(%c : !acc) at() impl("torch")
  }
  %s = commir.status
  return %s : i32
}

// -----

// CHECK-DAG: @mercury_text_mine.attention_fwd("mine.attention_fwd\00")
// CHECK-DAG: @mercury_text_scale("scale\00")
// CHECK-DAG: @mercury_text_right("right\00")
// CHECK-DAG: @mercury_text_left("left\00")
// CHECK-DAG: @mercury_text_group("group\00")
// CHECK-DAG: @"mercury_text_at_h/g"("at_h/g\00")
// CHECK-DAG: @mercury_text_at_h("at_h\00")
// CHECK-DAG: @mercury_text_at_sk("at_sk\00")
// CHECK-DAG: @mercury_text_at_sq("at_sq\00")
// CHECK-LABEL: func.func @named_attention(
// CHECK-DAG: arith.constant 1.250000e-01 : f64
// CHECK-DAG: arith.constant 7 : i64
// CHECK: call @mercury_rt_launch(
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @named_attention(%context: !llvm.ptr, %buffers: !llvm.ptr, %p: index, %q: !t4, %l: !t3)
    -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "attention_fwd" ins(%q, %q, %q : !t4, !t4, !t4) outs(%q, %l : !t4, !t3)
      at(%p, %p, %p, %p) mask(window(7, 0)) impl("mine") {group = 4 : i64, scale = 0.125 : f64}
  %s = commir.status
  return %s : i32
}

// -----

// Gradients are told the same.
// CHECK-DAG: @mercury_text_mine.attention_bwd("mine.attention_bwd\00")
// CHECK-DAG: @mercury_text_scale("scale\00")
// CHECK-DAG: @mercury_text_right("right\00")
// CHECK-DAG: @mercury_text_left("left\00")
// CHECK-DAG: @mercury_text_group("group\00")
// CHECK-LABEL: func.func @named_gradients(
// CHECK-DAG: arith.constant 1.250000e-01 : f64
// CHECK: call @mercury_rt_launch(
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @named_gradients(%context: !llvm.ptr, %buffers: !llvm.ptr, %p: index, %q: !t4, %l: !t3)
    -> i32 attributes {commir.mesh = @mesh} {
  commir.launch "attention_bwd" ins(%q, %q, %q, %q, %q, %l : !t4, !t4, !t4, !t4, !t4, !t3)
      outs(%q, %q, %q : !t4, !t4, !t4) at(%p, %p, %p, %p) mask(causal) impl("mine") {group = 4 : i64, scale = 0.125 : f64}
  %s = commir.status
  return %s : i32
}

// -----

// Scratch, scale, positions, group and the sides of the mask follow the tiles.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME: %[[P:[^:]*]]: index
// CHECK: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK: %[[GROUP:.*]] = arith.constant 4 : index
// CHECK: %[[LEFT:.*]] = arith.constant 7 : i64
// CHECK: %[[RIGHT:.*]] = arith.constant 0 : i64
// CHECK: call @mercury_kernel_attention_fwd_f32_f32_f32({{.*}}, %[[SCALE]], %[[P]], %[[P]], %[[P]], %[[P]], %[[GROUP]], %[[LEFT]], %[[RIGHT]])
// CHECK: %[[SINGLE:.*]] = arith.constant 1 : index
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: %[[FAR:.*]] = arith.constant 1099511627776 : i64
// CHECK: call @mercury_kernel_attention_fwd_f32_f32_f32({{.*}}, %[[ONE]], %[[P]], %[[P]], %[[P]], %[[P]], %[[SINGLE]], %[[FAR]], %[[FAR]])
!t4 = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
!t1 = memref<?xf32, strided<[?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @attention(%context: !llvm.ptr, %buffers: !llvm.ptr, %p: index, %q: !t4, %l: !t3, %w: !t1) -> i32
    attributes {commir.mesh = @mesh} {
  commir.launch "attention_fwd" ins(%q, %q, %q : !t4, !t4, !t4) outs(%q, %l : !t4, !t3)
      at(%p, %p, %p, %p) scratch(%w : !t1) mask(window(7, 0)) {group = 4 : i64, scale = 0.125 : f64}
  commir.launch "attention_fwd" ins(%q, %q, %q : !t4, !t4, !t4) outs(%q, %l : !t4, !t3)
      at(%p, %p, %p, %p) scratch(%w : !t1)
  %s = commir.status
  return %s : i32
}

// -----

// A tile has four dimensions to the kernels that work on its elements.
// CHECK-LABEL: func.func @fill_and_convert(
// CHECK-SAME: %[[A:[^:]*]]: memref<?x?xf32, {{.*}}>, %[[B:[^:]*]]: memref<?x?xbf16,
// CHECK: scf.if
// CHECK: %[[BITS:.*]] = builtin.unrealized_conversion_cast %[[A]] : {{.*}} to memref<?x?xi32,
// CHECK: %[[MINUSINF:.*]] = arith.constant -8388608 : i32
// CHECK: %[[BASE:.*]], %[[OFFSET:.*]], %[[N:.*]]:2, %[[S:.*]]:2 = memref.extract_strided_metadata %[[BITS]]
// CHECK: %[[TILE:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%c1{{.*}}, %c1{{.*}}, %[[N]]#0, %[[N]]#1], strides: [%c1{{.*}}, %c1{{.*}}, %[[S]]#0, %[[S]]#1]
// CHECK: call @mercury_kernel_fill_i32_i32_i32(%[[TILE]], %[[MINUSINF]])
// CHECK: scf.if
// CHECK: call @mercury_kernel_copy_f32_f32_bf16(%{{.*}}, %{{.*}}) : (memref<?x?x?x?xf32, {{.*}}>, memref<?x?x?x?xbf16, {{.*}}>) -> ()
!a = memref<?x?xf32, strided<[?, ?], offset: ?>>
!b = memref<?x?xbf16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @fill_and_convert(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !a, %b: !b) -> i32
    attributes {commir.mesh = @mesh} {
  commir.fill %a with 0xFFF0000000000000 : !a
  commir.copy %a to %b : !a to !b
  %s = commir.status
  return %s : i32
}

// -----

// Between tiles of one type, of any strides, elements are copied as bits.
// CHECK-LABEL: func.func @strided_copy(
// CHECK-SAME: %[[SOURCE:[^:]*]]: memref<?x?xbf16, {{.*}}>, %[[TARGET:[^:]*]]: memref<?x?xbf16,
// CHECK: scf.if
// CHECK: %[[A:.*]] = builtin.unrealized_conversion_cast %[[SOURCE]] : {{.*}} to memref<?x?xi16,
// CHECK: %[[B:.*]] = builtin.unrealized_conversion_cast %[[TARGET]] : {{.*}} to memref<?x?xi16,
// CHECK: %[[BASE:.*]], %[[AT:.*]], %[[N:.*]]:2, %[[S:.*]]:2 = memref.extract_strided_metadata %[[A]]
// CHECK: %[[X:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[AT]]], sizes: [%c1{{.*}}, %c1{{.*}}, %[[N]]#0, %[[N]]#1], strides: [%c1{{.*}}, %c1{{.*}}, %[[S]]#0, %[[S]]#1]
// CHECK: %[[Y:.*]] = memref.reinterpret_cast
// CHECK: call @mercury_kernel_copy_i16_i16_i16(%[[X]], %[[Y]])
!a = memref<?x?xbf16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @strided_copy(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !a, %b: !a) -> i32
    attributes {commir.mesh = @mesh} {
  commir.copy %a to %b : !a to !a
  %s = commir.status
  return %s : i32
}

// -----

// What has more dimensions than the kernel is copied by their indices.
// CHECK-LABEL: func.func @copy_of_many_dimensions(
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK-NOT: scf.for
// CHECK: %[[BASE:.*]], %[[AT:.*]], %[[N:.*]]:5, %[[S:.*]]:5 = memref.extract_strided_metadata
// CHECK: %[[SKIPPED:.*]] = arith.muli %[[I]], %[[S]]#0
// CHECK: %[[FROM:.*]] = arith.addi %[[AT]], %[[SKIPPED]]
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [%[[FROM]]], sizes: [%[[N]]#1, %[[N]]#2, %[[N]]#3, %[[N]]#4]
// CHECK: call @mercury_kernel_copy_i32_i32_i32
!a5 = memref<?x?x?x?x?xf32, strided<[?, ?, ?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @copy_of_many_dimensions(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !a5, %b: !a5) -> i32
    attributes {commir.mesh = @mesh} {
  commir.copy %a to %b : !a5 to !a5
  %s = commir.status
  return %s : i32
}
