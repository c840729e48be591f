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

namespace mlir::commir {

/// Whether each shard of the axis is one interval, whatever their number.
bool isOneInterval(AxisAttr axis);

/// The most intervals that a shard of `shards` is made of.
int64_t getPieces(AxisAttr axis, int64_t shards);

/// The most positions of `axis / divisor` that a shard of `shards` touches.
int64_t getLargestSize(AxisAttr axis, int64_t shards, int64_t divisor);

/// Emits sizes and bounds of shards as index arithmetic.
class LayoutBuilder {
public:
  LayoutBuilder(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc) {}

  /// The number of positions of `axis / divisor` in shard `index` of `shards`;
  /// a null index stands for the whole axis.
  Value size(AxisAttr axis, Value index, int64_t shards, int64_t divisor = 1);

  /// The first position of `axis / divisor` in that shard, which must be one
  /// interval.
  Value begin(AxisAttr axis, Value index, int64_t shards, int64_t divisor = 1);

  /// One of the intervals that a shard is made of, and where it begins among
  /// the shard's positions laid side by side.
  struct Piece {
    Value begin, end, local;
  };

  /// Interval `number` of shard `index` of `shards`, below getPieces(); empty
  /// where the shard has fewer. A null index stands for the whole axis.
  Piece piece(AxisAttr axis, Value index, int64_t shards, Value number,
              int64_t divisor = 1);

private:
  Value constant(int64_t value);
  /// ceil(index * extent / shards).
  Value blockBound(int64_t extent, int64_t shards, Value index);
  /// Where interval shard `index` begins; with `index + 1`, where it ends.
  Value bound(AxisAttr axis, Value index, int64_t shards);

  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_LAYOUTBUILDER_H
