//===- Travel.cpp - Rule R6: partial results go from rank to rank ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Step t of a shifted loop makes a partial result of part p(t) on every rank,
// each of another part. The accumulator of a part travels against the direction
// in which the parts are visited: it reaches each rank just when that rank
// works on its part, and with offset d it ends at its owner (travel). Or each
// partial result goes to its owner at once, and is merged there (deliver).
//
// Results that move along nested loops: the sum of the inner ring is what the
// outer one made in its step.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Whether the results of a store travel along the ring of `loop`: ranks of its
/// level share the sum out along its axis.
bool NestExpander::travels(StoreOp store, LoopAttr loop) {
  if (!loop.getShift() || loop.getParts() == 1 || !store.getOver())
    return false;
  SmallVector<StringAttr> levels = getRingLevels(loop);
  if (levels.size() != 1)
    return false;
  bool reduced = llvm::any_of(store.getOver()->getAsRange<StringAttr>(),
                              [&](StringAttr axis) {
                                return isReducedOver(store, axis) &&
                                       isParallelOver(axis, levels.front());
                              });
  return reduced && llvm::all_of(store.getBuffers(), [&](Value buffer) {
           int64_t number = cast<BlockArgument>(buffer).getArgNumber();
           CutAttr cut = program.getBinding(number).getInside().getCut(
               loop.getAxes().front());
           return cut && cut.hasLevel(levels.front());
         });
}

LogicalResult NestExpander::addTravellers(LoopAttr loop) {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    if (!travels(store, loop))
      continue;
    ShiftAttr shift = loop.getShift();
    StringRef axis = loop.getAxes().front();
    std::optional<ResultVia> via = getResultVia(store, loop);
    if (!via)
      return needsRule("R6 by travel, deliver and fetch",
                       "the results of one merge move in two ways");
    if (failed(checkLink(loop)))
      return failure();
    TravellingStore moved{store, {}, *via};
    int64_t chunks = shift.getChunks();
    bool inChunks = goesInChunks(store, loop);
    if (loop.getParts() != mesh.getLevelSize(getRingLevels(loop).front()))
      return needsRule("R6 with several parts a rank", "J is not the ranks");
    for (Value buffer : store.getBuffers()) {
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      auto type = cast<BufferType>(memory[buffer].getType());
      PlacementAttr inside = program.getBinding(number).getInside();
      Traveller traveller{buffer, {}, {}, {}};
      for (Attribute factor : inside.getCut(axis).getFactors()) {
        auto level = dyn_cast<StringAttr>(factor);
        if (!level)
          return needsRule("R6 of a strided placement", "a part is in pieces");
        traveller.levels.push_back(level);
      }
      SmallVector<NamedAttribute> parts{
          {builder.getStringAttr(axis),
           builder.getI64IntegerAttr(getRanks(traveller.levels) *
                                     (inChunks ? chunks : 1))}};
      PlacementAttr others = dropCuts(getPartialPlacement(store, inside), axis);
      for (LoopAttr outer : loops) {
        if (outer == loop)
          break;
        StringAttr other = outer.getAxes().front();
        CutAttr cut = others.getCut(other.getValue());
        if (other == axis || !travels(store, outer) || !cut)
          continue;
        SmallVector<StringAttr> levels;
        for (Attribute factor : getFactors(mesh, cut)) {
          if (!isa<StringAttr>(factor))
            return needsRule("R6 of a strided placement",
                             "a part is in pieces");
          levels.push_back(cast<StringAttr>(factor));
        }
        parts.emplace_back(other, builder.getI64IntegerAttr(getRanks(levels)));
        others = dropCuts(others, other.getValue());
        traveller.outer.emplace_back(other, levels);
      }
      makeTravelMemory(store, loop, others, parts, traveller);
      moved.results.push_back(traveller);
    }
    travellers[loop.getName()].push_back(moved);
  }
  return checkChunks(loop);
}

/// The tile of a traveller's memory for `part` of the ring.
Value NestExpander::getTravelTile(const ShiftedLoop &shifted,
                                  const Traveller &traveller, Value memory,
                                  Value part, Value slot) {
  SmallVector<std::pair<StringRef, Part>> at;
  at.emplace_back(shifted.axis,
                  getPart(traveller.levels, shifted.level, part, shifted.axis));
  for (const auto &[axis, levels] : traveller.outer)
    at.emplace_back(axis, getPart(levels, StringAttr(), Value(), axis));
  return getTileAt(memory, at, slot);
}

/// Nothing has arrived before the first step.
void NestExpander::openTravel(const ShiftedLoop &shifted) {
  for (TravellingStore &moved : travellers[shifted.loop.getName()]) {
    Value part = moved.isDelivered() ? getRank(shifted.level)
                                     : getPartAt(shifted, constant(0));
    for (auto [i, traveller] : llvm::enumerate(moved.results))
      fillWithIdentity(
          moved.store, i,
          getTravelTile(shifted, traveller, traveller.incoming, part));
  }
}

