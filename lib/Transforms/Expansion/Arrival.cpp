//===- Arrival.cpp - Rule R3: how a part comes to a rank ------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While a rank works on part p(t) of a ring, p(t+1) arrives: out of its owner's
// memory (pull), or from a neighbour (rotate). A part that is the rank's own is
// not moved. What is broadcast comes as Broadcast.cpp has it.
//
// Of J parts on n ranks each owns m = J / n, and is m parts behind its
// neighbour: in step t+1 it works on what that one did in step t+1-m, which is
// passed on meanwhile. So a part waits m steps where it was worked on, in one
// of m+1 slots. For m = 1 the neighbour works on it just now.
//
//   n = 2, m = 2     step 0   step 1   step 2   step 3
//   rank 0 works on  k0       k1       k2       k3
//   and sends                 k0       k1                to rank 1, its k2
//   rank 1 works on  k2       k3       k0       k1
//
// What rotates in chunks does so chunk by chunk, each in slots of its own.
//
// Where a part of an axis lies in pieces within its owner's shard, the owner
// puts each of its own side by side in a slot: it is worked on, and sent,
// there.
//
// In the first m steps no neighbour has worked on the part before: where it is
// not the rank's own, as the offset or the direction may have it, it comes from
// its owner.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Part `part` of the shifted loop in the cut of a buffer: among the parts that
/// the outer loops are at. Or one chunk of it. What is pulled is but of the
/// chunk that the outer loops are at, too.
NestSchedule::Part NestExpander::getPartOf(const ShiftedLoop &shifted,
                                           const Ring &member, Value part,
                                           std::optional<Part> chunk) {
  Part found =
      getPart(member.factors, member.level, part, shifted.axis, shifted.parts);
  if (!member.group.empty() && isLastShared(shifted.loop, shifted.axis))
    found = cutPart(shifted.axis, found, chunksOf.lookup(shifted.axis));
  return chunk ? cutPart(shifted.axis, found, *chunk) : found;
}

/// The rank of the ring that owns a part.
Value NestExpander::getOwner(const ShiftedLoop &shifted, const Ring &member,
                             Value part) {
  int64_t each = getPartsARank(shifted, member);
  if (each == 1)
    return part;
  return arith::DivUIOp::create(builder, nest.getLoc(), part, constant(each));
}

/// Whether the rank's own memory holds the part. Where nested loops pull, the
/// parts that the outer ones are at count too: no ring brought them.
Value NestExpander::isOwnPart(const ShiftedLoop &shifted, const Ring &member,
                              Value part) {
  Location loc = nest.getLoc();
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  };
  Value owner = getOwner(shifted, member, part);
  Value own = isEqual(owner, getRank(member.level));
  for (StringAttr level : member.group)
    if (Value outer = visiting.lookup({shifted.axis, level});
        outer && level != member.level)
      own = arith::AndIOp::create(builder, loc, own,
                                  isEqual(outer, getRank(level)));
  return own;
}

Value NestExpander::isForeignPart(const ShiftedLoop &shifted,
                                  const Ring &member, Value part) {
  Location loc = nest.getLoc();
  return arith::XOrIOp::create(
      builder, loc, isOwnPart(shifted, member, part),
      arith::ConstantIntOp::create(builder, loc, 1, 1));
}

/// The slot of what arrives by number, as that of a step does, or of one chunk
/// of it.
Value NestExpander::getSlot(const Ring &member, Value number,
                            std::optional<Part> chunk) {
  Value slot = arith::RemUIOp::create(builder, nest.getLoc(), number,
                                      constant(member.numSlots));
  return member.chunks == 1 ? slot
                            : add(mul(slot, member.chunks), chunk->index);
}

/// The slot of one of the rank's own parts, where these lie side by side, or of
/// one chunk of it.
Value NestExpander::getOwnSlot(const ShiftedLoop &shifted, const Ring &member,
                               Value part, std::optional<Part> chunk) {
  Value slot = arith::RemUIOp::create(builder, nest.getLoc(), part,
                                      constant(getPartsARank(shifted, member)));
  if (member.chunks != 1)
    slot = add(mul(slot, member.chunks), chunk->index);
  return add(slot, constant(member.firstOwnSlot));
}

/// Where the part of a step is, which may have been read ahead; or, where they
/// have slots, one of the rank's own.
Value NestExpander::getHeldSlot(const ShiftedLoop &shifted, const Ring &member,
                                const RingStep &step,
                                std::optional<Part> chunk) {
  Value arrival = shifted.firstPull ? getPull(shifted, step.step) : step.step;
  Value slot = getSlot(member, arrival, chunk);
  if (!member.firstOwnSlot)
    return slot;
  return arith::SelectOp::create(
      builder, nest.getLoc(), isOwnPart(shifted, member, step.part),
      getOwnSlot(shifted, member, step.part, chunk), slot);
}

