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
bool NestSchedule::travels(StoreOp store, LoopAttr loop) {
  if (!loop.getShift() || loop.getParts() == 1 || !store.getOver() ||
      keptBack.contains({store, loop.getName()}))
    return false;
  SmallVector<StringAttr> levels = getRingLevels(loop);
  if (levels.size() != 1)
    return false;
  // A loop inside that is shifted over the same ranks only visits the tiles of
  // a part in an order of each rank's own.
  for (LoopAttr outer : loops) {
    if (outer == loop)
      break;
    if (outer.getShift() && outer.getParts() != 1 &&
        outer.isOver(loop.getAxes().front()) &&
        llvm::is_contained(getRingLevels(outer), levels.front()))
      return false;
  }
  bool reduced = llvm::any_of(store.getOver()->getAsRange<StringAttr>(),
                              [&](StringAttr axis) {
                                return isReducedOver(store, axis) &&
                                       isParallelOver(axis, levels.front());
                              });
  return reduced && llvm::all_of(store.getBuffers(), [&](Value buffer) {
           int64_t number = cast<BlockArgument>(buffer).getArgNumber();
           CutAttr cut = getInside(number).getCut(loop.getAxes().front());
           return cut && cut.hasLevel(levels.front());
         });
}

bool NestSchedule::isDelivered(Value buffer, LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  StringRef name = getName(cast<BlockArgument>(buffer).getArgNumber());
  auto via = shift.getVia()
                 ? dyn_cast_or_null<StringAttr>(shift.getVia().get(name))
                 : StringAttr();
  return via ? via != "travel" : shift.getResults() != ResultVia::Travel;
}

/// The loop along which the results of a store travel, where that happens once
/// and makes all of them: then nothing need be there before. What a link makes
/// narrower, or does not lie together in them as messages do, does not come
/// straight into them, and is added to an identity.
LoopAttr NestSchedule::getOnlyRound(StoreOp store) {
  if (!written.contains(store))
    return {};
  for (LoopAttr loop : loops) {
    if (travels(store, loop)) {
      bool isAdded = !store.getDeferred() &&
                     isDelivered(store.getBuffers().front(), loop) &&
                     (!liesTogether(store, loop) ||
                      llvm::any_of(llvm::seq(store.getBuffers().size()),
                                   [&](size_t result) {
                                     return narrows(store, result, loop);
                                   }));
      return isAdded || travelsInside(store, loop) ? LoopAttr() : loop;
    }
    auto moving = llvm::find_if(
        loops, [&](LoopAttr inner) { return travels(store, inner); });
    if (!loop.isParallel() && loop.getParts() != 1 &&
        (moving == loops.end() || !movesInSlices(store, loop, *moving)))
      return {};
  }
  return {};
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
                       "the results of one merge move in two ways; give them "
                       "the same one");
    if (failed(checkLink(loop)))
      return failure();
    TravellingStore moved{store, {}, *via};
    for (Value buffer : store.getBuffers()) {
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      if (store.getDeferred() && *via == ResultVia::Travel)
        return store.emitOpError()
               << "defers the merge of '" << getName(number)
               << "', which travels from rank to rank and is merged on its "
                  "way; let it be delivered, or do not defer it";
      size_t result = moved.results.size();
      BufferType type = getWideType(store, result);
      if (store.getDeferred() && store.getPartial()) {
        FailureOr<Type> waits = getWaitingType(store, result);
        if (failed(waits))
          return failure();
        if (*waits != type.getElementType() && countPartials(buffer) != 1)
          return store.emitOpError()
                 << "lets partial results of '" << getName(number)
                 << "' wait in " << *waits
                 << ", but several launches merge into one of them; let them "
                    "wait in "
                 << type.getElementType();
        type = withElementType(type, *waits);
      }
      PlacementAttr inside = getInside(number);
      Traveller traveller{buffer, {}, {}, {}};
      traveller.factors = getFactors(mesh, inside.getCut(axis));
      traveller.tiles = getTiles(loop, traveller.factors);
      int64_t held = countParts(traveller.factors) * getChunks(loop) *
                     countChunksAround(loop, axis);
      for (LoopAttr inner : traveller.tiles)
        held *= inner.getParts();
      SmallVector<NamedAttribute> parts{
          {builder.getStringAttr(axis), builder.getI64IntegerAttr(held)}};
      PlacementAttr others = dropCuts(getPartialPlacement(store, inside), axis);
      for (LoopAttr outer : loops) {
        if (outer == loop)
          break;
        StringAttr other = outer.getAxes().front();
        CutAttr cut = others.getCut(other.getValue());
        if (movesInSlices(store, outer, loop) &&
            !llvm::is_contained(traveller.slice, other)) {
          parts.emplace_back(other,
                             builder.getI64IntegerAttr(nest.getParts(other)));
          others = dropCuts(others, other.getValue());
          traveller.slice.push_back(other);
        }
        if (other == axis || !travels(store, outer) || !cut)
          continue;
        SmallVector<Attribute> factors = getFactors(mesh, cut);
        parts.emplace_back(
            other, builder.getI64IntegerAttr(countParts(factors) *
                                             countChunksAround(loop, other)));
        others = dropCuts(others, other.getValue());
        traveller.outer.emplace_back(other, factors);
      }
      makeTravelMemory(store, loop, type, others, parts, traveller);
      moved.results.push_back(traveller);
    }
    moved.staysHome = moved.isDelivered() && !goesInChunks(store, loop) &&
                      getClosing(describeShift(loop)) == 0 &&
                      writesStep(store, loop) &&
                      (store.getDeferred() || getOnlyRound(store) == loop);
    travellers[loop.getName()].push_back(moved);
  }
  return success();
}

