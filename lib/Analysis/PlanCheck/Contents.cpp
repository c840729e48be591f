//===- Contents.cpp - What a rank's memory holds --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Contents.h"
#include "lib/Analysis/PlanCheck/Overlap.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

Content Content::slice(const Box &local) const {
  Content part = *this;
  for (auto [interval, cut] : llvm::zip_equal(part.box, local)) {
    int64_t first = isAnywhere(interval) ? 0 : cut.begin;
    interval = {interval.begin + first, interval.begin + first + cut.size()};
  }
  return part;
}

void Content::place(const Box &where) {
  for (auto [interval, other] : llvm::zip(box, where))
    if (isAnywhere(interval) && interval.size() == other.size())
      interval = other;
}

bool Content::isSameSource(const Content &other) const {
  return kind == other.kind && buffer == other.buffer && value == other.value &&
         hasOnce == other.hasOnce && isRounded == other.isRounded &&
         (merged == other.merged ||
          (merged && other.merged && *merged == *other.merged));
}

Content check::takePart(const Piece &piece, const Box &box) {
  if (piece.content.isFilled())
    return piece.content;
  Box local = box;
  for (auto [interval, start] : llvm::zip_equal(local, piece.local))
    interval = {interval.begin - start.begin, interval.end - start.begin};
  return piece.content.slice(local);
}

MemoryBox check::slice(const MemoryBox &region, const Box &local) {
  MemoryBox part = region;
  for (auto [dim, cut] : llvm::enumerate(local)) {
    part.offset += cut.begin * region.strides[dim];
    part.sizes[dim] = cut.size();
  }
  return part;
}

Box check::getIndices(const MemoryBox &region) {
  Box box;
  for (int64_t size : region.sizes)
    box.push_back({0, size});
  return box;
}

/// The first group that ends after `address`.
template <typename Groups> static auto firstAfter(Groups &groups, int64_t at) {
  auto it = groups.upper_bound(at);
  if (it != groups.begin() && std::prev(it)->second.end > at)
    --it;
  return it;
}

SmallVector<Piece, 1> Contents::read(const MemoryBox &region) const {
  SmallVector<Piece, 1> pieces;
  if (region.isEmpty())
    return pieces;
  int64_t end = region.getEnd();
  for (auto it = firstAfter(groups, region.offset);
       it != groups.end() && it->first < end; ++it) {
    for (const Entry &entry : it->second.entries) {
      for (const auto &[common, shift] : align(region, entry.region).overlaps) {
        Box held = common;
        for (auto [interval, by] : llvm::zip_equal(held, shift))
          interval = {interval.begin - by, interval.end - by};
        pieces.push_back({common, entry.content.isFilled()
                                      ? entry.content
                                      : entry.content.slice(held)});
      }
    }
  }
  return pieces;
}

static MemoryBox makeBytes(int64_t begin, int64_t end) {
  MemoryBox bytes;
  bytes.offset = begin;
  bytes.sizes = {end - begin};
  bytes.strides = {1};
  return bytes;
}

std::vector<std::pair<MemoryBox, Content>>
Contents::readBytes(int64_t begin, int64_t end) const {
  std::vector<std::pair<MemoryBox, Content>> found;
  for (auto it = firstAfter(groups, begin);
       it != groups.end() && it->first < end; ++it) {
    for (const Entry &entry : it->second.entries) {
      if (entry.region.offset >= end || entry.region.getEnd() <= begin)
        continue;
      // Cut off what lies before, then what lies behind.
      std::vector<Entry> inside{entry};
      for (const MemoryBox &outside :
           {makeBytes(std::min(entry.region.offset, begin), begin),
            makeBytes(end, std::max(entry.region.getEnd(), end))}) {
        if (outside.isEmpty())
          continue;
        std::vector<Entry> kept;
        for (const Entry &part : inside)
          keepRest(part, outside, kept);
        inside = std::move(kept);
      }
      for (Entry &part : inside)
        found.emplace_back(part.region, part.content);
    }
  }
  return found;
}

/// Makes `a` hold what both do, when that is a box of one content.
static bool joinEntries(MemoryBox &region, Content &content,
                        const MemoryBox &other, const Content &otherContent) {
  size_t rank = region.sizes.size();
  // What another shape left behind has strides of its own, also where it has
  // only one element: reading either shape would not find the other's part.
  if (region.elementType != other.elementType ||
      region.strides != other.strides || !content.isSameSource(otherContent))
    return false;
  // All sizes agree but one, along which they are neighbours.
  int64_t along = -1;
  for (size_t dim = 0; dim < rank; ++dim) {
    bool same =
        region.sizes[dim] == other.sizes[dim] &&
        (content.isFilled() || content.box[dim] == otherContent.box[dim]);
    if (same)
      continue;
    if (along >= 0)
      return false;
    along = dim;
  }
  if (along < 0)
    return false;
  int64_t stride = region.strides[along];
  bool after = other.offset == region.offset + region.sizes[along] * stride;
  bool before = region.offset == other.offset + other.sizes[along] * stride;
  if (!after && !before)
    return false;
  if (!content.isFilled()) {
    Box joined = content.box;
    if (!join(joined, otherContent.box) ||
        (joined[along].begin == content.box[along].begin) != after)
      return false;
    content.box = joined;
  }
  region.offset = std::min(region.offset, other.offset);
  region.sizes[along] += other.sizes[along];
  return true;
}

/// Whether two regions are the same elements of a memory.
static bool isSameRegion(const MemoryBox &a, const MemoryBox &b) {
  return a.offset == b.offset && a.elementType == b.elementType &&
         a.sizes == b.sizes && a.strides == b.strides;
}

