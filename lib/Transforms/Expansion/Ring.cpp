//===- Ring.cpp - Rules R3 and R9: one part a step ------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Step t of a shifted loop works on part p(t) = (d*t + sum(m_l * r_l) + o) mod
// J while p(t+1) arrives, as Arrival.cpp has it.
//
// R9: rings nest when several levels cut one axis. What the outer ring brought
// is where the inner one starts, and is sent on while that one runs. Pulling
// needs no outer ring: the innermost reads the owner, wherever that is.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The loops that bring an input, outermost first.
SmallVector<NestSchedule::Move>
NestSchedule::findMoves(int64_t buffer, const Movement &movement) {
  SmallVector<Move> moves;
  if (movement.exchanges || movement.rings.empty())
    return moves;
  SmallVector<Attribute> factors = getFactors(mesh, movement.cut);
  for (LoopAttr loop : loops) {
    if (!llvm::is_contained(movement.rings, loop))
      continue;
    ShiftAttr shift = loop.getShift();
    auto via =
        shift.getVia()
            ? dyn_cast_or_null<StringAttr>(shift.getVia().get(getName(buffer)))
            : StringAttr();
    bool pulled = via ? via == "pull" : shift.getReads() == ReadVia::Pull;
    for (StringAttr level : getRingLevels(loop))
      if (llvm::is_contained(factors, level) &&
          !isParallelOver(loop.getAxes().front(), level)) {
        if (!moves.empty() && pulled && moves.back().pulled)
          moves.back().hasRing = false;
        moves.push_back({loop, level, pulled, /*hasRing=*/true});
      }
  }
  return moves;
}

LogicalResult NestExpander::addToRings(int64_t buffer,
                                       const Movement &movement) {
  Value argument = program.getBody().getArgument(buffer);
  Ring ring{argument, memory[argument], getFactors(mesh, movement.cut)};
  SmallVector<Move> moves = findMoves(buffer, movement);
  auto wide = cast<BufferType>(ring.own.getType());
  if (failed(narrowRing(moves, getInside(buffer), ring)))
    return failure();
  if (wide == ring.own.getType())
    wide = {};
  bool arrives = false; // whether an outer ring brings what this one moves
  SmallVector<StringAttr> group;
  for (auto [i, move] : llvm::enumerate(moves)) {
    bool isLast = i + 1 == moves.size();
    if (move.pulled) {
      group.push_back(move.level);
      if (!move.hasRing)
        continue;
      // Groups are numbered in the mesh's order, whatever that of the loops is.
      llvm::sort(group, [&](StringAttr a, StringAttr b) {
        return mesh.getLevelNumber(a) < mesh.getLevelNumber(b);
      });
    }
    Ring next = ring;
    next.level = move.level;
    next.group = std::exchange(group, {});
    addRing(move.loop, arrives, next, isLast ? wide : BufferType());
    arrives = true;
  }
  return success();
}

Value NestExpander::getPartAt(const ShiftedLoop &shifted, Value step) {
  Value ahead = step;
  if (shifted.direction == -1)
    ahead = arith::SubIOp::create(builder, nest.getLoc(),
                                  constant(shifted.parts), step);
  ahead = add(ahead, shifted.phase);
  return wrap(ahead, shifted.parts);
}

/// A loop along which parts move, but for the part that this rank starts with.
ShiftedLoop NestSchedule::describeShift(LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  int64_t parts = loop.getParts();
  if (!shift)
    return {loop, loop.getAxes().front(), {}, parts, 1, 0, {}, parts};
  SmallVector<StringAttr> levels = getRingLevels(loop);
  ShiftedLoop shifted{loop,
                      loop.getAxes().front(),
                      levels.size() == 1 ? levels.front() : StringAttr(),
                      parts,
                      shift.getDirection(),
                      ((shift.getOffset() % parts) + parts) % parts,
                      {}};
  shifted.steps = countSteps(shifted);
  return shifted;
}

/// The part that this rank starts with, before it is wrapped.
Value NestExpander::getPhase(const ShiftedLoop &shifted) {
  Value phase;
  for (StringAttr level : getRingLevels(shifted.loop)) {
    int64_t each = shifted.parts / mesh.getLevelSize(level);
    Value term = each == 1 ? getRank(level) : mul(getRank(level), each);
    phase = phase ? add(phase, term) : term;
  }
  if (!phase)
    return constant(shifted.offset);
  return shifted.offset ? add(phase, constant(shifted.offset)) : phase;
}

LogicalResult NestExpander::emitRing(size_t at) {
  ShiftedLoop shifted = describeShift(loops[at]);
  shifted.phase = getPhase(shifted);
  return emitSteps(at, shifted);
}