/// How many hops the last part that a rank works on is from home.
int64_t NestSchedule::getClosing(const ShiftedLoop &shifted) {
  int64_t n = shifted.parts;
  int64_t closing = shifted.direction * (shifted.steps - 1) + shifted.offset;
  return ((closing % n) + n) % n;
}

/// Where the part that arrives in a step is put. Of what is delivered the first
/// is the sum so far, unless the own part of the last step is.
Value NestExpander::getArrivalTile(const ShiftedLoop &shifted,
                                   const TravellingStore &moved,
                                   const Traveller &traveller,
                                   const RingStep &step) {
  if (!moved.isDelivered())
    return getTravelTile(shifted, traveller, traveller.incoming, step.part);
  Value rank = getRank(shifted.level);
  // Slot 0 is for the own part.
  if (traveller.waitsAsItComes())
    return getTravelTile(shifted, traveller, traveller.waiting, rank,
                         step.step);
  Value tile = getTravelTile(shifted, traveller, traveller.incoming, rank);
  if (!sumsFirst(shifted, moved))
    return tile;
  Value isFirst = arith::CmpIOp::create(
      builder, nest.getLoc(), arith::CmpIPredicate::eq, step.step, constant(1));
  return arith::SelectOp::create(builder, nest.getLoc(), isFirst,
                                 getTotalTile(shifted, traveller), tile);
}

