//===- CommIRAttrs.td - Attributes of the commir dialect ---*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_ATTRS
#define DIALECT_COMMIR_ATTRS

include "dialect/CommIR/CommIRDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class CommIR_Attr<string name, string attrMnemonic>
    : AttrDef<CommIR_Dialect, name> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def CommIR_MergeKind : I32EnumAttr<"MergeKind",
    "how partial results become one; associative and commutative",
    [I32EnumAttrCase<"Sum", 0, "sum">,
     I32EnumAttrCase<"Max", 1, "max">,
     I32EnumAttrCase<"Softmax", 2, "softmax">]> {
  let cppNamespace = "::mlir::commir";
  let genSpecializedAttr = 0;
}

def CommIR_MergeKindAttr : EnumAttr<CommIR_Dialect, CommIR_MergeKind, "merge"> {
  let assemblyFormat = "`<` $value `>`";
  let description = [{
    `sum` has identity 0, `max` has identity -inf, `softmax` merges pairs
    (o, lse) of a normalised partial output and the logarithm of its sum of
    exponentials, with identity (0, -inf):
    `lse = log(exp(lse1) + exp(lse2))`,
    `o = o1 * exp(lse1 - lse) + o2 * exp(lse2 - lse)`.
    Two empty partial results merge to the identity, never to NaN.
  }];
}

def CommIR_ReadVia : I32EnumAttr<"ReadVia",
    "how the parts of a shifted read buffer reach a rank",
    [I32EnumAttrCase<"Rotate", 0, "rotate">,
     I32EnumAttrCase<"Pull", 1, "pull">]> {
  let cppNamespace = "::mlir::commir";
}

def CommIR_ShardVia : I32EnumAttr<"ShardVia",
    "how the shards of a read buffer reach the ranks that need all of them",
    [I32EnumAttrCase<"Gather", 0, "gather">,
     I32EnumAttrCase<"Broadcast", 1, "broadcast">]> {
  let cppNamespace = "::mlir::commir";
}

def CommIR_ResultVia : I32EnumAttr<"ResultVia",
    "how partial results of a shifted loop reach their owner",
    [I32EnumAttrCase<"Travel", 0, "travel">,
     I32EnumAttrCase<"Deliver", 1, "deliver">,
     I32EnumAttrCase<"Fetch", 2, "fetch">]> {
  let cppNamespace = "::mlir::commir";
}

def CommIR_Arena : I32EnumAttr<"Arena",
    "who reaches a plan's own memory: its rank alone, or its peers too",
    [I32EnumAttrCase<"Local", 0, "local">,
     I32EnumAttrCase<"Symmetric", 1, "symmetric">]> {
  let cppNamespace = "::mlir::commir";
}

//===----------------------------------------------------------------------===//
// Mesh and axes
//===----------------------------------------------------------------------===//

def CommIR_LevelAttr : CommIR_Attr<"Level", "level"> {
  let summary = "one named dimension of a mesh";
  let description = [{
    Example: `#commir.level<gpu = 4>`.

    **Constraints**
    - [level.size] the size of a level `must be at least 1`
  }];
  let parameters = (ins StringRefParameter<"its name">:$name,
                        "int64_t":$size);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def CommIR_LayoutAttr : CommIR_Attr<"Layout", "layout"> {
  let summary = "how an axis is cut into shards";
  let description = [{
    `block`, `zigzag`, `striped(c)` or `bounds[...]`; `Layout.h` gives the
    formulas.

    Example: `#commir.layout<striped(16)>`.

    **Constraints**
    - [layout.chunk] the chunk of a striped layout `must be at least 1`
    - [layout.chunk-most] the chunk of a striped layout `must be at most 2^40`
    - [layout.bounds] explicit bounds `must rise from 0`
  }];
  let parameters = (ins "Layout::Kind":$kind, "int64_t":$chunk,
                        ArrayRefParameter<"int64_t">:$bounds);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "const Layout &":$layout), [{
    return $_get($_ctxt, layout.kind, layout.chunk,
                 ArrayRef<int64_t>(layout.bounds));
  }]>];
  let extraClassDeclaration = [{
    /// The arithmetic of this layout.
    Layout getLayout() const;
  }];
}

