// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// R4: all ranks sum their partial results
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r4_all_reduce
// CHECK: %[[SUM:.*]] = commir.part %C [] :
// CHECK: commir.launch "matmul" ins({{.*}}) outs(%[[SUM]] : {{.*}} {overwrite = array<i1: true>}
// CHECK: %[[TOKEN:.*]] = commir.all_reduce.start %[[SUM]] into %[[SUM]] merge(sum) on "gpu" :
// CHECK-NEXT: commir.wait %[[TOKEN]]
// CHECK-NOT: commir.{{fill|copy|accumulate}}
commir.mesh @mesh(gpu = 4)
commir.program @r4_all_reduce on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> replicate [gpu]) {
  commir.for i, j, k of 4 parallel(gpu) {
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

//===----------------------------------------------------------------------===//
// R5: each rank gets the sum of its own part
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r5_reduce_scatter
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 1 placement [] parts {}
// CHECK: commir.launch "matmul"
// CHECK: %[[SUM:.*]] = commir.alloc slots 1 placement [i -> gpu] parts {}
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 4 placement [] parts {i = 4 : i64}
// CHECK: scf.for %[[MEMBER:.*]] = %c0{{.*}} to %c4
// CHECK:   %[[PART:.*]] = commir.part %[[PARTIAL]] [i : %[[MEMBER]] of 4]
// CHECK:   %[[SLOT:.*]] = commir.part %[[SLOTS]] slot %[[MEMBER]] [i : %[[MEMBER]] of 4]
// CHECK:   commir.copy %[[PART]] to %[[SLOT]]
// CHECK: %[[MINE:.*]] = commir.part %[[SUM]] [i : %[[R]] of 4]
// CHECK: %[[TOKEN:.*]] = commir.reduce_scatter.start %[[SLOTS]] into %[[MINE]] merge(sum) on "gpu" along i
// CHECK-NEXT: commir.wait %[[TOKEN]]
commir.mesh @mesh(gpu = 4)
commir.program @r5_reduce_scatter on @mesh axes(i = 7, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for i, j, k of 4 parallel(gpu) {
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

// Parts of one size that follow one another in whole cache lines are slots
// where they lie.
// CHECK-LABEL: commir.program @r5_slots_in_place
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 1 placement [] parts {}
// CHECK: commir.launch "matmul"
// CHECK-NOT: commir.copy
// CHECK: commir.reduce_scatter.start %[[PARTIAL]] into %{{.*}} merge(sum) on "gpu" along i
commir.mesh @mesh(gpu = 4)
commir.program @r5_slots_in_place on @mesh axes(i = 64, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for i, j, k of 4 parallel(gpu) {
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

//===----------------------------------------------------------------------===//
// R6: the sum of a part goes to the rank that works on the part next
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r6_shifted_reduction
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[PARTIAL:.*]] = commir.alloc slots 2 placement [] parts {i = 4 : i64} : !commir.buffer<[i, j], f32>
// CHECK: %[[IN:.*]] = commir.alloc slots 1 placement [] parts {i = 4 : i64} : !commir.buffer<[i, j], f32>
// CHECK-NOT: commir.fill
// CHECK: scf.for %[[STEP:.*]] = %c0{{.*}} to %c4
// CHECK:   %[[STARTED:.*]] = arith.cmpi ne, %[[STEP]], %c0
// CHECK:   %[[LEAVING:.*]] = commir.part %[[PARTIAL]] slot %{{.*}} [i : %[[LAST:.*]] of 4]
// CHECK:   %[[COMING:.*]] = commir.part %[[IN]] [i : %[[NOW:.*]] of 4]
// CHECK:   %[[TOKEN:.*]] = commir.exchange.start %[[LEAVING]] to %{{.*}}, %[[COMING]] from %{{.*}} on "gpu" when %[[STARTED]]
// CHECK:   %[[HERE:.*]] = commir.part %[[PARTIAL]] slot %{{.*}} [i : %[[NOW]] of 4]
// CHECK:   commir.launch "matmul" ins({{.*}}) outs(%[[HERE]] : {{.*}} {overwrite = array<i1: true>}
// CHECK:   commir.wait %[[TOKEN]]
// CHECK:   scf.if %{{.*}} {
// CHECK:     commir.accumulate %[[COMING]] to %[[HERE]]
// CHECK: %[[MINE:.*]] = commir.part %C [i : %[[R]] of 4]
// CHECK: commir.copy %{{.*}} to %[[MINE]]
// CHECK-NOT: commir.exchange.start
commir.mesh @mesh(gpu = 4)
commir.program @r6_shifted_reduction on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> shard [i -> gpu]) {
  commir.for j, k of 4 parallel(gpu), i of 4 shift(by k on gpu, offset 1) {
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

//===----------------------------------------------------------------------===//
// R7: one level moves from one axis to another, before or after the loops
//===----------------------------------------------------------------------===//

// CHECK-LABEL: commir.program @r7_input
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[INSIDE:.*]] = commir.alloc slots 1 placement [i -> gpu] parts {} : !commir.buffer<[i, k], f32>
// CHECK: commir.redistribute %A to %[[INSIDE]] :
// CHECK: %[[READ:.*]] = commir.part %[[INSIDE]] [i : %[[R]] of 4]
// CHECK: commir.launch "matmul" ins(%[[READ]],
commir.mesh @mesh(gpu = 4)
commir.program @r7_input on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> at [k -> gpu],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k {
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

// CHECK-LABEL: commir.program @r7_output
// CHECK: commir.launch "matmul"
// CHECK: commir.redistribute %{{.*}} to %C :
commir.mesh @mesh(gpu = 4)
commir.program @r7_output on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32> at [j -> gpu]) {
  commir.for i of 4 parallel(gpu), j, k {
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

// CHECK-LABEL: commir.program @r7_slice
// CHECK: commir.redistribute %A to %{{.*}} :
commir.mesh @mesh(gpu = 4)
commir.program @r7_slice on @mesh axes(i = 8, j = 8, k = 8)
    inputs(%A: !commir.buffer<[i, k], f32> at [],
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
