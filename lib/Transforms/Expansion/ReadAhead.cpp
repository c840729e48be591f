//===- ReadAhead.cpp - Rings that read the next slice meanwhile -----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop around a ring takes the ring's steps once for each of its parts, which
// are slices of the buffers that move if it runs over an axis of theirs. What
// is pulled lies at its owner all the time, so that no slice has to wait for
// the one before: all pulls, of all slices, come one after the other, each
// under the steps that work on the one before it. The own part needs none; its
// step lengthens the time that the next pull has.
//
//   2 ranks, 3 slices    pull    p0     | p1          | p2          |
//   own part first       work    own 0  | p0    own 1 | p1    own 2 | p2
//
//   own part last        pull    p0     | p1          | p2          |
//                        work           | p0    own 0 | p1    own 1 | p2 own 2
//
// One part is worked on while another one comes: two slots of a slice.
//
// Results that leave in chunks leave in all steps of a slice: of two ranks,
// whose own part is the last, these are one pass.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The step in which every rank of a ring over one level works on its own part.
static int64_t getOwnStep(const ShiftedLoop &shifted) {
  int64_t step = -shifted.direction * shifted.offset % shifted.parts;
  return step < 0 ? step + shifted.parts : step;
}

/// How many steps of a ring work on what was pulled.
static int64_t countPulls(const ShiftedLoop &shifted) {
  return shifted.steps - (getOwnStep(shifted) < shifted.steps ? 1 : 0);
}

/// Which of all pulls brought the part that a step works on.
Value NestExpander::getPull(const ShiftedLoop &shifted, Value step) {
  Location loc = nest.getLoc();
  Value own = constant(getOwnStep(shifted));
  Value isBehindOwn =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, step, own);
  Value less = arith::SubIOp::create(builder, loc, step, constant(1));
  Value pull = arith::SelectOp::create(builder, loc, isBehindOwn, less, step);
  return add(shifted.firstPull, pull);
}

/// The ring that the loop at `at` repeats, where that can read ahead: nothing
/// but coordinates of the rank lies between the two, and a rank pulls all that
/// comes, each part in one piece of work, from where it lies.
std::optional<size_t> NestExpander::findRingOfSlices(size_t at) {
  if (loops[at].getAxes().size() > 1)
    return std::nullopt;
  StringAttr axis = loops[at].getAxes().front();
  size_t ring = at + 1;
  auto isCoordinate = [&](LoopAttr loop) {
    return loop.isParallel() && !loop.isOver(axis) &&
           llvm::none_of(loop.getAxes(), [&](StringAttr own) {
             return chunksOf.lookup(own).index;
           });
  };
  while (ring < loops.size() &&
         (loops[ring].getParts() == 1 || isCoordinate(loops[ring])))
    ++ring;
  if (ring == loops.size() || !loops[ring].getShift() ||
      runsInLanes(loops[ring]))
    return std::nullopt;
  LoopAttr loop = loops[ring];
  ArrayRef<Ring> members = rings[loop.getName()];
  bool pulls = llvm::all_of(members, [](const Ring &member) {
    return member.group.size() == 1 && !member.isBroadcast() && !member.packed;
  });
  if (members.empty() || !pulls || loop.isOver(axis) ||
      getRingLevels(loop).size() != 1 || getChunks(loop) != 1 ||
      loop.getParts() != mesh.getLevelSize(members.front().level) ||
      countPulls(describeShift(loop)) == 0)
    return std::nullopt;
  bool isInPasses = loop.getParts() == 2 || !movesInChunks(loop);
  return isInPasses ? std::optional(ring) : std::nullopt;
}

/// Emits the loop at `at` and the one at `ring` as one: a pass for each pull,
/// of the steps that it has time for, and one more for the last steps.
LogicalResult NestExpander::emitSlices(size_t at, size_t ring) {
  Location loc = nest.getLoc();
  StringRef axis = loops[at].getAxes().front();
  int64_t slices = loops[at].getParts();
  llvm::StringMap<Part> before = parts;
  for (LoopAttr loop : ArrayRef(loops).slice(at + 1, ring - at - 1))
    if (loop.getParts() != 1)
      pushRanks(loop);
  ShiftedLoop shifted = describeShift(loops[ring]);
  shifted.phase = getPhase(shifted);

  int64_t own = getOwnStep(shifted), pulls = countPulls(shifted);
  auto divide = [&](Value value, int64_t by) -> Value {
    return arith::DivUIOp::create(builder, loc, value, constant(by));
  };
  auto modulo = [&](Value value, int64_t by) -> Value {
    return arith::RemUIOp::create(builder, loc, value, constant(by));
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value value,
                     int64_t than) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, value,
                                 constant(than));
  };
  auto choose = [&](Value condition, Value value, Value other) -> Value {
    return arith::SelectOp::create(builder, loc, condition, value, other);
  };
  // Which step of its slice works on a pull, and which of the steps of all.
  auto getStepOf = [&](Value pull) -> Value {
    Value number = modulo(pull, pulls);
    return choose(compare(arith::CmpIPredicate::ult, number, own), number,
                  add(number, constant(1)));
  };
  auto getPlaceOf = [&](Value pull) -> Value {
    return add(mul(divide(pull, pulls), shifted.steps), getStepOf(pull));
  };

  int64_t count = slices * pulls;
  Value zero = constant(0), one = constant(1), end = constant(count + 1);
  auto passes = scf::ForOp::create(builder, loc, zero, end, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(passes.getBody());
  Value pass = passes.getInductionVar();
  Value more = compare(arith::CmpIPredicate::ult, pass, count);
  Part around = parts.lookup(axis);
  auto enterSlice = [&](Value slice) {
    parts[axis] = around;
    pushPart(axis, slice, slices);
  };

  Value pull = modulo(pass, count);
  enterSlice(divide(pull, pulls));
  Value part = getPartAt(shifted, getStepOf(pull));
  SmallVector<Value> tokens;
  for (const Ring &member : rings[shifted.loop.getName()])
    tokens.push_back(startPull(shifted, member, part,
                               getSlot(member, pass, std::nullopt), more,
                               std::nullopt));

  bool inChunks = movesInChunks(shifted.loop);
  LogicalResult result = success();
  {
    Value last = arith::SubIOp::create(builder, loc, pass, one);
    Value first = choose(compare(arith::CmpIPredicate::eq, pass, 0), zero,
                         getPlaceOf(last));
    Value next =
        choose(more, getPlaceOf(pass), constant(slices * shifted.steps));
    Value by = inChunks ? constant(shifted.steps) : one;
    auto steps = scf::ForOp::create(builder, loc, first, next, by);
    OpBuilder::InsertionGuard inside(builder);
    builder.setInsertionPointToStart(steps.getBody());
    Value place = steps.getInductionVar();
    Value slice = divide(place, shifted.steps);
    shifted.firstPull = mul(slice, pulls);
    enterSlice(slice);
    visited[axis].push_back({loops[at], slice});
    turns.push_back({axis, slice, slices});
    if (inChunks) {
      result = emitChunks(ring, shifted);
    } else {
      Value number = modulo(place, shifted.steps);
      result = emitStep(ring, shifted, getStep(shifted, number));
      Value isLast =
          compare(arith::CmpIPredicate::eq, number, shifted.steps - 1);
      if (!travellers[shifted.loop.getName()].empty())
        whenTrue(isLast, [&] { closeTravel(shifted); });
    }
    turns.pop_back();
    visited[axis].pop_back();
  }
  waitForAll(tokens);
  parts = std::move(before);
  return result;
}