def CommIR_AxisAttr : CommIR_Attr<"Axis", "axis"> {
  let summary = "one named logical loop dimension of a program";
  let description = [{
    Example: `#commir.axis<sq = 4096 zigzag>`; without a layout it is `block`.

    **Constraints**
    - [axis.extent] the extent of an axis `must not be negative`
    - [axis.extent-most] the extent of an axis `must be at most 2^40`
    - [axis.bounds] explicit bounds of an axis `must end at its extent`
  }];
  let parameters = (ins StringRefParameter<"its name">:$name,
                        "int64_t":$extent, "LayoutAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def CommIR_DimAttr : CommIR_Attr<"Dim", "dim"> {
  let summary = "one dimension of a buffer: an axis, axis / n, or a constant";
  let description = [{
    Example: `#commir.dim<h/4>` (grouped heads), `#commir.dim<128>`.

    **Constraints**
    - [dim.divisor] the divisor of a dimension `must be at least 1`
    - [dim.constant] a constant dimension `must not be negative`
    - [dim.constant-most] a constant dimension `must be at most 2^40`
  }];
  let parameters = (ins StringRefParameter<"axis, empty for a constant">:$axis,
                        "int64_t":$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isConstant() const { return getAxis().empty(); }
    /// The divisor of `axis / n`, 1 for a plain axis.
    int64_t getDivisor() const { return isConstant() ? 1 : getValue(); }
  }];
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

def CommIR_CutAttr : CommIR_Attr<"Cut", "cut"> {
  let summary = "how one axis of a buffer is cut over levels";
  let description = [{
    The factors, outermost first, are level names (distributed) or numbers (a
    cut that stays inside a rank): `sk -> (4, gpu)` is a strided placement, a
    rank holds every `gpu`-th of the parts.

    Example: `#commir.cut<sq -> (node, gpu)>`, `#commir.cut<sk -> gpu striped(8)>`.

    **Constraints**
    - [cut.factors] a cut `must name at least one level or number`
    - [cut.level-twice] a cut `must not name a level twice`
    - [cut.number] a number in a cut `must be at least 1`
  }];
  let parameters = (ins StringRefParameter<"the axis">:$axis,
                        ArrayRefParameter<"Attribute">:$factors,
                        OptionalParameter<"LayoutAttr", "other than the axis'">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether `level` is among the factors.
    bool hasLevel(StringRef level) const;
  }];
}

def CommIR_PlacementAttr : CommIR_Attr<"Placement", "placement"> {
  let summary = "where a buffer lives: for each axis an ordered list of levels";
  let description = [{
    A level that no cut names holds replicas. `[]` is a whole copy on each rank.

    Example: `#commir.placement<[sq -> gpu, h -> node]>`.

    **Constraints**
    - [placement.axis-twice] a placement `must not cut an axis twice`
    - [placement.level-twice] a placement `must not use a level for two cuts`
  }];
  let parameters = (ins ArrayRefParameter<"CutAttr">:$cuts);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The cut of `axis`, or null.
    CutAttr getCut(StringRef axis) const;
    /// Whether some cut names `level`.
    bool hasLevel(StringRef level) const;
  }];
}

