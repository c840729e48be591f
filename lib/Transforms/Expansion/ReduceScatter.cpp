//===- ReduceScatter.cpp - Rule R5: ranks share a sum out -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank of a level gets the sum of its share: by one collective, or, of
// softmax pairs and deferred sums, by messages and a kernel. Over several
// levels the fast one comes first. Where a slower one cuts the same axis
// outside of it, a rank's share within is one part for each rank of the slower
// level: they wait in a slot each, and the slower level shares them out.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"

using namespace mlir;
using namespace mlir::commir;

/// The levels, outermost first, that share a result out after `level`, and
/// whose parts this rank holds until then: they cut an axis of which it has a
/// share already.
SmallVector<StringAttr> NestSchedule::getPendingLevels(StoreOp store,
                                                       PlacementAttr inside,
                                                       StringAttr level) {
  SmallVector<StringAttr> order = getMergeOrder(store), pending;
  auto later = std::next(llvm::find(order, level));
  for (StringAttr other : llvm::make_range(later, order.end()))
    if (llvm::any_of(inside.getCuts(), [&](CutAttr cut) {
          return cut.hasLevel(other) &&
                 std::any_of(order.begin(), later, [&](StringAttr done) {
                   return cut.hasLevel(done);
                 });
        }))
      pending.push_back(other);
  std::reverse(pending.begin(), pending.end());
  return pending;
}

/// The axis of which the ranks of a level get the smallest shares, of those
/// that all results of a store have and that stay where they are made; null if
/// no share is smaller than the whole.
StringAttr NestSchedule::findAxisToShare(StoreOp store, StringAttr level) {
  int64_t first =
      cast<BlockArgument>(store.getBuffers().front()).getArgNumber();
  double least = 1;
  StringAttr found;
  for (DimAttr dim : program.getBufferType(first).getDims()) {
    if (dim.isConstant() || llvm::any_of(loops, [&](LoopAttr loop) {
          return loop.getShift() && loop.isOver(dim.getAxis());
        }))
      continue;
    CutAttr cut = getInside(first).getCut(dim.getAxis());
    if (cut && (cut.getLayout() || isStriped(dim.getAxis())))
      continue;
    AxisAttr axis = program.getAxis(dim.getAxis());
    Layout layout = axis.getLayout().getLayout();
    int64_t before = cut ? countParts(cut.getFactors()) : 1;
    int64_t parts = before * mesh.getLevelSize(level);
    if (!layout.whyNot(axis.getExtent(), parts).empty() ||
        !llvm::all_of(store.getBuffers(), [&](Value buffer) {
          auto type = cast<BufferType>(buffer.getType());
          return type.hasAxis(axis.getName()) &&
                 llvm::none_of(type.getDims(), [&](DimAttr other) {
                   return other.getAxis() == axis.getName() &&
                          cutsGroups(axis, parts, other.getDivisor());
                 });
        }))
      continue;
    double whole = getLargestSize(axis, AxisPart{Value(), before}, 1);
    double share = getLargestSize(axis, AxisPart{Value(), parts}, 1) / whole;
    if (whole != 0 && share < least) {
      least = share;
      found = StringAttr::get(nest.getContext(), axis.getName());
    }
  }
  return found;
}

/// R4 over several levels: ranks of the fast ones share the sum out and gather
/// it at the end, so that over the slowest goes a share.
void NestSchedule::shareBeforeGathering(StoreOp store) {
  SmallVector<StringAttr> reduced = getReducedLevels(store);
  if (reduced.size() < 2)
    return;
  for (StringAttr level : ArrayRef(reduced).drop_front()) {
    int64_t first =
        cast<BlockArgument>(store.getBuffers().front()).getArgNumber();
    StringAttr axis = getInside(first).hasLevel(level)
                          ? StringAttr()
                          : findAxisToShare(store, level);
    if (!axis)
      continue;
    for (Value buffer : store.getBuffers()) {
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      touched[number] =
          getMergedPlacement(store, addCut(getInside(number), axis, level));
    }
  }
}

