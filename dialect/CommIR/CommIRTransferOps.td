//===- CommIRTransferOps.td - The lowered plan -------------*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One SPMD text: what every rank does, in terms of its group ranks. Local
// memory, tiles of it, asynchronous communication and kernel launches. Tiles are
// `!commir.tile` until commir-localize gives them sizes as memrefs.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_TRANSFER_OPS
#define DIALECT_COMMIR_TRANSFER_OPS

include "dialect/CommIR/CommIROps.td"

def CommIR_TokenType : TypeDef<CommIR_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a transfer under way; `commir.wait` takes it";
}

def CommIR_LeaseType : TypeDef<CommIR_Dialect, "Lease"> {
  let mnemonic = "lease";
  let summary = "leave for a level's group to read this rank's memory";
}

def CommIR_Memory
    : AnyTypeOf<[CommIR_BufferType, AnyMemRef], "a buffer or its bytes">;

def CommIR_Tile : AnyTypeOf<[CommIR_TileType, AnyMemRef], "a tile or memref">;

def CommIR_GroupRankOp : CommIR_Op<"group_rank", [Pure]> {
  let summary = "this rank's coordinate on a level";
  let description = [{
    ```mlir
    %r = commir.group_rank "gpu"
    ```
  }];
  let arguments = (ins StrAttr:$level);
  let results = (outs Index:$rank);
  let assemblyFormat = "$level attr-dict";
}

def CommIR_PositionOp : CommIR_Op<"position", [Pure]> {
  let summary = "the first global position of a part of an axis";
  let description = [{
    ```mlir
    %p = commir.position sk : %part of 4
    ```

    **Constraints**
    - [position.parts] the parts of an axis `must be from 1 to 2^20`
    - [position.divisor] the divisor of a position `must be at least 1`
  }];
  let arguments = (ins StrAttr:$axis, Index:$part, I64Attr:$parts,
                       DefaultValuedAttr<I64Attr, "1">:$divisor);
  let results = (outs Index:$position);
  let hasVerifier = 1;
  let hasFolder = 1;
  let assemblyFormat = [{
    custom<Name>($axis) `:` $part `of` $parts (`per` $divisor^)? attr-dict
  }];
}

def CommIR_AllocOp : CommIR_Op<"alloc"> {
  let summary = "local memory for parts of a buffer";
  let description = [{
    Room for `slots` copies of the largest part. An axis in `parts` is held one
    part at a time; the others as `placement` cuts them.

    ```mlir
    %s = commir.alloc slots 2 placement [h -> gpu1] parts {sk = 4}
        : !commir.buffer<[b, sk, h, 128], bf16>
    ```

    **Constraints**
    - [alloc.slots] the slots of local memory `must be from 1 to 2^20`
    - [alloc.parts] `parts` `must give each axis a number from 1 to 2^20`
    - [alloc.axis] local memory `must be cut along axes of its buffer`
  }];
  let arguments = (ins I64Attr:$slots, CommIR_PlacementAttr:$placement,
                       DictionaryAttr:$parts);
  let results = (outs CommIR_BufferType:$buffer);
  let hasVerifier = 1;
  let assemblyFormat = [{
    `slots` $slots `placement` custom<Placement>($placement) `parts` $parts
    attr-dict `:` qualified(type($buffer))
  }];
}

