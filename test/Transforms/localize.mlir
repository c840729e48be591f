// RUN: mercury-opt %s --commir-localize -split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// Functions and memory
//===----------------------------------------------------------------------===//

// One function a program, on a context and the pointers of its buffers.
// CHECK-LABEL: func.func @function_of_a_program(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32 attributes {commir.mesh = @mesh} {
// CHECK: commir.memory argument 0 : memref<?xi8>
// CHECK: commir.memory argument 1 : memref<?xi8>
// CHECK: %[[STATUS:.*]] = commir.status
// CHECK: return %[[STATUS]] : i32
// CHECK-NOT: commir.program
commir.mesh @mesh(gpu = 4)
commir.program @function_of_a_program on @mesh axes(i = 10)
    inputs(%A: !commir.buffer<[i], f32> inside [])
    outputs(%B: !commir.buffer<[i], f32> inside []) {
  %a = commir.part %A [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %b = commir.part %B [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.copy %a to %b : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}

// -----

// Room for the largest part, in whole cache lines, as many times as there are
// slots: 3 x 9 floats take 108 bytes, so 128.
// CHECK-LABEL: func.func @slots
// CHECK: %[[STEP:.*]] = commir.group_rank "gpu"
// CHECK: %[[BYTES:.*]] = memref.alloc() : memref<256xi8>
// CHECK: %[[AT:.*]] = arith.muli %[[STEP]], %c128
// CHECK: memref.view %[[BYTES]][%[[AT]]]
// As the placement cuts it, 10 x 5 doubles take 400 bytes, so 448.
// CHECK: memref.alloc() : memref<448xi8>
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @slots on @mesh axes(i = 10, j = 9) inputs() outputs() {
  %r = commir.group_rank "gpu"
  %s = commir.alloc slots 2 placement [] parts {i = 4 : i64} : !commir.buffer<[i, j], f32>
  %t = commir.part %s slot %r [i : %r of 4] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  commir.fill %t with 0.0 : !commir.tile<[i, j], f32>
  %p = commir.alloc slots 1 placement [j -> node] parts {} : !commir.buffer<[i, j], f64>
  %u = commir.part %p [] : !commir.buffer<[i, j], f64> -> !commir.tile<[i, j], f64>
  commir.fill %u with 0.0 : !commir.tile<[i, j], f64>
}

//===----------------------------------------------------------------------===//
// Tiles: sizes and offsets by the axes' layouts
//===----------------------------------------------------------------------===//

// -----

// The last of more parts than there are positions: a tile of it begins nowhere.
// CHECK-LABEL: func.func @part_of_no_positions
// CHECK: memref.view {{.*}} to memref<0x3xf32>
// CHECK-NOT: memref.subview
// CHECK: commir.fill
commir.mesh @mesh(gpu = 2)
commir.program @part_of_no_positions on @mesh axes(i = 1, j = 6) inputs() outputs() {
  %c1 = arith.constant 1 : index
  %r = commir.group_rank "gpu"
  %s = commir.alloc slots 1 placement [] parts {i = 2 : i64} : !commir.buffer<[i, j], f32>
  %t = commir.part %s [i : %c1 of 2, j : %r of 2] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  commir.fill %t with 0.0 : !commir.tile<[i, j], f32>
}

// -----

// Shard p of n begins at ceil(p * extent / n). The rank's own part is all of its
// memory; a part of an axis that it holds whole lies at an offset. Every tile has
// one dynamic type. Nothing is computed twice: the second tile needs no more.
// CHECK-LABEL: func.func @block
// CHECK: %[[A:.*]] = commir.memory argument 0
// CHECK: %[[P:.*]] = commir.group_rank "node"
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[R1:.*]] = arith.addi %[[R]], %c1
// CHECK: %[[HI10:.*]] = arith.muli %[[R1]], %c10
// CHECK: %[[HI:.*]] = arith.ceildivui %[[HI10]], %c4
// CHECK: %[[LO10:.*]] = arith.muli %[[R]], %c10
// CHECK: %[[LO:.*]] = arith.ceildivui %[[LO10]], %c4
// CHECK: %[[ROWS:.*]] = arith.subi %[[HI]], %[[LO]]
// CHECK: %[[P9:.*]] = arith.muli %[[P]], %c9
// CHECK: %[[JLO:.*]] = arith.ceildivui %[[P9]], %c2
// CHECK: %[[P1:.*]] = arith.addi %[[P]], %c1
// CHECK: %[[P19:.*]] = arith.muli %[[P1]], %c9
// CHECK: %[[JHI:.*]] = arith.ceildivui %[[P19]], %c2
// CHECK: %[[COLUMNS:.*]] = arith.subi %[[JHI]], %[[JLO]]
// CHECK: %[[HELD:.*]] = memref.view %[[A]][%c0][%[[ROWS]]] : memref<?xi8> to memref<?x9xf32>
// CHECK: %[[SUB:.*]] = memref.subview %[[HELD]][0, %[[JLO]]] [%[[ROWS]], %[[COLUMNS]]] [1, 1]
// CHECK: memref.cast %[[SUB]] : memref<?x?xf32, strided<[9, 1], offset: ?>> to memref<?x?xf32, strided<[?, ?], offset: ?>>
// CHECK-NOT: arith
// CHECK: return
commir.mesh @mesh(node = 2, gpu = 4)
commir.program @block on @mesh axes(i = 10, j = 9)
    inputs(%A: !commir.buffer<[i, j], f32> inside [i -> gpu])
    outputs(%B: !commir.buffer<[i, j], f32> inside [i -> gpu]) {
  %p = commir.group_rank "node"
  %r = commir.group_rank "gpu"
  %a = commir.part %A [i : %r of 4, j : %p of 2] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  %b = commir.part %B [i : %r of 4, j : %p of 2] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  commir.copy %a to %b : !commir.tile<[i, j], f32> to !commir.tile<[i, j], f32>
}

// -----

// Of a strided placement a rank holds several parts side by side: how much that
// is, and where one of them begins, are sums over the parts before.
// CHECK-LABEL: func.func @strided
// CHECK: %[[RANK:.*]] = commir.group_rank "gpu"
// CHECK: %[[PART:.*]] = arith.addi %[[RANK]], %c4
// CHECK: %[[HELD:.*]] = scf.for %[[O:.*]] = %c0 to %c2 step %c1 iter_args(%[[SUM:.*]] = %c0) -> (index) {
// CHECK:   %[[FIRST:.*]] = arith.muli %[[O]], %c4
// CHECK:   %[[NUMBER:.*]] = arith.addi %{{.*}}, %[[FIRST]]
// CHECK:   %[[LO10:.*]] = arith.muli %[[NUMBER]], %c10
// CHECK:   arith.ceildivui %[[LO10]], %c8
// CHECK:   %[[NEXT:.*]] = arith.addi %[[SUM]], %{{.*}}
// CHECK:   scf.yield %[[NEXT]]
// CHECK: }
// CHECK: %[[WHICH:.*]] = arith.divui %[[PART]], %c4
// CHECK: %[[BEFORE:.*]] = scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args
// CHECK: memref.view %{{.*}}[%c0][%[[HELD]]]
// CHECK: commir.fill
// CHECK: commir.copy
commir.mesh @mesh(gpu = 4)
commir.program @strided on @mesh axes(i = 10)
    inputs(%B: !commir.buffer<[i], f32> inside [i -> (2, gpu)])
    outputs(%A: !commir.buffer<[i], f32> inside [i -> (2, gpu)]) {
  %r = commir.group_rank "gpu"
  %c4 = arith.constant 4 : index
  %p = arith.addi %c4, %r : index
  %b = commir.part %B [i : %p of 8] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %a = commir.part %A [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
  %c = commir.part %A [i : %p of 8] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.copy %b to %c : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}

// -----

// The levels of a cut are one index, row-major. A finer part of the rank's shard
// lies at the difference of two bounds.
// CHECK-LABEL: func.func @finer_part_over_two_levels
// CHECK-DAG: %[[PART:.*]] = commir.group_rank "part"
// CHECK-DAG: %[[NODE:.*]] = commir.group_rank "node"
// CHECK-DAG: %[[GPU:.*]] = commir.group_rank "gpu"
// CHECK: %[[N4:.*]] = arith.muli %{{.*}}, %c4
// CHECK: %[[RANK:.*]] = arith.addi %[[N4]], %[[GPU]]
// CHECK: %[[F100:.*]] = arith.muli %[[PART]], %c100
// CHECK: %[[FIRST:.*]] = arith.ceildivui %[[F100]], %c24
// CHECK: %[[AT:.*]] = arith.subi %[[FIRST]], %[[FROM:.*]] : index
// CHECK: memref.subview %{{.*}}[%[[AT]]] [
commir.mesh @mesh(node = 2, gpu = 4, part = 24)
commir.program @finer_part_over_two_levels on @mesh axes(i = 100)
    inputs(%A: !commir.buffer<[i], f32> inside [i -> (node, gpu)])
    outputs(%B: !commir.buffer<[i], f32> inside [i -> (node, gpu)]) {
  %p = commir.group_rank "part"
  %a = commir.part %A [i : %p of 24] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %b = commir.part %B [i : %p of 24] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.copy %a to %b : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}

// -----

// 2n blocks; shard p holds blocks p and 2n - 1 - p.
// CHECK-LABEL: func.func @zigzag
// CHECK: %[[P:.*]] = commir.group_rank "gpu"
// CHECK: %[[P1:.*]] = arith.addi %[[P]], %c1
// CHECK: %[[A:.*]] = arith.muli %[[P]], %c50
// CHECK: %[[LO:.*]] = arith.ceildivui %[[A]], %c8
// CHECK: %[[B:.*]] = arith.muli %[[P1]], %c50
// CHECK: %[[HI:.*]] = arith.ceildivui %[[B]], %c8
// CHECK: %[[FRONT:.*]] = arith.subi %[[HI]], %[[LO]]
// CHECK: %[[LAST:.*]] = arith.subi %c8{{.*}}, %[[P1]]
// CHECK: %[[C:.*]] = arith.muli %[[LAST]], %c50
// CHECK: %[[LO2:.*]] = arith.ceildivui %[[C]], %c8
// CHECK: %[[NEXT:.*]] = arith.addi %[[LAST]], %c1
// CHECK: %[[D:.*]] = arith.muli %[[NEXT]], %c50
// CHECK: %[[HI2:.*]] = arith.ceildivui %[[D]], %c8
// CHECK: %[[BACK:.*]] = arith.subi %[[HI2]], %[[LO2]]
// CHECK: %[[SIZE:.*]] = arith.addi %[[FRONT]], %[[BACK]]
// CHECK: memref.view %{{.*}}[%{{.*}}][%[[SIZE]]]
// CHECK-NOT: memref.subview
commir.mesh @mesh(gpu = 4)
commir.program @zigzag on @mesh axes(i = 50 zigzag) inputs()
    outputs(%A: !commir.buffer<[i], f32> inside [i -> gpu]) {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [i : %r of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
}

// -----

// 50 = 4 whole rounds of 3 shards by 4, and 2 left for the first shard.
// CHECK-LABEL: func.func @striped
// CHECK: %[[MINE:.*]] = arith.muli %[[P:.*]], %c4
// CHECK: %[[LEFT:.*]] = arith.subi %c2, %[[MINE]]
// CHECK: %[[SOME:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK: %[[LAST:.*]] = arith.minsi %[[SOME]], %c4
// CHECK: %[[SIZE:.*]] = arith.addi %[[LAST]], %c16
// CHECK: memref.view %{{.*}}[%{{.*}}][%[[SIZE]]]
commir.mesh @mesh(gpu = 3)
commir.program @striped on @mesh axes(i = 50 striped(4)) inputs()
    outputs(%A: !commir.buffer<[i], f32> inside [i -> gpu]) {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [i : %r of 3] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
}

// -----

// An even cut has shards of one size, and begins are multiples of it: nothing
// is rounded, nor summed over the shards of a strided placement.
// CHECK-LABEL: func.func @even
// CHECK-NOT: arith.ceildivui
// CHECK-NOT: scf.for
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[KEYS:.*]] = arith.muli %[[R]], %c2
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : memref<?xi8> to memref<12x8xf32>
// CHECK: memref.subview %{{.*}}[0, %[[KEYS]]] [12, 2]
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : memref<?xi8> to memref<16xf32>
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : memref<?xi8> to memref<24xf32>
// CHECK: %[[H:.*]] = arith.muli %[[R]], %c8
// CHECK: commir.launch "attention_fwd" {{.*}} at(%[[H]], %[[KEYS]])
// CHECK-NOT: arith.ceildivui
// CHECK: return
commir.mesh @mesh(gpu = 4)
commir.program @even on @mesh axes(i = 48, h = 32, z = 64 zigzag, s = 96 striped(4)) inputs()
    outputs(%A: !commir.buffer<[i, h/4], f32> inside [i -> (2, gpu)],
            %Z: !commir.buffer<[z], f32> inside [z -> gpu],
            %S: !commir.buffer<[s], f32> inside [s -> gpu]) {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [h : %r of 4] : !commir.buffer<[i, h/4], f32> -> !commir.tile<[i, h/4], f32>
  %z = commir.part %Z [z : %r of 4] : !commir.buffer<[z], f32> -> !commir.tile<[z], f32>
  %s = commir.part %S [s : %r of 4] : !commir.buffer<[s], f32> -> !commir.tile<[s], f32>
  %h = commir.position h : %r of 4
  %hk = commir.position h : %r of 4 per 4
  commir.fill %a with 0.0 : !commir.tile<[i, h/4], f32>
  commir.fill %z with 0.0 : !commir.tile<[z], f32>
  commir.launch "attention_fwd" ins(%z : !commir.tile<[z], f32>) outs(%s : !commir.tile<[s], f32>) at(%h, %hk)
}

// -----

// A chain of choices, from the end: shard 1 is empty and begins where 2 does.
// CHECK-LABEL: func.func @bounds
// CHECK: %[[NEXT:.*]] = arith.addi %[[P:.*]], %c1{{.*}} : index
// CHECK: %[[IS2:.*]] = arith.cmpi eq, %[[NEXT]], %c2
// CHECK: %[[END2:.*]] = arith.select %[[IS2]], %c3{{.*}}, %c10
// CHECK: %[[IS1:.*]] = arith.cmpi eq, %[[NEXT]], %c1
// CHECK: %[[END1:.*]] = arith.select %[[IS1]], %c3{{.*}}, %[[END2]]
// CHECK: %[[IS0:.*]] = arith.cmpi eq, %[[NEXT]], %c0
// CHECK: %[[END:.*]] = arith.select %[[IS0]], %c0{{.*}}, %[[END1]]
// CHECK: arith.cmpi eq, %[[P]], %c2
// CHECK: %[[BEGIN:.*]] = arith.select %{{.*}}, %c0{{.*}}, %{{.*}} : index
// CHECK: %[[SIZE:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK: memref.view %{{.*}}[%{{.*}}][%[[SIZE]]]
commir.mesh @mesh(gpu = 3)
commir.program @bounds on @mesh axes(i = 10 bounds[0, 3, 3, 10]) inputs()
    outputs(%A: !commir.buffer<[i], f32> inside [i -> gpu]) {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [i : %r of 3] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.fill %a with 0.0 : !commir.tile<[i], f32>
}

// -----

// A rank holds each key head that one of its heads uses: floor to ceil, and none
// where it has no heads.
// CHECK-LABEL: func.func @grouped_heads
// CHECK: %[[HI:.*]] = arith.ceildivui %{{.*}}, %c5
// CHECK: %[[HIK:.*]] = arith.ceildivui %[[HI]], %c4
// CHECK: %[[LO:.*]] = arith.ceildivui %{{.*}}, %c5
// CHECK: %[[LOK:.*]] = arith.divui %[[LO]], %c4
// CHECK: %[[SPAN:.*]] = arith.subi %[[HIK]], %[[LOK]]
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[HI]], %[[LO]]
// CHECK: %[[SIZE:.*]] = arith.select %[[NONE]], %c0{{.*}}, %[[SPAN]]
// CHECK: memref.view %{{.*}}[%{{.*}}][%[[SIZE]]] : memref<?xi8> to memref<?x128xf32>
commir.mesh @mesh(gpu = 5)
commir.program @grouped_heads on @mesh axes(h = 8) inputs()
    outputs(%K: !commir.buffer<[h/4, 128], f32> inside [h -> gpu]) {
  %r = commir.group_rank "gpu"
  %k = commir.part %K [h : %r of 5] : !commir.buffer<[h/4, 128], f32> -> !commir.tile<[h/4, 128], f32>
  commir.fill %k with 0.0 : !commir.tile<[h/4, 128], f32>
}

// -----

// Memory held one part at a time knows which: slot part 3q + r of 12 is tile r of
// the part q of 4.
// CHECK-LABEL: func.func @tile_of_a_slot
// CHECK: %[[PART:.*]] = commir.group_rank "part"
// CHECK: %[[HELD:.*]] = arith.divui %[[PART]], %c3
// CHECK: %[[NEXT:.*]] = arith.addi %[[HELD]], %c1
// CHECK: memref.subview
commir.mesh @mesh(gpu = 4, part = 12)
commir.program @tile_of_a_slot on @mesh axes(i = 50)
    inputs() outputs(%B: !commir.buffer<[i], f32> inside []) {
  %p = commir.group_rank "part"
  %s = commir.alloc slots 1 placement [] parts {i = 4 : i64} : !commir.buffer<[i], f32>
  %a = commir.part %s [i : %p of 12] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %b = commir.part %B [i : %p of 12] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.copy %a to %b : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}

// -----

// Where there is nothing, no offset lies inside: the tile's sizes are enough.
// CHECK-LABEL: func.func @no_elements
// CHECK-NOT: memref.subview
// CHECK: memref.view %{{.*}}[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?x0xf32>
// CHECK-NOT: memref.subview
commir.mesh @mesh(gpu = 4)
commir.program @no_elements on @mesh axes(i = 10, j = 0)
    inputs() outputs(%A: !commir.buffer<[i, j], f32> inside []) {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [i : %r of 4] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  commir.fill %a with 0.0 : !commir.tile<[i, j], f32>
}

//===----------------------------------------------------------------------===//
// Positions and transfers
//===----------------------------------------------------------------------===//

// -----

// CHECK-LABEL: func.func @position
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: %[[R8:.*]] = arith.muli %[[R]], %c8
// CHECK: %[[H0:.*]] = arith.ceildivui %[[R8]], %c3
// CHECK: %[[HK0:.*]] = arith.divui %[[H0]], %c4
// CHECK: commir.launch "attention_fwd" {{.*}} at(%[[H0]], %[[HK0]])
commir.mesh @mesh(gpu = 3)
commir.program @position on @mesh axes(h = 8)
    inputs() outputs(%A: !commir.buffer<[h], f32> inside []) {
  %a = commir.part %A [] : !commir.buffer<[h], f32> -> !commir.tile<[h], f32>
  %r = commir.group_rank "gpu"
  %h = commir.position h : %r of 3
  %hk = commir.position h : %r of 3 per 4
  commir.launch "attention_fwd" ins(%a : !commir.tile<[h], f32>) outs(%a : !commir.tile<[h], f32>) at(%h, %hk)
}

// -----

// Both ends size a message by the one layout: the bytes of each member's part.
// CHECK-LABEL: func.func @all_gather_lengths
// CHECK: %[[SLOTS:.*]] = memref.alloc() : memref<512xi8>
// CHECK: %[[TILE:.*]] = memref.cast
// CHECK: %[[LENGTHS:.*]] = memref.alloca() : memref<4xi64>
// CHECK: scf.for %[[M:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK: %[[LENGTH:.*]] = arith.subi
// CHECK: %[[BYTES:.*]] = arith.muli %[[LENGTH]], %c36
// CHECK: %[[CAST:.*]] = arith.index_cast %[[BYTES]] : index to i64
// CHECK: memref.store %[[CAST]], %[[LENGTHS]][%[[M]]]
// CHECK: %[[TOKEN:.*]] = commir.all_gather.start %[[TILE]] into %[[SLOTS]] bytes %[[LENGTHS]] : memref<4xi64> on "gpu" along i
// CHECK: commir.wait %[[TOKEN]]
commir.mesh @mesh(gpu = 4)
commir.program @all_gather_lengths on @mesh axes(i = 10, j = 9)
    inputs(%A: !commir.buffer<[i, j], f32> inside [i -> gpu]) outputs() {
  %g = commir.alloc slots 4 placement [] parts {i = 4 : i64} : !commir.buffer<[i, j], f32>
  %a = commir.part %A [] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  %t = commir.all_gather.start %a into %g on "gpu" along i : !commir.tile<[i, j], f32>, !commir.buffer<[i, j], f32>
  commir.wait %t
}

// -----

// A choice of two whole tiles is whole, so a ring may send it.
// CHECK-LABEL: func.func @exchange_of_a_choice
// CHECK: scf.for
// CHECK: %[[NOW:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : memref<?xf32, strided<[?], offset: ?>>
// CHECK: commir.exchange.start %[[NOW]] to
commir.mesh @mesh(gpu = 4)
commir.program @exchange_of_a_choice on @mesh axes(i = 10)
    inputs(%A: !commir.buffer<[i], f32> inside [i -> gpu]) outputs() {
  %r = commir.group_rank "gpu"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = commir.alloc slots 2 placement [] parts {i = 4 : i64} : !commir.buffer<[i], f32>
  scf.for %step = %c0 to %r step %c1 {
    %own = commir.part %A [i : %r of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
    %in = commir.part %s slot %c0 [i : %step of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
    %out = commir.part %s slot %c1 [i : %step of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
    %first = arith.cmpi eq, %step, %r : index
    %now = arith.select %first, %own, %in : !commir.tile<[i], f32>
    %t = commir.exchange.start %now to %c0, %out from %c1 on "gpu" when %first : !commir.tile<[i], f32>, !commir.tile<[i], f32>
    commir.wait %t
  }
}

// -----

//===----------------------------------------------------------------------===//
// Parts of several intervals
//===----------------------------------------------------------------------===//

// A zigzag part is a block from the front and one from the back: what is copied
// out of the whole axis is copied in two pieces.
// CHECK-LABEL: func.func @zigzag_in_two_pieces
// CHECK: %[[R:.*]] = commir.group_rank "gpu"
// CHECK: scf.for %[[PIECE:.*]] = %c0 to %c2
// CHECK:   %[[FRONT:.*]] = arith.cmpi eq, %[[PIECE]], %c0
// CHECK:   %[[BACK:.*]] = arith.subi %c7, %[[R]]
// CHECK:   %[[BLOCK:.*]] = arith.select %[[FRONT]], %[[R]], %[[BACK]]
// CHECK:   memref.subview
// CHECK:   memref.subview
// CHECK:   commir.copy
commir.mesh @mesh(gpu = 4)
commir.program @zigzag_in_two_pieces on @mesh axes(i = 64 zigzag)
    inputs(%A: !commir.buffer<[i], f32> inside [])
    outputs(%B: !commir.buffer<[i], f32> inside [i -> gpu]) {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [i : %r of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %b = commir.part %B [i : %r of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.copy %a to %b : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}

// -----

// A half of a rank's zigzag part lies in pieces within it, and side by side in a
// slot: each piece is where the one or the other has it.
// CHECK-LABEL: func.func @choice_of_pieces_that_lie_unlike
// CHECK: %[[IS:.*]] = arith.cmpi eq
// CHECK: %[[FRAME:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : memref<?xf32
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK:   %[[AT:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : index
// CHECK:   memref.subview %[[FRAME]][%[[AT]]]
// CHECK:   commir.copy
commir.mesh @mesh(gpu = 4)
commir.program @choice_of_pieces_that_lie_unlike on @mesh axes(i = 64 zigzag)
    inputs(%A: !commir.buffer<[i], f32> inside [i -> gpu])
    outputs(%B: !commir.buffer<[i], f32> inside []) {
  %r = commir.group_rank "gpu"
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %part = arith.muli %r, %c2 : index
  %s = commir.alloc slots 1 placement [] parts {i = 8 : i64} : !commir.buffer<[i], f32>
  %own = commir.part %A [i : %part of 8] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %in = commir.part %s [i : %part of 8] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %first = arith.cmpi eq, %r, %c0 : index
  %now = arith.select %first, %own, %in : !commir.tile<[i], f32>
  %b = commir.part %B [i : %part of 8] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.copy %now to %b : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}

// -----

//===----------------------------------------------------------------------===//
// R8: the general exchange
//===----------------------------------------------------------------------===//

// One loop over the other members of the group: pack what that one shall hold,
// exchange, unpack.
// CHECK-LABEL: func.func @redistribute
// CHECK: commir.copy
// CHECK: %[[OUT:.*]] = memref.alloc() : memref<64xi8>
// CHECK: %[[IN:.*]] = memref.alloc() : memref<64xi8>
// CHECK: scf.for %{{.*}} = %c0 to %c3
// CHECK:   %[[TO:.*]] = arith.remui
// CHECK:   %[[FROM:.*]] = arith.remui
// CHECK:   %[[PACKED:.*]] = memref.view %[[OUT]]
// CHECK:   %[[CAME:.*]] = memref.view %[[IN]]
// CHECK:   commir.copy
// CHECK:   %[[TOKEN:.*]] = commir.exchange.start %{{.*}} to %[[TO]], %{{.*}} from %[[FROM]] on ["node", "gpu"]
// CHECK:   commir.wait %[[TOKEN]]
// CHECK:   commir.copy
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @redistribute on @mesh axes(i = 8, j = 6)
    inputs(%A: !commir.buffer<[i, j], f32> inside [i -> (node, gpu)])
    outputs(%B: !commir.buffer<[i, j], f32> inside [j -> (node, gpu)]) {
  commir.redistribute %A to %B : !commir.buffer<[i, j], f32>, !commir.buffer<[i, j], f32>
}

// -----

// One level moves between dimensions: all its ranks deal parts to each other at
// once. A slot takes 2 rows of 2 columns, or less.
// CHECK-LABEL: func.func @redistribute_one_level
// CHECK: commir.copy
// CHECK: %[[OUT:.*]] = memref.alloc() : memref<192xi8>
// CHECK: %[[IN:.*]] = memref.alloc() : memref<192xi8>
// CHECK: %[[SENDS:.*]] = memref.alloca() : memref<3xi64>
// CHECK: %[[RECEIVES:.*]] = memref.alloca() : memref<3xi64>
// CHECK: %[[TAKEN:.*]] = memref.alloca() : memref<3xi64>
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK:   %[[TO:.*]] = arith.remui
// CHECK:   memref.load %[[SENDS]][%[[TO]]]
// CHECK:   memref.view %[[OUT]]
// CHECK:   commir.copy
// CHECK:   memref.store %{{.*}}, %[[SENDS]][%[[TO]]]
// CHECK: scf.for
// CHECK:   memref.store %{{.*}}, %[[RECEIVES]]
// CHECK: %[[TOKEN:.*]] = commir.all_to_all.start %[[OUT]], %[[SENDS]] into %[[IN]], %[[RECEIVES]] on "gpu"
// CHECK-NEXT: commir.wait %[[TOKEN]]
// CHECK: scf.for
// CHECK:   memref.view %[[IN]]
// CHECK:   commir.copy
// CHECK-NOT: commir.exchange.start
commir.mesh @mesh(gpu = 3)
commir.program @redistribute_one_level on @mesh axes(i = 4, j = 5)
    inputs(%A: !commir.buffer<[i, j], f32> inside [i -> gpu])
    outputs(%B: !commir.buffer<[i, j], f32> inside [j -> gpu]) {
  commir.redistribute %A to %B : !commir.buffer<[i, j], f32>, !commir.buffer<[i, j], f32>
}

// -----

// Nothing is sent where the target is a slice of what each rank holds.
// CHECK-LABEL: func.func @redistribute_slice
// CHECK: commir.copy
// CHECK-NOT: commir.exchange.start
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @redistribute_slice on @mesh axes(i = 8, j = 6)
    inputs(%A: !commir.buffer<[i, j], f32> inside [i -> node])
    outputs(%B: !commir.buffer<[i, j], f32> inside [i -> node, j -> gpu]) {
  commir.redistribute %A to %B : !commir.buffer<[i, j], f32>, !commir.buffer<[i, j], f32>
}

// -----

//===----------------------------------------------------------------------===//
// Collectives of sums, links and slots
//===----------------------------------------------------------------------===//

// The length of each member's part: of part (node, member) of 4.
// CHECK-LABEL: func.func @reduce_scatter
// CHECK: %[[SLOTS:.*]] = memref.alloc() : memref<128xi8>
// CHECK: %[[LENGTHS:.*]] = memref.alloca() : memref<2xi64>
// CHECK: scf.for %[[MEMBER:.*]] = %c0 to %c2
// CHECK:   memref.store %{{.*}}, %[[LENGTHS]][%[[MEMBER]]]
// CHECK: commir.reduce_scatter.start %[[SLOTS]] into %{{.*}} bytes %[[LENGTHS]] : memref<2xi64> merge(sum) on "gpu" along i
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @reduce_scatter on @mesh axes(i = 10)
    inputs() outputs(%B: !commir.buffer<[i], f32> inside [i -> (node, gpu)]) {
  %n = commir.group_rank "node"
  %r = commir.group_rank "gpu"
  %c2 = arith.constant 2 : index
  %row = arith.muli %n, %c2 : index
  %part = arith.addi %row, %r : index
  %slots = commir.alloc slots 2 placement [] parts {i = 4} : !commir.buffer<[i], f32>
  %own = commir.part %B [i : %part of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %t = commir.reduce_scatter.start %slots into %own merge(sum) on "gpu" along i
      : !commir.buffer<[i], f32>, !commir.tile<[i], f32>
  commir.wait %t
}

// -----

// A slice is rounded where it lies.
// CHECK-LABEL: func.func @converted_slice
// CHECK: commir.copy %{{.*}} : memref<?x?xf32, {{.*}}> to memref<?x?xbf16, {{.*}}>
commir.mesh @mesh(gpu = 4)
commir.program @converted_slice on @mesh axes(i = 64, j = 64)
    inputs(%A: !commir.buffer<[i, j], f32> inside [])
    outputs(%B: !commir.buffer<[i, j], bf16> inside []) {
  %r = commir.group_rank "gpu"
  %a = commir.part %A [j : %r of 4] : !commir.buffer<[i, j], f32> -> !commir.tile<[i, j], f32>
  %b = commir.part %B [j : %r of 4] : !commir.buffer<[i, j], bf16> -> !commir.tile<[i, j], bf16>
  commir.copy %a to %b : !commir.tile<[i, j], f32> to !commir.tile<[i, j], bf16>
}

// -----

// A lease of one slot is of its bytes.
// CHECK-LABEL: func.func @slot_under_lease
// CHECK: %[[SLOT:.*]] = memref.subview %{{.*}}[%{{.*}}] [64] [1] : memref<128xi8> to memref<64xi8
// CHECK: commir.lease.open %[[SLOT]] on "gpu"
commir.mesh @mesh(gpu = 2)
commir.program @slot_under_lease on @mesh axes(i = 10) inputs() outputs() {
  %r = commir.group_rank "gpu"
  %slots = commir.alloc slots 2 placement [] parts {i = 2} : !commir.buffer<[i], f32>
  %lease = commir.lease.open %slots slot %r on "gpu" : !commir.buffer<[i], f32>
  commir.lease.close %lease
}

// -----

//===----------------------------------------------------------------------===//
// Packed documents
//===----------------------------------------------------------------------===//

// One kernel call a document, each on the queries and keys that lie in it.
// CHECK: memref.global "private" constant @documents.documents : memref<3xi64> = dense<[0, 5, 14]>
// CHECK-LABEL: func.func @documents(
// CHECK: %[[TABLE:.*]] = memref.get_global @documents.documents
// CHECK: scf.for %[[D:.*]] = %c0 to %c2
// CHECK:   memref.load %[[TABLE]][%[[D]]]
// CHECK:   commir.launch "attention_fwd" {{.*}} mask(causal)
commir.mesh @mesh(gpu = 1)
commir.program @documents on @mesh axes(b = 1, h = 2, sq = 14, sk = 14)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [])
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32> inside [],
            %LSE: !commir.buffer<[b, h, sq], f32> inside []) {
  %q = commir.part %Q [] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %o = commir.part %O [] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %l = commir.part %LSE [] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %c0 = arith.constant 0 : index
  commir.launch "attention_fwd" ins(%q, %k, %k : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      outs(%o, %l : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
      at(%c0, %c0, %c0, %c0) mask(causal documents[0, 5, 14])
}

// -----

// Of a zigzag part's half, both pieces are under way at once.
// CHECK-LABEL: func.func @pull_in_two_pieces(
// CHECK: commir.lease.open
// CHECK: %[[FIRST:.*]] = commir.pull.start
// CHECK: %[[SECOND:.*]] = commir.pull.start
// CHECK: commir.wait %[[FIRST]]
// CHECK: commir.wait %[[SECOND]]
// CHECK: commir.lease.close
commir.mesh @mesh(gpu = 2)
commir.program @pull_in_two_pieces on @mesh axes(i = 64 zigzag)
    inputs(%A: !commir.buffer<[i], f32> inside [i -> gpu]) outputs() {
  %zero = arith.constant 0 : index
  %on = arith.constant true
  %peer = commir.group_rank "gpu"
  %s = commir.alloc slots 1 placement [] parts {i = 2 : i64} : !commir.buffer<[i], f32>
  %lease = commir.lease.open %A on "gpu" : !commir.buffer<[i], f32>
  %theirs = commir.lease.memory %lease of %peer : !commir.buffer<[i], f32>
  %from = commir.part %theirs [i : %peer of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %into = commir.part %s [i : %peer of 4] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %t = commir.pull.start %from into %into of %lease from %peer when %on : !commir.tile<[i], f32>, !commir.tile<[i], f32>
  commir.wait %t
  commir.lease.close %lease
}

// -----

// Of a chunk of positions and a slice of heads, the rows are equally far apart
// within one batch element: each comes by a pull of its own.
// CHECK-LABEL: func.func @pull_rows_of_each_batch_element(
// CHECK: commir.lease.open
// CHECK: memref.subview %{{.*}}[0, 0, 0, 0] [1, 4, 2, 8]
// CHECK: %[[FIRST:.*]] = commir.pull.start
// CHECK: memref.subview %{{.*}}[1, 0, 0, 0] [1, 4, 2, 8]
// CHECK: %[[SECOND:.*]] = commir.pull.start
// CHECK: commir.wait %[[FIRST]]
// CHECK: commir.wait %[[SECOND]]
// CHECK: commir.lease.close
commir.mesh @mesh(gpu = 2)
commir.program @pull_rows_of_each_batch_element on @mesh axes(b = 2, s = 16, h = 6)
    inputs(%A: !commir.buffer<[b, s, h, 8], f32> inside [s -> gpu]) outputs() {
  %zero = arith.constant 0 : index
  %on = arith.constant true
  %peer = commir.group_rank "gpu"
  %s = commir.alloc slots 1 placement [] parts {s = 4 : i64, h = 3 : i64} : !commir.buffer<[b, s, h, 8], f32>
  %lease = commir.lease.open %A on "gpu" : !commir.buffer<[b, s, h, 8], f32>
  %theirs = commir.lease.memory %lease of %peer : !commir.buffer<[b, s, h, 8], f32>
  %from = commir.part %theirs [s : %peer of 4, h : %zero of 3] : !commir.buffer<[b, s, h, 8], f32> -> !commir.tile<[b, s, h, 8], f32>
  %into = commir.part %s [s : %peer of 4, h : %zero of 3] : !commir.buffer<[b, s, h, 8], f32> -> !commir.tile<[b, s, h, 8], f32>
  %t = commir.pull.start %from into %into of %lease from %peer when %on : !commir.tile<[b, s, h, 8], f32>, !commir.tile<[b, s, h, 8], f32>
  commir.wait %t
  commir.lease.close %lease
}

// -----

// Of many batch elements, one after the other.
// CHECK-LABEL: func.func @pull_rows_of_many_batch_elements(
// CHECK: commir.lease.open
// CHECK: scf.for
// CHECK:   %[[ROWS:.*]] = commir.pull.start
// CHECK:   commir.wait %[[ROWS]]
// CHECK: }
// CHECK-NOT: commir.wait
// CHECK: commir.lease.close
commir.mesh @mesh(gpu = 2)
commir.program @pull_rows_of_many_batch_elements on @mesh axes(b = 9, s = 16, h = 6)
    inputs(%A: !commir.buffer<[b, s, h, 8], f32> inside [s -> gpu]) outputs() {
  %zero = arith.constant 0 : index
  %on = arith.constant true
  %peer = commir.group_rank "gpu"
  %s = commir.alloc slots 1 placement [] parts {s = 4 : i64, h = 3 : i64} : !commir.buffer<[b, s, h, 8], f32>
  %lease = commir.lease.open %A on "gpu" : !commir.buffer<[b, s, h, 8], f32>
  %theirs = commir.lease.memory %lease of %peer : !commir.buffer<[b, s, h, 8], f32>
  %from = commir.part %theirs [s : %peer of 4, h : %zero of 3] : !commir.buffer<[b, s, h, 8], f32> -> !commir.tile<[b, s, h, 8], f32>
  %into = commir.part %s [s : %peer of 4, h : %zero of 3] : !commir.buffer<[b, s, h, 8], f32> -> !commir.tile<[b, s, h, 8], f32>
  %t = commir.pull.start %from into %into of %lease from %peer when %on : !commir.tile<[b, s, h, 8], f32>, !commir.tile<[b, s, h, 8], f32>
  commir.wait %t
  commir.lease.close %lease
}

// -----

// Many pieces come one after the other.
// CHECK-LABEL: func.func @pull_in_many_pieces(
// CHECK: commir.lease.open
// CHECK: scf.for %{{.*}} to %c32
// CHECK:   %[[PIECE:.*]] = commir.pull.start
// CHECK:   commir.wait %[[PIECE]]
// CHECK: }
// CHECK-NOT: commir.wait
// CHECK: commir.lease.close
commir.mesh @mesh(gpu = 2)
commir.program @pull_in_many_pieces on @mesh axes(i = 64 striped(1))
    inputs(%A: !commir.buffer<[i], f32> inside []) outputs() {
  %zero = arith.constant 0 : index
  %on = arith.constant true
  %peer = commir.group_rank "gpu"
  %s = commir.alloc slots 1 placement [] parts {i = 2 : i64} : !commir.buffer<[i], f32>
  %lease = commir.lease.open %A on "gpu" : !commir.buffer<[i], f32>
  %theirs = commir.lease.memory %lease of %peer : !commir.buffer<[i], f32>
  %from = commir.part %theirs [i : %peer of 2] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %into = commir.part %s [i : %peer of 2] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %t = commir.pull.start %from into %into of %lease from %peer when %on : !commir.tile<[i], f32>, !commir.tile<[i], f32>
  commir.wait %t
  commir.lease.close %lease
}

// -----

// Both pieces of the keys are merged into each piece of the queries: what a launch
// was to overwrite is filled before, with the identity of a softmax pair.
// CHECK-LABEL: func.func @overwrite_in_pieces(
// CHECK: commir.fill %[[O:.*]] with 0.000000e+00
// CHECK: commir.fill %[[LSE:.*]] with 0xFFF0000000000000
// CHECK: scf.for %{{.*}} to %c2
// CHECK:   scf.for %{{.*}} to %c2
// CHECK:     commir.launch "attention_fwd"
// CHECK-NOT: overwrite
commir.mesh @mesh(gpu = 4)
commir.program @overwrite_in_pieces on @mesh axes(b = 1, h = 2, sq = 16 zigzag, sk = 16 zigzag)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu])
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
            %LSE: !commir.buffer<[b, h, sq], f32> inside [sq -> gpu]) {
  %r = commir.group_rank "gpu"
  %q = commir.part %Q [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %o = commir.part %O [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %l = commir.part %LSE [sq : %r of 4] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %q0 = commir.position sq : %r of 4
  %k0 = commir.position sk : %r of 4
  %c0 = arith.constant 0 : index
  commir.launch "attention_fwd" ins(%q, %k, %k : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      outs(%o, %l : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
      at(%q0, %k0, %c0, %c0) mask(causal) {overwrite = array<i1: true, true>}
}

// -----

// Pieces that a mask sees the same of side by side are taken by one launch; what
// it overwrites and leaves out is filled, where there is some.
// CHECK-LABEL: func.func @pieces_together
// CHECK-NOT: scf.for
// CHECK: %[[Q:.*]] = memref.subview %{{.*}}[0, %[[SKIPPED:.*]], 0, 0] [1, %[[ROWS:.*]], 2, 8]
// CHECK: commir.launch "attention_fwd"
// CHECK-SAME: overwrite = array<i1: true, true>
// CHECK: %[[SOME:.*]] = arith.cmpi sgt
// CHECK: scf.if %[[SOME]]
// CHECK:   commir.fill %{{.*}} with 0.0
// CHECK: scf.if
// CHECK: scf.if
// CHECK:   commir.fill %{{.*}} with 0xFFF0000000000000
// CHECK-NOT: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @pieces_together on @mesh axes(b = 1, h = 2, sq = 16 zigzag, sk = 16 zigzag)
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu])
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
            %LSE: !commir.buffer<[b, h, sq], f32> inside [sq -> gpu]) {
  %r = commir.group_rank "gpu"
  %q = commir.part %Q [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %o = commir.part %O [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %l = commir.part %LSE [sq : %r of 4] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %q0 = commir.position sq : %r of 4
  %k0 = commir.position sk : %r of 4
  %c0 = arith.constant 0 : index
  commir.launch "attention_fwd" ins(%q, %k, %k : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      outs(%o, %l : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
      at(%q0, %k0, %c0, %c0) mask(causal) {commir.joined, overwrite = array<i1: true, true>}
}

// -----

// Positions that are dealt one by one see a band of those of another shard: one
// launch, told of positions as far apart as make its mask that band.
// CHECK-LABEL: func.func @one_by_one
// CHECK-NOT: scf.for
// CHECK: commir.launch "attention_fwd"
// CHECK-SAME: mask(causal)
// CHECK-SAME: overwrite = array<i1: true, true>
// CHECK-NOT: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @one_by_one on @mesh axes(b = 1, h = 2, sq = 64 striped(1), sk = 64 striped(1))
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu])
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
            %LSE: !commir.buffer<[b, h, sq], f32> inside [sq -> gpu]) {
  %r = commir.group_rank "gpu"
  %q = commir.part %Q [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %o = commir.part %O [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %l = commir.part %LSE [sq : %r of 4] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %q0 = commir.position sq : %r of 4
  %k0 = commir.position sk : %r of 4
  %c0 = arith.constant 0 : index
  commir.launch "attention_fwd" ins(%q, %k, %k : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      outs(%o, %l : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
      at(%q0, %k0, %c0, %c0) mask(causal) {commir.joined, overwrite = array<i1: true, true>}
}

// -----

// Of a window some shards see one difference less, by where they begin.
// CHECK-LABEL: func.func @window_of_one_by_one
// CHECK-NOT: scf.for
// CHECK: scf.if
// CHECK: commir.launch "attention_fwd"
// CHECK-SAME: mask(window(2, 0))
// CHECK: } else {
// CHECK: commir.launch "attention_fwd"
// CHECK-SAME: mask(window(1, 0))
// CHECK-NOT: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @window_of_one_by_one on @mesh axes(b = 1, h = 2, sq = 64 striped(1), sk = 64 striped(1))
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu])
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
            %LSE: !commir.buffer<[b, h, sq], f32> inside [sq -> gpu]) {
  %r = commir.group_rank "gpu"
  %q = commir.part %Q [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %o = commir.part %O [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %l = commir.part %LSE [sq : %r of 4] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %q0 = commir.position sq : %r of 4
  %k0 = commir.position sk : %r of 4
  %c0 = arith.constant 0 : index
  commir.launch "attention_fwd" ins(%q, %k, %k : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      outs(%o, %l : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
      at(%q0, %k0, %c0, %c0) mask(window(9, 0)) {commir.joined, overwrite = array<i1: true, true>}
}

// -----

// A window that fits between the stripes of two shards leaves nothing there.
// CHECK-LABEL: func.func @narrow_window
// CHECK: scf.if
// CHECK: commir.launch "attention_fwd"
// CHECK-SAME: mask(window(0, 0))
// CHECK: } else {
// CHECK-NOT: commir.launch
// CHECK: commir.fill %{{.*}} with 0.0
// CHECK: commir.fill %{{.*}} with 0xFFF0000000000000
// CHECK-NOT: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @narrow_window on @mesh axes(b = 1, h = 2, sq = 64 striped(1), sk = 64 striped(1))
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu])
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
            %LSE: !commir.buffer<[b, h, sq], f32> inside [sq -> gpu]) {
  %r = commir.group_rank "gpu"
  %q = commir.part %Q [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %o = commir.part %O [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %l = commir.part %LSE [sq : %r of 4] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %q0 = commir.position sq : %r of 4
  %k0 = commir.position sk : %r of 4
  %c0 = arith.constant 0 : index
  commir.launch "attention_fwd" ins(%q, %k, %k : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      outs(%o, %l : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
      at(%q0, %k0, %c0, %c0) mask(window(1, 0)) {commir.joined, overwrite = array<i1: true, true>}
}

// -----

// Each stripe of queries sees a run of keys whole, and perhaps a part of the next
// stripe: two launches a stripe, not one for each pair of them.
// CHECK-LABEL: func.func @stripe_by_stripe
// CHECK: commir.fill %{{.*}} with 0.0
// CHECK: commir.fill %{{.*}} with 0xFFF0000000000000
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: commir.launch "attention_fwd"
// CHECK-NOT: overwrite
// CHECK: scf.if
// CHECK: scf.for
// CHECK: commir.launch "attention_fwd"
// CHECK-NOT: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @stripe_by_stripe on @mesh axes(b = 1, h = 2, sq = 64 striped(4), sk = 64 striped(4))
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu])
    outputs(%O: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
            %LSE: !commir.buffer<[b, h, sq], f32> inside [sq -> gpu]) {
  %r = commir.group_rank "gpu"
  %q = commir.part %Q [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %o = commir.part %O [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %l = commir.part %LSE [sq : %r of 4] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %q0 = commir.position sq : %r of 4
  %k0 = commir.position sk : %r of 4
  %c0 = arith.constant 0 : index
  commir.launch "attention_fwd" ins(%q, %k, %k : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      outs(%o, %l : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>)
      at(%q0, %k0, %c0, %c0) mask(causal) {overwrite = array<i1: true, true>}
}

// -----

// What is merged over queries is launched on all stripes of them, then on the
// later halves, then on a stripe of queries and the stripe that some of it see.
// CHECK-LABEL: func.func @by_halves
// CHECK: commir.launch "attention_bwd"
// CHECK: scf.for %[[MIDDLE:.*]] =
// CHECK: %[[NEGATED:.*]] = arith.subi %{{.*}}, %[[MIDDLE]]
// CHECK: arith.andi %[[MIDDLE]], %[[NEGATED]]
// CHECK: commir.launch "attention_bwd"
// CHECK: scf.for
// CHECK-NOT: commir.launch
// CHECK: scf.for
// CHECK: commir.launch "attention_bwd"
// CHECK-NOT: commir.launch
commir.mesh @mesh(gpu = 4)
commir.program @by_halves on @mesh axes(b = 1, h = 2, sq = 64 striped(4), sk = 64 striped(4))
    inputs(%Q: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
           %K: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu],
           %D: !commir.buffer<[b, h, sq], f32> inside [sq -> gpu])
    outputs(%dQ: !commir.buffer<[b, sq, h, 8], f32> inside [sq -> gpu],
            %dK: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu],
            %dV: !commir.buffer<[b, sk, h, 8], f32> inside [sk -> gpu]) {
  %r = commir.group_rank "gpu"
  %q = commir.part %Q [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %k = commir.part %K [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %d = commir.part %D [sq : %r of 4] : !commir.buffer<[b, h, sq], f32> -> !commir.tile<[b, h, sq], f32>
  %dq = commir.part %dQ [sq : %r of 4] : !commir.buffer<[b, sq, h, 8], f32> -> !commir.tile<[b, sq, h, 8], f32>
  %dk = commir.part %dK [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %dv = commir.part %dV [sk : %r of 4] : !commir.buffer<[b, sk, h, 8], f32> -> !commir.tile<[b, sk, h, 8], f32>
  %q0 = commir.position sq : %r of 4
  %k0 = commir.position sk : %r of 4
  %c0 = arith.constant 0 : index
  commir.launch "attention_bwd" ins(%q, %k, %k, %q, %d, %d : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, h, sq], f32>, !commir.tile<[b, h, sq], f32>)
      outs(%dq, %dk, %dv : !commir.tile<[b, sq, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>, !commir.tile<[b, sk, h, 8], f32>)
      at(%q0, %k0, %c0, %c0) mask(causal) {overwrite = array<i1: true, true, true>}
}

// -----

// A source stays as it is, and is named by the function.
// CHECK: commir.program @sourced.source
// CHECK: func.func @sourced(
// CHECK-SAME: commir.source = @sourced.source
commir.mesh @mesh(gpu = 4)
commir.program @sourced.source on @mesh axes(i = 10) inputs() outputs() attributes {commir.is_source} {
}
commir.program @sourced on @mesh axes(i = 10) inputs() outputs() attributes {commir.source = @sourced.source} {
}

// -----

// Of a striped shard every other stripe, which are those of a part of twice as
// many: stripe n of it is number 2 n, or 2 n + 1, of the shard.
// CHECK-LABEL: func.func @stripes_of_a_shard(
// CHECK: scf.for %[[NUMBER:.*]] = %c0{{.*}} to %c4
// CHECK:   %[[TWICE:.*]] = arith.muli %[[NUMBER]], %c2
// CHECK:   %[[SECOND:.*]] = arith.divui %{{.*}}, %c4
// CHECK:   arith.addi %[[TWICE]], %[[SECOND]]
// CHECK:   commir.copy
commir.mesh @mesh(gpu = 4)
commir.program @stripes_of_a_shard on @mesh axes(i = 64 striped(2))
    inputs(%A: !commir.buffer<[i], f32> inside [i -> gpu])
    outputs(%B: !commir.buffer<[i], f32> inside [i -> gpu]) {
  %r = commir.group_rank "gpu"
  %c4 = arith.constant 4 : index
  %second = arith.addi %r, %c4 : index
  %a = commir.part %A [i : %r of 8] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %b = commir.part %B [i : %second of 8] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  commir.copy %a to %b : !commir.tile<[i], f32> to !commir.tile<[i], f32>
}
