// RUN: mercury-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @only_part
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[MANY:.*]] = commir.position sk : %{{.*}} of 2
// CHECK: return %[[ZERO]], %[[MANY]]
func.func @only_part(%p: index) -> (index, index) {
  %one = commir.position sk : %p of 1
  %many = commir.position sk : %p of 2
  return %one, %many : index, index
}

// CHECK-LABEL: func.func @copy_to_itself
// CHECK-COUNT-1: commir.copy
// CHECK-NOT: commir.copy
func.func @copy_to_itself(%a: memref<?xf32>, %b: memref<?xf32>) {
  commir.copy %a to %a : memref<?xf32> to memref<?xf32>
  commir.copy %a to %b : memref<?xf32> to memref<?xf32>
  return
}

commir.mesh @mesh(gpu = 2)

// CHECK-LABEL: commir.program @full_mask
// CHECK: commir.kernel "attention_fwd"(%{{.*}}, %{{.*}}, %{{.*}}) :
commir.program @full_mask on @mesh axes(b = 1, h = 2, sq = 8, sk = 8)
    inputs(%Q: !commir.buffer<[b, sq, h, 4], f32>, %K: !commir.buffer<[b, sk, h, 4], f32>)
    outputs(%O: !commir.buffer<[b, sq, h, 4], f32>, %LSE: !commir.buffer<[b, h, sq], f32>) {
  commir.for b, h, sq, sk {
    %q = commir.load %Q : !commir.buffer<[b, sq, h, 4], f32>
    %k = commir.load %K : !commir.buffer<[b, sk, h, 4], f32>
    %o, %lse = commir.kernel "attention_fwd"(%q, %k, %k) mask(full)
        : (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>, !commir.tile<[b, sk, h, 4], f32>)
        -> (!commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>)
    commir.store %o, %lse to %O, %LSE merge(softmax) over(sk)
        : !commir.tile<[b, sq, h, 4], f32>, !commir.tile<[b, h, sq], f32>
        to !commir.buffer<[b, sq, h, 4], f32>, !commir.buffer<[b, h, sq], f32>
  }
}
