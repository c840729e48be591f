//===- Runs.h - Pieces that one launch takes together -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A part of a zigzag axis is two pieces, side by side in memory. A launch that
// is told where its first query and its first key are takes all others to
// follow these. It may take a run of pieces of each where the mask lets through
// the same pairs as of their true positions. Queries that see none of the keys,
// and keys that none of the queries sees, are left out. Of zigzag parts under a
// causal mask that is so for all pairs:
//
//   2 ranks          keys 0 3 (own)            keys 1 2
//   queries 0        \.  one causal launch     ..   left out
//   queries 3        #\                        ##   one launch on all keys
//
//   the other        keys 1 2 (own)            keys 0 3
//   queries 1        \.                        #.   one launch of all queries
//   queries 2        #\                        #.   on the first keys
//
// A part of a striped(1) axis is many pieces, and a band of positions is one of
// the numbers that they have in their parts, too. Query i of shard r of n is
// position r + i n, and key j of shard s is s + j n: under a causal mask it is
// seen where j - i <= floor((r - s) / n), which is 0 of a key from here or from
// before, and -1 of one from behind. One launch takes both parts:
//
//   3 ranks          keys 0 3 6 (own)          keys 1 4 7
//   query 0          \..                       ...   left out
//   query 3          #\.  one causal launch    \..   one causal launch, without
//   query 6          ##\                       #\.   the last key
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_RUNS_H
#define LIB_TRANSFORMS_RUNS_H

#include "lib/Transforms/LayoutBuilder.h"

namespace mlir::commir {

/// Consecutive pieces of a part, from the first on, before the last.
struct PieceRun {
  int64_t first = 0, last = 0;
};

/// The pieces of a shard, as LayoutBuilder numbers them; some may be empty.
SmallVector<Interval> getPieceIntervals(AxisAttr axis, int64_t shards,
                                        int64_t shard);

/// The pieces of queries that see some of the keys, and of keys that some of
/// the queries see, with those between them.
std::pair<PieceRun, PieceRun> getRuns(MaskAttr mask, ArrayRef<Interval> queries,
                                      ArrayRef<Interval> keys);

/// Whether the axis' positions are dealt to its shards one by one.
bool isDealtOneByOne(AxisAttr axis);

/// Whether one launch can take the runs of any two parts of these axes, cut
/// into as many.
bool canJoinPieces(MaskAttr mask, AxisAttr queries, int64_t queryParts,
                   AxisAttr keys, int64_t keyParts);

/// A run in the part of a rank, as IR.
struct RunBuilder {
  /// Where the first piece begins, and where the run lies among the positions
  /// of the part, laid side by side.
  struct Run {
    Value begin, local, size;
  };

  FoldingBuilder &builder;
  Location loc;

  /// Whether some query of one piece sees some key of another.
  Value sees(MaskAttr mask, const LayoutBuilder::Piece &queries,
             const LayoutBuilder::Piece &keys);

  /// The run of those pieces that `needed` says.
  Run getRun(ArrayRef<LayoutBuilder::Piece> pieces, ArrayRef<Value> needed);

  /// The runs that one launch takes of queries and keys, and its mask.
  struct Launch {
    Run queries, keys;
    MaskAttr mask;
  };
  /// How one shard of striped(1) queries sees one of as many of keys. By where
  /// the shards begin, a window lets through as many differences of numbers as
  /// stripes fit in it, or one less, which may be none.
  struct Band {
    Launch wide;
    std::optional<Launch> narrow;
    Value isWide; // null where it always is
  };
  /// Numbers in a part, from the first on, before the last.
  struct Span {
    Value begin, end;
  };
  Band getBand(MaskAttr mask, const AxisPart &queries, Span rows,
               const AxisPart &keys, Span columns);
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_RUNS_H
