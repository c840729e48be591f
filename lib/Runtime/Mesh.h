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

  /// The distance in global ranks between neighbours on `level`.
  int64_t stride(int64_t level) const {
    int64_t stride = 1;
    for (int64_t inner = level + 1; inner < levels(); ++inner)
      stride *= sizes[inner];
    return stride;
  }
  int64_t size() const { return stride(-1); }

  int64_t groupRank(int64_t rank, int64_t level) const {
    return rank / stride(level) % sizes[level];
  }

  /// The global rank of member `member` of `rank`'s group on `level`.
  int64_t memberOfGroup(int64_t rank, int64_t level, int64_t member) const {
    return rank + (member - groupRank(rank, level)) * stride(level);
  }

  std::string levelName(int64_t level) const {
    return "level " + (hasLevel(level) ? "'" + names[level] + "'"
                                       : "number " + std::to_string(level));
  }

  /// "rank 2 (node=1, gpu=0)".
  std::string rankName(int64_t rank) const {
    std::string at;
    for (int64_t level = 0; level < levels(); ++level)
      at += (level ? ", " : " (") + names[level] + "=" +
            std::to_string(groupRank(rank, level));
    return "rank " + std::to_string(rank) + at + (levels() ? ")" : "");
  }
};

} // namespace mercury::rt

#endif // LIB_RUNTIME_MESH_H