def CommIR_PartOp : CommIR_Op<"part", [Pure, AttrSizedOperandSegments]> {
  let summary = "a tile of local memory: one part of each axis named";
  let description = [{
    Axes that are not named are taken as far as the rank holds them. `stack n` is
    that part of each of the first n slots, along a dimension of its own.

    ```mlir
    %k = commir.part %K slot %s [sk : %p of 4] : !commir.buffer<[b, sk], f32>
        -> !commir.tile<[b, sk], f32>
    %all = commir.part %K stack 2 [sk : %p of 4] : !commir.buffer<[b, sk], f32>
        -> !commir.tile<[2, b, sk], f32>
    ```

    **Constraints**
    - [part.counts] a part `must have an axis and a number of parts for each index`
    - [part.number] the number of parts `must be from 1 to 2^20`
    - [part.axis] a part `must be of axes of its buffer, each once`
    - [part.tile] a part `must give the tile of its buffer`
    - [part.stack] a stack `must be of 1 to 2^20 slots, and of no single one`
  }];
  let arguments = (ins CommIR_BufferType:$buffer, Optional<Index>:$slot,
                       Variadic<Index>:$indices, StrArrayAttr:$axes,
                       DenseI64ArrayAttr:$counts, OptionalAttr<I64Attr>:$stack);
  let results = (outs CommIR_TileType:$tile);
  let builders = [OpBuilder<(ins "Type":$tile, "Value":$buffer, "Value":$slot,
      "ValueRange":$indices, "ArrayAttr":$axes, "DenseI64ArrayAttr":$counts), [{
    build($_builder, $_state, tile, buffer, slot, indices, axes, counts,
          /*stack=*/IntegerAttr());
  }]>];
  let hasVerifier = 1;
  let assemblyFormat = [{
    $buffer (`slot` $slot^)? (`stack` $stack^)? custom<Parts>($indices, $axes, $counts) attr-dict
    `:` qualified(type($buffer)) `->` qualified(type($tile))
  }];
}

/// Every op that starts a transfer: it names the levels whose group takes part
/// (the ranks that differ from this one on these levels only, row-major), and
/// gives a token.
class CommIR_StartOp<string opMnemonic, list<Trait> traits = []>
    : CommIR_Op<opMnemonic # ".start", traits> {
  let results = (outs CommIR_TokenType:$token);
}

def CommIR_ExchangeStartOp : CommIR_StartOp<"exchange"> {
  let summary = "send one tile and receive another within a level's group";
  let description = [{
    Peers are group ranks, of one level or of several (`on ["node", "gpu"]`, row-major).
    Nothing is sent or received unless `when` holds, which all ranks of the group agree on. With
    `commir.transport = "rma"` the source is put to where the target lies in its receiver's memory.

    ```mlir
    // gpu:    0        1        2          0        1        2
    //       [ K0 ] <-[ K1 ] <-[ K2 ]  =>  [ K1 ]   [ K2 ]   [ K0 ]
    %t = commir.exchange.start %own to %left, %slot from %right on "gpu" when %more
        : !commir.tile<[sk], f32>, !commir.tile<[sk], f32>
    ```
  }];
  let arguments = (ins CommIR_Tile:$source, Index:$to, CommIR_Tile:$target,
                       Index:$from, StrArrayAttr:$group, I1:$when);
  let assemblyFormat = [{
    $source `to` $to `,` $target `from` $from `on` custom<Group>($group)
    `when` $when attr-dict
    `:` type($source) `,` type($target)
  }];
}

def CommIR_AllGatherStartOp : CommIR_StartOp<"all_gather"> {
  let summary = "every rank of a level's group gets the tiles of all";
  let description = [{
    The tile of member m lands in slot m of the target. Once localized, `bytes`
    holds the length of each member's tile. Without an axis, all tiles are equal.

    ```mlir
    // gpu:    0      1      2              0            1            2
    //       [K0]   [K1]   [K2]   =>   [K0 K1 K2]   [K0 K1 K2]   [K0 K1 K2]
    %t = commir.all_gather.start %own into %slots on "gpu" along sk
        : !commir.tile<[sk], f32>, !commir.buffer<[sk], f32>
    ```
  }];
  let arguments = (ins CommIR_Tile:$source,
      AnyTypeOf<[CommIR_BufferType, AnyMemRef]>:$target,
      Optional<MemRefOf<[I64]>>:$bytes, StrArrayAttr:$group,
      OptionalAttr<StrAttr>:$axis);
  let assemblyFormat = [{
    $source `into` $target (`bytes` $bytes^ `:` type($bytes))?
    `on` custom<Group>($group) (`along` custom<Name>($axis)^)? attr-dict `:` type($source) `,` type($target)
  }];
}

