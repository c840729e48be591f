//===- Pulls.cpp - Pulls of tiles in pieces -------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pull copies rows that lie together, so a tile in pieces is pulled by one
// for each piece. A few of them are under way at once, each with its token;
// many come one after the other.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Localization/ProgramLocalizer.h"

using namespace mlir;
using namespace mlir::commir;

/// The most pieces whose pulls become ops of their own: the plan's text shall
/// not grow with the ranks, and a tile of a zigzag axis has two.
static constexpr int64_t kPiecesAtOnce = 4;

LogicalResult ProgramLocalizer::convert(PullStartOp op) {
  SmallVector<Value> operands{op.getSource(), op.getTarget()};
  bool inPieces = llvm::any_of(operands, [&](Value operand) {
    return llvm::any_of(tiles[operand].extents,
                        [](const Extent &extent) { return extent.inPieces; });
  });
  if (!inPieces) {
    builder.clone(*op, mapping);
    return success();
  }
  auto axes = getAxesInPieces(op, operands, {}, /*isDocuments=*/false);
  if (failed(axes))
    return failure();
  int64_t pieces = 1;
  for (auto &[axis, range] : *axes)
    pieces *= getPieces(axis, range);
  SmallVector<Value> &tokens = tokensOfPieces[op.getToken()];
  auto pull = [&](ArrayRef<Value> found) {
    IRMapping map = mapping;
    map.map(operands, found);
    return cast<PullStartOp>(builder.clone(*op, map));
  };
  if (pieces > kPiecesAtOnce)
    return forEachPiece(
        op, operands, {}, {}, [&](ArrayRef<Value> found, auto &) {
          PullStartOp start = pull(found);
          WaitOp::create(builder, op.getLoc(), start.getToken());
        });
  for (int64_t piece = 0; piece < pieces; ++piece) {
    SmallVector<int64_t> numbers;
    int64_t rest = piece;
    for (auto &[axis, range] : *axes) {
      numbers.push_back(rest % getPieces(axis, range));
      rest /= getPieces(axis, range);
    }
    LogicalResult result = forEachPiece(
        op, operands, {}, {},
        [&](ArrayRef<Value> found, auto &) {
          tokens.push_back(pull(found).getToken());
        },
        numbers);
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult ProgramLocalizer::convert(WaitOp op) {
  auto pieces = tokensOfPieces.find(op.getToken());
  if (pieces == tokensOfPieces.end()) {
    builder.clone(*op, mapping);
    return success();
  }
  for (Value token : pieces->second)
    WaitOp::create(builder, op.getLoc(), token);
  return success();
}
