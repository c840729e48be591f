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
// What is merged over queries, as gradients of keys are, would so be rounded
// once for each stripe of them. There a run of keys is taken with as many
// stripes as all see it, out of those that halving them again and again gives:
// in two launches for each stripe at most, and a key in no more of them than
// the stripes can be halved:
//
//   4 stripes of queries, own keys   by two      by one      within a stripe
//                                    . . . .     . . . .     x . . .
//                                    . . . .     # . . .     . x . .
//                                    # # . .     . . . .     . . x .
//                                    # # . .     . . # .     . . . x
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
    // There may be more keys than queries, or fewer.
    auto getNumbers = [&](const Shard &shard) -> RunBuilder::Span {
      if (mask.getDocuments().empty())
        return {constant(0), layouts.size(shard.axis, shard.range)};
      Value end = builder.fold<arith::MinSIOp>(
          op.getLoc(), document.end, constant(shard.axis.getExtent()));
      return {layouts.countBelow(shard.axis, shard.range, document.begin),
              layouts.countBelow(shard.axis, shard.range, end)};
    };
    launchBand(op, within, queries, getNumbers(queries), keys, getNumbers(keys),
               DenseBoolArrayAttr());
    return;
  }
  // What is merged over queries would be once for each stripe of them.
  bool byHalves =
      queries.axis.getLayout().getKind() == Layout::Kind::Striped &&
      queries.range.count != 1 &&
      llvm::any_of(op.getOutputs(), [&](Value output) {
        return llvm::none_of(
            cast<TileType>(output.getType()).getDims(), [&](DimAttr dim) {
              return !dim.isConstant() && dim.getAxis() == queryAxis;
            });
      });
  if (byHalves)
    launchByHalves(op, within, queries, keys, document);
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
           [&] { launchOnSeen(op, within, rows, keys, document, byHalves); });
}

Value ProgramLocalizer::countBelow(const Shard &stripes, Value position,
                                   RunBuilder::Span document) {
  Location loc = program.getLoc();
  position = builder.fold<arith::MaxSIOp>(loc, position, document.begin);
  position = builder.fold<arith::MinSIOp>(loc, position, document.end);
  return layouts.countBelow(stripes.axis, stripes.range, position);
}

/// The keys that all queries from `first` to `last` see, by their numbers.
/// Query q sees keys from q - left to q + right.
RunBuilder::Span ProgramLocalizer::getSeenByAll(MaskAttr mask, Value first,
                                                Value last, const Shard &keys,
                                                RunBuilder::Span document) {
  Value begin = countBelow(keys, document.begin, document);
  Value end = countBelow(keys, document.end, document);
  if (mask.getRight() != MaskAttr::kUnbounded)
    end = countBelow(keys, add(first, constant(mask.getRight() + 1)), document);
  // Of a window narrower than the queries no key is seen by all.
  if (mask.getLeft() != MaskAttr::kUnbounded)
    begin = builder.fold<arith::MinSIOp>(
        program.getLoc(),
        countBelow(keys, sub(last, constant(mask.getLeft())), document), end);
  return {begin, end};
}

/// Launches on a run of keys, where there are some.
void ProgramLocalizer::launchOnKeys(LaunchOp op, MaskAttr mask,
                                    const AxisRun &queries, const Shard &keys,
                                    RunBuilder::Span numbers) {
  Value size = sub(numbers.end, numbers.begin);
  whenSome(size, [&] {
    // What is told to be closer to the first than it is: all see it, or none.
    Value position = layouts.positionAt(keys.axis, keys.range, numbers.begin);
    launchRuns(op, queries,
               {keys.axis.getName(), {position, numbers.begin, size}}, mask,
               DenseBoolArrayAttr());
  });
}

