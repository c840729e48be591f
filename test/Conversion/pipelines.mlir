// RUN: mercury-opt %s --commir-to-spmd | FileCheck %s --check-prefix=SPMD
// RUN: mercury-opt %s --commir-to-spmd --commir-spmd-to-llvm | FileCheck %s --check-prefix=LLVM
// RUN: mercury-opt %s --commir-to-llvm | FileCheck %s --check-prefix=LLVM
// RUN: mercury-opt %s --commir-to-llvm -o %t.whole
// RUN: mercury-opt %s --commir-to-spmd -o %t.spmd
// RUN: mercury-opt %t.spmd --commir-spmd-to-llvm -o %t.steps
// RUN: diff %t.whole %t.steps

// A whole program: queries and heads in parallel, keys in a ring, grouped heads, a
// mask, uneven shards, bfloat16.

// SPMD-LABEL: func.func @attention(
// SPMD-SAME: -> i32 attributes {commir.local_bytes = {{[1-9].*}} : i64, commir.mesh = @mesh, commir.source = @attention.source}
// SPMD-NOT: commir.{{program|for|load|kernel|store|part|alloc|position}}
// SPMD-NOT: memref.alloc
// SPMD: scf.for
// SPMD: commir.exchange.start
// SPMD: commir.exchange.start
// SPMD: scf.if
// SPMD: commir.launch "attention_fwd" {{.*}}overwrite = array<i1: true, true>
// SPMD-NEXT: } else {
// SPMD: commir.launch "attention_fwd"
// SPMD-NOT: overwrite
// SPMD: commir.wait
// SPMD-NEXT: commir.wait

// LLVM-NOT: {{commir|builtin.unrealized|func\.func|scf\.|memref\.}}
// LLVM-DAG: llvm.func @attention(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// LLVM-DAG: llvm.func @mercury_rt_exchange_start(!llvm.ptr, i64, i64, !llvm.ptr, i64, i64, !llvm.ptr, i64, !llvm.ptr) -> i32
// LLVM-DAG: llvm.func @mercury_kernel_attention_fwd_bf16_f32_f32(
// LLVM-NOT: {{commir\.|builtin.unrealized|func\.func|scf\.|memref\.|@malloc}}
commir.mesh @mesh(node = 2, gpu = 3)
commir.program @attention on @mesh axes(b = 1, h = 8, sq = 301, sk = 401)
    inputs(%Q: !commir.buffer<[b, sq, h, 64], bf16>, %K: !commir.buffer<[b, sk, h/4, 64], bf16>,
           %V: !commir.buffer<[b, sk, h/4, 64], bf16>)
    outputs(%O: !commir.buffer<[b, sq, h, 64], bf16>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h of 2 parallel(node), sq of 3 parallel(gpu), sk of 3 shift(by sq on gpu) {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 64], bf16>
    %k = commir.load %K : !commir.buffer<[b, sk, h/4, 64], bf16>
    %v = commir.load %V : !commir.buffer<[b, sk, h/4, 64], bf16>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %v) mask(causal(100)) {scale = 0.125 : f64}
        : (!commir.tile<[b, sq, h, 64], bf16>, !commir.tile<[b, sk, h/4, 64], bf16>, !commir.tile<[b, sk, h/4, 64], bf16>)
        -> (!commir.tile<[b, sq, h, 64], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 64], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 64], bf16>, !commir.buffer<[b, h, sq], f32>
  }
}
