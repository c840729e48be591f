//===- Layout.cpp - How an axis is cut into shards ------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>

using namespace mlir::commir;

int64_t mlir::commir::blockBound(int64_t extent, int64_t shards,
                                 int64_t index) {
  return llvm::divideCeilSigned(index * extent, shards);
}

llvm::SmallVector<Interval>
mlir::commir::normalize(llvm::ArrayRef<Interval> intervals) {
  llvm::SmallVector<Interval> sorted(llvm::make_filter_range(
      intervals, [](const Interval &i) { return i.size() > 0; }));
  llvm::sort(sorted, [](const Interval &a, const Interval &b) {
    return a.begin < b.begin;
  });
  llvm::SmallVector<Interval> joined;
  for (const Interval &next : sorted) {
    if (!joined.empty() && next.begin <= joined.back().end)
      joined.back().end = std::max(joined.back().end, next.end);
    else
      joined.push_back(next);
  }
  return joined;
}

int64_t mlir::commir::totalSize(llvm::ArrayRef<Interval> intervals) {
  int64_t size = 0;
  for (const Interval &interval : intervals)
    size += interval.size();
  return size;
}

std::string Layout::whyNot(int64_t extent, int64_t shards) const {
  if (extent < 0 || extent > kMaxExtent)
    return "cannot cut an extent of " + std::to_string(extent);
  if (shards < 1 || shards > kMaxShards)
    return "cannot cut into " + std::to_string(shards) + " shards";
  if (kind == Kind::Striped && (chunk < 1 || chunk > kMaxExtent))
    return "cannot cut into chunks of " + std::to_string(chunk);
  if (kind != Kind::Bounds)
    return "";
  if (bounds.size() < 2 || bounds.front() != 0 || bounds.back() != extent ||
      !std::is_sorted(bounds.begin(), bounds.end()))
    return "bounds must rise from 0 to the extent " + std::to_string(extent);
  if (boundShards() % shards != 0 && shards % boundShards() != 0)
    return "bounds name " + std::to_string(boundShards()) +
           " shards, which neither divides nor is a multiple of " +
           std::to_string(shards);
  return "";
}

llvm::SmallVector<Interval> Layout::shard(int64_t extent, int64_t shards,
                                          int64_t index) const {
  assert(whyNot(extent, shards).empty() && "layout cannot cut this axis");
  assert(index >= 0 && index < shards && "no such shard");
  auto block = [&](int64_t count, int64_t i) {
    return Interval{blockBound(extent, count, i),
                    blockBound(extent, count, i + 1)};
  };
  switch (kind) {
  case Kind::Block:
    return normalize({block(shards, index)});
  case Kind::Zigzag:
    return normalize(
        {block(2 * shards, index), block(2 * shards, 2 * shards - 1 - index)});
  case Kind::Striped: {
    llvm::SmallVector<Interval> chunks;
    for (int64_t at = index * chunk; at < extent; at += shards * chunk)
      chunks.push_back({at, std::min(at + chunk, extent)});
    return normalize(chunks);
  }
  case Kind::Bounds: {
    int64_t named = boundShards();
    if (shards <= named) {
      int64_t joined = named / shards;
      return normalize(
          {{bounds[index * joined], bounds[(index + 1) * joined]}});
    }
    int64_t finer = shards / named;
    int64_t begin = bounds[index / finer];
    int64_t length = bounds[index / finer + 1] - begin;
    return normalize({{begin + blockBound(length, finer, index % finer),
                       begin + blockBound(length, finer, index % finer + 1)}});
  }
  }
  return {};
}

int64_t Layout::shardSize(int64_t extent, int64_t shards, int64_t index) const {
  return totalSize(shard(extent, shards, index));
}

int64_t Layout::largestShard(int64_t extent, int64_t shards) const {
  int64_t largest = 0;
  for (int64_t index = 0; index < shards; ++index)
    largest = std::max(largest, shardSize(extent, shards, index));
  return largest;
}

int64_t Layout::owner(int64_t extent, int64_t shards, int64_t position) const {
  assert(position >= 0 && position < extent && "no such position");
  // blockBound is ceil, so the block that holds x is floor(x * n / extent).
  auto block = [&](int64_t count) { return position * count / extent; };
  switch (kind) {
  case Kind::Block:
    return block(shards);
  case Kind::Zigzag: {
    int64_t found = block(2 * shards);
    return std::min(found, 2 * shards - 1 - found);
  }
  case Kind::Striped:
    return position / chunk % shards;
  case Kind::Bounds: {
    int64_t named = std::upper_bound(bounds.begin(), bounds.end(), position) -
                    bounds.begin() - 1;
    if (shards <= boundShards())
      return named / (boundShards() / shards);
    int64_t finer = shards / boundShards();
    int64_t length = bounds[named + 1] - bounds[named];
    return named * finer + (position - bounds[named]) * finer / length;
  }
  }
  return 0;
}
