//===- Box.cpp - Boxes of whole numbers -----------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Box.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir::commir;
using namespace mlir::commir::check;

bool check::isEmpty(const Box &box) {
  return llvm::any_of(box, [](const Interval &i) { return i.size() <= 0; });
}

std::optional<Box> check::intersect(const Box &a, const Box &b) {
  Box both;
  for (auto [i, j] : llvm::zip_equal(a, b)) {
    both.push_back({std::max(i.begin, j.begin), std::min(i.end, j.end)});
    if (both.back().size() <= 0)
      return std::nullopt;
  }
  return both;
}

void check::subtract(const Box &a, const Box &b,
                     llvm::SmallVectorImpl<Box> &rest) {
  std::optional<Box> common = intersect(a, b);
  if (!common) {
    if (!isEmpty(a))
      rest.push_back(a);
    return;
  }
  // Slabs before and after the common part, one dimension at a time.
  Box left = a;
  for (size_t dim = 0; dim < a.size(); ++dim) {
    Interval whole = left[dim], kept = (*common)[dim];
    for (Interval slab :
         {Interval{whole.begin, kept.begin}, Interval{kept.end, whole.end}}) {
      if (slab.size() <= 0)
        continue;
      rest.push_back(left);
      rest.back()[dim] = slab;
    }
    left[dim] = kept;
  }
}

bool check::join(Box &a, const Box &b) {
  int64_t differs = -1;
  for (size_t dim = 0; dim < a.size(); ++dim) {
    if (a[dim] == b[dim])
      continue;
    if (differs >= 0)
      return false;
    differs = dim;
  }
  if (differs < 0)
    return false;
  Interval &one = a[differs];
  const Interval &other = b[differs];
  if (one.end != other.begin && other.end != one.begin)
    return false;
  one = {std::min(one.begin, other.begin), std::max(one.end, other.end)};
  return true;
}

static bool isBefore(const Box &a, const Box &b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](const Interval &i, const Interval &j) {
                                        return std::pair(i.begin, i.end) <
                                               std::pair(j.begin, j.end);
                                      });
}

llvm::ArrayRef<Box> BoxSet::getNear(const Box &box) const {
  if (box.empty())
    return boxes;
  const Box *first = llvm::partition_point(boxes, [&](const Box &each) {
    return each[0].begin + widest < box[0].begin;
  });
  const Box *last = llvm::partition_point(
      boxes, [&](const Box &each) { return each[0].begin <= box[0].end; });
  return {first, std::max(first, last)};
}

void BoxSet::add(Box box) {
  int64_t added = 1;
  for (const Interval &interval : box)
    added *= interval.size();
  points += added;
  for (bool joined = true; joined;) {
    joined = false;
    for (const Box &near : getNear(box)) {
      if (!join(box, near))
        continue;
      boxes.erase(&near);
      joined = true;
      break;
    }
  }
  if (!box.empty())
    widest = std::max(widest, box[0].size());
  boxes.insert(llvm::lower_bound(boxes, box, isBefore), std::move(box));
}

void BoxSet::add(const BoxSet &other) {
  constexpr size_t kFew = 8;
  if (other.boxes.size() <= kFew) {
    for (const Box &box : other.boxes)
      add(box);
    return;
  }
  // Many are put among many in one go, neighbours in their order joined.
  llvm::SmallVector<Box, 2> all;
  std::merge(boxes.begin(), boxes.end(), other.boxes.begin(), other.boxes.end(),
             std::back_inserter(all), isBefore);
  boxes.clear();
  for (Box &box : all)
    if (boxes.empty() || !join(boxes.back(), box))
      boxes.push_back(std::move(box));
  points += other.points;
  for (const Box &box : boxes)
    if (!box.empty())
      widest = std::max(widest, box[0].size());
}

llvm::SmallVector<Box> BoxSet::getMissing(const Box &whole) const {
  llvm::SmallVector<Box> missing;
  if (!check::isEmpty(whole))
    missing.push_back(whole);
  for (const Box &box : getNear(whole)) {
    llvm::SmallVector<Box> rest;
    for (const Box &left : missing)
      subtract(left, box, rest);
    missing = std::move(rest);
  }
  return missing;
}

bool BoxSet::operator==(const BoxSet &other) const {
  auto covers = [](const BoxSet &some, const BoxSet &all) {
    return llvm::all_of(some.boxes, [&](const Box &box) {
      return all.getMissing(box).empty();
    });
  };
  if (points != other.points)
    return false;
  return boxes == other.boxes || (covers(*this, other) && covers(other, *this));
}
