//===- Reduction.cpp - Rules R4 and R5: results that ranks merge ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The levels, outermost first, on which a parallel loop reduces the results of
/// a store: each of their ranks has a part of the sum.
SmallVector<StringAttr> NestSchedule::getReducedLevels(StoreOp store) {
  SmallVector<StringAttr> reduced;
  if (!store.getOver())
    return reduced;
  // What travels is merged on the way.
  auto isMergedOnTheWay = [&](StringRef level) {
    return llvm::any_of(loops, [&](LoopAttr loop) {
      return travels(store, loop) && getRingLevels(loop).front() == level;
    });
  };
  for (auto level : mesh.getLevels().getAsRange<LevelAttr>())
    if (level.getSize() != 1 && !isMergedOnTheWay(level.getName()) &&
        llvm::any_of(store.getOver()->getAsRange<StringAttr>(),
                     [&](StringAttr axis) {
                       return isReducedOver(store, axis) &&
                              isParallelOver(axis, level.getName());
                     }))
      reduced.push_back(StringAttr::get(nest.getContext(), level.getName()));
  return reduced;
}

/// The placement of a store's partial results: a reduced level holds one each.
PlacementAttr NestSchedule::getPartialPlacement(StoreOp store,
                                                PlacementAttr inside) {
  SmallVector<StringAttr> reduced = getReducedLevels(store);
  SmallVector<CutAttr> cuts;
  for (CutAttr cut : inside.getCuts()) {
    SmallVector<Attribute> factors(
        llvm::make_filter_range(cut.getFactors(), [&](Attribute factor) {
          return !llvm::is_contained(reduced, factor);
        }));
    if (llvm::any_of(factors, llvm::IsaPred<StringAttr>))
      cuts.push_back(CutAttr::get(nest.getContext(), cut.getAxis(), factors,
                                  cut.getLayout()));
  }
  return PlacementAttr::get(nest.getContext(), cuts);
}

/// Whether a level cuts two placements along the same axis, or neither.
static bool isCutAlike(PlacementAttr one, PlacementAttr other,
                       StringAttr level) {
  auto getAxis = [&](PlacementAttr placement) {
    for (CutAttr cut : placement.getCuts())
      if (cut.hasLevel(level))
        return cut.getAxis();
    return StringRef();
  };
  return getAxis(one) == getAxis(other);
}

/// A softmax pair merges row by row, so both results must be of the same rows:
/// those of the first.
void NestSchedule::alignPairs() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    auto kind =
        dyn_cast_or_null<MergeKindAttr>(store.getMerge().value_or(nullptr));
    if (!kind || kind.getValue() != MergeKind::Softmax)
      continue;
    int64_t first =
        cast<BlockArgument>(store.getBuffers().front()).getArgNumber();
    int64_t second =
        cast<BlockArgument>(store.getBuffers().back()).getArgNumber();
    if (!llvm::all_of(getReducedLevels(store), [&](StringAttr level) {
          return isCutAlike(getInside(first), getInside(second), level);
        }))
      touched[second] = getInside(first);
  }
}

/// Merges partial results into others, tile by tile in the order of the store.
void NestExpander::merge(StoreOp store, ArrayRef<Value> from,
                         ArrayRef<Value> to) {
  auto kind = cast<MergeKindAttr>(*store.getMerge());
  if (kind.getValue() == MergeKind::Sum) {
    for (auto [source, target] : llvm::zip_equal(from, to))
      AccumulateOp::create(builder, nest.getLoc(), source, target);
    return;
  }
  // The pair is stored in either order; the kernel takes (o, lse).
  bool swapped = cast<OpResult>(store.getTiles()[0]).getResultNumber() == 1;
  SmallVector<Value> sources(from), targets(to);
  if (swapped) {
    std::swap(sources[0], sources[1]);
    std::swap(targets[0], targets[1]);
  }
  LaunchOp::create(builder, nest.getLoc(),
                   builder.getStringAttr("softmax_merge"), sources, targets);
}

/// Merges stacks of partial results, and writes what they come to or merges
/// that, too.
SmallVector<LaunchOp> NestExpander::mergeAll(StoreOp store,
                                             ArrayRef<Value> stacks,
                                             ArrayRef<Value> to,
                                             bool overwrites) {
  SmallVector<LaunchOp> launches;
  auto kind = cast<MergeKindAttr>(*store.getMerge());
  auto emit = [&](StringRef kernel, ValueRange sources, ValueRange targets) {
    auto launch =
        LaunchOp::create(builder, nest.getLoc(), builder.getStringAttr(kernel),
                         sources, targets);
    if (overwrites)
      launch.setOverwriteAttr(builder.getDenseBoolArrayAttr(
          SmallVector<bool>(targets.size(), true)));
    launches.push_back(launch);
  };
  if (kind.getValue() == MergeKind::Sum) {
    for (auto [stack, target] : llvm::zip_equal(stacks, to))
      emit("sum_all", stack, target);
    return launches;
  }
  bool swapped = cast<OpResult>(store.getTiles()[0]).getResultNumber() == 1;
  SmallVector<Value> sources(stacks), targets(to);
  if (swapped) {
    std::swap(sources[0], sources[1]);
    std::swap(targets[0], targets[1]);
  }
  emit("softmax_merge_all", sources, targets);
  return launches;
}

