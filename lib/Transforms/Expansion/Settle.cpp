//===- Settle.cpp - What serves in place of what was asked ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks, a lease in place of a message, and moving results along a ring at all
// make a program faster and change no result. Where one of them does not serve
// a loop, the next simpler way does, and a remark says which and why:
//
//   in chunks          in one chunk
//   fetched            delivered
//   along the loop     not at all: ranks reduce when the loops have ended
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

static LoopAttr withMovement(LoopAttr loop, int64_t parts, int64_t offset,
                             ResultVia results, DictionaryAttr via,
                             int64_t chunks) {
  ShiftAttr shift = loop.getShift();
  return LoopAttr::get(loop.getContext(), loop.getName(), loop.getAxes(), parts,
                       loop.getLevels(),
                       ShiftAttr::get(loop.getContext(), shift.getLoops(),
                                      shift.getLevels(), shift.getDirection(),
                                      offset, shift.getReads(), results, via,
                                      chunks, shift.getLink()));
}

/// Several parts a rank, one after the other, are the chunks of one part: a
/// loop that walks them so. Another, that starts within the parts of a rank or
/// comes from behind, stays as it is.
static LoopAttr gatherParts(LoopAttr loop, int64_t ranks) {
  ShiftAttr shift = loop.getShift();
  int64_t each = loop.getParts() / ranks;
  if (each == 1 || shift.getDirection() != 1 || shift.getOffset() % each != 0)
    return loop;
  return withMovement(loop, ranks, shift.getOffset() / each, shift.getResults(),
                      shift.getVia(), shift.getChunks() * each);
}

static LoopAttr inOneChunk(LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  return withMovement(loop, loop.getParts(), shift.getOffset(),
                      shift.getResults(), shift.getVia(), /*chunks=*/1);
}

/// What was fetched is delivered.
static LoopAttr delivering(LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  Builder builder(loop.getContext());
  DictionaryAttr via = shift.getVia();
  if (via)
    via = builder.getDictionaryAttr(
        llvm::map_to_vector(via, [&](NamedAttribute each) {
          bool fetches = each.getValue() == builder.getStringAttr("fetch");
          return NamedAttribute(each.getName(),
                                fetches ? builder.getStringAttr("deliver")
                                        : each.getValue());
        }));
  ResultVia results = shift.getResults() == ResultVia::Fetch
                          ? ResultVia::Deliver
                          : shift.getResults();
  return withMovement(loop, loop.getParts(), shift.getOffset(), results, via,
                      shift.getChunks());
}

/// The stores whose results move along a loop.
SmallVector<StoreOp> NestSchedule::getStoresAlong(LoopAttr loop) {
  return llvm::to_vector(llvm::make_filter_range(
      nest.getBody().getOps<StoreOp>(),
      [&](StoreOp store) { return travels(store, loop); }));
}

/// Why the results of a store cannot move along a loop, in whatever way; empty
/// if they can.
std::string NestSchedule::whyNotAlong(StoreOp store, LoopAttr loop) {
  StringRef axis = loop.getAxes().front();
  for (Value buffer : store.getBuffers()) {
    int64_t number = cast<BlockArgument>(buffer).getArgNumber();
    SmallVector<Attribute> factors =
        getFactors(mesh, getInside(number).getCut(axis));
    if (!isOpenAround(loop, axis, factors))
      return ("a part of axis '" + axis + "' is in pieces").str();
    for (DimAttr dim : cast<BufferType>(buffer.getType()).getDims())
      if (!dim.isConstant() && dim.getAxis() == axis &&
          cutsGroups(program, nest, dim))
        return ("its parts share some of '" + axis + "/" +
                Twine(dim.getDivisor()) + "'")
            .str();
  }
  int64_t ranks = mesh.getLevelSize(getRingLevels(loop).front());
  if (gatherParts(loop, ranks).getParts() == ranks)
    return {};
  return ("it does not walk the " + Twine(loop.getParts() / ranks) +
          " parts of a rank one after the other, as direction 1 does with an "
          "offset that is a multiple of their number")
      .str();
}

/// Why a loop cannot move what it moves in chunks; empty if it can.
std::string NestSchedule::whyNotInChunks(LoopAttr loop) {
  if (loop.getShift().getChunks() == 1)
    return {};
  for (LoadOp load : nest.getBody().getOps<LoadOp>()) {
    int64_t buffer = cast<BlockArgument>(load.getBuffer()).getArgNumber();
    if (getPlacementBesideResult(buffer))
      continue;
    Movement movement = findMovement(buffer);
    SmallVector<Move> moves = findMoves(buffer, movement);
    for (const Move &move : moves) {
      if (move.loop != loop || move.pulled)
        continue;
      if (loop != moves.back().loop)
        return ("what it brings of '" + getName(buffer) +
                "' comes whole to the loops inside, unless it is pulled")
            .str();
      if (!getTiles(loop, getFactors(mesh, movement.cut)).empty())
        return ("a chunk of '" + getName(buffer) +
                "' has rows of each part of the loops inside, unless it is "
                "pulled")
            .str();
    }
  }
  SmallVector<StoreOp> stores = getStoresAlong(loop);
  for (StoreOp store : stores) {
    int64_t number =
        cast<BlockArgument>(store.getBuffers().front()).getArgNumber();
    if (store.getDeferred())
      return ("the merge of '" + getName(number) + "' is deferred").str();
    CutAttr cut = getInside(number).getCut(loop.getAxes().front());
    if (goesInChunks(store, loop) && travelsInside(store, loop) &&
        !getTiles(loop, getFactors(mesh, cut)).empty())
      return "what the loops inside bring of a chunk is in pieces";
  }
  if (LoopAttr inner = stores.empty() ? LoopAttr() : findRingInside(loop))
    return ("loop '" + inner.getName() +
            "' moves parts of a chunk over the same ranks")
        .str();
  return {};
}

