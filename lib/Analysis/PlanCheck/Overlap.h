//===- Overlap.h - How two regions of a memory lie --------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_OVERLAP_H
#define LIB_ANALYSIS_PLANCHECK_OVERLAP_H

#include "lib/Analysis/PlanCheck/Box.h"
#include "lib/Analysis/PlanTrace.h"

namespace mlir::commir::check {

/// Index i of a region, in `common`, is index i - shift of another.
struct Overlap {
  Box common;
  SmallVector<int64_t, 4> shift;
};

/// How two regions lie. They may overlap in several ways, as rows of the one
/// may go on where rows of the other end.
struct Alignment {
  bool sameFrame = true;
  SmallVector<Overlap, 1> overlaps;
};

/// Finds how `b` lies in `a`.
Alignment align(const MemoryBox &a, const MemoryBox &b);

} // namespace mlir::commir::check

#endif // LIB_ANALYSIS_PLANCHECK_OVERLAP_H