/// The placement once the ranks have merged: each reduced level has shared the
/// sum out along the axis that it cuts, innermost.
PlacementAttr NestSchedule::getMergedPlacement(StoreOp store,
                                               PlacementAttr inside) {
  PlacementAttr merged = getPartialPlacement(store, inside);
  for (StringAttr level : getReducedLevels(store))
    for (CutAttr cut : inside.getCuts())
      if (cut.hasLevel(level))
        merged = addCut(merged, cut.getAxis(), level);
  return merged;
}

PlacementAttr NestSchedule::addCut(PlacementAttr placement, StringRef axis,
                                   StringAttr level) {
  SmallVector<Attribute> factors;
  SmallVector<CutAttr> cuts;
  for (CutAttr cut : placement.getCuts()) {
    if (cut.getAxis() == axis)
      factors.append(cut.getFactors().begin(), cut.getFactors().end());
    else
      cuts.push_back(cut);
  }
  factors.push_back(level);
  cuts.push_back(CutAttr::get(nest.getContext(), axis, factors, LayoutAttr()));
  return PlacementAttr::get(nest.getContext(), cuts);
}

/// The levels in the order in which ranks merge over them: those that share the
/// sum out before those that do not, and the fast ones before the slow, over
/// which this rank's share alone has still to go.
SmallVector<StringAttr> NestSchedule::getMergeOrder(StoreOp store) {
  int64_t first =
      cast<BlockArgument>(store.getBuffers().front()).getArgNumber();
  PlacementAttr inside = getInside(first);
  SmallVector<StringAttr> order(llvm::reverse(getReducedLevels(store)));
  std::stable_partition(order.begin(), order.end(), [&](StringAttr level) {
    return inside.hasLevel(level);
  });
  return order;
}

/// Whether ranks merge the results of a store by one collective; no library
/// merges softmax pairs, and what is deferred is merged by a kernel, all at
/// once.
bool NestSchedule::reducesTogether(StoreOp store) {
  auto kind = cast<MergeKindAttr>(*store.getMerge());
  return kind.getValue() != MergeKind::Softmax && !store.getDeferred();
}

/// Merges the partial results of a store over the levels that reduce it.
void NestExpander::reduceOverRanks(StoreOp store) {
  SmallVector<Accumulator> results;
  for (Value buffer : store.getBuffers()) {
    int64_t number = cast<BlockArgument>(buffer).getArgNumber();
    PlacementAttr inside = getInside(number);
    results.push_back({memory[buffer], getPartialPlacement(store, inside)});
  }
  int64_t first =
      cast<BlockArgument>(store.getBuffers().front()).getArgNumber();
  bool together = reducesTogether(store);
  for (StringAttr level : getMergeOrder(store)) {
    bool isShared = getInside(first).hasLevel(level);
    if (isShared && together)
      reduceScatterTogether(store, level, results);
    else if (isShared)
      reduceScatter(store, level, results);
    else if (together)
      allReduceTogether(store, level, results);
    else
      allReduce(store, level, results);
  }
  for (auto [buffer, result] : llvm::zip_equal(store.getBuffers(), results))
    memory[buffer] = result.memory;
}

/// R4 of sums: the sum takes the place of the partial results.
void NestExpander::allReduceTogether(StoreOp store, StringAttr level,
                                     ArrayRef<Accumulator> results) {
  Location loc = nest.getLoc();
  SmallVector<Value> tokens;
  for (const Accumulator &result : results) {
    Value partial = getTileAt(result.memory, {});
    tokens.push_back(AllReduceStartOp::create(
        builder, loc, TokenType::get(nest.getContext()), partial, partial,
        cast<MergeKindAttr>(*store.getMerge()), builder.getArrayAttr(level)));
    ++transfers;
  }
  waitForAll(tokens);
}

/// R4: everybody's partial results, merged by everybody in the order of ranks,
/// so that all get the same.
void NestExpander::allReduce(StoreOp store, StringAttr level,
                             MutableArrayRef<Accumulator> results) {
  Location loc = nest.getLoc();
  int64_t size = mesh.getLevelSize(level);
  SmallVector<Value> tokens, stacks, sums;
  for (auto [i, result] : llvm::enumerate(results)) {
    Value slots = makeMemory(cast<BufferType>(result.memory.getType()), size,
                             result.placement);
    tokens.push_back(AllGatherStartOp::create(
        builder, loc, TokenType::get(nest.getContext()),
        getTileAt(result.memory, {}), slots, /*bytes=*/Value(),
        builder.getArrayAttr(level), /*axis=*/StringAttr()));
    stacks.push_back(getTileAt(slots, {}, Value(), size));
    if (level == getMergeOrder(store).back())
      result.memory = makeResult(store, i, result.placement);
    sums.push_back(getTileAt(result.memory, {}));
    ++transfers;
  }
  for (Value token : tokens)
    WaitOp::create(builder, loc, token);
  mergeAll(store, stacks, sums);
}
