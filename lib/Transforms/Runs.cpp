//===- Runs.cpp - Pieces that one launch takes together -------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Runs.h"

using namespace mlir;
using namespace mlir::commir;

SmallVector<Interval>
mlir::commir::getPieceIntervals(AxisAttr axis, int64_t shards, int64_t shard) {
  int64_t extent = axis.getExtent();
  Layout layout = axis.getLayout().getLayout();
  if (shards == 1)
    return {{0, extent}};
  if (layout.kind != Layout::Kind::Zigzag) {
    SmallVector<Interval> held = layout.shard(extent, shards, shard);
    return held.empty() ? SmallVector<Interval>{{0, 0}} : held;
  }
  auto block = [&](int64_t index) {
    return Interval{blockBound(extent, 2 * shards, index),
                    blockBound(extent, 2 * shards, index + 1)};
  };
  return {block(shard), block(2 * shards - 1 - shard)};
}

/// The differences key - query of two intervals that a mask lets through, from
/// the least to the most, where their first elements are `apart`.
static std::pair<int64_t, int64_t>
getDifferences(MaskAttr mask, int64_t queries, int64_t keys, int64_t apart) {
  std::pair<int64_t, int64_t> none(1, 0);
  if (queries <= 0 || keys <= 0)
    return none;
  std::pair<int64_t, int64_t> band(
      std::max(1 - queries, -mask.getLeft() - apart),
      std::min(keys - 1, mask.getRight() - apart));
  return band.first <= band.second ? band : none;
}

std::pair<PieceRun, PieceRun> mlir::commir::getRuns(MaskAttr mask,
                                                    ArrayRef<Interval> queries,
                                                    ArrayRef<Interval> keys) {
  std::pair<PieceRun, PieceRun> runs;
  auto extend = [](PieceRun &run, int64_t piece) {
    run.first = run.last ? std::min(run.first, piece) : piece;
    run.last = std::max(run.last, piece + 1);
  };
  for (auto [i, query] : llvm::enumerate(queries)) {
    for (auto [j, key] : llvm::enumerate(keys)) {
      auto [least, most] = getDifferences(mask, query.size(), key.size(),
                                          key.begin - query.begin);
      if (least > most)
        continue;
      extend(runs.first, i);
      extend(runs.second, j);
    }
  }
  return runs;
}

/// Whether a launch of two runs, told only where they begin, sees what it
/// should.
static bool seesTheSame(MaskAttr mask, ArrayRef<Interval> queries,
                        ArrayRef<Interval> keys) {
  int64_t query = queries.empty() ? 0 : queries.front().begin;
  for (Interval q : queries) {
    int64_t key = keys.front().begin;
    for (Interval k : keys) {
      if (getDifferences(mask, q.size(), k.size(), k.begin - q.begin) !=
          getDifferences(mask, q.size(), k.size(), key - query))
        return false;
      key += k.size();
    }
    query += q.size();
  }
  return true;
}

bool mlir::commir::isDealtOneByOne(AxisAttr axis) {
  return axis.getLayout().getKind() == Layout::Kind::Striped &&
         axis.getLayout().getChunk() == 1;
}

bool mlir::commir::canJoinPieces(MaskAttr mask, AxisAttr queries,
                                 int64_t queryParts, AxisAttr keys,
                                 int64_t keyParts) {
  // No program has as many parts as would take long to look at.
  constexpr int64_t most = int64_t(1) << 20;
  if (!mask.getDocuments().empty() || queryParts > most / keyParts)
    return false;
  auto isStriped = [](AxisAttr axis) {
    return axis.getLayout().getKind() == Layout::Kind::Striped;
  };
  if (isStriped(queries) || isStriped(keys))
    return isDealtOneByOne(queries) && isDealtOneByOne(keys) &&
           queryParts == keyParts;
  for (int64_t part = 0; part < queryParts; ++part) {
    auto rows = getPieceIntervals(queries, queryParts, part);
    for (int64_t other = 0; other < keyParts; ++other) {
      auto columns = getPieceIntervals(keys, keyParts, other);
      auto [run, seen] = getRuns(mask, rows, columns);
      if (!seesTheSame(
              mask, ArrayRef(rows).slice(run.first, run.last - run.first),
              ArrayRef(columns).slice(seen.first, seen.last - seen.first)))
        return false;
    }
  }
  return true;
}

Value RunBuilder::sees(MaskAttr mask, const LayoutBuilder::Piece &queries,
                       const LayoutBuilder::Piece &keys) {
  auto constant = [&](int64_t value) -> Value {
    return builder.constant(loc, value);
  };
  auto less = [&](Value a, Value b) -> Value {
    return builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, a, b);
  };
  auto both = [&](Value a, Value b) -> Value {
    return builder.fold<arith::AndIOp>(loc, a, b);
  };
  Value seen =
      both(less(queries.begin, queries.end), less(keys.begin, keys.end));
  // Key k is seen by query q where -left <= k - q <= right.
  if (mask.getRight() != MaskAttr::kUnbounded) {
    Value end = builder.fold<arith::AddIOp>(loc, queries.end,
                                            constant(mask.getRight()));
    seen = both(seen, less(keys.begin, end));
  }
  if (mask.getLeft() != MaskAttr::kUnbounded) {
    Value end =
        builder.fold<arith::AddIOp>(loc, keys.end, constant(mask.getLeft()));
    seen = both(seen, less(queries.begin, end));
  }
  return seen;
}

