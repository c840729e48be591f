//===- Ring.cpp - Rule R3: one part a step --------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

LogicalResult NestExpander::addToRing(int64_t buffer, CutAttr cut,
                                      LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  Value argument = program.getBody().getArgument(buffer);
  Value own = memory[argument];
  auto via =
      shift.getVia()
          ? dyn_cast_or_null<StringAttr>(shift.getVia().get(getName(buffer)))
          : StringAttr();
  if (via ? via == "pull" : shift.getReads() == ReadVia::Pull)
    return needsRule("R3 by pull", "only rotate is lowered");
  if (shift.getChunks() != 1)
    return needsRule("R3 in chunks", "only whole parts are lowered");
  if (shift.getLink() && shift.getLink() != getElementType(own))
    return needsRule("R3 with a link type", "parts travel as they are stored");
  for (LoopAttr outer : loops) {
    if (outer == loop)
      break;
    for (DimAttr dim : program.getBufferType(buffer).getDims())
      if (!outer.isParallel() && outer.getParts() > 1 && !dim.isConstant() &&
          outer.isOver(dim.getAxis()) &&
          !(outer.getShift() && outer.getAxes() == loop.getAxes()))
        return needsRule("R3 under a loop over the buffer", "a slice moves");
  }
  Ring ring{argument, own, {}, {}};
  int64_t count = 1;
  for (Attribute factor : getFactors(mesh, cut)) {
    auto level = dyn_cast<StringAttr>(factor);
    if (!level)
      return needsRule("R3 of a strided placement", "a part is in pieces");
    ring.levels.push_back(level);
    count *= mesh.getLevelSize(level);
  }
  NamedAttribute part(loop.getAxes().front(), builder.getI64IntegerAttr(count));
  ring.slots = makeMemory(
      cast<BufferType>(own.getType()), /*slots=*/2,
      dropCuts(program.getBinding(buffer).getInside(), cut.getAxis()), part);
  rings[loop.getName()].push_back(ring);
  return success();
}

