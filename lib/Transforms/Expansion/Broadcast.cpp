//===- Broadcast.cpp - Rule R2: one panel a step --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a schedule broadcasts is not gathered before the loops: the loop over
// its axis walks panels, and at each step all ranks of the group work on the
// same one while its owner of the next sends that to all. It takes the memory
// of two panels in place of the whole.
//
// A panel lies within a shard of every buffer that is broadcast along the axis:
// the panels are the coarsest cut that refines all of theirs, or what the
// schedule cut the loop into.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"
#include "llvm/ADT/MapVector.h"
#include <numeric>

using namespace mlir;
using namespace mlir::commir;

/// Cuts the loops into panels that the schedule left whole.
void NestSchedule::cutPanels() {
  llvm::MapVector<StringAttr, int64_t> panels;
  for (LoadOp load : nest.getBody().getOps<LoadOp>()) {
    int64_t buffer = cast<BlockArgument>(load.getBuffer()).getArgNumber();
    BindingAttr binding = program.getBinding(buffer);
    for (StringAttr axis : binding.getBroadcast()) {
      int64_t shards =
          countParts(getFactors(mesh, binding.getShard().getCut(axis)));
      int64_t &number = panels.try_emplace(axis, 1).first->second;
      number = std::lcm(number, shards);
    }
  }
  for (LoopAttr &loop : loops) {
    StringAttr axis = loop.getAxes().front();
    if (!panels.contains(axis) || nest.getParts(axis) != 1 || loop.isParallel())
      continue;
    loop =
        LoopAttr::get(nest.getContext(), loop.getName(), loop.getAxes(),
                      panels.lookup(axis), loop.getLevels(), loop.getShift());
    panels.erase(axis); // the outermost
  }
  nest.setLoopsAttr(ArrayAttr::get(
      nest.getContext(), SmallVector<Attribute>(loops.begin(), loops.end())));
}

/// A schedule that asked for one panel a step is told that it gets the whole.
void NestSchedule::remarkBroadcast(int64_t buffer, const Twine &why) {
  if (!program.getBinding(buffer).getBroadcast().empty())
    nest.emitRemark() << "'" << getName(buffer)
                      << "' comes whole before the loops, not panel by panel: "
                      << why;
}

/// The loop that walks the panels of an input; null, with a remark, where none
/// does.
LoopAttr NestSchedule::findPanelLoop(int64_t buffer, CutAttr cut) {
  StringAttr axis = StringAttr::get(nest.getContext(), cut.getAxis());
  BufferType type = program.getBufferType(buffer);
  SmallVector<StringAttr> levels;
  for (Attribute level : getFactors(mesh, cut))
    levels.push_back(cast<StringAttr>(level));
  auto loop = llvm::find_if(loops, [&](LoopAttr each) {
    return each.isOver(axis) && each.getParts() != 1;
  });
  if (loop == loops.end() || loop->isParallel()) {
    remarkBroadcast(buffer, "no loop walks '" + axis.getValue() +
                                "' in sequence outside those in parallel");
    return {};
  }
  if (loop->getShift() && loop->getShift().getChunks() != 1) {
    remarkBroadcast(buffer, "'" + loop->getName() + "' moves parts in chunks");
    return {};
  }
  Type element = type.getElementType();
  if (loop->getShift() && getLinkType(*loop, element) != element) {
    remarkBroadcast(buffer, "'" + loop->getName() +
                                "' moves parts over a narrower link");
    return {};
  }
  if (movesUnlikeSlices(*loop, type, levels)) {
    remarkBroadcast(buffer, "a loop around '" + loop->getName() +
                                "' has its ranks at unlike slices");
    return {};
  }
  return *loop;
}

void NestExpander::addPanels(int64_t buffer, CutAttr cut, LoopAttr loop) {
  StringAttr axis = builder.getStringAttr(cut.getAxis());
  Value argument = program.getBody().getArgument(buffer);
  Ring ring{argument, memory[argument], getFactors(mesh, cut)};
  for (Attribute level : ring.factors)
    ring.group.push_back(cast<StringAttr>(level));
  findSlice(loop, ring);
  ring.numSlots += runsInLanes(loop);
  ring.slots = makeRingMemory(ring, axis, cast<BufferType>(ring.own.getType()),
                              ring.numSlots, loop.getParts());
  rings[loop.getName()].push_back(ring);
}

/// Starts to bring a panel from its owner to all of the group. What does not
/// lie together in the owner's shard, the owner packs into its own slot first.
/// Stripes are dealt in turn: to panels, and to shards.
Value NestExpander::startBroadcast(const ShiftedLoop &shifted,
                                   const Ring &member, Value panel, Value slot,
                                   Value when) {
  Location loc = nest.getLoc();
  int64_t each = shifted.parts / countParts(member.factors);
  bool isDealt = each != 1 && isStriped(shifted.axis);
  Part part;
  addPart(shifted.axis, part, panel, shifted.parts, getPartsARank(shifted));
  panel = part.index;
  Value root = panel, rank, own;
  if (isDealt)
    root = arith::RemUIOp::create(builder, loc, panel,
                                  constant(shifted.parts / each));
  else if (each != 1)
    root = arith::DivUIOp::create(builder, loc, panel, constant(each));
  for (StringAttr level : member.group)
    rank = rank ? add(mul(rank, mesh.getLevelSize(level)), getRank(level))
                : getRank(level);
  auto tileOf = [&](Value memory, Value part, Value slot) {
    return getTileAt(
        memory, getMoved(member, shifted.axis, {part, shifted.parts}), slot);
  };
  Value target = tileOf(member.slots, panel, slot), source = target;
  bool liesTogether =
      member.slice.empty() &&
      (each == 1 ||
       (!isDealt &&
        isOutermost(cast<BufferType>(member.own.getType()), shifted.axis) &&
        getPieces(program.getAxis(shifted.axis), shifted.parts) == 1));
  if (liesTogether) {
    // The same panel of each shard: only the owner's is read.
    own = rank;
    if (each != 1)
      own = add(mul(rank, each),
                arith::RemUIOp::create(builder, loc, panel, constant(each)));
    source = tileOf(member.own, own, {});
  } else {
    Value packs = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        root, rank);
    packs = arith::AndIOp::create(builder, loc, packs, when);
    whenTrue(packs, [&] {
      Value panelOfOwn = tileOf(member.own, panel, {});
      CopyOp::create(builder, loc, panelOfOwn, target);
    });
  }
  ++transfers;
  SmallVector<Attribute> group(member.group.begin(), member.group.end());
  return BroadcastStartOp::create(
      builder, loc, TokenType::get(nest.getContext()), source, target, root,
      builder.getArrayAttr(group), when);
}
