//===- PieceOrder.h - Pieces that meet --------------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_PIECEORDER_H
#define LIB_ANALYSIS_PLANCHECK_PIECEORDER_H

#include "lib/Analysis/PlanCheck/Contents.h"

namespace mlir::commir::check {

/// Pieces by their place along the dimension that cuts them the most: those of
/// two regions meet each other without asking every pair.
class PieceOrder {
public:
  /// By one of `dims`; if there is none, all pieces are near all others.
  PieceOrder(ArrayRef<Piece> pieces, ArrayRef<unsigned> dims);

  /// All pieces that overlap an interval of dimension getDim(), perhaps more.
  ArrayRef<const Piece *> getNear(const Interval &along) const;
  std::optional<unsigned> getDim() const { return dim; }
  /// All that overlap a box of the same dimensions, perhaps more.
  ArrayRef<const Piece *> getNear(const Box &box) const {
    return dim ? getNear(box[*dim]) : ArrayRef<const Piece *>(sorted);
  }

private:
  SmallVector<const Piece *, 1> sorted;
  std::optional<unsigned> dim;
  /// No piece is wider along the dimension.
  int64_t widest = 0;
};

/// All dimensions of a box.
SmallVector<unsigned> getAllDims(const Box &box);

} // namespace mlir::commir::check

#endif // LIB_ANALYSIS_PLANCHECK_PIECEORDER_H