/// R9: rings nest when several levels cut one axis. What the outer ring brought
/// is where the inner one starts, and is sent on while that one runs.
///
/// Step t works on part p(t) = (d*t + r + o) mod n while p(t+1) arrives from
/// the neighbour that works on it now. A part that comes home is not sent: the
/// rank kept its own.
LogicalResult NestExpander::emitRing(size_t at, StringAttr level) {
  LoopAttr loop = loops[at];
  ShiftAttr shift = loop.getShift();
  StringAttr axis = loop.getAxes().front();
  int64_t parts = loop.getParts(), d = shift.getDirection();
  int64_t o = ((shift.getOffset() % parts) + parts) % parts;
  Location loc = nest.getLoc();

  Value rank = getRank(level);
  // The part of a step, and whether it is the rank's own.
  auto partAt = [&](Value step) {
    Value ahead = step;
    if (d == -1)
      ahead = arith::SubIOp::create(builder, loc, constant(parts), step);
    ahead = add(ahead, rank);
    return wrap(o == 0 ? ahead : add(ahead, constant(o)), parts);
  };
  auto isOwn = [&](Value part) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, part,
                                 rank);
  };
  auto slotAt = [&](Value step) -> Value {
    return arith::RemUIOp::create(builder, loc, step, constant(2));
  };
  auto ownTile = [&](const Ring &member) {
    return getHeldTile(member,
                       {axis, getPart(member.levels, level, rank, axis)});
  };
  auto slotTile = [&](const Ring &member, Value part, Value slot) {
    std::pair<StringRef, Part> at(axis,
                                  getPart(member.levels, level, part, axis));
    return getTileAt(member.slots, at, slot);
  };
  SmallVector<Ring> &ring = rings[loop.getName()];
  SmallVector<Value> tokens;
  // Sends `source` to the rank that is `hop` before this one, and receives from
  // the one as far after it.
  auto startHop = [&](int64_t hop, Value source, Value target, Value when) {
    Value to = wrap(add(rank, constant(-hop)), parts);
    Value from = wrap(add(rank, constant(hop)), parts);
    tokens.push_back(
        ExchangeStartOp::create(builder, loc, TokenType::get(nest.getContext()),
                                source, to, target, from, builder.getArrayAttr(level), when));
    ++transfers;
  };
  auto waitForAll = [&] {
    for (Value token : tokens)
      WaitOp::create(builder, loc, token);
    tokens.clear();
  };

  // Opening hop: the first part is not the rank's own.
  Value zero = constant(0);
  if (o != 0) {
    Value first = partAt(zero);
    Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
    for (Ring &member : ring) {
      Value source = ownTile(member);
      Value target = slotTile(member, first, zero);
      startHop(o, source, target, always);
    }
    waitForAll();
  }

  // Nothing has arrived before the first step.
  auto &travelling = travellers[loop.getName()];
  auto travelTile = [&](const Traveller &traveller, Value memory, Value part,
                        Value slot = {}) {
    return getTravelTile(traveller, axis, level, memory, part, slot);
  };
  for (auto &[store, results] : travelling)
    for (auto [i, traveller] : llvm::enumerate(results))
      fillWithIdentity(store, i,
                       travelTile(traveller, traveller.incoming, partAt(zero)));

  Value count = constant(parts), one = constant(1);
  auto steps = scf::ForOp::create(builder, loc, zero, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(steps.getBody());
  Value step = steps.getInductionVar();
  Value part = partAt(step), own = isOwn(part), slot = slotAt(step);
  Value nextStep = add(step, one);
  Value nextPart = partAt(nextStep), nextSlot = slotAt(nextStep);
  // All ranks agree on this: it depends on the step alone.
  Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                     nextStep, count);
  if (o != 0) {
    Value home = constant(d == 1 ? parts - o : o);
    Value notHome = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ne, nextStep, home);
    more = arith::AndIOp::create(builder, loc, more, notHome);
  }
  for (Ring &member : ring) {
    Value kept = ownTile(member), came = slotTile(member, part, slot);
    Value current = arith::SelectOp::create(builder, loc, own, kept, came);
    Value target = slotTile(member, nextPart, nextSlot);
    startHop(d, current, target, more);
    arrived[member.buffer].push_back({own, member.slots, slot});
  }
  // The sum of the last step's part leaves, that of this step's arrives.
  Value started =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, step, zero);
  if (!travelling.empty()) {
    Value lastStep = arith::SubIOp::create(builder, loc, step, one);
    Value lastPart = partAt(lastStep);
    for (auto &[store, results] : travelling)
      for (auto [i, traveller] : llvm::enumerate(results)) {
        Value leaving =
            travelTile(traveller, traveller.partial, lastPart, nextSlot);
        Value coming = travelTile(traveller, traveller.incoming, part);
        startHop(d, leaving, coming, started);
        fillWithIdentity(store, i,
                         travelTile(traveller, traveller.partial, part, slot));
        departing[traveller.buffer] = {traveller.partial, slot};
      }
  }
  Part before = this->parts.lookup(axis.getValue());
  pushPart(axis, part, parts);
  visiting[{axis, level}] = part;
  LogicalResult result = emitLoops(at + 1);
  visiting.erase({axis, level});
  this->parts[axis.getValue()] = before;
  builder.setInsertionPoint(steps.getBody()->getTerminator());
  waitForAll();
  for (Ring &member : ring)
    arrived[member.buffer].pop_back();
  for (auto &[store, results] : travelling) {
    SmallVector<Value> came, sums;
    for (const Traveller &traveller : results) {
      departing.erase(traveller.buffer);
      came.push_back(travelTile(traveller, traveller.incoming, part));
      sums.push_back(travelTile(traveller, traveller.partial, part, slot));
    }
    merge(store, came, sums);
  }

  // The last step has the sum of the rank's own part, or that of the owner one
  // closing hop away.
  builder.setInsertionPointAfter(steps);
  int64_t closing = (((o - d) % parts) + parts) % parts;
  Value last = constant(parts - 1), lastSlot = constant((parts - 1) % 2);
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  for (auto &[store, results] : travelling) {
    SmallVector<Value> sums, totals;
    for (const Traveller &traveller : results) {
      Value sum =
          travelTile(traveller, traveller.partial, partAt(last), lastSlot);
      if (closing != 0) {
        Value home = travelTile(traveller, traveller.incoming, rank);
        startHop(parts - closing, sum, home, always);
        sum = home;
      }
      sums.push_back(sum);
      totals.push_back(travelTile(traveller, memory[traveller.buffer], rank));
    }
    waitForAll();
    merge(store, sums, totals);
  }
  return result;
}
