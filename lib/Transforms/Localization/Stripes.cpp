//===- Stripes.cpp - Launches on stripes of keys --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stripes of a rank rise side by side, so that the keys that all of some
// queries see are a run of them. Those that only some see are within one
// stripe, where queries and keys are striped alike. A mask that lets through
// more than a run of one is taken apart at most three times for each stripe of
// the queries, and not for each pair of stripes:
//
//   striped(2), 2 ranks, causal      keys 0 1 4 5 8 9 (own)   keys 2 3 6 7 10
//   11 queries 4 5                      # # # . . .              # # . . . .
//                                    # # # \ . .              # # . . . .
//                                    a run, then one stripe   a run
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Localization/ProgramLocalizer.h"

using namespace mlir;
using namespace mlir::commir;

bool ProgramLocalizer::takesStripes(LaunchOp op, StringRef queryAxis,
                                    StringRef keyAxis) {
  SmallVector<Value> operands = getTilesOf(op);
  if (queryAxis.empty() || keyAxis.empty() || queryAxis == keyAxis ||
      !lieTogether(operands))
    return false;
  // Heads are cut by grouping, positions of queries and keys are not.
  for (Value operand : operands)
    for (DimAttr dim : cast<TileType>(operand.getType()).getDims())
      if (!dim.isConstant() && dim.getDivisor() != 1 &&
          (dim.getAxis() == queryAxis || dim.getAxis() == keyAxis))
        return false;
  Range queries = findAsked(operands, queryAxis);
  Range keys = findAsked(operands, keyAxis);
  AxisAttr axis = program.getAxis(keyAxis);
  return axis.getLayout().getKind() == Layout::Kind::Striped &&
         getPieces(axis, keys) > 1 && keys.steps.empty() &&
         queries.steps.empty();
}

void ProgramLocalizer::convertStriped(LaunchOp op, StringRef queryAxis,
                                      StringRef keyAxis) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> operands = getTilesOf(op);
  Shard queries{program.getAxis(queryAxis), findAsked(operands, queryAxis)};
  Shard keys{program.getAxis(keyAxis), findAsked(operands, keyAxis)};
  // No launch makes all of a result.
  forEachOverwritten(op, [&](Value output, FloatAttr identity) {
    FillOp::create(builder, op.getLoc(), takeRun(output, {}), identity);
  });
  MaskAttr mask = *op.getMask();
  RunBuilder::Span document{constant(0), constant(keys.axis.getExtent())};
  if (!mask.getDocuments().empty())
    std::tie(document.begin, document.end) = openDocuments(mask.getDocuments());
  MaskAttr within = MaskAttr::get(op.getContext(), mask.getLeft(),
                                  mask.getRight(), ArrayRef<int64_t>());
  if (isDealtOneByOne(queries.axis) && isDealtOneByOne(keys.axis) &&
      queries.range.count == keys.range.count) {
    auto getNumbers = [&](const Shard &shard) -> RunBuilder::Span {
      return {layouts.countBelow(shard.axis, shard.range, document.begin),
              layouts.countBelow(shard.axis, shard.range, document.end)};
    };
    launchBand(op, within, queries, getNumbers(queries), keys, getNumbers(keys),
               DenseBoolArrayAttr());
    return;
  }
  int64_t pieces = getPieces(queries.axis, queries.range);
  Value number = pieces == 1 ? constant(0) : openLoop(constant(pieces));
  Piece piece = layouts.piece(queries.axis, queries.range, number);
  Value begin = piece.begin, end = piece.end;
  if (!mask.getDocuments().empty()) {
    begin = builder.fold<arith::MaxSIOp>(op.getLoc(), begin, document.begin);
    end = builder.fold<arith::MinSIOp>(op.getLoc(), end, document.end);
  }
  AxisRun rows{
      queryAxis,
      {begin, add(piece.local, sub(begin, piece.begin)), sub(end, begin)}};
  whenSome(rows.run.size,
           [&] { launchOnSeen(op, within, rows, keys, document); });
}

/// Launches on the keys that some of consecutive queries see.
void ProgramLocalizer::launchOnSeen(LaunchOp op, MaskAttr mask,
                                    const AxisRun &queries, const Shard &keys,
                                    RunBuilder::Span document) {
  StringRef axis = keys.axis.getName();
  int64_t chunk = keys.axis.getLayout().getChunk();
  auto least = [&](Value a, Value b) -> Value {
    return builder.fold<arith::MinSIOp>(op.getLoc(), a, b);
  };
  auto most = [&](Value a, Value b) -> Value {
    return builder.fold<arith::MaxSIOp>(op.getLoc(), a, b);
  };
  auto countBelow = [&](Value position) {
    return layouts.countBelow(
        keys.axis, keys.range,
        least(most(position, document.begin), document.end));
  };
  auto launch = [&](Value begin, Value end) {
    // Keys told to be closer to the first than they are: all or none see them.
    Value position = layouts.positionAt(keys.axis, keys.range, begin);
    launchRuns(op, queries, {axis, {position, begin, sub(end, begin)}}, mask,
               DenseBoolArrayAttr());
  };
  auto launchStripes = [&](Value begin, Value end) {
    whenSome(sub(end, begin), [&] {
      Value size = constant(chunk);
      Value from = builder.fold<arith::DivUIOp>(op.getLoc(), begin, size);
      Value to = builder.fold<arith::CeilDivUIOp>(op.getLoc(), end, size);
      OpBuilder::InsertionGuard guard(builder);
      Value first = mul(openLoop(from, to), size);
      launch(most(begin, first), least(end, add(first, size)));
    });
  };
  // Query q sees keys from q - left to q + right. `begin` and `end` are of
  // those that some query sees, `fullBegin` and `fullEnd` of those that all do.
  Value firstQuery = queries.run.begin;
  Value endQuery = add(firstQuery, queries.run.size);
  Value begin = countBelow(document.begin), end = countBelow(document.end);
  Value fullBegin = begin, fullEnd = end;
  if (mask.getRight() != MaskAttr::kUnbounded) {
    Value right = constant(mask.getRight());
    fullEnd = countBelow(add(add(firstQuery, right), constant(1)));
    end = countBelow(add(endQuery, right));
  }
  if (mask.getLeft() != MaskAttr::kUnbounded) {
    Value left = constant(mask.getLeft());
    begin = countBelow(sub(firstQuery, left));
    // Of a window narrower than the queries no key is seen by all.
    fullBegin =
        least(countBelow(sub(sub(endQuery, constant(1)), left)), fullEnd);
    launchStripes(begin, fullBegin);
  }
  whenSome(sub(fullEnd, fullBegin), [&] { launch(fullBegin, fullEnd); });
  if (mask.getRight() != MaskAttr::kUnbounded)
    launchStripes(fullEnd, end);
}
