//===- Placement.h - Where a schedule makes buffers live ----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLACEMENT_H
#define LIB_ANALYSIS_PLACEMENT_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// The placement that the loops of `nest` and the schedule's own words give to a
/// buffer. For each level the first of these that applies: an explicit shard or
/// replicate, a parallel loop over one of the buffer's axes, a shifted loop over
/// one; else the level holds replicas.
PlacementAttr inferPlacement(ProgramOp program, ForOp nest, int64_t buffer);

} // namespace mlir::commir

#endif // LIB_ANALYSIS_PLACEMENT_H
