// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// R3 in forms that are not lowered
//===----------------------------------------------------------------------===//

commir.mesh @mesh(gpu = 4)
commir.program @link_of_8_bits on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R3 and R6 with link 'f8E4M3FN' (elements move in f64, f32, bf16 or f16; give one of them)}}
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, link f8E4M3FN) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(node = 2, gpu = 2)
commir.program @parallel_and_shifted on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R3 of a parallel loop (the parts of 'i' are spread already; tile it first, and shift the loop that is not parallel)}}
  commir.for j of 2 parallel(gpu), i of 2 parallel(node) shift(by j on gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

//===----------------------------------------------------------------------===//
// Merges, kernels and types that are not lowered
//===----------------------------------------------------------------------===//

// -----

commir.mesh @mesh(gpu = 4)
commir.merge @product identity(1.0 : f32) (%a: f32, %b: f32) {
  %c = arith.mulf %a, %b : f32
  commir.yield %c : f32
}
commir.program @user_merge on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    // expected-error@below {{merge 'product' does not fit the generated kernel 'matmul' that makes the result; merge by sum}}
    commir.store %c to %C merge(@product) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @merge_that_the_kernel_does_not_do on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    // expected-error@below {{merge 'max' does not fit the generated kernel 'matmul' that makes the result; merge by sum}}
    commir.store %c to %C merge(max) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

// What a kernel would not hear is refused, never dropped.
commir.mesh @mesh(gpu = 4)
commir.program @kernel_option on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{has the option 'alpha' = 2.000000e+00 : f64, which the generated kernel 'matmul' does not take}}
    %c = commir.kernel "matmul"(%a, %b) {alpha = 2.0 : f64}
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @kernel_with_a_signature_of_its_own on @mesh axes(i = 8, j = 8)
    inputs(%X: !commir.buffer<[i, j], f32>) outputs(%S: !commir.buffer<[i], f32>) {
  commir.for i, j {
    %x = commir.load %X : !commir.buffer<[i, j], f32>
    // expected-error@below {{has no generated implementation of kernel 'row_sum'}}
    %s = commir.kernel "row_sum"(%x) signature("m n -> m")
        : (!commir.tile<[i, j], f32>) -> !commir.tile<[i], f32>
    commir.store %s to %S merge(sum) over(j)
        : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @known_kernel_with_another_signature on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[k, i], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i, j, k {
    %a = commir.load %A : !commir.buffer<[k, i], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    // expected-error@below {{has a signature of its own; the generated kernel 'matmul' is "m k, k n -> m n"}}
    %c = commir.kernel "matmul"(%a, %b) signature("k m, k n -> m n")
        : (!commir.tile<[k, i], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @kernel_on_a_result on @mesh axes(i = 8, j = 8, k = 8, l = 8)
    inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>,
           %D: !commir.buffer<[j, l], f32>)
    outputs(%C: !commir.buffer<[i, l], f32>) {
  commir.for i, l, j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %d = commir.load %D : !commir.buffer<[j, l], f32>
    // expected-error@below {{must have each result stored once}}
    %ab = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    %c = commir.kernel "matmul"(%ab, %d)
        : (!commir.tile<[i, j], f32>, !commir.tile<[j, l], f32>)
        -> !commir.tile<[i, l], f32>
    commir.store %c to %C merge(sum) over(j, k)
        : !commir.tile<[i, l], f32> to !commir.buffer<[i, l], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @stored_load on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32>) outputs(%Y: !commir.buffer<[i], f32>) {
  commir.for i {
    %x = commir.load %X : !commir.buffer<[i], f32>
    // expected-error@below {{stores a tile that no kernel makes, which this version does not lower yet; store what a kernel gives}}
    commir.store %x to %Y
        : !commir.tile<[i], f32> to !commir.buffer<[i], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @scale_that_is_no_f64 on @mesh axes(b = 1, h = 2, sq = 14, sk = 14)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32>,
           %K: !commir.buffer<[b, sk, h, 8], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32>,
            %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f32>
    // expected-error@below {{has the option 'scale' = 2 : i64, which the generated kernel 'attention_fwd' does not take; it takes scale, an f64}}
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k) {scale = 2 : i64}
        : (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>,
           !commir.tile<[b, sk, h, 8], f32>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], f32>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
// expected-error@below {{has elements of 'f8E4M3FN' in buffer 'Q', which this version does not lower yet; bf16, f16, f32 and f64 it does}}
commir.program @element_type on @mesh axes(b = 1, h = 2, sq = 14, sk = 14)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f8E4M3FN>,
           %K: !commir.buffer<[b, sk, h, 8], f8E4M3FN>)
    outputs(%O: !commir.buffer<[b, sq, h, 8], f8E4M3FN>,
            %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 8], f8E4M3FN>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 8], f8E4M3FN>
    %o, %l = commir.kernel "attention_fwd"(%q, %k, %k)
        : (!commir.tile<[b, sq, h, 8], f8E4M3FN>, !commir.tile<[b, sk, h, 8], f8E4M3FN>,
           !commir.tile<[b, sk, h, 8], f8E4M3FN>)
        -> (!commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %l to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 8], f8E4M3FN>, !commir.buffer<[b, h, sq], f32>
  }
}

// -----

// Two parts of i would share a row of i/2, and add to it twice.
commir.mesh @mesh(gpu = 4)
commir.program @divided_result on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i/2, k], f32>, %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i/2, j], f32>) {
  // expected-error@below {{needs rule R8 (axis 'i' is cut within the groups of 'i/2'; cut it at multiples of 2)}}
  commir.for i of 3, j, k {
    %a = commir.load %A : !commir.buffer<[i/2, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i/2, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i/2, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i/2, j], f32> to !commir.buffer<[i/2, j], f32>
  }
}

// -----

commir.mesh @mesh(gpu = 4)
commir.program @divided_sum on @mesh axes(i = 8, j = 8, k = 6)
    inputs(%A: !commir.buffer<[i, k/2], f32>, %B: !commir.buffer<[k/2, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  // expected-error@below {{needs rule R8 (axis 'k' is cut within the groups of 'k/2'; cut it at multiples of 2)}}
  commir.for i, j of 4 parallel(gpu), k of 4 shift(by j on gpu) {
    %a = commir.load %A : !commir.buffer<[i, k/2], f32>
    %b = commir.load %B : !commir.buffer<[k/2, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k/2], f32>, !commir.tile<[k/2, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