def CommIR_ReduceScatterStartOp : CommIR_StartOp<"reduce_scatter"> {
  let summary = "every rank of a level's group gets the merged tile of its own";
  let description = [{
    Slot m of the source is what this rank adds to the tile of member m; the
    target becomes this rank's tile, merged from all members in the order of
    their ranks. Once localized, `bytes` holds the length of each member's tile.

    ```mlir
    // gpu:       0            1            2             0      1      2
    //       [C0' C1' C2'] [C0' C1' C2'] [C0' C1' C2'] => [C0]   [C1]   [C2]
    %t = commir.reduce_scatter.start %slots into %own merge(sum) on "gpu" along i
        : !commir.buffer<[i], f32>, !commir.tile<[i], f32>
    ```

    **Constraints**
    - [reduce_scatter.merge] what ranks reduce together `must merge by sum or max`
    - [reduce_scatter.type] the tile of a reduce_scatter `must be one of its source`
  }];
  let arguments = (ins AnyTypeOf<[CommIR_BufferType, AnyMemRef]>:$source,
      CommIR_Tile:$target, Optional<MemRefOf<[I64]>>:$bytes,
      CommIR_MergeKindAttr:$merge, StrArrayAttr:$group,
      OptionalAttr<StrAttr>:$axis);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $source `into` $target (`bytes` $bytes^ `:` type($bytes))?
    `merge` `(` custom<MergeKind>($merge) `)` `on` custom<Group>($group)
    (`along` custom<Name>($axis)^)? attr-dict `:` type($source) `,` type($target)
  }];
}

def CommIR_AllReduceStartOp : CommIR_StartOp<"all_reduce"> {
  let summary = "every rank of a level's group gets the tiles of all, merged";
  let description = [{
    All tiles are of one shape, and merged in the order of the ranks. The target
    may be the source.

    ```mlir
    // gpu:   0      1      2            0      1      2
    //       [C']   [C']   [C']   =>   [C]    [C]    [C]
    %t = commir.all_reduce.start %partial into %sum merge(sum) on "gpu"
        : !commir.tile<[i], f32>
    ```

    **Constraints**
    - [all_reduce.merge] what ranks reduce together `must merge by sum or max`
  }];
  let arguments = (ins CommIR_Tile:$source, CommIR_Tile:$target,
      CommIR_MergeKindAttr:$merge, StrArrayAttr:$group);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $source `into` $target `merge` `(` custom<MergeKind>($merge) `)`
    `on` custom<Group>($group) attr-dict `:` type($source) `,` type($target)
  }];
}

