// RUN: mercury-opt %s --convert-commir-to-runtime=target=cuda -split-input-file -verify-diagnostics

!t4 = memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xbf16, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @narrow_accumulators(%context: !llvm.ptr, %buffers: !llvm.ptr, %o: !t4, %l: !t3) -> i32
    attributes {commir.mesh = @mesh} {
  // expected-error@+1 {{kernel 'softmax_merge' accumulates in f32 or f64 on a device, got 'bf16'; give its results one of these types}}
  commir.launch "softmax_merge" ins(%o, %l : !t4, !t3) outs(%o, %l : !t4, !t3) at()
  %s = commir.status
  return %s : i32
}

// -----

!t2 = memref<?x?xf32, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @unknown_kernel(%context: !llvm.ptr, %buffers: !llvm.ptr, %o: !t2) -> i32
    attributes {commir.mesh = @mesh} {
  // expected-error@+1 {{there is no generated kernel 'sort' for cuda}}
  commir.launch "sort" ins(%o : !t2) outs(%o : !t2) at()
  %s = commir.status
  return %s : i32
}
