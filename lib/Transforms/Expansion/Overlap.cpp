//===- Overlap.cpp - Steps of a ring that run beside each other -----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch ends with a wave of blocks that fills the device in part. Where
// steps overlap, each is in a lane of its own: the second one waits for its
// part to arrive, and for no launch before it.
//
//   in turn     | own   ##|   | p1    ##|
//   overlap     | own   ##|
//                     | p1    ##|          begins where the last wave leaves
//                     room
//
// So the launches must write memory of their own, and stand one after the other
// in the text: two steps, of a ring that no loop repeats.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Overlap.h"
#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"

using namespace mlir;
using namespace mlir::commir;

/// Whether the schedule lets the steps of a loop overlap.
bool NestExpander::overlaps(LoopAttr loop) {
  auto name = nest->getAttrOfType<StringAttr>(kOverlap);
  return name && name == loop.getName() && loop.getParts() != 1;
}

/// What this version does not overlap.
LogicalResult NestExpander::checkOverlap(LoopAttr loop) {
  if (!overlaps(loop))
    return success();
  if (!loop.getShift())
    return checkExchanges(loop);
  auto needsLanes = [&](const Twine &why) {
    return needsRule("R3 of steps that overlap",
                     why + "; leave out overlap(" + loop.getName() + ")");
  };
  if (loop.getParts() != 2)
    return needsLanes("a ring of " + Twine(loop.getParts()) +
                      " steps is a loop in the text, two steps are not");
  if (loop.getShift().getChunks() != 1 || loop.getShift().getLink())
    return needsLanes("what comes in chunks, or in a narrower type, shares the "
                      "memory that it is worked on in");
  if (!travellers[loop.getName()].empty())
    return needsLanes("results that move leave one after the other");
  for (LoopAttr other : loops)
    if (other != loop && other.getParts() != 1 && !other.isParallel())
      return needsLanes("loop '" + other.getName() + "' repeats its steps");
  bool inPieces = llvm::any_of(loops, [&](LoopAttr each) {
    return llvm::any_of(each.getAxes(), [&](StringAttr axis) {
      return getPieces(program.getAxis(axis), nest.getParts(axis)) > 1;
    });
  });
  for (KernelOp kernel : nest.getBody().getOps<KernelOp>()) {
    bool hasDocuments =
        kernel.getMask() && !kernel.getMask()->getDocuments().empty();
    if (hasDocuments || (inPieces && !joinsPieces(kernel)))
      return needsLanes("a step takes its pieces in several launches");
  }
  for (StoreOp store : nest.getBody().getOps<StoreOp>())
    for (Value buffer : store.getBuffers()) {
      bool isShared = countPartials(buffer) > 1 && !waiting.contains(buffer);
      if (!isShared && written.contains(store))
        continue;
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      return needsLanes("both steps merge into '" + getName(number) +
                        "', unless that is deferred");
    }
  return success();
}

/// The steps one by one, each launch in the lane of its step.
LogicalResult NestExpander::emitOverlap(size_t at, const ShiftedLoop &shifted) {
  Block *block = builder.getInsertionBlock();
  for (int64_t number = 0; number < shifted.steps; ++number) {
    auto start = builder.getInsertionPoint();
    Operation *before = start == block->begin() ? nullptr : &*std::prev(start);
    // What a launch works in is one for each lane.
    scratches.clear();
    RingStep step = getStep(shifted, constant(number));
    if (number + 1 == shifted.steps)
      step.more = {};
    if (failed(emitStep(at, shifted, step)))
      return failure();
    Operation *op = before ? before->getNextNode() : &block->front();
    for (; op != nest.getOperation(); op = op->getNextNode())
      if (auto launch = dyn_cast<LaunchOp>(op))
        launch->setAttr(kLane, builder.getI64IntegerAttr(number));
  }
  return success();
}