/// What the last step made leaves, while this step makes its own.
void NestExpander::startTravel(const ShiftedLoop &shifted, const RingStep &step,
                               SmallVectorImpl<Value> &tokens) {
  auto &stores = travellers[shifted.loop.getName()];
  if (stores.empty())
    return;
  Location loc = nest.getLoc();
  int64_t n = shifted.parts, d = shifted.direction;
  Value rank = getRank(shifted.level);
  Value started = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        step.step, constant(0));
  Value last = arith::SubIOp::create(builder, loc, step.step, constant(1));
  Value lastPart = getPartAt(shifted, last);
  for (TravellingStore &moved : stores) {
    Value to = wrap(add(rank, constant(-d)), n);
    Value from = wrap(add(rank, constant(d)), n);
    if (moved.isDelivered())
      std::tie(to, from) = getDelivery(shifted, lastPart);
    for (auto [i, traveller] : llvm::enumerate(moved.results)) {
      Value made = traveller.outgoing ? traveller.outgoing : traveller.partial;
      Value leaving =
          getTravelTile(shifted, traveller, made, lastPart,
                        traveller.outgoing ? Value() : step.nextSlot);
      Value coming = getTravelTile(shifted, traveller, traveller.incoming,
                                   moved.isDelivered() ? rank : step.part);
      tokens.push_back(
          startExchange(shifted.level, leaving, to, coming, from, started));
      fillWithIdentity(moved.store, i,
                       getTravelTile(shifted, traveller, traveller.partial,
                                     step.part, step.slot));
      departing[traveller.buffer].push_back({traveller.partial, step.slot});
    }
  }
}

/// To whom the partial result of `part` goes, its owner, and who made this
/// rank's own part in the same step.
std::pair<Value, Value> NestExpander::getDelivery(const ShiftedLoop &shifted,
                                                  Value part) {
  // All are as far from the part that they work on.
  Value rank = getRank(shifted.level);
  Value distance = arith::SubIOp::create(builder, nest.getLoc(), rank, part);
  return {part, wrap(add(rank, distance), shifted.parts)};
}

/// Where the sum of this ring goes: to the step of an outer one, or to where
/// the result is merged.
Value NestExpander::getTotalTile(const ShiftedLoop &shifted,
                                 const Traveller &traveller) {
  Value rank = getRank(shifted.level);
  auto outer = departing.find(traveller.buffer);
  if (outer == departing.end() || outer->second.empty())
    return getTravelTile(shifted, traveller, memory[traveller.buffer], rank);
  auto [partial, slot] = outer->second.back();
  return getTravelTile(shifted, traveller, partial, rank, slot);
}

void NestExpander::mergeTravel(const ShiftedLoop &shifted,
                               const RingStep &step) {
  for (TravellingStore &moved : travellers[shifted.loop.getName()]) {
    SmallVector<Value> came, sums;
    for (const Traveller &traveller : moved.results) {
      departing[traveller.buffer].pop_back();
      Value part = moved.isDelivered() ? getRank(shifted.level) : step.part;
      Value arrived =
          getTravelTile(shifted, traveller, traveller.incoming, part);
      came.push_back(widenTile(shifted, traveller, arrived, part));
      sums.push_back(moved.isDelivered()
                         ? getTotalTile(shifted, traveller)
                         : getTravelTile(shifted, traveller, traveller.partial,
                                         step.part, step.slot));
    }
    merge(moved.store, came, sums);
  }
  narrowDepartures(shifted, step);
}

/// Rounds what this step made for the next one to send; the last step's stays.
void NestExpander::narrowDepartures(const ShiftedLoop &shifted,
                                    const RingStep &step) {
  auto narrows = [](const TravellingStore &moved) {
    return llvm::any_of(moved.results,
                        [](const Traveller &each) { return each.outgoing; });
  };
  auto &stores = travellers[shifted.loop.getName()];
  if (llvm::none_of(stores, narrows))
    return;
  Location loc = nest.getLoc();
  Value zero = constant(0), one = constant(1);
  Value times = arith::SelectOp::create(builder, loc, step.more, one, zero);
  auto once = scf::ForOp::create(builder, loc, zero, times, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(once.getBody());
  for (const TravellingStore &moved : stores)
    for (const Traveller &traveller : moved.results)
      narrowTile(shifted, traveller,
                 getTravelTile(shifted, traveller, traveller.partial, step.part,
                               step.slot),
                 step.part);
}

/// The last step has the sum of the rank's own part, or that of the owner one
/// closing hop away.
void NestExpander::closeTravel(const ShiftedLoop &shifted) {
  int64_t n = shifted.parts;
  int64_t closing = shifted.direction * (shifted.steps - 1) + shifted.offset;
  closing = ((closing % n) + n) % n;
  for (TravellingStore &moved : travellers[shifted.loop.getName()]) {
    Value last = constant(shifted.steps - 1);
    Value slot = constant((shifted.steps - 1) % 2);
    Value part = getPartAt(shifted, last);
    Value rank = getRank(shifted.level);
    Value to = wrap(add(rank, constant(closing)), n);
    Value from = wrap(add(rank, constant(-closing)), n);
    if (moved.isDelivered())
      std::tie(to, from) = getDelivery(shifted, part);
    Value always = arith::ConstantIntOp::create(builder, nest.getLoc(), 1, 1);
    SmallVector<Value> sums, totals, tokens;
    for (const Traveller &traveller : moved.results) {
      Value sum =
          getTravelTile(shifted, traveller, traveller.partial, part, slot);
      if (closing != 0) {
        Value home =
            getTravelTile(shifted, traveller, traveller.incoming, rank);
        sum = narrowTile(shifted, traveller, sum, part);
        tokens.push_back(
            startExchange(shifted.level, sum, to, home, from, always));
        sum = home;
      }
      sums.push_back(sum);
      totals.push_back(getTotalTile(shifted, traveller));
    }
    waitForAll(tokens);
    for (auto [sum, traveller] : llvm::zip_equal(sums, moved.results))
      if (closing != 0)
        sum = widenTile(shifted, traveller, sum, rank);
    merge(moved.store, sums, totals);
  }
}
