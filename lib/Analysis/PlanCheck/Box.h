//===- Box.h - Boxes of whole numbers ---------------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_BOX_H
#define LIB_ANALYSIS_PLANCHECK_BOX_H

#include "dialect/CommIR/Layout.h"
#include <memory>
#include <optional>

namespace mlir::commir::check {

/// An interval for each dimension. A box of no dimensions has one point.
using Box = llvm::SmallVector<Interval, 4>;

bool isEmpty(const Box &box);

/// The box of all that lies in both; nullopt when nothing does.
std::optional<Box> intersect(const Box &a, const Box &b);

/// Appends disjoint boxes that cover what lies in `a` and not in `b`.
void subtract(const Box &a, const Box &b, llvm::SmallVectorImpl<Box> &rest);

/// Makes `a` the union of both, when that is a box.
bool join(Box &a, const Box &b);

/// Disjoint boxes, as few as joining neighbours gives.
///
/// Stripes and windows make sets of hundreds of intervals, each asked for and
/// added to as often: a box is found by its place.
class BoxSet {
public:
  llvm::ArrayRef<Box> getBoxes() const { return boxes; }
  bool isEmpty() const { return boxes.empty(); }

  /// All boxes that overlap or touch one, and perhaps more.
  llvm::ArrayRef<Box> getNear(const Box &box) const;

  /// Adds a box that none of the set overlaps.
  void add(Box box);
  /// Adds a set that overlaps none of it.
  void add(const BoxSet &other);
  /// What of `whole` is not in the set.
  llvm::SmallVector<Box> getMissing(const Box &whole) const;
  bool operator==(const BoxSet &other) const;

private:
  /// From the least to the largest.
  llvm::SmallVector<Box, 2> boxes;
  /// How many points lie in them.
  int64_t points = 0;
  /// No box is wider along the first dimension.
  int64_t widest = 0;
};

} // namespace mlir::commir::check

#endif // LIB_ANALYSIS_PLANCHECK_BOX_H
