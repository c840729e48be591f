// RUN: mercury-opt %s --commir-infer-placement --commir-materialize-communication --cse -split-input-file | FileCheck %s
// RUN: mercury-opt %s --commir-to-llvm -split-input-file -o /dev/null

//===----------------------------------------------------------------------===//
// R3 of parts that lie in pieces within a shard: a rank's own are put side by
// side, each in a slot of its own behind those of what comes
//===----------------------------------------------------------------------===//

// Three slots for what comes, and two for the rank's own.
// CHECK-LABEL: commir.program @zigzag_parts on
// CHECK: %[[RANK:.*]] = commir.group_rank "gpu"
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 5 placement [] parts {k = 8 : i64}
// CHECK: scf.for %[[OWN:.*]] = %c0{{.*}} to %c2
// CHECK:   %[[KEPT:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [k : %[[PART:.*]] of 8]
// CHECK:   %[[SHARD:.*]] = commir.part %B [k : %[[PART]] of 8]
// CHECK:   commir.copy %[[SHARD]] to %[[KEPT]]
// CHECK: scf.for
// CHECK-NOT: commir.part %B
// CHECK:   %[[LEAVES:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [k : %{{.*}} of 8]
// CHECK:   commir.exchange.start %[[LEAVES]] to %{{.*}} on "gpu" when
// CHECK:   commir.launch "matmul"
commir.mesh @mesh(gpu = 4)
commir.program @zigzag_parts on @mesh axes(i = 8, j = 8, k = 32 zigzag)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 8 shift(by i on gpu) {
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

// Chunk c of part p is part 2p + c of 8.
// CHECK-LABEL: commir.program @zigzag_chunks on
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 6 placement [] parts {k = 8 : i64}
// CHECK: scf.for
// CHECK:   commir.copy
// CHECK: scf.for
// CHECK:   scf.for %[[CHUNK:.*]] = %c0{{.*}} to %c2
// CHECK:     %[[LEAVES:.*]] = commir.part %[[SLOTS]] slot %{{.*}} [k : %[[NUMBER:.*]] of 8]
// CHECK:     commir.exchange.start %[[LEAVES]] to
// CHECK:     %[[A:.*]] = commir.part %A [i : %{{.*}} of 4, k : %[[NUMBER]] of 8]
// CHECK:     commir.launch "matmul" ins(%[[A]], %[[LEAVES]] :
commir.mesh @mesh(gpu = 4)
commir.program @zigzag_chunks on @mesh axes(i = 8, j = 8, k = 32 zigzag)
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, chunks 2) {
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

// Stripes are dealt in turn: chunk c of part p is part 4c + p of 8.
// CHECK-LABEL: commir.program @striped_chunks on
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 2 placement [] parts {k = 4 : i64}
// CHECK: scf.for
// CHECK:   scf.for %[[CHUNK:.*]] = %c0{{.*}} to %c2
// CHECK:     %[[BEFORE:.*]] = arith.muli %[[CHUNK]], %c4
// CHECK:     %[[NEXT:.*]] = arith.addi %[[BEFORE]], %{{.*}}
// CHECK:     commir.part %[[SLOTS]] slot %{{.*}} [k : %[[NEXT]] of 8]
// CHECK:     commir.pull.start
// CHECK:     commir.launch "matmul"
commir.mesh @mesh(gpu = 4)
commir.program @striped_chunks on @mesh axes(i = 8, j = 8, k = 32 striped(2))
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 4 shift(by i on gpu, reads pull, chunks 2) {
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

// So that a rank owns the parts that it starts with, part p of the loop is part
// 4 (p mod 2) + p div 2 of the axis.
// CHECK-LABEL: commir.program @striped_parts on
// CHECK: %[[SLOTS:.*]] = commir.alloc slots 5 placement [] parts {k = 8 : i64}
// CHECK: scf.for
// CHECK:   %[[OWNER:.*]] = arith.divui %[[PART:.*]], %c2
// CHECK:   %[[WITHIN:.*]] = arith.remui %[[PART]], %c2
// CHECK:   %[[BEFORE:.*]] = arith.muli %[[WITHIN]], %c4
// CHECK:   %[[NUMBER:.*]] = arith.addi %[[BEFORE]], %[[OWNER]]
// CHECK:   %[[SHARD:.*]] = commir.part %B [k : %[[NUMBER]] of 8]
// CHECK:   commir.copy %[[SHARD]]
// CHECK: commir.exchange.start
commir.mesh @mesh(gpu = 4)
commir.program @striped_parts on @mesh axes(i = 8, j = 8, k = 32 striped(2))
    inputs(%A: !commir.buffer<[i, k], f32>,
           %B: !commir.buffer<[k, j], f32>)
    outputs(%C: !commir.buffer<[i, j], f32>) {
  commir.for i of 4 parallel(gpu), j, k of 8 shift(by i on gpu) {
    %a = commir.load %A : !commir.buffer<[i, k], f32>
    %b = commir.load %B : !commir.buffer<[k, j], f32>
    %c = commir.kernel "matmul"(%a, %b)
        : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>)
        -> !commir.tile<[i, j], f32>
    commir.store %c to %C merge(sum) over(k)
        : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
  }
}
