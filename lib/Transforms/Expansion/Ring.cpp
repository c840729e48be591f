//===- Ring.cpp - Rule R3: one part a step --------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Step t of a shifted loop works on part p(t) = (d*t + sum(m_l * r_l) + o) mod
// J while p(t+1) arrives: from the neighbour that works on it now (rotate), or
// out of its owner's memory (pull). A part that is the rank's own is not moved.
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

LogicalResult NestExpander::addToRings(int64_t buffer,
                                       const Movement &movement) {
  StringRef name = getName(buffer);
  Value argument = program.getBody().getArgument(buffer);
  Ring ring{argument, memory[argument], getFactors(mesh, movement.cut)};

  // Outermost first, as the loops are.
  struct Move {
    LoopAttr loop;
    StringAttr level;
    bool pulled;
  };
  SmallVector<Move> moves;
  for (LoopAttr loop : loops) {
    if (!llvm::is_contained(movement.rings, loop))
      continue;
    ShiftAttr shift = loop.getShift();
    auto via = shift.getVia()
                   ? dyn_cast_or_null<StringAttr>(shift.getVia().get(name))
                   : StringAttr();
    bool pulled = via ? via == "pull" : shift.getReads() == ReadVia::Pull;
    for (StringAttr level : getRingLevels(loop))
      if (llvm::is_contained(ring.factors, level))
        moves.push_back({loop, level, pulled});
    if (shift.getLink() && shift.getLink() != getElementType(ring.own))
      return needsRule("R3 with a link type",
                       "parts travel as they are stored");
    bool inTiles = llvm::any_of(loops, [&](LoopAttr inner) {
      return inner != loop && inner.isOver(loop.getAxes().front()) &&
             !inner.isParallel() && !inner.getShift() && inner.getParts() > 1;
    });
    if (shift.getChunks() != 1 && inTiles)
      return needsRule("R3 in chunks of tiles",
                       "a chunk is not whole tiles of the loops inside");
    if (!pulled && shift.getChunks() != 1)
      return needsRule("R3 in chunks by rotate",
                       "'" + name + "' must be read by pull to come in chunks");
  }
  if (moves.size() != movement.rings.size())
    return needsRule("R3 along two levels of one loop",
                     "'" + name + "' moves along both");
  for (const Move &move : moves) {
    int64_t size = mesh.getLevelSize(move.level);
    if (!move.pulled && move.loop.getParts() != size)
      return needsRule("R3 with several parts a rank by rotate",
                       "'" + name + "' must be read by pull");
    if (move.pulled && move.loop != moves.back().loop &&
        move.loop.getParts() != size)
      return needsRule("R9 with several parts a rank",
                       "the outer loop has more parts than ranks");
  }

  // Loops that pull, one right within the other, need but one ring.
  bool arrives = false; // whether an outer ring brings what this one moves
  SmallVector<StringAttr> group;
  for (auto [i, move] : llvm::enumerate(moves)) {
    if (move.pulled) {
      group.push_back(move.level);
      if (i + 1 != moves.size() && moves[i + 1].pulled)
        continue;
      if (!isInMeshOrder(group))
        return needsRule("R3 by pull", "loops over levels in another order "
                                       "than the mesh's");
    }
    Ring next = ring;
    next.level = move.level;
    next.group = std::exchange(group, {});
    if (failed(addRing(move.loop, arrives, next)))
      return failure();
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

/// Part `part` of the shifted loop in the cut of a buffer: among the parts that
/// the outer loops are at.
NestExpander::Part NestExpander::getPartOf(const ShiftedLoop &shifted,
                                           const Ring &member, Value part) {
  return getPart(member.factors, member.level, part, shifted.axis,
                 shifted.parts);
}

/// Whether the rank's own memory holds the part. Where nested loops pull, the
/// parts that the outer ones are at count too: no ring brought them.
Value NestExpander::isOwnPart(const ShiftedLoop &shifted, const Ring &member,
                              Value part) {
  Location loc = nest.getLoc();
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  };
  int64_t each = shifted.parts / mesh.getLevelSize(member.level);
  Value owner = part;
  if (each != 1)
    owner = arith::DivUIOp::create(builder, loc, part, constant(each));
  Value own = isEqual(owner, getRank(member.level));
  for (StringAttr level : member.group)
    if (Value outer = visiting.lookup({shifted.axis, level});
        outer && level != member.level)
      own = arith::AndIOp::create(builder, loc, own,
                                  isEqual(outer, getRank(level)));
  return own;
}

Value NestExpander::getOwnTile(const ShiftedLoop &shifted, const Ring &member,
                               Value part) {
  return getHeldTile(
      member, getMoved(member, shifted.axis, getPartOf(shifted, member, part)));
}

Value NestExpander::startExchange(StringAttr level, Value source, Value to,
                                  Value target, Value from, Value when) {
  ++transfers;
  return ExchangeStartOp::create(
      builder, nest.getLoc(), TokenType::get(nest.getContext()), source, to,
      target, from, builder.getArrayAttr(level), when);
}

void NestExpander::waitForAll(SmallVectorImpl<Value> &tokens) {
  for (Value token : tokens)
    WaitOp::create(builder, nest.getLoc(), token);
  tokens.clear();
}

/// Reads a part, or one chunk of it, out of its owner's memory.
Value NestExpander::startPull(const ShiftedLoop &shifted, const Ring &member,
                              Value part, Value slot, Value when,
                              std::optional<Part> chunk) {
  Location loc = nest.getLoc();
  int64_t each = shifted.parts / mesh.getLevelSize(member.level);
  Value owner = part;
  if (each != 1)
    owner = arith::DivUIOp::create(builder, loc, part, constant(each));
  Value peer;
  for (StringAttr level : member.group) {
    Value at =
        level == member.level ? owner : visiting.lookup({shifted.axis, level});
    peer = peer ? add(mul(peer, mesh.getLevelSize(level)), at) : at;
  }
  Value theirs = LeaseMemoryOp::create(builder, loc, member.own.getType(),
                                       member.lease, peer);
  Part whole = getPartOf(shifted, member, part);
  if (chunk) {
    whole.index = add(mul(whole.index, chunk->count), chunk->index);
    whole.count *= chunk->count;
  }
  auto at = getMoved(member, shifted.axis, whole);
  Value source = getTileAt(theirs, at);
  Value target = getTileAt(member.slots, at, slot);
  ++transfers;
  return PullStartOp::create(builder, loc, TokenType::get(nest.getContext()),
                             source, target, member.lease, peer, when);
}

/// How far the first part of a rank lies from its own: what the offset and the
/// ranks on the other levels add. Null where nothing does.
Value NestExpander::getSkew(const ShiftedLoop &shifted, const Ring &member) {
  Value skew = shifted.offset ? constant(shifted.offset) : Value();
  for (StringAttr level : getRingLevels(shifted.loop)) {
    if (level == member.level)
      continue;
    Value term = mul(getRank(level), shifted.parts / mesh.getLevelSize(level));
    skew = skew ? add(skew, term) : term;
  }
  return skew;
}

/// The opening hop: the first part, where it is not the rank's own. What is
/// pulled along nested loops is not either, in all but one step of the outer.
void NestExpander::openRing(const ShiftedLoop &shifted, const Ring &member,
                            SmallVectorImpl<Value> &tokens) {
  Value skew = getSkew(shifted, member);
  if (!skew && member.group.size() <= 1)
    return;
  Location loc = nest.getLoc();
  Value zero = constant(0), first = getPartAt(shifted, zero);
  if (member.lease) {
    Value truth = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value other = arith::XOrIOp::create(
        builder, loc, isOwnPart(shifted, member, first), truth);
    tokens.push_back(
        startPull(shifted, member, first, zero, other, std::nullopt));
    return;
  }
  Value rank = getRank(member.level);
  Value hop =
      arith::RemUIOp::create(builder, loc, skew, constant(shifted.parts));
  Value back = arith::SubIOp::create(builder, loc, rank, hop);
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value source = getOwnTile(shifted, member, rank);
  auto at = getMoved(member, shifted.axis, getPartOf(shifted, member, first));
  Value target = getTileAt(member.slots, at, zero);
  tokens.push_back(startExchange(member.level, source,
                                 wrap(back, shifted.parts), target,
                                 wrap(add(rank, hop), shifted.parts), always));
}

/// Starts what brings the part of the next step: this rank's neighbours pass on
/// what they work on, or the next part is read out of its owner's memory.
Value NestExpander::startArrival(const ShiftedLoop &shifted, const Ring &member,
                                 const RingStep &step,
                                 std::optional<Part> chunk) {
  Location loc = nest.getLoc();
  Value truth = arith::ConstantIntOp::create(builder, loc, 1, 1);
  auto both = [&](Value a, Value b) -> Value {
    return arith::AndIOp::create(builder, loc, a, b);
  };
  auto isNot = [&](Value a) -> Value {
    return arith::XOrIOp::create(builder, loc, a, truth);
  };
  if (member.lease)
    return startPull(
        shifted, member, step.nextPart, step.nextSlot,
        both(step.more, isNot(isOwnPart(shifted, member, step.nextPart))),
        chunk);
  // A part that comes home is not sent. All ranks of the ring agree when: it
  // depends on the step, and on ranks on other levels.
  Value more = step.more;
  int64_t n = shifted.parts;
  if (getRingLevels(shifted.loop).size() > 1) {
    more = both(more, isNot(isOwnPart(shifted, member, step.nextPart)));
  } else if (shifted.offset != 0) {
    Value home =
        constant(shifted.direction == 1 ? n - shifted.offset : shifted.offset);
    more =
        both(more, arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                         step.next, home));
  }
  Value rank = getRank(member.level);
  Value to = wrap(add(rank, constant(-shifted.direction)), n);
  Value from = wrap(add(rank, constant(shifted.direction)), n);
  auto slotTile = [&](Value part, Value slot) {
    return getTileAt(
        member.slots,
        getMoved(member, shifted.axis, getPartOf(shifted, member, part)), slot);
  };
  Value own = isOwnPart(shifted, member, step.part);
  Value kept = getOwnTile(shifted, member, rank);
  Value came = slotTile(step.part, step.slot);
  Value current = arith::SelectOp::create(builder, loc, own, kept, came);
  Value target = slotTile(step.nextPart, step.nextSlot);
  return startExchange(member.level, current, to, target, from, more);
}

