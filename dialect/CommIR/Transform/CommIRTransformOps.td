//===- CommIRTransformOps.td - The schedule ----------------*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every transform takes a handle to programs and names of loops, buffers and
// levels: names survive a step where handles would be consumed. A step that is
// not legal says why and leaves its payload untouched.
//
// **Constraints** of every step
// - [step.program] the handle of a step `must hold commir.program ops`
// - [step.loop] a step `must name a loop of the program`
// - [step.buffer] a step `must name a buffer of the program`
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_TRANSFORM_OPS
#define DIALECT_COMMIR_TRANSFORM_OPS

include "dialect/CommIR/CommIRAttrs.td"
include "mlir/Dialect/Transform/IR/TransformDialect.td"
include "mlir/Dialect/Transform/IR/TransformTypes.td"
include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class CommIR_TransformOp<string opMnemonic>
    : Op<Transform_Dialect, "commir." # opMnemonic,
         [DeclareOpInterfaceMethods<TransformOpInterface>,
          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let extraClassDefinition = [{
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance>
            &effects) {
      ::mlir::transform::onlyReadsHandle(getTargetMutable(), effects);
      ::mlir::transform::modifiesPayload(effects);
    }
  }];
}

def CommIR_TileTransform : CommIR_TransformOp<"tile"> {
  let summary = "cut a loop into parts, walked by an outer loop";
  let description = [{
    Loop L becomes `L_outer` (n parts, cut by the axis' layout) and `L_inner`, or
    the two names given. `into` is a number, or a level whose size it takes, or
    the size of each part: these become the bounds of the axis.

    ```mlir
    transform.commir.tile "sk" into 4 in %program : !transform.any_op
    transform.commir.tile "b" into [1, 2, 5] in %program : !transform.any_op
    transform.commir.tile "sk" into "gpu0" as ["sk0", "sk1"] in %program
        : !transform.any_op
    ```

    **Constraints**
    - [tile.whole] a loop to tile `must not be cut yet`
    - [tile.into] a loop `must be tiled into a number of parts or a level`
    - [tile.sizes] the sizes of parts `must add up to the extent` of an axis in
      blocks that nothing else cuts
    - [tile.sizes-axis] the sizes of parts `must be of a loop over one axis`
    - [tile.names] the outer and the inner loop `must have two new names`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$loop,
                       AnyAttrOf<[I64Attr, StrAttr, DenseI64ArrayAttr]>:$into,
                       OptionalAttr<StrArrayAttr>:$names);
  let assemblyFormat = [{
    $loop `into` custom<Into>($into) (`as` $names^)? `in` $target attr-dict `:`
    type($target)
  }];
}

def CommIR_JoinTransform : CommIR_TransformOp<"join"> {
  let summary = "merge two adjacent loops into one";
  let description = [{
    Two loops over different axes give a loop over both; two loops over the same
    axis undo a tile.

    ```mlir
    transform.commir.join "b", "h" in %program : !transform.any_op
    ```

    **Constraints**
    - [join.adjacent] loops to join `must be adjacent, outer first`
    - [join.plain] a loop to join `must not be parallel or shifted`
    - [join.whole] loops over different axes `must be whole to be joined`
    - [join.name] a joined loop `must have a new name`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$outer,
                       StrAttr:$inner, OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $outer `,` $inner (`as` $name^)? `in` $target attr-dict `:` type($target)
  }];
}

def CommIR_ReorderTransform : CommIR_TransformOp<"reorder"> {
  let summary = "change the order of loops";
  let description = [{
    The named loops take each other's places, in the order given. Merges are
    associative and commutative, so the only order to keep is that of the loops
    that cut one axis.

    ```mlir
    transform.commir.reorder ["sk", "sq"] in %program : !transform.any_op
    ```

    **Constraints**
    - [reorder.names] loops to reorder `must be at least two different loops`
    - [reorder.axis] a loop `must stay inside the loop that cuts its axis first`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
                       StrArrayAttr:$loops);
  let assemblyFormat = "$loops `in` $target attr-dict `:` type($target)";
}

def CommIR_PatchTransform : CommIR_TransformOp<"patch"> {
  let summary = "pick the implementation of kernels";
  let description = [{
    `pattern` is a kernel's name, or the start of one before `*`.

    ```mlir
    transform.commir.patch "attention*" with "cudnn" in %program
        : !transform.any_op
    ```

    **Constraints**
    - [patch.match] a pattern `must match a kernel of the program`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$pattern,
                       StrAttr:$impl);
  let assemblyFormat = [{
    $pattern `with` $impl `in` $target attr-dict `:` type($target)
  }];
}

def CommIR_ParallelizeTransform : CommIR_TransformOp<"parallelize"> {
  let summary = "spread the iterations of a loop over levels";
  let description = [{
    A loop that is not cut yet gets a part for each rank. A parallel inner loop
    gives a strided placement.

    ```mlir
    transform.commir.parallelize "sq" over ["gpu"] in %program
        : !transform.any_op
    ```

    **Constraints**
    - [parallelize.levels] a loop `must be spread over at least one level`
    - [parallelize.again] a loop to parallelize `must not be parallel or shifted already`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$loop,
                       StrArrayAttr:$levels);
  let assemblyFormat = [{
    $loop `over` $levels `in` $target attr-dict `:` type($target)
  }];
}

def CommIR_ShiftTransform : CommIR_TransformOp<"shift"> {
  let summary = "stagger the parts of a loop over the ranks of parallel loops";
  let description = [{
    Step t touches part `(d*t + sum(m_l * r_l) + o) mod J`. Several loops in `by`
    add (Cannon). One loop over several levels nests: the loop is cut once a
    level, slowest outermost, and each loop is shifted by its own group rank
    (double ring). `over` picks levels of the loop in `by`; without it, all.
    A loop that is not cut yet gets the least common multiple of the ranks as
    parts.

    ```mlir
    transform.commir.shift "sk" by ["sq"] in %program : !transform.any_op
    transform.commir.shift "i" by ["j"] reads pull chunks 2
        in %program : !transform.any_op
    ```

    **Constraints**
    - [shift-loop.again] a loop to shift `must not be shifted already`
    - [shift-loop.by] a loop `must be shifted by other loops`
    - [shift-loop.nest] a nested shift `must be of a loop that is not cut`
    - [shift-loop.names] the loops of a nested shift `must have new names`
    - [shift-loop.over] the levels to shift over `must be levels of the loop it is shifted by`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$loop,
                       StrArrayAttr:$by, OptionalAttr<StrArrayAttr>:$over,
                       DefaultValuedAttr<I64Attr, "1">:$direction,
                       DefaultValuedAttr<I64Attr, "0">:$offset,
                       DefaultValuedAttr<CommIR_ReadVia, "::mlir::commir::ReadVia::Rotate">:$reads,
                       DefaultValuedAttr<CommIR_ResultVia, "::mlir::commir::ResultVia::Travel">:$results,
                       OptionalAttr<DictionaryAttr>:$via,
                       DefaultValuedAttr<I64Attr, "1">:$chunks,
                       OptionalAttr<TypeAttr>:$link);
  let assemblyFormat = [{
    $loop `by` $by (`over` $over^)? (`direction` $direction^)?
    (`offset` $offset^)? (`reads` $reads^)? (`results` $results^)?
    (`via` $via^)? (`chunks` $chunks^)? (`link` $link^)? `in` $target attr-dict
    `:` type($target)
  }];
}

def CommIR_OverlapTransform : CommIR_TransformOp<"overlap"> {
  let summary = "let the steps of a loop run beside each other";
  let description = [{
    Of a shifted loop, the second of two steps begins as soon as its part is there,
    and so runs where the last blocks of the first one leave room on a device. Of
    a loop in sequence, what the next step reads comes, and what the last one made
    leaves, while a step computes.

    ```mlir
    transform.commir.overlap "i" in %program : !transform.any_op
    ```

    **Constraints**
    - [overlap.steps] a loop whose steps overlap `must be shifted or cut into steps`
    - [overlap.again] the steps of a loop `must not overlap already`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$loop);
  let assemblyFormat = "$loop `in` $target attr-dict `:` type($target)";
}

def CommIR_ShardTransform : CommIR_TransformOp<"shard"> {
  let summary = "let a buffer live cut along a dimension";
  let description = [{
    Whatever the loops access. Communication follows: what ranks need all of is
    gathered before the loops, or `broadcast`, one panel a step of the loop over the
    axis. A loop that is not cut gets the least number of panels that refines all
    cuts so read.

    ```mlir
    transform.commir.shard "K" along "sk" over ["gpu"] in %program
        : !transform.any_op
    transform.commir.shard "A" along "k" over ["col"] reads broadcast
        in %program : !transform.any_op
    ```

    **Constraints**
    - [shard.levels] a buffer `must be sharded over at least one level`
    - [shard.twice] a buffer `must not be sharded twice over a level`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$buffer,
                       StrAttr:$axis, StrArrayAttr:$levels,
                       DefaultValuedAttr<CommIR_ShardVia, "::mlir::commir::ShardVia::Gather">:$reads);
  let assemblyFormat = [{
    $buffer `along` $axis `over` $levels (`reads` $reads^)? `in` $target
    attr-dict `:` type($target)
  }];
}

def CommIR_ReplicateTransform : CommIR_TransformOp<"replicate"> {
  let summary = "let a buffer live whole on every rank of a level";
  let description = [{
    ```mlir
    transform.commir.replicate "O" over "gpu" in %program : !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$buffer,
                       StrAttr:$level);
  let assemblyFormat = [{
    $buffer `over` $level `in` $target attr-dict `:` type($target)
  }];
}

def CommIR_DeferTransform : CommIR_TransformOp<"defer"> {
  let summary = "merge the partial results of a buffer once, at the end";
  let description = [{
    Each launch writes a partial result of its own, and one kernel merges them when
    all are made, into the buffer's own type. That takes memory for every one of
    them, and saves reading and writing the sum at each step. They wait in float32,
    or in the type that `partial` names. The other result of a softmax pair is
    deferred with it.

    ```mlir
    transform.commir.defer "O" in %program : !transform.any_op
    transform.commir.defer "O" partial bf16 in %program : !transform.any_op
    ```

    **Constraints**
    - [defer.reduced] a buffer to defer `must be an output that is merged`
    - [defer.again] a buffer to defer `must not be deferred already`
    - [defer.partial] partial results `must wait in a float type`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$buffer,
                       OptionalAttr<TypeAttr>:$partial);
  let assemblyFormat = [{
    $buffer (`partial` $partial^)? `in` $target attr-dict `:` type($target)
  }];
}

def CommIR_SplitLevelTransform : CommIR_TransformOp<"split_level"> {
  let summary = "see one level of the mesh as several";
  let description = [{
    The last name is the fastest. Placements that name the level name all of the
    new ones, in order.

    ```mlir
    transform.commir.split_level "gpu" into (gpu0 = 2, gpu1 = 4) in %program
        : !transform.any_op
    ```

    **Constraints**
    - [split.level] a level to split `must be a level of the mesh`
    - [split.sizes] the new sizes `must multiply to the size of the level`
    - [split.names] the new levels `must have new names`
    - [split.shifted] a level to split `must not have shifted loops`
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$level,
      TypedArrayAttrBase<CommIR_LevelAttr, "levels">:$into);
  let assemblyFormat = [{
    $level `into` custom<Levels>($into) `in` $target attr-dict `:` type($target)
  }];
}

#endif // DIALECT_COMMIR_TRANSFORM_OPS
