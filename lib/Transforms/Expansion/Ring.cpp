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
    if (!moves.empty() &&
        shift.getLink() != moves.front().loop.getShift().getLink())
      return needsRule("R9 by two link types",
                       "'" + name + "' moves in two types along one axis");
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

  auto wide = cast<BufferType>(ring.own.getType());
  if (failed(narrowRing(moves.front().loop, getInside(buffer), ring)))
    return failure();
  if (wide == ring.own.getType())
    wide = {};
  // Loops that pull, one right within the other, need but one ring.
  bool arrives = false; // whether an outer ring brings what this one moves
  SmallVector<StringAttr> group;
  for (auto [i, move] : llvm::enumerate(moves)) {
    bool isLast = i + 1 == moves.size();
    if (move.pulled) {
      group.push_back(move.level);
      if (!isLast && moves[i + 1].pulled)
        continue;
      if (!isInMeshOrder(group))
        return needsRule("R3 by pull", "loops over levels in another order "
                                       "than the mesh's");
    }
    Ring next = ring;
    next.level = move.level;
    next.group = std::exchange(group, {});
    if (failed(addRing(move.loop, arrives, next, isLast ? wide : BufferType())))
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
/// the outer loops are at. Or one chunk of it.
NestExpander::Part NestExpander::getPartOf(const ShiftedLoop &shifted,
                                           const Ring &member, Value part,
                                           std::optional<Part> chunk) {
  Part found =
      getPart(member.factors, member.level, part, shifted.axis, shifted.parts);
  if (chunk) {
    found.index = add(mul(found.index, chunk->count), chunk->index);
    found.count *= chunk->count;
  }
  return found;
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
  auto at =
      getMoved(member, shifted.axis, getPartOf(shifted, member, part, chunk));
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

/// Into how many chunks the work of a step is cut: as what moves is.
int64_t NestExpander::getChunks(LoopAttr loop) {
  bool moves =
      !rings[loop.getName()].empty() ||
      llvm::any_of(nest.getBody().getOps<StoreOp>(),
                   [&](StoreOp store) { return travels(store, loop); });
  return moves ? loop.getShift().getChunks() : 1;
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
  if (!shifted.firstPull)
    for (const Ring &member : members)
      arriving.push_back(startArrival(shifted, member, step, chunk));
  for (const Ring &member : members)
    widenArrival(shifted, member, step, chunk);
  for (const Ring &member : members)
    arrived[member.buffer].push_back(
        {isOwnPart(shifted, member, step.part), member.slots, step.held});
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
  LogicalResult result = emitLoops(at + 1);
  for (StringAttr level : getRingLevels(loop))
    visiting.erase({axis, level});
  visited[axis].pop_back();
  parts[axis] = before;
  turns.pop_back_n(chunk ? 2 : 1);
  chunksOf.erase(axis);
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
  step.slot = slotAt(number);
  step.held = shifted.firstPull ? getPulledSlot(shifted, number) : step.slot;
  step.next = add(number, constant(1));
  step.nextPart = getPartAt(shifted, step.next);
  step.nextSlot = slotAt(step.next);
  step.more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                    step.next, constant(shifted.steps));
  return step;
}

/// A step, and what moves of results along with it.
LogicalResult NestExpander::emitStep(size_t at, const ShiftedLoop &shifted,
                                     const RingStep &step) {
  Location loc = nest.getLoc();
  SmallVector<Value> tokens;
  startTravel(shifted, step, tokens);
  LogicalResult result = success();
  // Work on a chunk of this part hides the arrival of that of the next.
  if (int64_t number = getChunks(shifted.loop); number > 1) {
    Value zero = constant(0), count = constant(number), one = constant(1);
    auto chunks = scf::ForOp::create(builder, loc, zero, count, one);
    OpBuilder::InsertionGuard inside(builder);
    builder.setInsertionPointToStart(chunks.getBody());
    result =
        emitStepBody(at, shifted, step, Part{chunks.getInductionVar(), number});
  } else {
    result = emitStepBody(at, shifted, step, std::nullopt);
  }
  waitForAll(tokens);
  mergeTravel(shifted, step);
  return result;
}

LogicalResult NestExpander::emitSteps(size_t at, const ShiftedLoop &shifted) {
  Location loc = nest.getLoc();
  LoopAttr loop = shifted.loop;
  SmallVector<Value> tokens;
  SmallVector<Held, 0> before = packSlices(shifted);
  for (const Ring &member : rings[loop.getName()])
    openRing(shifted, member, tokens);
  waitForAll(tokens);
  if (movesInChunks(loop)) {
    LogicalResult result = emitChunks(at, shifted);
    returnSlices(shifted, before);
    return result;
  }

  Value zero = constant(0), count = constant(shifted.steps), one = constant(1);
  auto steps = scf::ForOp::create(builder, loc, zero, count, one);
  LogicalResult result = success();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(steps.getBody());
    result = emitStep(at, shifted, getStep(shifted, steps.getInductionVar()));
  }
  closeTravel(shifted);
  returnSlices(shifted, before);
  return result;
}
