//===- CommIRTypes.td - Types of the commir dialect --------*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_TYPES
#define DIALECT_COMMIR_TYPES

include "dialect/CommIR/CommIRAttrs.td"

class CommIR_ShapedType<string name, string typeMnemonic>
    : TypeDef<CommIR_Dialect, name> {
  let mnemonic = typeMnemonic;
  let parameters = (ins ArrayRefParameter<"DimAttr">:$dims,
                        "Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def CommIR_BufferType : CommIR_ShapedType<"Buffer", "buffer"> {
  let summary = "a named tensor whose dimensions are axes";
  let description = [{
    The dimensions say both the shape and how loops address it: a loop over `sk`
    walks the `sk` dimension of each buffer that has one.

    Example: `!commir.buffer<[b, sk, h/4, 128], bf16>`.

    **Constraints**
    - [buffer.axis-twice] a buffer or tile `must not use an axis for two dimensions`
    - [buffer.element] its element type `must be a floating-point type`
  }];
  let extraClassDeclaration = [{
    /// Whether a dimension is `axis`, or `axis` divided.
    bool hasAxis(StringRef axis) const;
    /// The tile of this buffer.
    TileType getTileType() const;
  }];
}

def CommIR_TileType : CommIR_ShapedType<"Tile", "tile"> {
  let summary = "the piece of a buffer that one iteration works on";
  let description = [{
    It has the dimensions of its buffer, each as long as the iteration's part of
    the axis.

    Example: `!commir.tile<[b, sk, h/4, 128], bf16>`.
  }];
}

#endif // DIALECT_COMMIR_TYPES
