//===- CollectiveOps.cpp - What a whole group does together ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/CommIR.h"

using namespace mlir;
using namespace mlir::commir;

/// No library merges softmax pairs: they are gathered and merged by a kernel.
static LogicalResult verifyMerge(Operation *op, MergeKind kind) {
  if (kind != MergeKind::Softmax)
    return success();
  return op->emitOpError()
         << "what ranks reduce together must merge by sum or max, got "
         << stringifyMergeKind(kind);
}

LogicalResult ReduceScatterStartOp::verify() {
  if (failed(verifyMerge(*this, getMerge())))
    return failure();
  auto source = dyn_cast<BufferType>(getSource().getType());
  if (!source || getTarget().getType() == source.getTileType())
    return success();
  return emitOpError()
         << "the tile of a reduce_scatter must be one of its source, "
         << source.getTileType() << ", got " << getTarget().getType();
}

LogicalResult AllReduceStartOp::verify() {
  return verifyMerge(*this, getMerge());
}
