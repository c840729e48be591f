// RUN: mercury-opt %s "--gpu-lower-to-nvvm-pipeline=cubin-chip=sm_90a cubin-features=+ptx80 cubin-format=isa" | FileCheck %s

// Merges two partial results of attention, of [batch, rows, heads, dim] with
// log-sum-exps of [batch, heads, rows]; each thread takes 8 elements, by loads
// and stores of 16 bytes. Two empty parts merge to an empty one, never NaN.

// CHECK: .entry softmax_merge(
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK: st.global.v4.b32
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @softmax_merge(%o1: !llvm.ptr, %lse1: !llvm.ptr, %o2: !llvm.ptr, %lse2: !llvm.ptr, %o: !llvm.ptr, %lse: !llvm.ptr,
                          %row_items: i64, %heads: i64, %rows: i64, %items: i64) kernel {
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %bd = gpu.block_dim x
    %base = arith.muli %bx, %bd : index
    %index = arith.addi %base, %tx : index
    %item = arith.index_cast %index : index to i64
    %inside = arith.cmpi ult, %item, %items : i64
    scf.if %inside {
      %zero = arith.constant 0 : i64
      %row = arith.divui %item, %row_items : i64
      %within = arith.remui %item, %row_items : i64
      %head = arith.remui %row, %heads : i64
      %line = arith.divui %row, %heads : i64
      %batch = arith.divui %line, %rows : i64
      %r = arith.remui %line, %rows : i64
      %bh0 = arith.muli %batch, %heads : i64
      %bh = arith.addi %bh0, %head : i64
      %at0 = arith.muli %bh, %rows : i64
      %at = arith.addi %at0, %r : i64
      %p1 = llvm.getelementptr %lse1[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %p2 = llvm.getelementptr %lse2[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %l1 = llvm.load %p1 {alignment = 4 : i64} : !llvm.ptr -> f32
      %l2 = llvm.load %p2 {alignment = 4 : i64} : !llvm.ptr -> f32
      %q1 = llvm.getelementptr %o1[%item] : (!llvm.ptr, i64) -> !llvm.ptr, vector<8xbf16>
      %q2 = llvm.getelementptr %o2[%item] : (!llvm.ptr, i64) -> !llvm.ptr, vector<8xbf16>
      %b1 = llvm.load %q1 {alignment = 16 : i64} : !llvm.ptr -> vector<8xbf16>
      %b2 = llvm.load %q2 {alignment = 16 : i64} : !llvm.ptr -> vector<8xbf16>
      %ninf = arith.constant 0xFF800000 : f32
      %f0 = arith.constant 0.0 : f32
      %m = arith.maxnumf %l1, %l2 : f32
      %empty = arith.cmpf oeq, %m, %ninf : f32
      %d1 = arith.subf %l1, %m : f32
      %d2 = arith.subf %l2, %m : f32
      %e1 = math.exp %d1 fastmath<afn> : f32
      %e2 = math.exp %d2 fastmath<afn> : f32
      %sum = arith.addf %e1, %e2 : f32
      %log = math.log %sum fastmath<afn> : f32
      %merged = arith.addf %m, %log : f32
      %result = arith.select %empty, %ninf, %merged : f32
      %w1q = arith.divf %e1, %sum : f32
      %w2q = arith.divf %e2, %sum : f32
      %w1 = arith.select %empty, %f0, %w1q : f32
      %w2 = arith.select %empty, %f0, %w2q : f32
      %x1 = arith.extf %b1 : vector<8xbf16> to vector<8xf32>
      %x2 = arith.extf %b2 : vector<8xbf16> to vector<8xf32>
      %v1 = vector.broadcast %w1 : f32 to vector<8xf32>
      %v2 = vector.broadcast %w2 : f32 to vector<8xf32>
      %y1 = arith.mulf %x1, %v1 : vector<8xf32>
      %y = math.fma %x2, %v2, %y1 : vector<8xf32>
      %z = arith.truncf %y : vector<8xf32> to vector<8xbf16>
      %q = llvm.getelementptr %o[%item] : (!llvm.ptr, i64) -> !llvm.ptr, vector<8xbf16>
      llvm.store %z, %q {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr
      %first = arith.cmpi eq, %within, %zero : i64
      scf.if %first {
        %p = llvm.getelementptr %lse[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        llvm.store %result, %p {alignment = 4 : i64} : f32, !llvm.ptr
      }
    }
    gpu.return
  }
}
}