/// Prepares a result to be shared out over a level, and names where its sums
/// will be.
Share NestExpander::makeShare(StoreOp store, size_t result, StringAttr level,
                              Accumulator &accumulator) {
  int64_t number =
      cast<BlockArgument>(store.getBuffers()[result]).getArgNumber();
  PlacementAttr inside = getInside(number);
  Share share;
  share.partial = accumulator.memory;
  share.slots = accumulator.pending;
  accumulator.pending = getPendingLevels(store, inside, level);
  share.others = accumulator.placement;
  SmallVector<NamedAttribute> held;
  CutAttr whole;
  for (CutAttr cut : getMergedPlacement(store, inside).getCuts()) {
    bool isPending = llvm::any_of(
        accumulator.pending, [&](StringAttr l) { return cut.hasLevel(l); });
    if (!isPending && !cut.hasLevel(level))
      continue;
    SmallVector<Attribute> levels(
        llvm::make_filter_range(cut.getFactors(), llvm::IsaPred<StringAttr>));
    NamedAttribute part(builder.getStringAttr(cut.getAxis()),
                        builder.getI64IntegerAttr(countParts(levels)));
    share.others = dropCuts(share.others, cut.getAxis());
    share.parts.push_back(part);
    if (isPending)
      held.push_back(part);
    if (cut.hasLevel(level)) {
      share.axis = cut.getAxis();
      share.stride = countParts(
          ArrayRef(std::next(llvm::find(levels, level)), levels.end()));
      whole = isPending ? CutAttr() : cut;
    }
    share.cuts.emplace_back(cut.getAxis(), levels);
  }
  SmallVector<CutAttr> cuts(share.others.getCuts());
  if (whole)
    cuts.push_back(whole);
  accumulator.placement = PlacementAttr::get(nest.getContext(), cuts);
  SmallVector<Attribute> pending(accumulator.pending.begin(),
                                 accumulator.pending.end());
  bool isLast = level == getMergeOrder(store).back();
  share.sum = accumulator.memory =
      store.getDeferred() && isLast
          ? makeResult(store, result, accumulator.placement)
          : makeMemory(cast<BufferType>(share.partial.getType()),
                       countParts(pending), accumulator.placement, held);
  return share;
}

/// The share of `member` in some memory.
Value NestExpander::getShareTile(const Share &share, StringAttr level,
                                 Value memory, Value member, Value slot,
                                 int64_t stack) {
  SmallVector<std::pair<StringRef, Part>> at;
  for (const auto &[axis, levels] : share.cuts)
    at.emplace_back(axis, getPart(levels, level, member));
  return getTileAt(memory, at, slot, stack);
}

/// What this rank adds to the share of `member`.
Value NestExpander::getPartialShare(const Share &share, StringAttr level,
                                    Value member) {
  SmallVector<Attribute> levels(share.slots.begin(), share.slots.end());
  Value slot = levels.empty() ? Value() : getPart(levels, level, member).index;
  return getShareTile(share, level, share.partial, member, slot);
}

/// Whether the parts of `axis` follow one another in memory without gaps, each
/// as long as the next: they are slots already.
static bool liesInSlots(ProgramOp program, Value memory,
                        PlacementAttr placement, StringRef axis,
                        int64_t parts) {
  constexpr int64_t kSlotAlignment = 64;
  AxisAttr found = program.getAxis(axis);
  auto type = cast<BufferType>(memory.getType());
  if (!memory.getDefiningOp<AllocOp>() || !placement.getCuts().empty())
    return false;
  if (type.getDims().front().getAxis() != axis ||
      type.getDims().front().getDivisor() != 1 ||
      found.getLayout().getKind() != Layout::Kind::Block ||
      found.getExtent() % parts != 0)
    return false;
  // A slot is a whole number of cache lines.
  return found.getExtent() / parts *
             type.getElementType().getIntOrFloatBitWidth() / 8 %
             kSlotAlignment ==
         0;
}

