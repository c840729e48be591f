//===- CommIR.h - The commir dialect ----------------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_COMMIR_H
#define DIALECT_COMMIR_COMMIR_H

#include "dialect/CommIR/Layout.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "dialect/CommIR/CommIRDialect.h.inc"
#include "dialect/CommIR/CommIREnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/CommIR/CommIRAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/CommIR/CommIRTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/CommIR/CommIROps.h.inc"

namespace mlir::commir {

/// How many lanes a plan may use: MERCURY_RT_MAX_LANES.
inline constexpr int64_t kMaxLanes = 8;

} // namespace mlir::commir

#endif // DIALECT_COMMIR_COMMIR_H