/// Puts the rank's own parts side by side, where they lie in pieces, each in
/// its slot.
void NestExpander::keepOwnParts(const ShiftedLoop &shifted,
                                const Ring &member) {
  if (!member.firstOwnSlot)
    return;
  Location loc = nest.getLoc();
  int64_t each = getPartsARank(shifted, member);
  auto loop = scf::ForOp::create(builder, loc, constant(0),
                                 constant(each * member.chunks), constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value part = mul(getRank(member.level), each);
  std::optional<Part> chunk;
  if (member.chunks == 1) {
    part = add(part, number);
  } else {
    Value count = constant(member.chunks);
    part = add(part, arith::DivUIOp::create(builder, loc, number, count));
    chunk = {arith::RemUIOp::create(builder, loc, number, count),
             member.chunks};
  }
  // Of the rank's own along this ring, at what outer rings brought.
  auto outer = visiting;
  for (StringAttr level : member.group)
    visiting.erase({shifted.axis, level});
  auto at =
      getMoved(member, shifted.axis, getPartOf(shifted, member, part, chunk));
  visiting = std::move(outer);
  CopyOp::create(
      builder, loc, getHeldTile(member, at),
      getTileAt(member.slots, at, getOwnSlot(shifted, member, part, chunk)));
}

/// Reads a part, or one chunk of it, out of its owner's memory.
Value NestExpander::startPull(const ShiftedLoop &shifted, const Ring &member,
                              Value part, Value slot, Value when,
                              std::optional<Part> chunk) {
  Location loc = nest.getLoc();
  Value owner = getOwner(shifted, member, part);
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

/// How far the first part of a rank lies from its own first: what the offset
/// and the ranks on the other levels add. Null where nothing does.
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

/// From a part's owner to the rank that it is first for. All ranks of the ring
/// want one `ahead` parts from their own first, so each sends the one that lies
/// so among its own.
Passing NestExpander::getOpening(const ShiftedLoop &shifted, const Ring &member,
                                 Value ahead) {
  Location loc = nest.getLoc();
  int64_t n = mesh.getLevelSize(member.level);
  int64_t each = getPartsARank(shifted, member);
  Value rank = getRank(member.level), hop = getOwner(shifted, member, ahead);
  Value own = rank;
  if (each != 1)
    own = add(mul(rank, each),
              arith::RemUIOp::create(builder, loc, ahead, constant(each)));
  Value to = wrap(arith::SubIOp::create(builder, loc, rank, hop), n);
  return {own, Value(), to, wrap(add(rank, hop), n)};
}

/// What this rank sends on in a step, and to whom, so that the part of the next
/// step comes to each.
Passing NestExpander::getPassing(const ShiftedLoop &shifted, const Ring &member,
                                 const RingStep &step,
                                 std::optional<Part> chunk) {
  Location loc = nest.getLoc();
  int64_t n = mesh.getLevelSize(member.level), d = shifted.direction;
  int64_t each = getPartsARank(shifted, member);
  Value rank = getRank(member.level);
  Value to = wrap(add(rank, constant(-d)), n);
  Value from = wrap(add(rank, constant(d)), n);
  if (each == 1)
    return {step.part, getSlot(member, step.step, chunk), to, from};
  // More slots than parts a rank: as far before as those is so many ahead.
  Value before = arith::SubIOp::create(builder, loc, step.next, constant(each));
  Value slot =
      getSlot(member, add(step.next, constant(member.numSlots - each)), chunk);
  Value opens = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                      step.next, constant(each));
  Value ahead =
      arith::SubIOp::create(builder, loc, step.nextPart, mul(rank, each));
  Passing opening = getOpening(shifted, member, wrap(ahead, shifted.parts));
  auto choose = [&](Value early, Value later) -> Value {
    return arith::SelectOp::create(builder, loc, opens, early, later);
  };
  return {choose(opening.part, getPartAt(shifted, before)), slot,
          choose(opening.to, to), choose(opening.from, from)};
}

/// What this rank sends on in a hop: one of its own parts, put together where
/// it does not lie so, or what it was sent.
Value NestExpander::getLeavingTile(const ShiftedLoop &shifted,
                                   const Ring &member, const Passing &passing,
                                   Value when, std::optional<Part> chunk) {
  Location loc = nest.getLoc();
  auto placeOf = [&](Value part) {
    return getMoved(member, shifted.axis,
                    getPartOf(shifted, member, part, chunk));
  };
  auto at = placeOf(passing.part);
  if (member.firstOwnSlot) {
    Value slot = getOwnSlot(shifted, member, passing.part, chunk);
    if (passing.slot)
      slot = arith::SelectOp::create(builder, loc,
                                     isOwnPart(shifted, member, passing.part),
                                     slot, passing.slot);
    return getTileAt(member.slots, at, slot);
  }
  bool isOnly = getPartsARank(shifted, member) == 1;
  Value leaving =
      getHeldTile(member, isOnly ? placeOf(getRank(member.level)) : at);
  if (member.outgoing) {
    Value together = getTileAt(member.outgoing, at);
    Value isOwn = isOwnPart(shifted, member, passing.part);
    whenTrue(arith::AndIOp::create(builder, loc, when, isOwn), [&] {
      CopyOp::create(builder, loc, getHeldTile(member, at), together);
    });
    leaving = together;
  }
  if (!passing.slot)
    return leaving;
  return arith::SelectOp::create(
      builder, loc, isOwnPart(shifted, member, passing.part), leaving,
      getTileAt(member.slots, at, passing.slot));
}

/// Sends a part on, and receives `part` in `slot` meanwhile.
Value NestExpander::startRotation(const ShiftedLoop &shifted,
                                  const Ring &member, const Passing &passing,
                                  Value part, Value slot, Value when,
                                  std::optional<Part> chunk) {
  Value leaving = getLeavingTile(shifted, member, passing, when, chunk);
  auto at =
      getMoved(member, shifted.axis, getPartOf(shifted, member, part, chunk));
  Value target = getTileAt(member.slots, at, slot);
  return startExchange(member.level, leaving, passing.to, target, passing.from,
                       when);
}

/// The opening hop: the first part, where it is not the rank's own. What is
/// pulled along nested loops is not either, in all but one step of the outer.
void NestExpander::openRing(const ShiftedLoop &shifted, const Ring &member,
                            SmallVectorImpl<Value> &tokens) {
  Location loc = nest.getLoc();
  if (member.isBroadcast()) {
    Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value zero = constant(0), first = getPartAt(shifted, zero);
    tokens.push_back(startBroadcast(shifted, member, first, zero, always));
    return;
  }
  Value skew = getSkew(shifted, member);
  if (!skew && member.group.size() <= 1)
    return;
  Value zero = constant(0), first = getPartAt(shifted, zero);
  if (member.lease) {
    tokens.push_back(startPull(shifted, member, first, zero,
                               isForeignPart(shifted, member, first),
                               std::nullopt));
    return;
  }
  Value ahead =
      arith::RemUIOp::create(builder, loc, skew, constant(shifted.parts));
  Passing opening = getOpening(shifted, member, ahead);
  Value when = getPartsARank(shifted, member) == 1
                   ? arith::ConstantIntOp::create(builder, loc, 1, 1)
                   : isForeignPart(shifted, member, first);
  auto start = [&](std::optional<Part> chunk) {
    return startRotation(shifted, member, opening, first,
                         getSlot(member, zero, chunk), when, chunk);
  };
  if (member.chunks == 1) {
    tokens.push_back(start(std::nullopt));
    return;
  }
  auto loop = scf::ForOp::create(builder, loc, zero, constant(member.chunks),
                                 constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value token = start(Part{loop.getInductionVar(), member.chunks});
  WaitOp::create(builder, loc, token);
}

/// Starts what brings the part of the next step: this rank's neighbours pass on
/// what they worked on, or the next part is read out of its owner's memory, or
/// its owner sends it to all.
Value NestExpander::startArrival(const ShiftedLoop &shifted, const Ring &member,
                                 const RingStep &step,
                                 std::optional<Part> chunk) {
  Value slot = getSlot(member, step.next, chunk);
  if (member.isBroadcast())
    return startBroadcast(shifted, member, step.nextPart, slot, step.more);
  Location loc = nest.getLoc();
  // A part that comes home is not sent. All ranks of the ring agree when: it
  // depends on the step, and on ranks on other levels.
  Value when = step.more;
  bool isSimple = getPartsARank(shifted, member) == 1 &&
                  getRingLevels(shifted.loop).size() == 1;
  if (member.lease || !isSimple) {
    when = arith::AndIOp::create(builder, loc, when,
                                 isForeignPart(shifted, member, step.nextPart));
  } else if (shifted.offset != 0) {
    int64_t home = shifted.direction == 1 ? shifted.parts - shifted.offset
                                          : shifted.offset;
    when = arith::AndIOp::create(
        builder, loc, when,
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, step.next,
                              constant(home)));
  }
  if (member.lease)
    return startPull(shifted, member, step.nextPart, slot, when, chunk);
  return startRotation(shifted, member,
                       getPassing(shifted, member, step, chunk), step.nextPart,
                       slot, when, chunk);
}