/// Each part in a slot of its own, and the sum of this rank's apart.
void NestExpander::reduceScatterTogether(StoreOp store, StringAttr level,
                                         MutableArrayRef<Accumulator> results) {
  Location loc = nest.getLoc();
  int64_t members = mesh.getLevelSize(level);
  Value rank = getRank(level);
  SmallVector<Share, 0> shares;
  SmallVector<Value> slots;
  SmallVector<bool> packs;
  for (auto [i, result] : llvm::enumerate(results)) {
    PlacementAttr before = result.placement;
    const Share &share =
        shares.emplace_back(makeShare(store, i, level, result));
    // What waited for this level alone is in the slots of its ranks.
    bool isPacked =
        share.slots.empty()
            ? result.pending.empty() && liesInSlots(program, share.partial,
                                                    before, share.axis, members)
            : share.slots.size() == 1 && result.pending.empty();
    packs.push_back(!isPacked);
    slots.push_back(isPacked
                        ? share.partial
                        : makeMemory(cast<BufferType>(share.partial.getType()),
                                     members, share.others, share.parts));
  }
  forEachMember(results.front().pending, [&](Value slot) {
    SmallVector<Value> tokens;
    for (auto [share, source, mustPack] :
         llvm::zip_equal(shares, slots, packs)) {
      if (mustPack)
        forEachMember(level, [&](Value member) {
          Value partial = getPartialShare(share, level, member);
          Value target = getShareTile(share, level, source, member, member);
          CopyOp::create(builder, loc, partial, target);
        });
      Value sum = getShareTile(share, level, share.sum, rank, slot);
      auto start = ReduceScatterStartOp::create(
          builder, loc, TokenType::get(nest.getContext()), source, sum,
          /*bytes=*/Value(), cast<MergeKindAttr>(*store.getMerge()),
          builder.getArrayAttr(level), builder.getStringAttr(share.axis));
      if (share.stride != 1)
        start->setAttr("commir.stride",
                       builder.getI64IntegerAttr(share.stride));
      tokens.push_back(start.getToken());
      ++transfers;
    }
    waitForAll(tokens);
  });
}

/// Each rank gets everybody's partial results of its share, and merges them: as
/// they come, or all at the end.
void NestExpander::reduceScatter(StoreOp store, StringAttr level,
                                 MutableArrayRef<Accumulator> results) {
  Location loc = nest.getLoc();
  Value rank = getRank(level);
  int64_t size = mesh.getLevelSize(level);
  bool atOnce = store.getDeferred();
  SmallVector<Share, 0> shares;
  SmallVector<Value> outgoing, incoming;
  for (auto [i, result] : llvm::enumerate(results)) {
    const Share &share =
        shares.emplace_back(makeShare(store, i, level, result));
    auto type = cast<BufferType>(share.partial.getType());
    outgoing.push_back(makeMemory(type, 1, share.others, share.parts));
    incoming.push_back(
        makeMemory(type, atOnce ? size : 1, share.others, share.parts));
  }
  forEachMember(results.front().pending, [&](Value slot) {
    SmallVector<Value> stacks, sums;
    for (auto [share, in] : llvm::zip_equal(shares, incoming)) {
      sums.push_back(getShareTile(share, level, share.sum, rank, slot));
      Value kept =
          atOnce ? getShareTile(share, level, in, rank, rank) : sums.back();
      Value own = getPartialShare(share, level, rank);
      CopyOp::create(builder, loc, own, kept);
    }
    forEachHop(level, [&](Value to, Value from) {
      SmallVector<Value> came;
      for (auto [share, out, in] :
           llvm::zip_equal(shares, outgoing, incoming)) {
        Value packed = getShareTile(share, level, out, to);
        CopyOp::create(builder, loc, getPartialShare(share, level, to), packed);
        came.push_back(
            getShareTile(share, level, in, rank, atOnce ? from : Value()));
        exchange(level, packed, to, came.back(), from);
      }
      if (!atOnce)
        merge(store, came, sums);
    });
    if (!atOnce)
      return;
    for (auto [share, in] : llvm::zip_equal(shares, incoming))
      stacks.push_back(getShareTile(share, level, in, rank, Value(), size));
    mergeAll(store, stacks, sums);
  });
}
