//===- Stacks.cpp - Merges of many partial results at once
//--------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

/// One of the tiles that are stacked along the first dimension.
static MemoryBox getSlot(const MemoryBox &stack, int64_t number) {
  MemoryBox slot = stack;
  slot.offset += number * stack.strides.front();
  slot.sizes.erase(slot.sizes.begin());
  slot.strides.erase(slot.strides.begin());
  return slot;
}

/// Stacks and sums have the shapes of one merge, and lie apart.
LogicalResult Checker::checkStacks(RankState &rank) {
  const PlanEvent &event = *rank.event;
  auto op = cast<LaunchOp>(event.op);
  size_t expected = op.getKernel() == "sum_all" ? 1 : 2;
  if (event.inputs.size() != expected || event.outputs.size() != expected)
    return report(rank) << "merges " << expected << " results, but has "
                        << event.inputs.size() << " inputs and "
                        << event.outputs.size() << " outputs";
  for (auto [stack, target] : llvm::zip_equal(event.inputs, event.outputs)) {
    if (stack.sizes.empty() ||
        ArrayRef(stack.sizes).drop_front() != ArrayRef(target.sizes) ||
        stack.sizes.front() != event.inputs.front().sizes.front())
      return report(rank) << "merges tiles of different sizes";
    for (const MemoryBox &other : event.inputs)
      if (other.space == target.space && overlaps(other, target))
        return report(rank) << "merges " << describe(other) << " into itself";
    if (&target != &event.outputs[0] &&
        target.space == event.outputs[0].space &&
        overlaps(target, event.outputs[0]))
      return report(rank) << "writes both results of a pair to "
                          << describe(target);
    if (failed(checkWrite(rank, target)))
      return failure();
  }
  return success();
}

/// One slot after the other is merged into the sum, which is rounded at the
/// end.
LogicalResult Checker::mergeStacks(RankState &rank) {
  const PlanEvent &event = *rank.event;
  auto op = cast<LaunchOp>(event.op);
  if (failed(checkStacks(rank)))
    return failure();
  for (auto [i, target] : llvm::enumerate(event.outputs))
    if (op.overwrites(i) && !target.isEmpty())
      getContents(rank, target.space)
          .write(target,
                 makeFilled(KernelSignature::getIdentity(op.getKernel(), i)));
  for (int64_t slot = 0; slot < event.inputs[0].sizes.front(); ++slot) {
    SmallVector<Piece> from[2], to[2];
    for (auto [i, target] : llvm::enumerate(event.outputs))
      if (failed(read(rank, getSlot(event.inputs[i], slot), from[i])) ||
          failed(read(rank, target, to[i])))
        return failure();
    if (failed(event.outputs.size() == 2
                   ? mergePair(rank, {event.outputs[0], event.outputs[1]}, from,
                               to)
                   : merge(rank, event.outputs[0], from[0], to[0],
                           MergeKind::Sum, /*isLSE=*/false)))
      return failure();
  }
  for (const MemoryBox &target : event.outputs) {
    SmallVector<Piece> merged;
    if (failed(read(rank, target, merged)))
      return failure();
    for (Piece &piece : merged) {
      if (failed(checkConversion(rank, getAccumulatorType(event),
                                 target.elementType, piece.content)))
        return failure();
      if (piece.content.isRounded)
        getContents(rank, target.space)
            .write(slice(target, piece.local), piece.content);
    }
  }
  return success();
}