void Contents::keepRest(const Entry &entry, const MemoryBox &region,
                        std::vector<Entry> &kept) {
  // Most entries are neighbours, or a slot that is written again.
  if (isSameRegion(entry.region, region))
    return;
  Alignment found = align(entry.region, region);
  if (found.sameFrame && found.overlaps.empty()) {
    kept.push_back(entry);
    return;
  }
  auto getPart = [&](const Box &local) -> Entry {
    return {check::slice(entry.region, local),
            entry.content.isFilled() ? entry.content
                                     : entry.content.slice(local)};
  };
  Box all = getIndices(entry.region);
  if (found.sameFrame) {
    BoxSet taken;
    for (const Overlap &overlap : found.overlaps)
      taken.add(overlap.common);
    for (const Box &left : taken.getMissing(all))
      kept.push_back(getPart(left));
    return;
  }
  if (region.offset <= entry.region.offset &&
      entry.region.getEnd() <= region.getEnd())
    return;
  // Of another shape: halve the entry until the parts lie apart or inside.
  int64_t widest = -1;
  for (size_t dim = 0; dim < all.size(); ++dim)
    if (all[dim].size() > 1 && (widest < 0 || entry.region.strides[dim] >
                                                  entry.region.strides[widest]))
      widest = dim;
  if (widest < 0)
    return;
  int64_t middle = all[widest].size() / 2;
  Box half = all;
  half[widest].end = middle;
  keepRest(getPart(half), region, kept);
  half[widest] = {middle, all[widest].end};
  keepRest(getPart(half), region, kept);
}

std::vector<Contents::Entry> Contents::takeRest(const MemoryBox &region) {
  std::vector<Entry> kept;
  int64_t end = region.getEnd();
  auto it = firstAfter(groups, region.offset - 1);
  while (it != groups.end() && it->first <= end) {
    for (Entry &entry : it->second.entries)
      keepRest(entry, region, kept);
    it = groups.erase(it);
  }
  return kept;
}

void Contents::put(std::vector<Entry> entries) {
  auto isBefore = [](const Entry &a, const Entry &b) {
    return a.region.offset < b.region.offset;
  };
  if (!llvm::is_sorted(entries, isBefore))
    llvm::sort(entries, isBefore);
  for (Entry &entry : entries) {
    int64_t begin = entry.region.offset, last = entry.region.getEnd();
    auto before = groups.upper_bound(begin);
    bool inside =
        before != groups.begin() && std::prev(before)->second.end > begin;
    Group &group = inside ? std::prev(before)->second : groups[begin];
    group.end = std::max(group.end, last);
    group.entries.push_back(std::move(entry));
  }
}

void Contents::forget(const MemoryBox &region) {
  if (!region.isEmpty())
    put(takeRest(region));
}

bool Contents::writeAgain(const Entry &fresh) {
  Entry *held = nullptr, joined = fresh;
  int64_t end = fresh.region.getEnd();
  for (auto it = firstAfter(groups, fresh.region.offset - 1);
       it != groups.end() && it->first <= end; ++it) {
    for (Entry &entry : it->second.entries) {
      if (isSameRegion(entry.region, fresh.region))
        held = &entry;
      else if (joinEntries(joined.region, joined.content, entry.region,
                           entry.content))
        return false;
    }
  }
  if (held)
    held->content = fresh.content;
  return held;
}

void Contents::write(const MemoryBox &region, const Content &content) {
  if (region.isEmpty())
    return;
  Entry fresh{region, content};
  if (writeAgain(fresh))
    return;
  // What lies in the region is gone; what it leaves of an entry stays.
  std::vector<Entry> kept = takeRest(region);
  for (bool joined = true; joined;) {
    joined = false;
    for (Entry &entry : kept) {
      if (!joinEntries(fresh.region, fresh.content, entry.region,
                       entry.content))
        continue;
      std::swap(entry, kept.back());
      kept.pop_back();
      joined = true;
      break;
    }
  }
  kept.push_back(std::move(fresh));
  put(std::move(kept));
}

void Contents::replace(const MemoryBox &region, std::vector<Entry> parts) {
  std::vector<Entry> kept = takeRest(region);
  for (Entry &part : parts) {
    Entry *last = kept.empty() ? nullptr : &kept.back();
    if (!last ||
        !joinEntries(last->region, last->content, part.region, part.content))
      kept.push_back(std::move(part));
  }
  put(std::move(kept));
}

void Contents::write(const MemoryBox &region, ArrayRef<Piece> pieces) {
  if (pieces.size() == 1)
    return write(region, pieces.front().content);
  std::vector<Entry> parts;
  for (const Piece &piece : pieces)
    parts.push_back({check::slice(region, piece.local), piece.content});
  if (!parts.empty())
    replace(region, std::move(parts));
}

void Contents::write(std::vector<std::pair<MemoryBox, Content>> parts) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0, bytes = 0;
  std::vector<Entry> entries;
  for (auto &[region, content] : parts) {
    if (region.isEmpty())
      continue;
    begin = std::min(begin, region.offset);
    end = std::max(end, region.getEnd());
    bytes += region.getBytes();
    entries.push_back({std::move(region), std::move(content)});
  }
  // They lie apart, so they are all bytes from the first to the last.
  if (entries.size() > 1 && bytes == end - begin)
    return replace(makeBytes(begin, end), std::move(entries));
  for (const Entry &entry : entries)
    write(entry.region, entry.content);
}
