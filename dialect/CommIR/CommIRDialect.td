//===- CommIRDialect.td - The commir dialect ---------------*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_DIALECT
#define DIALECT_COMMIR_DIALECT

include "mlir/IR/OpBase.td"

def CommIR_Dialect : Dialect {
  let name = "commir";
  let cppNamespace = "::mlir::commir";
  let summary = "tensor operators over a mesh whose remote memory is one more "
                "level of the memory hierarchy";
  let description = [{
    A program is a tensor operator written once as loops over named axes. A
    schedule decorates its loops and buffers; what must be communicated follows
    from where the loops run and where the buffers live. Axes and mesh levels
    are spoken of by name, never by number.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // DIALECT_COMMIR_DIALECT