/// Launches on the keys that all queries of a run of stripes see, and not all
/// of the run that it is a half of: for runs of 1, 2, 4, ... stripes, by the
/// place where two halves meet.
void ProgramLocalizer::launchByHalves(LaunchOp op, MaskAttr mask,
                                      const Shard &queries, const Shard &keys,
                                      RunBuilder::Span document) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op.getLoc();
  Value begin = constant(0), end = layouts.size(queries.axis, queries.range);
  if (!(*op.getMask()).getDocuments().empty()) {
    begin = countBelow(queries, document.begin, document);
    end = countBelow(queries, document.end, document);
  }
  Value chunk = constant(queries.axis.getLayout().getChunk());
  auto getNumber = [&](Value stripe) -> Value {
    Value number = builder.fold<arith::MaxSIOp>(loc, mul(stripe, chunk), begin);
    return builder.fold<arith::MinSIOp>(loc, number, end);
  };
  auto getRun = [&](Value from, Value to) -> AxisRun {
    Value first = getNumber(from);
    return {queries.axis.getName(),
            {layouts.positionAt(queries.axis, queries.range, first), first,
             sub(getNumber(to), first)}};
  };
  auto getSeen = [&](const AxisRun &rows) {
    Value last = sub(add(rows.run.local, rows.run.size), constant(1));
    return getSeenByAll(mask, rows.run.begin,
                        layouts.positionAt(queries.axis, queries.range, last),
                        keys, document);
  };
  Value stripes = constant(getPieces(queries.axis, queries.range));
  AxisRun all = getRun(constant(0), stripes);
  whenSome(all.run.size,
           [&] { launchOnKeys(op, mask, all, keys, getSeen(all)); });

  Value middle = openLoop(constant(1), stripes);
  Value half =
      builder.fold<arith::AndIOp>(loc, middle, sub(constant(0), middle));
  AxisRun former = getRun(sub(middle, half), middle);
  AxisRun later = getRun(middle, add(middle, half));
  Value least =
      builder.fold<arith::MinSIOp>(loc, former.run.size, later.run.size);
  whenSome(least, [&] {
    RunBuilder::Span common =
        getSeen(getRun(sub(middle, half), add(middle, half)));
    Value some = builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::ne,
                                             common.begin, common.end);
    // What the former see before, and the later behind, what all do.
    if (mask.getLeft() != MaskAttr::kUnbounded) {
      RunBuilder::Span seen = getSeen(former);
      seen.end =
          builder.fold<arith::SelectOp>(loc, some, common.begin, seen.end);
      launchOnKeys(op, mask, former, keys, seen);
    }
    if (mask.getRight() != MaskAttr::kUnbounded) {
      RunBuilder::Span seen = getSeen(later);
      seen.begin =
          builder.fold<arith::SelectOp>(loc, some, common.end, seen.begin);
      launchOnKeys(op, mask, later, keys, seen);
    }
  });
}

/// Launches on the keys that only some of consecutive queries see and, unless
/// the stripes were taken by halves, on those that all of them do.
void ProgramLocalizer::launchOnSeen(LaunchOp op, MaskAttr mask,
                                    const AxisRun &queries, const Shard &keys,
                                    RunBuilder::Span document, bool byHalves) {
  int64_t chunk = keys.axis.getLayout().getChunk();
  auto launchStripes = [&](Value begin, Value end) {
    whenSome(sub(end, begin), [&] {
      Value size = constant(chunk);
      Value from = builder.fold<arith::DivUIOp>(op.getLoc(), begin, size);
      Value to = builder.fold<arith::CeilDivUIOp>(op.getLoc(), end, size);
      OpBuilder::InsertionGuard guard(builder);
      Value first = mul(openLoop(from, to), size);
      launchOnKeys(
          op, mask, queries, keys,
          {builder.fold<arith::MaxSIOp>(op.getLoc(), begin, first),
           builder.fold<arith::MinSIOp>(op.getLoc(), end, add(first, size))});
    });
  };
  Value firstQuery = queries.run.begin;
  Value endQuery = add(firstQuery, queries.run.size);
  RunBuilder::Span full = getSeenByAll(
      mask, firstQuery, sub(endQuery, constant(1)), keys, document);
  if (mask.getLeft() != MaskAttr::kUnbounded)
    launchStripes(
        countBelow(keys, sub(firstQuery, constant(mask.getLeft())), document),
        full.begin);
  if (!byHalves)
    launchOnKeys(op, mask, queries, keys, full);
  if (mask.getRight() != MaskAttr::kUnbounded)
    launchStripes(
        full.end,
        countBelow(keys, add(endQuery, constant(mask.getRight())), document));
}