def CommIR_AllToAllStartOp : CommIR_StartOp<"all_to_all"> {
  let summary = "every rank of a level's group sends each other a part of its own";
  let description = [{
    Slot m of the source goes to member m, and what member m sends this rank
    comes to slot m of the target. `sends` and `receives` hold the bytes for and
    from each member, which may be none.

    ```mlir
    // gpu:      0          1          2            0          1          2
    //       [a0 a1 a2] [b0 b1 b2] [c0 c1 c2] => [a0 b0 c0] [a1 b1 c1] [a2 b2 c2]
    %t = commir.all_to_all.start %out, %sends into %in, %receives on "gpu"
        : memref<192xi8>, memref<3xi64>, memref<192xi8>, memref<3xi64>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, MemRefOf<[I64]>:$sends,
      AnyMemRef:$target, MemRefOf<[I64]>:$receives, StrArrayAttr:$group);
  let assemblyFormat = [{
    $source `,` $sends `into` $target `,` $receives `on` custom<Group>($group)
    attr-dict `:` type($source) `,` type($sends) `,` type($target) `,`
    type($receives)
  }];
}

def CommIR_BroadcastStartOp : CommIR_StartOp<"broadcast"> {
  let summary = "every rank of a level's group gets the tile of one of them";
  let description = [{
    The root, a group rank that all members agree on, sends its source; the
    others' source is not read. The root's target may be its source.

    ```mlir
    // gpu:    0      1      2             0      1      2
    //       [A0]   [A1]   [A2]   =>     [A1]   [A1]   [A1]    of root 1
    %t = commir.broadcast.start %own into %panel of %root on "gpu" when %more
        : !commir.tile<[k], f32>, !commir.tile<[k], f32>
    ```
  }];
  let arguments = (ins CommIR_Tile:$source, CommIR_Tile:$target, Index:$root,
      StrArrayAttr:$group, I1:$when);
  let assemblyFormat = [{
    $source `into` $target `of` $root `on` custom<Group>($group) `when` $when
    attr-dict `:` type($source) `,` type($target)
  }];
}

def CommIR_RedistributeOp : CommIR_Op<"redistribute"> {
  let summary = "give a buffer another placement: the general exchange";
  let description = [{
    Both are memory of one slot, each placed in its own way. Every rank sends to
    each other what it holds and the other shall hold: the intersection of two
    shards, whatever their layouts. Complete when it returns.

    ```mlir
    // gpu:     0        1             0           1
    //       [ i0 ]   [ i1 ]    =>   [ j0 ]     [ j1 ]     of [i, j]
    commir.redistribute %rows to %columns
        : !commir.buffer<[i, j], f32>, !commir.buffer<[i, j], f32>
    ```

    **Constraints**
    - [redistribute.type] a buffer to redistribute `must keep its type`
  }];
  let arguments = (ins CommIR_BufferType:$source, CommIR_BufferType:$target);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $source `to` $target attr-dict `:` qualified(type($source)) `,`
    qualified(type($target))
  }];
}

def CommIR_LeaseOpenOp : CommIR_Op<"lease.open"> {
  let summary = "let the level's group read this rank's memory";
  let description = [{
    Every member of the group opens, and closes, the same leases in the same
    order. The memory, one slot of it where a slot is named, is not written before
    the lease is closed.

    ```mlir
    %lease = commir.lease.open %own on "gpu" : !commir.buffer<[sk], f32>
    ```
  }];
  let arguments = (ins CommIR_Memory:$memory, Optional<Index>:$slot,
                       StrArrayAttr:$group);
  let results = (outs CommIR_LeaseType:$lease);
  let builders = [OpBuilder<(ins "Value":$memory, "ArrayAttr":$group), [{
    build($_builder, $_state, LeaseType::get($_builder.getContext()), memory,
          /*slot=*/Value(), group);
  }]>];
  let assemblyFormat = [{
    $memory (`slot` $slot^)? `on` custom<Group>($group) attr-dict
    `:` type($memory)
  }];
}

def CommIR_LeaseMemoryOp : CommIR_Op<"lease.memory", [Pure]> {
  let summary = "the memory that another member of the group leases";
  let description = [{
    It holds the parts that its owner's group rank says.

    ```mlir
    %theirs = commir.lease.memory %lease of %peer : !commir.buffer<[sk], f32>
    ```
  }];
  let arguments = (ins CommIR_LeaseType:$lease, Index:$peer);
  let results = (outs CommIR_Memory:$memory);
  let assemblyFormat = "$lease `of` $peer attr-dict `:` type($memory)";
}

def CommIR_PullStartOp : CommIR_StartOp<"pull"> {
  let summary = "read a tile of leased memory of another member";
  let description = [{
    One-sided: nothing is read unless `when` holds, which may differ from rank to
    rank.

    ```mlir
    // gpu:    0        1        2          0           1        2
    //       [ K0 ]   [ K1 ]   [ K2 ]  =>  [ K0 K2 ]   [ K1 ]   [ K2 ]
    %t = commir.pull.start %theirs into %slot of %lease from %peer when %other
        : !commir.tile<[sk], f32>, !commir.tile<[sk], f32>
    ```
  }];
  let arguments = (ins CommIR_Tile:$source, CommIR_Tile:$target,
                       CommIR_LeaseType:$lease, Index:$peer, I1:$when);
  let assemblyFormat = [{
    $source `into` $target `of` $lease `from` $peer `when` $when attr-dict
    `:` type($source) `,` type($target)
  }];
}

def CommIR_LeaseCloseOp : CommIR_Op<"lease.close"> {
  let summary = "until every member of the group has read what it needs";
  let description = [{
    ```mlir
    commir.lease.close %lease
    ```
  }];
  let arguments = (ins CommIR_LeaseType:$lease);
  let assemblyFormat = "$lease attr-dict";
}

def CommIR_WaitOp : CommIR_Op<"wait"> {
  let summary = "until a transfer is complete on this rank";
  let description = [{
    ```mlir
    commir.wait %t
    ```
  }];
  let arguments = (ins CommIR_TokenType:$token);
  let assemblyFormat = "$token attr-dict";
}

def CommIR_FillOp : CommIR_Op<"fill"> {
  let summary = "write a merge's identity to a tile";
  let description = [{
    ```mlir
    commir.fill %acc with 0.0 : !commir.tile<[i, j], f32>
    ```
  }];
  let arguments = (ins CommIR_Tile:$tile, F64Attr:$value);
  let assemblyFormat = "$tile `with` $value attr-dict `:` type($tile)";
}

def CommIR_CopyOp : CommIR_Op<"copy"> {
  let summary = "copy a tile to one of the same shape, converting its elements";
  let description = [{
    ```mlir
    commir.copy %acc to %out : !commir.tile<[i], f32> to !commir.tile<[i], bf16>
    ```
  }];
  let arguments = (ins CommIR_Tile:$source, CommIR_Tile:$target);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = [{
    $source `to` $target attr-dict `:` type($source) `to` type($target)
  }];
}

def CommIR_AccumulateOp : CommIR_Op<"accumulate"> {
  let summary = "add a tile to one of the same shape: the sum merge";
  let description = [{
    What a link made narrower is added in the type of the sum.

    ```mlir
    commir.accumulate %partial to %sum : !commir.tile<[i], f32>
        to !commir.tile<[i], f32>
    ```

    **Constraints**
    - [accumulate.type] a tile to add `must have the shape of the sum and no wider elements`
  }];
  let arguments = (ins CommIR_Tile:$source, CommIR_Tile:$target);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $source `to` $target attr-dict `:` type($source) `to` type($target)
  }];
}

def CommIR_LaunchOp : CommIR_Op<"launch", [AttrSizedOperandSegments]> {
  let summary = "run a kernel on tiles, merging into its results";
  let description = [{
    `at` gives the global positions where the tiles begin, in the order that the
    kernel's signature asks for. `impl` names who has the kernel, the compiler if
    it is not given. `scratch` is memory that a generated kernel works in and leaves
    undefined: it allocates none. A result marked in `overwrite` is written, as if
    its memory held the merge's identity: what was there is not read, and where
    nothing is reduced the identity itself is written. Only such a result may be
    narrower than float32: it is rounded once.

    ```mlir
    commir.launch "matmul" ins(%a, %b : ...) outs(%c : ...) at()
    commir.launch "matmul" ins(%a, %b : ...) outs(%c : ...) at()
        {overwrite = array<i1: true>}
    ```

    **Constraints**
    - [launch.overwrite] `overwrite` `must have an entry for each result`
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<CommIR_Tile>:$inputs,
                       Variadic<CommIR_Tile>:$outputs,
                       Variadic<Index>:$positions,
                       OptionalAttr<CommIR_MaskAttr>:$mask,
                       OptionalAttr<F64Attr>:$scale,
                       OptionalAttr<I64Attr>:$group,
                       OptionalAttr<StrAttr>:$impl,
                       Optional<CommIR_Tile>:$scratch,
                       OptionalAttr<DenseBoolArrayAttr>:$overwrite);
  let builders = [OpBuilder<(ins "StringAttr":$kernel, "ValueRange":$inputs,
      "ValueRange":$outputs, CArg<"ValueRange", "{}">:$positions), [{
    build($_builder, $_state, kernel, inputs, outputs, positions, MaskAttr(),
          FloatAttr(), IntegerAttr(), /*impl=*/StringAttr(),
          /*scratch=*/Value(), /*overwrite=*/DenseBoolArrayAttr());
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the kernel writes a result, whatever its memory holds.
    bool overwrites(unsigned result) {
      return getOverwrite() && (*getOverwrite())[result];
    }
  }];
  let assemblyFormat = [{
    $kernel `ins` `(` ($inputs^ `:` type($inputs))? `)`
    `outs` `(` ($outputs^ `:` type($outputs))? `)` `at` `(` $positions `)`
    (`scratch` `(` $scratch^ `:` type($scratch) `)`)?
    (`mask` `(` custom<Mask>($mask)^ `)`)? (`impl` `(` $impl^ `)`)? attr-dict
  }];
}

class CommIR_LaneOp<string name> : CommIR_Op<"lane." # name> {
  let hasVerifier = 1;
}

def CommIR_LaneUseOp : CommIR_LaneOp<"use"> {
  let summary = "go on in another lane";
  let description = [{
    A lane is a queue of a device; kernels of two lanes run beside each other. A
    plan begins in lane 0 and ends when all its lanes have; another lane begins
    after what lane 0 holds when it is first used. Kernels, fills and copies are
    put into the lane in use. A start, or the opening of a lease, comes after what
    this lane holds, and what it holds later comes after a wait, or the closing of
    a lease, in it. Nothing but `commir.lane.order` orders two lanes.

    ```mlir
    commir.lane.use 1
    ```

    **Constraints**
    - [lane.number] the number of a lane `must be from 0 to 7`
    - [lane.place] lanes are changed for all that follows, so this
      `must be in the body of a function, outside of loops and branches`
  }];
  let arguments = (ins I64Attr:$lane);
  let assemblyFormat = "$lane attr-dict";
}

def CommIR_LaneOrderOp : CommIR_LaneOp<"order"> {
  let summary = "what comes in one lane is after what another holds now";
  let description = [{
    It changes nothing of which lane is in use.

    ```mlir
    // lane 0:  matmul  matmul  |  wait  sum
    // lane 1:  matmul  matmul  |  the sum is after all four
    commir.lane.order 1 before 0
    ```
  }];
  let arguments = (ins I64Attr:$earlier, I64Attr:$later);
  let assemblyFormat = "$earlier `before` $later attr-dict";
}

def CommIR_MemoryOp : CommIR_Op<"memory", [Pure]> {
  let summary = "the bytes of an argument, or of an arena of the plan";
  let description = [{
    A rank has two arenas. The local one is its own alone; the symmetric one is
    as large on every rank, has the same at the same offset, and may be leased to
    peers.

    ```mlir
    %a = commir.memory argument 0 : memref<?xi8>
    %w = commir.memory local : memref<?xi8>
    %s = commir.memory symmetric : memref<?xi8>
    ```

    **Constraints**
    - [memory.kind] it `must be of an argument or of an arena`
    - [memory.argument] the number of an argument `must not be negative`
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$argument,
                       OptionalAttr<CommIR_Arena>:$arena);
  let hasVerifier = 1;
  let results = (outs AnyMemRef:$bytes);
  let builders = [OpBuilder<(ins "Type":$bytes, "int64_t":$argument), [{
    build($_builder, $_state, bytes, $_builder.getI64IntegerAttr(argument),
          /*arena=*/ArenaAttr());
  }]>, OpBuilder<(ins "Type":$bytes, "Arena":$arena), [{
    build($_builder, $_state, bytes, /*argument=*/IntegerAttr(),
          ArenaAttr::get($_builder.getContext(), arena));
  }]>];
  let assemblyFormat = [{
    (`argument` $argument^) : ($arena)? attr-dict `:` type($bytes)
  }];
}

def CommIR_StatusOp : CommIR_Op<"status"> {
  let summary = "0, or the code of this run's first failure";
  let description = [{
    ```mlir
    %s = commir.status
    ```
  }];
  let results = (outs I32:$status);
  let assemblyFormat = "attr-dict";
}

#endif // DIALECT_COMMIR_TRANSFER_OPS
