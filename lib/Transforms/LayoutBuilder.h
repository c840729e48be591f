//===- LayoutBuilder.h - Layout arithmetic as IR ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of dialect/CommIR/Layout.h for a shard that is known only when
// the plan runs, written in closed form so that a plan's text does not grow
// with the number of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_LAYOUTBUILDER_H
#define LIB_TRANSFORMS_LAYOUTBUILDER_H

#include "dialect/CommIR/CommIR.h"
#include "lib/Transforms/FoldingBuilder.h"

namespace mlir::commir {

/// Whether each shard of the axis is one interval, whatever their number.
bool isOneInterval(AxisAttr axis);

/// A part of an axis: shard `index` of `count`; a null index stands for all of
/// it. In a strided placement a rank has several shards: `index` is the first,
/// and any multiple of each stride below its size gives another.
struct AxisPart {
  struct Step {
    int64_t size, stride;
  };
  Value index;
  int64_t count = 1;
  SmallVector<Step> steps = {}; // outermost first

  /// The number of shards.
  int64_t getShards() const;
};

/// The most intervals that one shard of `shards` is made of.
int64_t getPieces(AxisAttr axis, int64_t shards);

/// The most intervals that such a part is made of.
int64_t getPieces(AxisAttr axis, const AxisPart &range);

/// The most positions of `axis / divisor` that a part like this one has,
/// whichever shard is its first.
int64_t getLargestSize(AxisAttr axis, const AxisPart &range, int64_t divisor);

/// Emits sizes and bounds of shards as index arithmetic.
class LayoutBuilder {
public:
  LayoutBuilder(FoldingBuilder &builder, Location loc)
      : builder(builder), loc(loc) {}

  /// The number of positions of `axis / divisor` in a part.
  Value size(AxisAttr axis, const AxisPart &range, int64_t divisor = 1);

  /// The first position of `axis / divisor` in a part, which must be one
  /// interval.
  Value begin(AxisAttr axis, const AxisPart &range, int64_t divisor = 1);

  /// One of the intervals that a part is made of, and where it begins among the
  /// part's positions laid side by side.
  struct Piece {
    Value begin, end, local;
  };

  /// Interval `number` of a part, below getPieces(); empty where the part has
  /// fewer. They rise.
  Piece piece(AxisAttr axis, const AxisPart &range, Value number,
              int64_t divisor = 1);

  /// Which shard of `shards` contains shard `index` of `count`, a multiple of
  /// them. Of a striped axis one does where all of its stripes are among those
  /// of the other.
  Value findAround(AxisAttr axis, Value index, int64_t count, int64_t shards);

  /// Which of a part's shards contains shard `index` of `count`, a multiple of
  /// the part's count.
  Value findShard(AxisAttr axis, const AxisPart &range, Value index,
                  int64_t count);

  /// The piece of a part that contains piece `number` of shard `index` of
  /// `count`.
  Value findPiece(AxisAttr axis, const AxisPart &range, Value index,
                  int64_t count, Value number);

  /// How many of a striped shard's positions lie below `position`, which is at
  /// most the extent.
  Value countBelow(AxisAttr axis, const AxisPart &shard, Value position);

  /// Position `number` of a striped shard.
  Value positionAt(AxisAttr axis, const AxisPart &shard, Value number);

private:
  Value constant(int64_t value);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value div(Value a, int64_t b);
  Value rem(Value a, int64_t b);
  /// ceil(index * extent / shards).
  Value blockBound(int64_t extent, int64_t shards, Value index);
  /// How many positions block `index` has.
  Value blockSize(int64_t extent, int64_t shards, Value index);
  /// Where interval shard `index` begins; with `index + 1`, where it ends.
  Value bound(AxisAttr axis, Value index, int64_t shards);
  /// The same for one shard.
  Value sizeOfShard(AxisAttr axis, const AxisPart &shard, int64_t divisor);
  Piece pieceOfShard(AxisAttr axis, const AxisPart &shard, Value number,
                     int64_t divisor);
  /// Shard `number` of a part.
  AxisPart getShard(const AxisPart &range, Value number);
  /// A piece of several shards, without its place.
  Piece findInterval(AxisAttr axis, const AxisPart &range, Value number,
                     int64_t divisor);
  /// How many positions the pieces before `number` hold and, of an axis that is
  /// divided, where the last of them ends.
  std::pair<Value, Value> sumPieces(AxisAttr axis, const AxisPart &range,
                                    Value number, int64_t divisor);

  FoldingBuilder &builder;
  Location loc;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_LAYOUTBUILDER_H