def CommIR_BindingAttr : CommIR_Attr<"Binding", "binding"> {
  let summary = "a buffer's name and all that is said about where it lives";
  let description = [{
    `at` is the boundary placement, part of the program's signature; `shard` and
    `replicate` are what a schedule asked for; `inside` is the complete placement
    that `commir-infer-placement` finds. Along an axis in `broadcast` the shards are
    read one panel a step, rather than gathered before the loops.

    Example: `#commir.binding<K at [sk -> gpu] replicate [node]>`,
    `#commir.binding<A shard [k -> col] broadcast [k]>`.
  }];
  let parameters = (ins StringRefParameter<"name">:$name,
                        OptionalParameter<"PlacementAttr">:$boundary,
                        OptionalParameter<"PlacementAttr">:$shard,
                        OptionalArrayRefParameter<"StringAttr">:$replicate,
                        OptionalArrayRefParameter<"StringAttr">:$broadcast,
                        OptionalParameter<"PlacementAttr">:$inside);
  let hasCustomAssemblyFormat = 1;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

def CommIR_ShiftAttr : CommIR_Attr<"Shift", "shift"> {
  let summary = "the parts of a loop are visited staggered over the ranks";
  let description = [{
    Step t touches part `(d*t + sum(m_l * r_l) + o) mod J`, where `r_l` is the
    group rank on level l of size `n_l`, J the loop's parts and `m_l = J / n_l`.
    The terms `loop on level` say whose ranks stagger it; several terms add.

    Example: `#commir.shift<by sq on gpu, direction -1, reads pull, chunks 2>`.

    **Constraints**
    - [shift.terms] a shift `must name at least one loop and level`
    - [shift.level-twice] a shift `must not use a level twice`
    - [shift.direction] the direction of a shift `must be 1 or -1`
    - [shift.offset] the offset of a shift `must be from -2^20 to 2^20`
    - [shift.chunks] the chunks of a shift `must be at least 1`
    - [shift.chunks-most] the chunks of a shift `must be at most 2^20`
    - [shift.link] the link type of a shift `must be a floating-point type`
    - [shift.via] a buffer in `via` `must move by rotate, pull, travel, deliver or fetch`
  }];
  let parameters = (ins ArrayRefParameter<"StringAttr">:$loops,
                        ArrayRefParameter<"StringAttr">:$levels,
                        "int64_t":$direction, "int64_t":$offset,
                        "ReadVia":$reads, "ResultVia":$results,
                        OptionalParameter<"DictionaryAttr">:$via,
                        "int64_t":$chunks, OptionalParameter<"Type">:$link);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def CommIR_LoopAttr : CommIR_Attr<"Loop", "loop"> {
  let summary = "one loop: its axes, its parts, and where they run";
  let description = [{
    A loop that is not cut stays whole, inside the kernel. Loops over the same
    axis cut it together: part (i1, ..., ik) is shard number i1, ..., ik
    (row-major) of the axis' layout over the product of their parts.

    Example: `#commir.loop<sk_outer in sk of 4 shift(by sq on gpu)>`; `in` is
    left out when the loop has its axis' name.

    **Constraints**
    - [loop.axes] a loop `must run over at least one axis`
    - [loop.axis-twice] a loop `must not run over an axis twice`
    - [loop.parts] the parts of a loop `must be at least 1`
  }];
  let parameters = (ins StringRefParameter<"name">:$name,
                        ArrayRefParameter<"StringAttr">:$axes,
                        "int64_t":$parts,
                        OptionalArrayRefParameter<"StringAttr">:$levels,
                        OptionalParameter<"ShiftAttr">:$shift);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isParallel() const { return !getLevels().empty(); }
    bool isParallelOn(StringRef level) const;
    bool isOver(StringRef axis) const;
  }];
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

def CommIR_MaskAttr : CommIR_Attr<"Mask", "mask"> {
  let summary = "which (query, key) pairs of global positions take part";
  let description = [{
    Query i sees key j when `-left <= j - i <= right` and both lie in the same
    document. `full`, `causal` (right 0), `causal(o)` (right o: the first query
    is at position o), `window(left, right)`, each optionally with
    `documents[0, 5, 14]` (starts, then the end).

    Example: `#commir.mask<causal documents[0, 5, 14]>`.

    **Constraints**
    - [mask.window] a window `must not be empty`
    - [mask.sides] the sides of a mask `must be from -2^40 to 2^40`
    - [mask.documents] document bounds `must rise from 0`
  }];
  let parameters = (ins "int64_t":$left, "int64_t":$right,
                        OptionalArrayRefParameter<"int64_t">:$documents);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Further than any position: no bound on this side.
    static constexpr int64_t kUnbounded = kMaxExtent;
    bool isFull() const {
      return getLeft() == kUnbounded && getRight() == kUnbounded &&
             getDocuments().empty();
    }
  }];
}

#endif // DIALECT_COMMIR_ATTRS
