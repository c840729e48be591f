// RUN: mercury-opt %s --convert-commir-to-runtime -split-input-file -verify-diagnostics

!o = memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>
!l = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @result_rounded_at_each_launch(%context: !llvm.ptr, %buffers: !llvm.ptr, %o: !o, %l: !l)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{merges into a result of 'bf16', which each launch would round; overwrite it, or give it elements of 'f32'}}
  commir.launch "softmax_merge" ins(%o, %l : !o, !l) outs(%o, %l : !o, !l) at()
  return
}

// -----

!half = memref<?x?xf16, strided<[?, ?], offset: ?>>
!single = memref<?x?xf32, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @mixed_inputs(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !half, %b: !single)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{'commir.launch' op must have elements of 'f16' in operand 1 of kernel 'matmul', got 'f32'}}
  commir.launch "matmul" ins(%a, %b : !half, !single) outs(%b : !single) at()
  return
}

// -----

!q = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!l = memref<?x?x?xbf16, strided<[?, ?, ?], offset: ?>>
!w = memref<?xf32, strided<[?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @narrow_statistics(%context: !llvm.ptr, %buffers: !llvm.ptr, %q: !q, %l: !l, %w: !w, %p: index)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{must have elements of 'f32' in operand 4 of kernel 'attention_fwd', got 'bf16'}}
  commir.launch "attention_fwd" ins(%q, %q, %q : !q, !q, !q) outs(%q, %l : !q, !l) at(%p, %p, %p, %p) scratch(%w : !w)
  return
}

// -----

!a = memref<?xf32, strided<[?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @unknown_kernel(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !a)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{there is no generated kernel 'row_sum'}}
  commir.launch "row_sum" ins(%a : !a) outs(%a : !a) at()
  return
}

// -----

commir.mesh @mesh(gpu = 4)
func.func @position_that_is_not_localized(%context: !llvm.ptr, %buffers: !llvm.ptr, %p: index)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{'commir.position' op must be lowered before the runtime is called; run commir-to-spmd first}}
  %at = commir.position i : %p of 4
  return
}

// -----

commir.mesh @mesh(gpu = 4)
func.func @tile_that_is_not_localized(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !commir.tile<[i], f32>)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{'commir.fill' op must be lowered before the runtime is called; run commir-to-spmd first}}
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
  return
}

// -----

commir.mesh @mesh(gpu = 4)
func.func @unknown_level(%context: !llvm.ptr, %buffers: !llvm.ptr) attributes {commir.mesh = @mesh} {
  // expected-error@below {{'commir.group_rank' op must name a level of the mesh ('gpu'), got 'node'}}
  %r = commir.group_rank "node"
  return
}

// -----

// expected-error@below {{must run on a commir.mesh, 'cluster' is none}}
func.func @unknown_mesh(%context: !llvm.ptr, %buffers: !llvm.ptr) attributes {commir.mesh = @cluster} {
  return
}

// -----

commir.mesh @mesh(gpu = 4)
// expected-error@below {{must not be called 'mercury_rt_wait', as a function that the compiled code calls; give the program another name}}
func.func @mercury_rt_wait(%context: !llvm.ptr, %buffers: !llvm.ptr) attributes {commir.mesh = @mesh} {
  return
}

// -----

commir.mesh @mesh(gpu = 4)
// expected-error@below {{must not be called 'expf'}}
func.func @expf(%context: !llvm.ptr, %buffers: !llvm.ptr) attributes {commir.mesh = @mesh} {
  return
}

// -----

!double = memref<?xf64, strided<[?], offset: ?>>
!brain = memref<?xbf16, strided<[?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @double_to_bfloat(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !double, %b: !brain)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{kernel 'copy' cannot round f64 to bf16 yet; give its result another type}}
  commir.copy %a to %b : !double to !brain
  return
}

// -----

commir.mesh @mesh(gpu = 4)
// expected-error@below {{'commir.program' op is left after conversion to the runtime}}
commir.program @not_lowered_at_all on @mesh axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32>) outputs() {
}

// -----

!t = memref<?x?xi16, strided<[?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @named_kernel_of_integers(%context: !llvm.ptr, %buffers: !llvm.ptr, %a: !t) -> i32
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{'commir.launch' op hands a kernel of 'torch' tiles of f16, bf16, f32 or f64, got 'i16'}}
  commir.launch "matmul" ins(%a, %a : !t, !t) outs(%a : !t) at() impl("torch")
  %s = commir.status
  return %s : i32
}

// -----

!q = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>
!l = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
commir.mesh @mesh(gpu = 4)
func.func @no_scratch(%context: !llvm.ptr, %buffers: !llvm.ptr, %q: !q, %l: !l, %p: index)
    attributes {commir.mesh = @mesh} {
  // expected-error@below {{must have the operands of kernel 'attention_fwd', scratch included, 14 in all, got 13}}
  commir.launch "attention_fwd" ins(%q, %q, %q : !q, !q, !q) outs(%q, %l : !q, !l) at(%p, %p, %p, %p)
  return
}
