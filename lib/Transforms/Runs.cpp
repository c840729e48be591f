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
static std::pair<int64_t, int64_t> getBand(MaskAttr mask, int64_t queries,
                                           int64_t keys, int64_t apart) {
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
      auto [least, most] =
          getBand(mask, query.size(), key.size(), key.begin - query.begin);
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
      if (getBand(mask, q.size(), k.size(), k.begin - q.begin) !=
          getBand(mask, q.size(), k.size(), key - query))
        return false;
      key += k.size();
    }
    query += q.size();
  }
  return true;
}

bool mlir::commir::canJoinPieces(MaskAttr mask, AxisAttr queries,
                                 int64_t queryParts, AxisAttr keys,
                                 int64_t keyParts) {
  // What is in many pieces cannot be told from bands; and no program has as
  // many parts as would take long to look at.
  constexpr int64_t most = int64_t(1) << 20;
  auto isStriped = [](AxisAttr axis) {
    return axis.getLayout().getKind() == Layout::Kind::Striped;
  };
  if (isStriped(queries) || isStriped(keys) || queryParts > most / keyParts ||
      !mask.getDocuments().empty())
    return false;
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