/// One step, or one chunk of its part: what the next step needs arrives while
/// this one works.
LogicalResult NestExpander::emitStepBody(size_t at, const ShiftedLoop &shifted,
                                         const RingStep &step,
                                         std::optional<Part> chunk) {
  LoopAttr loop = shifted.loop;
  StringRef axis = shifted.axis.getValue();
  ArrayRef<Ring> members = rings[loop.getName()];
  SmallVector<Value> arriving;
  if (!shifted.firstPull && step.more)
    for (const Ring &member : members)
      arriving.push_back(startArrival(shifted, member, step, chunk));
  for (const Ring &member : members)
    widenArrival(shifted, member, step, chunk);
  for (const Ring &member : members)
    arrived[member.buffer].push_back(
        {member.isAlwaysInSlot() ? Value()
                                 : isOwnPart(shifted, member, step.part),
         member.slots, getHeldSlot(shifted, member, step, chunk)});
  Part before = parts.lookup(axis);
  pushPart(axis, step.part, shifted.parts, getPartsARank(shifted));
  turns.push_back({axis, step.step, shifted.steps});
  visited[axis].push_back({loop, step.part});
  Part around = chunksOf.lookup(axis);
  if (chunk) {
    chunksOf[axis] = cutPart(axis, around, *chunk);
    turns.push_back({axis, chunk->index, chunk->count});
  }
  cutInChunks(loop, axis);
  for (StringAttr level : getRingLevels(loop))
    visiting[{axis, level}] = step.part;
  LogicalResult result = emitLoops(at + 1);
  for (StringAttr level : getRingLevels(loop))
    visiting.erase({axis, level});
  visited[axis].pop_back();
  parts[axis] = before;
  turns.pop_back_n(chunk ? 2 : 1);
  chunksOf[axis] = around;
  for (const Ring &member : members)
    arrived[member.buffer].pop_back();
  // Behind whatever loops lie inside, in the block of this step.
  waitForAll(arriving);
  return result;
}

RingStep NestExpander::getStep(const ShiftedLoop &shifted, Value number) {
  Location loc = nest.getLoc();
  auto slotAt = [&](Value step) -> Value {
    return arith::RemUIOp::create(builder, loc, step, constant(2));
  };
  RingStep step;
  step.step = number;
  step.part = getPartAt(shifted, number);
  step.madeSlot = slotAt(number);
  step.next = add(number, constant(1));
  step.nextPart = getPartAt(shifted, step.next);
  step.leavingSlot = slotAt(step.next);
  step.more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                    step.next, constant(shifted.steps));
  return step;
}

/// A step, and what moves of results along with it.
LogicalResult NestExpander::emitStep(size_t at, const ShiftedLoop &shifted,
                                     const RingStep &step) {
  Location loc = nest.getLoc();
  SmallVector<Value> tokens;
  int64_t number = getChunks(shifted.loop);
  if (number == 1) {
    startTravel(shifted, step, tokens);
    LogicalResult result = emitStepBody(at, shifted, step, std::nullopt);
    waitForAll(tokens);
    mergeTravel(shifted, step);
    return result;
  }
  // Work on a chunk of this part hides the arrival of that of the next.
  auto chunks = scf::ForOp::create(builder, loc, constant(0), constant(number),
                                   constant(1));
  OpBuilder::InsertionGuard inside(builder);
  builder.setInsertionPointToStart(chunks.getBody());
  Part chunk{chunks.getInductionVar(), number};
  startChunkTravel(shifted, step, chunk, tokens);
  LogicalResult result = emitStepBody(at, shifted, step, chunk);
  waitForAll(tokens);
  mergeChunkTravel(shifted, step, chunk);
  return result;
}

LogicalResult NestExpander::emitSteps(size_t at, const ShiftedLoop &shifted) {
  Location loc = nest.getLoc();
  LoopAttr loop = shifted.loop;
  SmallVector<Value> tokens;
  SmallVector<Held, 0> before = packSlices(shifted);
  for (const Ring &member : rings[loop.getName()])
    keepOwnParts(shifted, member);
  for (const Ring &member : rings[loop.getName()])
    openRing(shifted, member, tokens);
  waitForAll(tokens);
  if (movesInChunks(loop)) {
    LogicalResult result = emitChunks(at, shifted);
    returnSlices(shifted, before);
    return result;
  }

  if (runsInLanes(loop)) {
    LogicalResult result = emitOverlap(at, shifted);
    returnSlices(shifted, before);
    return result;
  }

  Value zero = constant(0), count = constant(shifted.steps), one = constant(1);
  auto steps = scf::ForOp::create(builder, loc, zero, count, one);
  int64_t number = getChunks(loop);
  LogicalResult result = success();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(steps.getBody());
    result = emitStep(at, shifted, getStep(shifted, steps.getInductionVar()));
  }
  if (number > 1)
    closeChunkTravel(shifted);
  else
    closeTravel(shifted);
  returnSlices(shifted, before);
  return result;
}