/// Whether the first part that is delivered becomes the sum: nothing was there
/// before, nor does the own part come first.
bool NestSchedule::sumsFirst(const ShiftedLoop &shifted,
                             const TravellingStore &moved) {
  StoreOp store = moved.store;
  return moved.isDelivered() && !store.getDeferred() &&
         getOnlyRound(store) == shifted.loop &&
         shifted.steps > (moved.staysHome ? 2 : 1);
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
    bool isWritten = writesStep(moved.store, shifted.loop);
    bool isDeferred = StoreOp(moved.store).getDeferred();
    for (auto [i, traveller] : llvm::enumerate(moved.results)) {
      Value made = traveller.outgoing ? traveller.outgoing : traveller.partial;
      Value leaving =
          getTravelTile(shifted, traveller, made, lastPart,
                        traveller.outgoing ? Value() : step.leavingSlot);
      Value coming = getArrivalTile(shifted, moved, traveller, step);
      tokens.push_back(
          startExchange(shifted.level, leaving, to, coming, from, started));
      // Launches write what they make; sums of a loop inside merge into it.
      if (!isWritten)
        fillWithIdentity(moved.store, i,
                         getTravelTile(shifted, traveller, traveller.partial,
                                       step.part, step.madeSlot));
      Departure departure{traveller.partial, step.madeSlot, turns.size() + 1,
                          isWritten};
      if (moved.staysHome) {
        departure.isLast = arith::XOrIOp::create(
            builder, loc, step.more,
            arith::ConstantIntOp::create(builder, loc, 1, 1));
        departure.home =
            isDeferred ? traveller.waiting : memory[traveller.buffer];
        departure.homeSlot = isDeferred ? constant(0) : Value();
        departure.addsAtHome = sumsFirst(shifted, moved);
      }
      departing[traveller.buffer].push_back(departure);
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

/// What arrived is merged; before the first step nothing did.
void NestExpander::mergeTravel(const ShiftedLoop &shifted,
                               const RingStep &step) {
  for (TravellingStore &moved : travellers[shifted.loop.getName()]) {
    for (const Traveller &traveller : moved.results)
      departing[traveller.buffer].pop_back();
    int64_t first = sumsFirst(shifted, moved) ? 2 : 1;
    bool isDeferred = StoreOp(moved.store).getDeferred();
    if (llvm::all_of(
            moved.results,
            [](const Traveller &each) { return each.waitsAsItComes(); }) ||
        shifted.steps <= first)
      continue;
    Value arrived =
        arith::CmpIOp::create(builder, nest.getLoc(), arith::CmpIPredicate::uge,
                              step.step, constant(first));
    whenTrue(arrived, [&] {
      if (isDeferred)
        return keepArrived(shifted, moved, step.step);
      SmallVector<Value> came, sums;
      for (const Traveller &traveller : moved.results) {
        Value part = moved.isDelivered() ? getRank(shifted.level) : step.part;
        Value tile =
            getTravelTile(shifted, traveller, traveller.incoming, part);
        came.push_back(widenTile(shifted, traveller, tile, part));
        sums.push_back(moved.isDelivered()
                           ? getTotalTile(shifted, traveller)
                           : getTravelTile(shifted, traveller,
                                           traveller.partial, step.part,
                                           step.madeSlot));
      }
      merge(moved.store, came, sums);
    });
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
                               step.madeSlot),
                 step.part);
}

/// The last step has the sum of the rank's own part, or that of the owner one
/// closing hop away.
void NestExpander::closeTravel(const ShiftedLoop &shifted) {
  Location loc = nest.getLoc();
  int64_t n = shifted.parts, closing = getClosing(shifted);
  for (TravellingStore &moved : travellers[shifted.loop.getName()]) {
    bool isDeferred = StoreOp(moved.store).getDeferred();
    Value last = constant(shifted.steps - 1);
    Value slot = constant((shifted.steps - 1) % 2);
    Value part = getPartAt(shifted, last);
    Value rank = getRank(shifted.level);
    Value to = wrap(add(rank, constant(closing)), n);
    Value from = wrap(add(rank, constant(-closing)), n);
    if (moved.isDelivered())
      std::tie(to, from) = getDelivery(shifted, part);
    Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
    SmallVector<Value> sums, totals, tokens;
    for (const Traveller &traveller : moved.results) {
      Value sum =
          getTravelTile(shifted, traveller, traveller.partial, part, slot);
      Value home =
          getTravelTile(shifted, traveller, traveller.incoming, rank,
                        traveller.waitsAsItComes() ? constant(0) : Value());
      if (closing != 0) {
        sum = narrowTile(shifted, traveller, sum, part);
        tokens.push_back(
            startExchange(shifted.level, sum, to, home, from, always));
        sum = home;
      } else if (isDeferred && !moved.staysHome) {
        CopyOp::create(builder, loc, sum,
                       getTravelTile(shifted, traveller, traveller.waiting,
                                     rank, constant(0)));
      }
      sums.push_back(sum);
      totals.push_back(getTotalTile(shifted, traveller));
    }
    waitForAll(tokens);
    for (auto [sum, traveller] : llvm::zip_equal(sums, moved.results))
      if (closing != 0)
        sum = widenTile(shifted, traveller, sum, rank);
    if (isDeferred) {
      if (closing != 0)
        keepArrived(shifted, moved, constant(0));
      mergeArrived(shifted, moved);
    } else if (moved.staysHome) {
      continue;
    } else if (getOnlyRound(moved.store) == shifted.loop &&
               (!moved.isDelivered() || shifted.steps == 1)) {
      // Nothing was there before.
      for (auto [sum, total] : llvm::zip_equal(sums, totals))
        CopyOp::create(builder, loc, sum, total);
    } else {
      merge(moved.store, sums, totals);
    }
  }
}
