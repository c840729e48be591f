//===- Contents.h - What a rank's memory holds ------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state that the checker keeps of one rank: which bytes hold what. Contents
// are tracked by boxes of memory, so the cost does not depend on extents.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_CONTENTS_H
#define LIB_ANALYSIS_PLANCHECK_CONTENTS_H

#include "lib/Analysis/PlanCheck/Box.h"
#include "lib/Analysis/PlanTrace.h"
#include <map>

namespace mlir::commir::check {

/// Where the positions of what enters a merge once begin along a dimension that
/// it is the same along, as long as nothing that has positions is merged there.
constexpr int64_t kAnywhere = std::numeric_limits<int64_t>::min() / 2;
inline bool isAnywhere(const Interval &interval) {
  return interval.begin == kAnywhere;
}

/// What a box of elements is.
struct Content {
  enum class Kind {
    Input,   // elements of an input, as the caller gave them
    Partial, // elements of an output, merged so far from `merged`
    Filled   // all the same value
  };
  Kind kind = Kind::Filled;
  /// Input and partial: the buffer, and the box of it, an interval a dimension.
  int64_t buffer = -1;
  Box box;
  /// Partial: the boxes of the axes reduced over that are in it.
  std::shared_ptr<const BoxSet> merged;
  /// Filled: the value.
  double value = 0.0;
  /// Partial: whether what enters the merge once is in it.
  bool hasOnce = false;
  /// Partial: whether it was rounded while it lay anywhere, and so must lack
  /// nothing wherever it comes to lie.
  bool isRounded = false;

  /// The content of a part, given by indices from the start of the box.
  Content slice(const Box &local) const;
  bool isFilled() const { return kind == Kind::Filled; }
  bool isSameSource(const Content &other) const;
  /// Lies where `where` says, along the dimensions where it lay anywhere.
  void place(const Box &where);
  bool isPlaced() const { return llvm::none_of(box, isAnywhere); }
};

/// The same value everywhere.
inline Content makeFilled(double value) {
  return {Content::Kind::Filled, -1, {}, nullptr, value};
}

/// A part of a region that holds one thing: the indices of it, from the
/// region's start.
struct Piece {
  Box local;
  Content content;
};

/// What of a piece lies in a box of its region, which lies in the piece.
Content takePart(const Piece &piece, const Box &box);

/// The part of a region that `local` names.
MemoryBox slice(const MemoryBox &region, const Box &local);

/// All of a region's indices.
Box getIndices(const MemoryBox &region);

/// Whether two regions of one memory share a byte. Regions of different shapes
/// are taken to, when the ranges of their addresses do.
bool overlaps(const MemoryBox &a, const MemoryBox &b);

/// One memory of one rank: an arena, or an argument.
class Contents {
public:
  /// What a region holds. The pieces are disjoint; what they leave out was
  /// never written, or was written in another shape.
  SmallVector<Piece, 1> read(const MemoryBox &region) const;

  /// What lies in the bytes [begin, end), each in the shape that it was written
  /// in.
  std::vector<std::pair<MemoryBox, Content>> readBytes(int64_t begin,
                                                       int64_t end) const;

  void write(const MemoryBox &region, const Content &content);

  /// Writes pieces that are all of a region. Stripes are thousands of them:
  /// what lay there is looked at once, and not once for each.
  void write(const MemoryBox &region, ArrayRef<Piece> pieces);

  /// Writes regions that lie apart.
  void write(std::vector<std::pair<MemoryBox, Content>> parts);

  /// A region holds nothing that could be read from now on.
  void forget(const MemoryBox &region);

private:
  struct Entry {
    MemoryBox region;
    Content content;
  };
  /// Entries whose ranges of addresses overlap, from a common first address.
  struct Group {
    int64_t end = 0;
    std::vector<Entry> entries;
  };
  using Groups = std::map<int64_t, Group>;

  /// Keeps what of an entry is not in a region that is written.
  static void keepRest(const Entry &entry, const MemoryBox &region,
                       std::vector<Entry> &kept);

  /// Takes what touches a region out of the groups, and gives back what of it
  /// the region leaves.
  std::vector<Entry> takeRest(const MemoryBox &region);
  void put(std::vector<Entry> entries);
  /// Writes what is already an entry of its own and joins no neighbour, which
  /// leaves the groups as they are. Rows of stripes are in one group, and each
  /// is written again at each step of a ring.
  bool writeAgain(const Entry &fresh);
  /// Writes parts of a region, by the place of each in the memory.
  void replace(const MemoryBox &region, std::vector<Entry> parts);

  Groups groups;
};

} // namespace mlir::commir::check

#endif // LIB_ANALYSIS_PLANCHECK_CONTENTS_H