/// Into how many chunks the work of a step is cut: as what arrives is.
int64_t NestExpander::getChunks(LoopAttr loop) {
  return rings[loop.getName()].empty() ? 1 : loop.getShift().getChunks();
}

/// A shifted loop, but for the part that this rank starts with.
ShiftedLoop NestExpander::describeShift(LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  int64_t parts = loop.getParts();
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

LogicalResult NestExpander::emitRing(size_t at) {
  LoopAttr loop = loops[at];
  int64_t parts = loop.getParts();
  ShiftedLoop shifted = describeShift(loop);
  for (StringAttr level : getRingLevels(loop)) {
    int64_t each = parts / mesh.getLevelSize(level);
    Value term = each == 1 ? getRank(level) : mul(getRank(level), each);
    shifted.phase = shifted.phase ? add(shifted.phase, term) : term;
  }
  if (!shifted.phase)
    shifted.phase = constant(shifted.offset);
  else if (shifted.offset)
    shifted.phase = add(shifted.phase, constant(shifted.offset));
  return emitSteps(at, shifted);
}

LogicalResult NestExpander::emitSteps(size_t at, const ShiftedLoop &shifted) {
  Location loc = nest.getLoc();
  LoopAttr loop = shifted.loop;
  StringRef axis = shifted.axis.getValue();
  SmallVector<Value> tokens;
  SmallVector<Held, 0> before = packSlices(shifted);
  for (const Ring &member : rings[loop.getName()])
    openRing(shifted, member, tokens);
  waitForAll(tokens);

  Value zero = constant(0), count = constant(shifted.steps), one = constant(1);
  auto steps = scf::ForOp::create(builder, loc, zero, count, one);
  LogicalResult result = success();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(steps.getBody());
    auto slotAt = [&](Value step) -> Value {
      return arith::RemUIOp::create(builder, loc, step, constant(2));
    };
    RingStep step;
    step.step = steps.getInductionVar();
    step.part = getPartAt(shifted, step.step);
    step.slot = slotAt(step.step);
    step.next = add(step.step, one);
    step.nextPart = getPartAt(shifted, step.next);
    step.nextSlot = slotAt(step.next);
    step.more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                      step.next, count);
    // Work on a chunk of this part hides the arrival of that of the next.
    std::optional<Part> chunk;
    scf::ForOp chunks;
    startTravel(shifted, step, tokens);
    if (int64_t number = getChunks(loop); number > 1) {
      chunks = scf::ForOp::create(builder, loc, zero, constant(number), one);
      builder.setInsertionPointToStart(chunks.getBody());
      chunk = Part{chunks.getInductionVar(), number};
    }
    SmallVector<Value> arriving;
    for (const Ring &member : rings[loop.getName()]) {
      arriving.push_back(startArrival(shifted, member, step, chunk));
      arrived[member.buffer].push_back(
          {isOwnPart(shifted, member, step.part), member.slots, step.slot});
    }
    Part before = parts.lookup(axis);
    pushPart(axis, step.part, shifted.parts);
    turns.push_back({axis, step.step, shifted.steps});
    visited[axis].push_back({loop, step.part});
    if (chunk) {
      chunksOf[axis] = *chunk;
      turns.push_back({axis, chunk->index, chunk->count});
    }
    for (StringAttr level : getRingLevels(loop))
      visiting[{axis, level}] = step.part;
    result = emitLoops(at + 1);
    for (StringAttr level : getRingLevels(loop))
      visiting.erase({axis, level});
    visited[axis].pop_back();
    parts[axis] = before;
    turns.pop_back_n(chunk ? 2 : 1);
    chunksOf.erase(axis);
    for (const Ring &member : rings[loop.getName()])
      arrived[member.buffer].pop_back();
    if (chunks)
      builder.setInsertionPoint(chunks.getBody()->getTerminator());
    waitForAll(arriving);
    builder.setInsertionPoint(steps.getBody()->getTerminator());
    waitForAll(tokens);
    mergeTravel(shifted, step);
  }
  closeTravel(shifted);
  returnSlices(shifted, before);
  return result;
}
