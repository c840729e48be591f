//===- Fill.h - Give tiles one value --------------------------------*- C++
//-*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_COMMIRTORUNTIME_FILL_H
#define LIB_CONVERSION_COMMIRTORUNTIME_FILL_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// Emits what stores `value` to all of a tile, on the CPU.
void fillTile(OpBuilder &builder, Location loc, Value tile, double value);

/// Kernels on the CPU merge into their results: emits what gives those that the
/// launch is to overwrite the merge's identity first.
void fillOverwritten(OpBuilder &builder, LaunchOp op);

} // namespace mlir::commir

#endif // LIB_CONVERSION_COMMIRTORUNTIME_FILL_H