/// Why the own part cannot come last and end what others made of it, as results
/// do that are fetched or delivered in chunks; empty if it can.
std::string NestSchedule::whyNotLast(LoopAttr loop) {
  SmallVector<StoreOp> stores = getStoresAlong(loop);
  auto isLast = [&](StoreOp store) { return goesInChunks(store, loop); };
  if (llvm::none_of(stores, isLast))
    return {};
  if (!llvm::all_of(stores, isLast))
    return "other results of the loop move in another way";
  ShiftedLoop shifted = describeShift(loop);
  if (shifted.steps != shifted.parts)
    return "behind the mask some parts have fewer partial results";
  if (getClosing(shifted) != 0)
    return "the own part does not come last, as with offset d it does";
  return {};
}

/// Lets the results of a store stay where they are made until the loops have
/// ended. What a link rounds would not be rounded then, so that is refused.
LogicalResult NestSchedule::keepBack(StoreOp store, LoopAttr loop,
                                     const Twine &why) {
  StringRef name =
      getName(cast<BlockArgument>(store.getBuffers().front()).getArgNumber());
  for (size_t result = 0; result < store.getBuffers().size(); ++result)
    if (narrows(store, result, loop))
      return needsRule("R6 over a link",
                       "'" + name + "' does not move along '" + loop.getName() +
                           "', as " + why + "; give the loop no link");
  keptBack.insert({store, loop.getName()});
  nest.emitRemark() << "'" << name << "' does not move along '"
                    << loop.getName()
                    << "', but is reduced when the loops have ended: " << why;
  return success();
}

/// Chooses how each shifted loop moves what it moves.
LogicalResult NestSchedule::settleRings() {
  auto keepAll = [&](LoopAttr loop, function_ref<std::string(StoreOp)> getWhy) {
    for (StoreOp store : getStoresAlong(loop))
      if (std::string why = getWhy(store);
          !why.empty() && failed(keepBack(store, loop, why)))
        return failure();
    return success();
  };
  for (LoopAttr loop : loops)
    if (failed(keepAll(
            loop, [&](StoreOp store) { return whyNotAlong(store, loop); })))
      return failure();
  auto whyNot = [&](LoopAttr loop) {
    std::string why = whyNotInChunks(loop);
    return why.empty() ? whyNotLast(loop) : why;
  };
  for (LoopAttr &loop : loops) {
    if (!loop.getShift() || loop.getParts() == 1)
      continue;
    LoopAttr asked = loop;
    if (!getStoresAlong(loop).empty())
      loop = gatherParts(loop, mesh.getLevelSize(getRingLevels(loop).front()));
    if (std::string why = whyNot(loop); !why.empty() && loop != asked) {
      loop = asked;
      if (failed(keepAll(loop, [&](StoreOp) { return why; })))
        return failure();
    }
    auto choose = [&](LoopAttr other, StringRef way, StringRef why) {
      nest.emitRemark() << "'" << loop.getName() << "' moves what it moves "
                        << way << ": " << why;
      loop = other;
    };
    if (std::string why = whyNot(loop);
        !why.empty() && loop.getShift().getChunks() != 1)
      choose(inOneChunk(loop), "in one chunk", why);
    if (std::string why = whyNotLast(loop); !why.empty())
      choose(delivering(loop), "by messages, not by fetching it", why);
  }
  return success();
}

/// Bounds that are given for chunks may not name the parts of a loop along
/// which nothing moves in chunks.
LogicalResult NestSchedule::checkCuts() {
  llvm::MapVector<StringAttr, int64_t> parts;
  for (LoopAttr loop : loops)
    for (auto [axis, cut] :
         llvm::zip_equal(loop.getAxes(), *getPartsOfAxes(program, loop)))
      parts.try_emplace(axis, 1).first->second *= cut * getChunks(loop);
  for (auto [axis, count] : parts) {
    AxisAttr type = program.getAxis(axis);
    std::string why =
        type.getLayout().getLayout().whyNot(type.getExtent(), count);
    if (!why.empty())
      return needsRule("R3 in chunks",
                       "nothing moves in chunks along '" + axis.getValue() +
                           "', and without them " + why + "; leave out chunks");
  }
  return success();
}
