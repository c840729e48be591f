//===- Pulls.cpp - Pulls of tiles in pieces -------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pull copies rows of bytes that are equally far apart on either side. So a
// tile in pieces is pulled by one for each piece, and one that leaves out some
// of two dimensions by one for each index of those outside of both:
//
//   [b, sq, h, 8], a chunk of sq and a slice of h: a row is the slice of one
//   position, the rows of one b are as far apart as positions, but the first
//   of the next b is farther.
//
// A few pulls are under way at once, each with its token; many come one after
// the other.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Localization/ProgramLocalizer.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::commir;

/// The most pulls of one tile that become ops of their own: the plan's text
/// shall not grow with the ranks, and a tile of a zigzag axis has two pieces.
static constexpr int64_t kPullsAtOnce = 4;

SmallVector<int64_t> ProgramLocalizer::getDimsOutsideRows(PullStartOp op) {
  const Tile &source = tiles[op.getSource()], &target = tiles[op.getTarget()];
  if (source.empty || target.empty)
    return {};
  auto isOne = [&](int64_t dim) {
    return isConstantIntValue(source.extents[dim].size, 1);
  };
  // Outwards: what follows without a gap joins the row, the first dimension
  // behind a gap counts rows, and at the next gap the rows end.
  int64_t dim = source.extents.size();
  bool countsRows = false;
  for (bool hasGap = false; dim > 0; --dim) {
    const Extent &from = source.extents[dim - 1], &to = target.extents[dim - 1];
    if (hasGap && !isOne(dim - 1)) {
      if (countsRows)
        break;
      countsRows = true;
      hasGap = false;
    }
    hasGap |= !from.whole || !to.whole;
  }
  SmallVector<int64_t> outside;
  for (int64_t outer = 0; outer < dim; ++outer)
    if (!isOne(outer))
      outside.push_back(outer);
  return outside;
}

Value ProgramLocalizer::takeIndices(Value tile, ArrayRef<int64_t> dims,
                                    ArrayRef<Value> indices) {
  SmallVector<Value> offsets, sizes;
  int64_t rank = cast<MemRefType>(tile.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    const int64_t *found = llvm::find(dims, dim);
    bool isTaken = found != dims.end();
    offsets.push_back(isTaken ? indices[found - dims.begin()] : constant(0));
    sizes.push_back(isTaken ? constant(1)
                            : builder.fold<memref::DimOp>(program.getLoc(),
                                                          tile, constant(dim)));
  }
  return makeSubview(tile, offsets, sizes);
}

LogicalResult ProgramLocalizer::convert(PullStartOp op) {
  SmallVector<Value> operands{op.getSource(), op.getTarget()};
  // Where one end has no elements, so has the other: none of its pieces moves.
  const Tile &source = tiles[op.getSource()], &target = tiles[op.getTarget()];
  if (!source.empty != !target.empty) {
    Value other = source.empty ? op.getTarget() : op.getSource();
    SmallVector<Value> sizes =
        llvm::map_to_vector((source.empty ? source : target).extents,
                            [](const Extent &extent) { return extent.size; });
    IRMapping map = mapping;
    map.map(other,
            makeSubview(tiles[other].frame,
                        SmallVector<Value>(sizes.size(), constant(0)), sizes));
    Operation *pull = builder.clone(*op, map);
    mapping.map(op.getToken(), pull->getResult(0));
    return success();
  }
  auto axes = getAxesInPieces(op, operands, {}, /*isDocuments=*/false);
  if (failed(axes))
    return failure();
  SmallVector<int64_t> outside = getDimsOutsideRows(op);
  if (axes->empty() && outside.empty()) {
    builder.clone(*op, mapping);
    return success();
  }
  // How many pieces, and indices outside of rows, there are of each kind; 0 if
  // that is not known.
  SmallVector<int64_t> counts;
  for (auto &[axis, range] : *axes)
    counts.push_back(getPieces(axis, range));
  for (int64_t dim : outside) {
    const Extent &extent = tiles[op.getSource()].extents[dim];
    auto size = getConstantIntValue(extent.size);
    counts.push_back(size && !extent.inPieces ? *size : 0);
  }
  int64_t pulls = 1;
  for (int64_t count : counts)
    pulls *= count;
  auto pull = [&](ArrayRef<Value> found, ArrayRef<Value> indices) {
    IRMapping map = mapping;
    for (auto [operand, tile] : llvm::zip_equal(operands, found))
      map.map(operand,
              outside.empty() ? tile : takeIndices(tile, outside, indices));
    return cast<PullStartOp>(builder.clone(*op, map)).getToken();
  };
  SmallVector<Value> &tokens = tokensOfPieces[op.getToken()];
  if (pulls == 0 || pulls > kPullsAtOnce)
    return forEachPiece(
        op, operands, {}, {}, [&](ArrayRef<Value> found, auto &) {
          OpBuilder::InsertionGuard guard(builder);
          SmallVector<Value> indices;
          for (int64_t dim : outside)
            indices.push_back(openLoop(builder.fold<memref::DimOp>(
                op.getLoc(), found.front(), constant(dim))));
          WaitOp::create(builder, op.getLoc(), pull(found, indices));
        });
  for (int64_t number = 0; number < pulls; ++number) {
    SmallVector<int64_t> numbers;
    SmallVector<Value> indices;
    int64_t rest = number;
    for (auto [i, count] : llvm::enumerate(counts)) {
      if (i < axes->size())
        numbers.push_back(rest % count);
      else
        indices.push_back(constant(rest % count));
      rest /= count;
    }
    LogicalResult result = forEachPiece(
        op, operands, {}, {},
        [&](ArrayRef<Value> found, auto &) {
          tokens.push_back(pull(found, indices));
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
