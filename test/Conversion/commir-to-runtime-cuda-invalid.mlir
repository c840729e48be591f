// RUN: mercury-opt %s --convert-commir-to-runtime=target=cuda -split-input-file -verify-diagnostics

!t4 = memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>
!t3 = memref<?x?x?xbf16, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @result_rounded_at_each_launch(%context: !llvm.ptr, %buffers: !llvm.ptr, %o: !t4, %l: !t3) -> i32
    attributes {commir.mesh = @mesh} {
  // expected-error@+1 {{merges into a result of 'bf16', which each launch would round; overwrite it, or give it elements of 'f32'}}
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
