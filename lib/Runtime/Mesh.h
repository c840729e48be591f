//===- Mesh.h - Who is where on the mesh ------------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only place that turns global ranks into group ranks and back, and the one
// way a rank is named in a message.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_MESH_H
#define LIB_RUNTIME_MESH_H

#include "mercury-rt/runtime.h"
#include <cstdint>
#include <string>
#include <vector>

namespace mercury::rt {

/// The levels, outermost first; ranks are row-major.
struct Mesh {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;

  int64_t levels() const { return static_cast<int64_t>(sizes.size()); }
  bool hasLevel(int64_t level) const { return level >= 0 && level < levels(); }

  /// The levels of a group, as a set of bits; 0 if there is no such group.
  int64_t levelsOf(int64_t group) const {
    if (hasLevel(group))
      return INT64_C(1) << group;
    int64_t set = group - MERCURY_RT_LEVELS(0);
    return set > 0 && set >> levels() == 0 ? set : 0;
  }
  bool hasGroup(int64_t group) const { return levelsOf(group) != 0; }

  /// The distance in global ranks between neighbours on `level`.
  int64_t stride(int64_t level) const {
    int64_t stride = 1;
    for (int64_t inner = level + 1; inner < levels(); ++inner)
      stride *= sizes[inner];
    return stride;
  }
  int64_t size() const { return stride(-1); }

  int64_t coordinate(int64_t rank, int64_t level) const {
    return rank / stride(level) % sizes[level];
  }

  int64_t groupSize(int64_t group) const {
    int64_t size = 1;
    for (int64_t level = 0; level < levels(); ++level)
      if (levelsOf(group) >> level & 1)
        size *= sizes[level];
    return size;
  }

  /// The group's ranks are row-major on its levels.
  int64_t groupRank(int64_t rank, int64_t group) const {
    int64_t member = 0;
    for (int64_t level = 0; level < levels(); ++level)
      if (levelsOf(group) >> level & 1)
        member = member * sizes[level] + coordinate(rank, level);
    return member;
  }

  /// The global rank of member `member` of `rank`'s group.
  int64_t memberOfGroup(int64_t rank, int64_t group, int64_t member) const {
    for (int64_t level = levels(); level-- > 0;)
      if (levelsOf(group) >> level & 1) {
        int64_t there = member % sizes[level];
        rank += (there - coordinate(rank, level)) * stride(level);
        member /= sizes[level];
      }
    return rank;
  }

  /// The outermost, so slowest, level on which two ranks differ.
  int64_t crossedLevel(int64_t one, int64_t other) const {
    int64_t level = 0;
    while (coordinate(one, level) == coordinate(other, level))
      ++level;
    return level;
  }

  /// "level 'gpu'", "levels 'node', 'gpu'".
  std::string groupName(int64_t group) const {
    if (!hasGroup(group))
      return "level number " + std::to_string(group);
    std::string names;
    int64_t count = 0;
    for (int64_t level = 0; level < levels(); ++level)
      if (levelsOf(group) >> level & 1)
        names += (count++ ? ", '" : "'") + this->names[level] + "'";
    return (count == 1 ? "level " : "levels ") + names;
  }

  /// "rank 2 (node=1, gpu=0)".
  std::string rankName(int64_t rank) const {
    std::string at;
    for (int64_t level = 0; level < levels(); ++level)
      at += (level ? ", " : " (") + names[level] + "=" +
            std::to_string(coordinate(rank, level));
    return "rank " + std::to_string(rank) + at + (levels() ? ")" : "");
  }
};

} // namespace mercury::rt

#endif // LIB_RUNTIME_MESH_H
