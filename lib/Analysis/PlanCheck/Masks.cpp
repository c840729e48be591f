//===- Masks.cpp - Boxes of pairs against a mask --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Meaning.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

static constexpr int64_t kFar = int64_t(1) << 60;

/// The differences key - query that a mask lets through, as a closed range.
static std::pair<int64_t, int64_t> getBand(MaskAttr mask) {
  if (!mask)
    return {-kFar, kFar};
  bool left = mask.getLeft() == MaskAttr::kUnbounded;
  bool right = mask.getRight() == MaskAttr::kUnbounded;
  return {left ? -kFar : -mask.getLeft(), right ? kFar : mask.getRight()};
}

static std::optional<Interval> intersect(Interval a, Interval b) {
  Interval both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.size() > 0 ? std::optional(both) : std::nullopt;
}

bool check::isOutsideMask(MaskAttr mask, Interval queries, Interval keys) {
  if (!mask || mask.isFull())
    return false;
  auto [least, most] = getBand(mask);
  auto isOutside = [&](Interval q, Interval k) {
    return k.end - 1 - q.begin < least || k.begin - (q.end - 1) > most;
  };
  ArrayRef<int64_t> documents = mask.getDocuments();
  if (documents.empty())
    return isOutside(queries, keys);
  for (size_t i = 0; i + 1 < documents.size(); ++i) {
    Interval document{documents[i], documents[i + 1]};
    auto q = ::intersect(queries, document), k = ::intersect(keys, document);
    if (q && k && !isOutside(*q, *k))
      return false;
  }
  return true;
}

/// The number of the document that a position is in; positions of no document
/// have numbers too.
static int64_t getDocument(MaskAttr mask, int64_t position) {
  if (!mask)
    return 0;
  ArrayRef<int64_t> documents = mask.getDocuments();
  return llvm::upper_bound(documents, position) - documents.begin();
}

/// Cuts segments where a document of either mask ends.
static Segments cutAtDocuments(ArrayRef<Segment> segments, MaskAttr mask,
                               MaskAttr launched, int64_t first) {
  Segments pieces;
  for (const Segment &segment : segments) {
    SmallVector<int64_t> cuts{segment.local.begin, segment.local.end};
    for (auto [documents, start] :
         {std::pair(mask, segment.first - segment.local.begin),
          std::pair(launched, first)})
      if (documents)
        for (int64_t bound : documents.getDocuments())
          if (int64_t at = bound - start;
              at > segment.local.begin && at < segment.local.end)
            cuts.push_back(at);
    llvm::sort(cuts);
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      if (cuts[i] != cuts[i + 1])
        pieces.push_back({{cuts[i], cuts[i + 1]},
                          segment.first + cuts[i] - segment.local.begin});
  }
  return pieces;
}

namespace {
/// Of keys that rise, those that some query of a run sees some of, and those
/// that all see all of.
struct SeenKeys {
  Interval some, all;
};
} // namespace

/// `getKey` gives the positions of one of `count` keys, which are of one
/// document each, as the queries are.
static SeenKeys findSeen(MaskAttr mask, Interval queries, int64_t count,
                         llvm::function_ref<Interval(int64_t)> getKey) {
  std::pair<int64_t, int64_t> band = getBand(mask);
  int64_t document = getDocument(mask, queries.begin);
  auto isBefore = [&](int64_t key, int64_t query) {
    int64_t in = getDocument(mask, key);
    return in < document || (in == document && key - query < band.first);
  };
  auto isBehind = [&](int64_t key, int64_t query) {
    int64_t in = getDocument(mask, key);
    return in > document || (in == document && key - query > band.second);
  };
  // How many keys, from the first on, something holds for.
  auto countWhile = [&](llvm::function_ref<bool(Interval)> holds) -> int64_t {
    auto numbers = llvm::seq<int64_t>(0, count);
    return std::partition_point(numbers.begin(), numbers.end(),
                                [&](int64_t k) { return holds(getKey(k)); }) -
           numbers.begin();
  };
  int64_t first = queries.begin, last = queries.end - 1;
  return {
      {countWhile([&](Interval key) { return isBefore(key.end - 1, first); }),
       countWhile([&](Interval key) { return !isBehind(key.begin, last); })},
      {countWhile([&](Interval key) { return isBefore(key.begin, last); }),
       countWhile(
           [&](Interval key) { return !isBehind(key.end - 1, first); })}};
}

bool check::seesTheSame(MaskAttr mask, ArrayRef<Segment> queries,
                        ArrayRef<Segment> keys, MaskAttr launched,
                        int64_t firstQuery, int64_t firstKey) {
  bool isFull = !mask || mask.isFull(),
       runsFull = !launched || launched.isFull();
  if (isFull && runsFull)
    return true;
  Segments allQueries = cutAtDocuments(queries, mask, launched, firstQuery);
  Segments allKeys = cutAtDocuments(keys, mask, launched, firstKey);
  auto getTold = [&](Interval local, int64_t first) -> Interval {
    return {first + local.begin, first + local.end};
  };
  auto sees = [&](const Segment &q, const Segment &k) {
    // All differences of indices, key - query, from the least to the most.
    int64_t least = k.local.begin - (q.local.end - 1);
    int64_t most = k.local.end - 1 - q.local.begin;
    auto getSeen = [&](MaskAttr which, int64_t q0, int64_t k0) {
      std::pair<int64_t, int64_t> none(1, 0);
      if (getDocument(which, q0 + q.local.begin) !=
          getDocument(which, k0 + k.local.begin))
        return none;
      auto [low, high] = getBand(which);
      std::pair<int64_t, int64_t> seen(std::max(least, low - (k0 - q0)),
                                       std::min(most, high - (k0 - q0)));
      return seen.first <= seen.second ? seen : none;
    };
    return getSeen(mask, q.first - q.local.begin, k.first - k.local.begin) ==
           getSeen(launched, firstQuery, firstKey);
  };
  // Of keys that rise, only those at the edges of what is seen are asked for.
  int64_t count = allKeys.size();
  bool rise = llvm::is_sorted(allKeys, [](const Segment &a, const Segment &b) {
    return a.first < b.first;
  });
  for (const Segment &q : allQueries) {
    Interval asked{0, count}, same{0, 0};
    if (rise) {
      SeenKeys meant = findSeen(mask, q.getPositions(), count, [&](int64_t k) {
        return allKeys[k].getPositions();
      });
      SeenKeys told = findSeen(
          launched, getTold(q.local, firstQuery), count,
          [&](int64_t k) { return getTold(allKeys[k].local, firstKey); });
      asked = {std::min(meant.some.begin, told.some.begin),
               std::max(meant.some.end, told.some.end)};
      same = {std::max(meant.all.begin, told.all.begin),
              std::min(meant.all.end, told.all.end)};
    }
    for (int64_t k = asked.begin; k < asked.end; ++k) {
      if (k == same.begin && same.size() > 0)
        k = same.end;
      if (k < asked.end && !sees(q, allKeys[k]))
        return false;
    }
  }
  return true;
}
