//===- PieceOrder.cpp - Pieces that meet ----------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/PieceOrder.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

PieceOrder::PieceOrder(ArrayRef<Piece> pieces, ArrayRef<unsigned> dims) {
  size_t most = 0;
  for (unsigned candidate : dims) {
    llvm::DenseSet<int64_t> begins;
    for (const Piece &piece : pieces)
      begins.insert(piece.local[candidate].begin);
    if (begins.size() <= most)
      continue;
    most = begins.size();
    dim = candidate;
  }
  for (const Piece &piece : pieces) {
    sorted.push_back(&piece);
    if (dim)
      widest = std::max(widest, piece.local[*dim].size());
  }
  if (dim)
    llvm::stable_sort(sorted, [&](const Piece *a, const Piece *b) {
      return a->local[*dim].begin < b->local[*dim].begin;
    });
}

ArrayRef<const Piece *> PieceOrder::getNear(const Interval &along) const {
  if (!dim)
    return sorted;
  auto first = llvm::partition_point(sorted, [&](const Piece *piece) {
    return piece->local[*dim].begin + widest <= along.begin;
  });
  auto last = llvm::partition_point(sorted, [&](const Piece *piece) {
    return piece->local[*dim].begin < along.end;
  });
  return {first, std::max(first, last)};
}

SmallVector<unsigned> check::getAllDims(const Box &box) {
  return llvm::to_vector(llvm::seq<unsigned>(0, box.size()));
}
