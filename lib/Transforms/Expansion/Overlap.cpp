//===- Overlap.cpp - Steps of a ring that run beside each other -----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch ends with a wave of blocks that fills the device in part. Where
// steps overlap, two that follow one another are in a lane each: the second one
// waits for its part to arrive, and for no launch before it.
//
//   in turn     | p0    ##|   | p1    ##|   | p2    ##|   | p3    ##|
//   overlap     | p0    ##|             | p2    ##|
//                     | p1    ##|             | p3    ##|
//                     begins where the last wave leaves room
//
// Two parts are read while the next one comes, so that it has a slot of its
// own; and what the launches of a step work in and write is none of the other
// step's. Where they would write the same, as the sum of all steps, they run in
// turn: there is nothing that one could do before the other.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Overlap.h"
#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::commir;
using llvm::formatv;

/// The most steps that overlap: lanes change between ops of the plan's text,
/// and that shall not grow with the ranks. A host has as many devices.
static constexpr int64_t kMostSteps = 8;

/// Whether the schedule lets the steps of a loop overlap. Of one in sequence
/// over several axes, which is a loop over each by now, so do those of all.
bool NestSchedule::overlaps(LoopAttr loop) {
  auto name = nest->getAttrOfType<StringAttr>(kOverlap);
  return name && loop.getParts() != 1 &&
         (name == loop.getName() ||
          loop.getName().starts_with((name.getValue() + ".").str()));
}

/// Why the steps of a shifted loop run one after the other, though they may
/// overlap; empty where they run in lanes.
std::string NestSchedule::whyInTurn(LoopAttr loop) {
  if (int64_t steps = describeShift(loop).steps; steps > kMostSteps)
    return formatv("there are {0}, and at most {1} are in the text one by one",
                   steps, kMostSteps);
  for (LoopAttr outer : ArrayRef(loops).take_while(
           [&](LoopAttr outer) { return outer != loop; }))
    if (outer.getParts() != 1 && !outer.isParallel())
      return formatv("loop '{0}' repeats them", outer.getName());
  // What rotates comes in the order of the lanes where ranks begin with their
  // own parts, or the ones beside.
  ShiftAttr shift = loop.getShift();
  SmallVector<StringAttr> levels = getRingLevels(loop);
  bool isUnlike =
      levels.size() > 1 && llvm::any_of(levels, [&](StringAttr level) {
        return mesh.getLevelSize(level) != loop.getParts();
      });
  bool rotates =
      shift.getReads() == ReadVia::Rotate ||
      (shift.getVia() && llvm::any_of(shift.getVia(), [](NamedAttribute via) {
         return cast<StringAttr>(via.getValue()).getValue() == "rotate";
       }));
  int64_t apart = (describeShift(loop).offset + 1) % loop.getParts();
  if (isUnlike || (rotates && apart > 2))
    return "ranks begin more than a part away from their own";
  if (getChunks(loop) != 1)
    return "a chunk of the next step comes under one of this";
  for (LoopAttr inner : ArrayRef(loops).drop_front(
           std::next(llvm::find(loops, loop)) - loops.begin()))
    if (chunkCounts.contains(inner.getName()) || walksPanels(inner))
      return formatv("the parts of '{0}' inside come one at a time",
                     inner.getName());
  StringRef axis = loop.getAxes().front();
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    if (travels(store, loop))
      return "results that move leave one after the other";
    for (Value buffer : store.getBuffers()) {
      auto type = cast<BufferType>(buffer.getType());
      // What waits is of a step alone, but for rows that steps share.
      const auto *own = llvm::find_if(type.getDims(), [&](DimAttr dim) {
        return !dim.isConstant() && dim.getAxis() == axis;
      });
      bool isOwn = own != type.getDims().end()
                       ? !cutsGroups(program, nest, *own)
                       : store.getDeferred() &&
                             llvm::none_of(loops, [&](LoopAttr other) {
                               return travels(store, other);
                             });
      if (!isOwn)
        return formatv(
            "both of two steps merge into '{0}', unless that is deferred",
            getName(cast<BlockArgument>(buffer).getArgNumber()));
    }
  }
  return "";
}

/// Whether two steps of a shifted loop are under way at a time.
bool NestSchedule::runsInLanes(LoopAttr loop) {
  return overlaps(loop) && loop.getShift() && whyInTurn(loop).empty();
}

/// Tells a schedule that lets the steps of a loop overlap where they do not.
void NestExpander::remarkInTurn(LoopAttr loop) {
  if (!overlaps(loop))
    return;
  std::string why;
  bool isAlone =
      llvm::all_of(mesh.getLevels().getAsRange<LevelAttr>(),
                   [](LevelAttr level) { return level.getSize() == 1; });
  if (loop.getShift())
    why = whyInTurn(loop);
  else if (walksPanels(loop))
    why = "the next panel comes under the work on one anyway";
  else if (LoopAttr outer = getExchangeLoop(); !outer)
    why = "a loop around repeats them";
  else if (!isAlone && exchangedInputs.empty() && exchangedResults.empty())
    why = "nothing that they use or make moves slice by slice";
  if (!why.empty())
    nest.emitRemark() << "the steps of '" << loop.getName()
                      << "' run one after the other: " << why;
}

/// Puts what a step does to memory, from `op` on, into its lane.
static void putInLane(Block::iterator op, Block::iterator end, int64_t lane) {
  for (; op != end; ++op)
    op->walk([&](Operation *inner) {
      if (isa<LaunchOp, CopyOp, FillOp, AccumulateOp>(inner))
        inner->setAttr(
            kLane,
            IntegerAttr::get(IntegerType::get(op->getContext(), 64), lane));
    });
}

/// The steps one by one, in two lanes in turn.
LogicalResult NestExpander::emitOverlap(size_t at, const ShiftedLoop &shifted) {
  // What launches work in is one for each lane.
  std::array<DenseMap<Operation *, Value>, 2> scratchOf;
  for (int64_t number = 0; number < shifted.steps; ++number) {
    Block *block = builder.getInsertionBlock();
    auto end = builder.getInsertionPoint();
    Operation *before = end == block->begin() ? nullptr : &*std::prev(end);
    RingStep step = getStep(shifted, constant(number));
    step.lane = number % 2;
    if (number + 1 == shifted.steps)
      step.more = {};
    std::swap(scratches, scratchOf[step.lane]);
    LogicalResult result = emitStep(at, shifted, step);
    std::swap(scratches, scratchOf[step.lane]);
    if (failed(result))
      return failure();
    putInLane(before ? std::next(before->getIterator()) : block->begin(), end,
              step.lane);
  }
  return success();
}
