//===- Layout.h - How an axis is cut into shards ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout arithmetic: the one place that says which positions of an axis a
// shard owns. Every pass, the plan checker, the simulator and the Python face
// ask here. It knows nothing of MLIR's IR.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_LAYOUT_H
#define DIALECT_COMMIR_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>

namespace mlir::commir {

/// Far above any machine, and low enough that a product of an extent and twice
/// a number of shards stays in 64 bits.
constexpr int64_t kMaxExtent = int64_t(1) << 40;
constexpr int64_t kMaxShards = int64_t(1) << 20;

/// The half-open range of positions [begin, end).
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Interval &other) const {
    return begin == other.begin && end == other.end;
  }
};

/// How the positions [0, extent) of an axis are cut into n shards.
struct Layout {
  enum class Kind {
    /// Shard p is [ceil(p * extent / n), ceil((p + 1) * extent / n)).
    Block,
    /// 2n blocks; shard p holds blocks p and 2n - 1 - p. Balances causal masks.
    Zigzag,
    /// Chunks of `chunk` positions dealt to the shards in turn.
    Striped,
    /// Shard p is [bounds[p], bounds[p + 1]); finer cuts divide each shard by
    /// block, coarser ones join neighbours.
    Bounds
  };

  Kind kind = Kind::Block;
  int64_t chunk = 0;
  llvm::SmallVector<int64_t> bounds;

  /// The number of shards that explicit bounds name, 0 for the other kinds.
  int64_t boundShards() const {
    return kind == Kind::Bounds ? static_cast<int64_t>(bounds.size()) - 1 : 0;
  }

  /// Says why an axis of `extent` cannot be cut into `shards` by this layout;
  /// empty when it can.
  std::string whyNot(int64_t extent, int64_t shards) const;

  /// The positions of shard `index` of `shards`: sorted, disjoint, and no two
  /// of them adjacent. Requires whyNot(extent, shards) to be empty.
  llvm::SmallVector<Interval> shard(int64_t extent, int64_t shards,
                                    int64_t index) const;

  /// The number of positions of shard `index`.
  int64_t shardSize(int64_t extent, int64_t shards, int64_t index) const;

  /// The largest shardSize over all shards.
  int64_t largestShard(int64_t extent, int64_t shards) const;

  /// The shard that owns `position`.
  int64_t owner(int64_t extent, int64_t shards, int64_t position) const;
};

/// ceil(index * extent / shards): where block `index` of `shards` starts.
int64_t blockBound(int64_t extent, int64_t shards, int64_t index);

/// Sorts intervals and joins those that touch or overlap; drops empty ones.
llvm::SmallVector<Interval> normalize(llvm::ArrayRef<Interval> intervals);

/// The number of positions in sorted disjoint intervals.
int64_t totalSize(llvm::ArrayRef<Interval> intervals);

} // namespace mlir::commir

#endif // DIALECT_COMMIR_LAYOUT_H
