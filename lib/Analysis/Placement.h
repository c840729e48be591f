//===- Placement.h - Where a schedule makes buffers live --------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLACEMENT_H
#define LIB_ANALYSIS_PLACEMENT_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// The placement that the loops of `nest` and the schedule's own words give to
/// a buffer. For each level the first of these that applies: an explicit shard
/// or replicate, a parallel loop over one of the buffer's axes, a shifted loop
/// over one; else the level holds replicas.
PlacementAttr inferPlacement(ProgramOp program, ForOp nest, int64_t buffer);

/// The factors of a cut that do cut: a level of one rank does not.
SmallVector<Attribute> getFactors(MeshOp mesh, CutAttr cut);

/// How the loops of a nest cut an axis, outermost first: the levels that a loop
/// is parallel on, or shifted on where none is parallel on them, and the
/// numbers of parts walked in sequence.
SmallVector<Attribute> getLoopFactors(ProgramOp program, ForOp nest,
                                      StringRef axis);

/// Whether two placements of a buffer put the same positions on every rank,
/// however they are written.
bool isSamePlacement(ProgramOp program, PlacementAttr one, PlacementAttr other);

} // namespace mlir::commir

#endif // LIB_ANALYSIS_PLACEMENT_H