RunBuilder::Run RunBuilder::getRun(ArrayRef<LayoutBuilder::Piece> pieces,
                                   ArrayRef<Value> needed) {
  auto choose = [&](Value condition, Value value, Value other) -> Value {
    return builder.fold<arith::SelectOp>(loc, condition, value, other);
  };
  Value zero = builder.constant(loc, 0);
  Run run{pieces.front().begin, zero, zero};
  Value end = zero;
  for (auto [piece, isNeeded] : llvm::zip_equal(pieces, needed)) {
    Value size = builder.fold<arith::SubIOp>(loc, piece.end, piece.begin);
    Value after = builder.fold<arith::AddIOp>(loc, piece.local, size);
    end = choose(isNeeded, after, end);
  }
  for (auto [piece, isNeeded] :
       llvm::zip_equal(llvm::reverse(pieces), llvm::reverse(needed))) {
    run.begin = choose(isNeeded, piece.begin, run.begin);
    run.local = choose(isNeeded, piece.local, run.local);
  }
  run.size = builder.fold<arith::SubIOp>(loc, end, run.local);
  return run;
}

RunBuilder::Band RunBuilder::getBand(MaskAttr mask, const AxisPart &queries,
                                     Span rows, const AxisPart &keys,
                                     Span columns) {
  int64_t shards = queries.count;
  auto constant = [&](int64_t value) -> Value {
    return builder.constant(loc, value);
  };
  auto add = [&](Value a, Value b) -> Value {
    return builder.fold<arith::AddIOp>(loc, a, b);
  };
  auto sub = [&](Value a, Value b) -> Value {
    return builder.fold<arith::SubIOp>(loc, a, b);
  };
  auto clamp = [&](Value value, Value least, Value most) -> Value {
    value = builder.fold<arith::MaxSIOp>(loc, value, least);
    return builder.fold<arith::MinSIOp>(loc, value, most);
  };
  // floor((bound + a - b) / shards), of two shards a and b.
  auto divide = [&](int64_t bound, Value a, Value b) {
    int64_t rounds = llvm::divideFloorSigned(bound, shards);
    Value rest = add(constant(bound - rounds * shards + shards), sub(a, b));
    Value whole = builder.fold<arith::DivUIOp>(loc, rest, constant(shards));
    return add(whole, constant(rounds - 1));
  };
  bool hasLeft = mask.getLeft() != MaskAttr::kUnbounded;
  bool hasRight = mask.getRight() != MaskAttr::kUnbounded;
  Value zero = constant(0), low, high;
  if (hasLeft)
    low = sub(zero, divide(mask.getLeft(), keys.index, queries.index));
  if (hasRight)
    high = divide(mask.getRight(), queries.index, keys.index);

  // Of the queries those that see a key, then of the keys those that these see.
  if (hasRight)
    rows.begin = clamp(sub(columns.begin, high), rows.begin, rows.end);
  if (hasLeft) {
    rows.end = clamp(sub(columns.end, low), rows.begin, rows.end);
    columns.begin = clamp(add(rows.begin, low), columns.begin, columns.end);
  }
  if (hasRight)
    columns.end = clamp(add(rows.end, high), columns.begin, columns.end);

  auto makeLaunch = [&](MaskAttr within) {
    // The kernel sees by the difference of what it is told.
    Value moved = hasRight  ? sub(constant(within.getRight()), high)
                  : hasLeft ? sub(constant(-within.getLeft()), low)
                            : zero;
    Value ahead = add(sub(columns.begin, rows.begin), moved);
    auto getRun = [&](Span span, Value begin) -> Run {
      begin = builder.fold<arith::MaxSIOp>(loc, begin, zero);
      return {begin, span.begin, sub(span.end, span.begin)};
    };
    return Launch{getRun(rows, sub(zero, ahead)), getRun(columns, ahead),
                  within};
  };
  if (!hasLeft || !hasRight)
    return {makeLaunch(mask), std::nullopt, {}};
  auto makeWindow = [&](int64_t width) {
    int64_t right = std::clamp<int64_t>(mask.getRight(), 0, width);
    return makeLaunch(MaskAttr::get(mask.getContext(), width - right, right,
                                    ArrayRef<int64_t>()));
  };
  int64_t span = mask.getLeft() + mask.getRight(), width = span / shards;
  Band band{makeWindow(width), std::nullopt, {}};
  if (span % shards == shards - 1)
    return band;
  band.isWide = builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                            sub(high, low), constant(width));
  if (width > 0)
    band.narrow = makeWindow(width - 1);
  return band;
}
