//===- CommIRTransformOps.h - The schedule ----------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_TRANSFORM_COMMIRTRANSFORMOPS_H
#define DIALECT_COMMIR_TRANSFORM_COMMIRTRANSFORMOPS_H

#include "dialect/CommIR/CommIR.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformTypes.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"

#define GET_OP_CLASSES
#include "dialect/CommIR/Transform/CommIRTransformOps.h.inc"

namespace mlir::commir {
/// Adds the `transform.commir.*` ops to the transform dialect.
void registerTransformExtension(DialectRegistry &registry);
} // namespace mlir::commir

#endif // DIALECT_COMMIR_TRANSFORM_COMMIRTRANSFORMOPS_H
