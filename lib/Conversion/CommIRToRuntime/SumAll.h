//===- SumAll.h - Calling the sum of a stack of tiles -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_COMMIRTORUNTIME_SUMALL_H
#define LIB_CONVERSION_COMMIRTORUNTIME_SUMALL_H

#include "dialect/CommIR/CommIR.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::commir {

/// Emits calls of the kernel `sum_all`, which takes tiles of four dimensions,
/// for tiles of any number of them.
void callSumAll(OpBuilder &builder, LaunchOp op, func::FuncOp kernel);

} // namespace mlir::commir

#endif // LIB_CONVERSION_COMMIRTORUNTIME_SUMALL_H
