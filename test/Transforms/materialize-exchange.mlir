// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication | FileCheck %s
// RUN: mercury-opt %s --commir-to-spmd | FileCheck %s --check-prefix=SPMD

//===----------------------------------------------------------------------===//
// Rows of A are whole inside the loops and cut along k outside; each rank makes
// columns of C and owns all of it. A slice of A comes, and one of C leaves, while
// another is worked on. What is the rank's own is read in the same way
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @products on
// CHECK-NOT: commir.redistribute
// CHECK: %[[A:.*]] = commir.lease.open %A
// CHECK: %[[C:.*]] = commir.alloc slots 2 placement [j -> gpu] parts {i = 3 : i64}
// CHECK: %[[FIRST:.*]] = commir.pull.start {{.*}} of %[[A]]
// CHECK: %[[OWN:.*]] = commir.pull.start {{.*}} of %[[A]]
// CHECK: commir.wait %[[FIRST]]
// CHECK: commir.wait %[[OWN]]
// CHECK: scf.for %[[SLICE:.*]] =
// CHECK: commir.pull.start {{.*}} of %[[A]]
// CHECK: commir.pull.start {{.*}} of %[[A]]
// CHECK: %[[MADE:.*]] = commir.lease.open %[[C]] slot
// CHECK: commir.pull.start {{.*}} of %[[MADE]]
// CHECK: commir.pull.start {{.*}} of %[[MADE]]
// CHECK-NOT: commir.wait
// CHECK: commir.part %[[C]] slot %{{.*}} [i : %[[SLICE]] of 3
// CHECK: commir.launch "matmul"
// CHECK-COUNT-4: commir.wait
// CHECK: commir.lease.close %[[MADE]]
// CHECK: }
// CHECK: %[[LAST:.*]] = commir.lease.open %[[C]] slot
// CHECK-COUNT-2: commir.pull.start {{.*}} of %[[LAST]]
// CHECK-COUNT-2: commir.wait
// CHECK: commir.lease.close %[[LAST]]
// CHECK: commir.lease.close %[[A]]

// SPMD-LABEL: func.func @products
// SPMD: scf.for
// SPMD: commir.launch "matmul"
// SPMD: commir.lease.close
commir.mesh @mesh(gpu = 2)
commir.program @products on @mesh axes(i = 9, j = 7, k = 5)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> at []) {
  commir.for i of 3, j of 2 parallel(gpu), k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  } {commir.overlap = "i"}
}
