//===- Targets.cpp - Where launches put their results ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of the launches that merge into one element, the first writes it, so that
// nothing fills the memory before. Which one is the first is known: it stands
// at the first iteration of each loop that runs in sequence over an axis that
// the result lacks. Where the launches leave out some of the memory, it is
// filled, and all of them merge.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The dimension of a buffer along an axis, divided or not, or null.
static DimAttr findDim(BufferType type, StringRef axis) {
  for (DimAttr dim : type.getDims())
    if (!dim.isConstant() && dim.getAxis() == axis)
      return dim;
  return {};
}

/// Whether the launches write every element of the memory that holds a store's
/// partial results: each rank's loops walk all of what it holds. Not so where
/// memory is whole along an axis that ranks share, where the steps of a ring
/// end before its last part, and where parts of an axis have elements in
/// common.
bool NestSchedule::writesAll(StoreOp store) {
  for (Value buffer : store.getBuffers()) {
    auto type = cast<BufferType>(buffer.getType());
    PlacementAttr held = getPartialPlacement(
        store, getInside(cast<BlockArgument>(buffer).getArgNumber()));
    for (LoopAttr loop : loops) {
      if (loop.getParts() == 1)
        continue;
      auto levels = *getLevelsOfAxes(program, mesh, loop);
      for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels)) {
        DimAttr dim = findDim(type, axis);
        if (!dim)
          continue;
        CutAttr cut = held.getCut(axis);
        bool shares = llvm::any_of(own, [&](StringAttr level) {
          return mesh.getLevelSize(level) != 1 && !(cut && cut.hasLevel(level));
        });
        bool ends = loop.getShift() && !travels(store, loop) &&
                    describeShift(loop).steps != loop.getParts();
        if (shares || ends || cutsGroups(program, nest, dim))
          return false;
      }
    }
  }
  return true;
}

/// Whether the launches of each step of a loop write all of what leaves after
/// it: no loop around it takes the rest of it in turn.
bool NestSchedule::writesStep(StoreOp store, LoopAttr loop) {
  if (!written.contains(store) || travelsInside(store, loop))
    return false;
  for (LoopAttr outer : loops) {
    if (outer == loop)
      return true;
    if (outer.isParallel() || outer.getParts() == 1 || travels(store, outer) ||
        movesInSlices(store, outer, loop))
      continue;
    for (Value buffer : store.getBuffers())
      if (findDim(cast<BufferType>(buffer.getType()), outer.getAxes().front()))
        return false;
  }
  return true;
}

/// Whether a loop inside of `loop` makes the results of a store travel, too.
bool NestSchedule::travelsInside(StoreOp store, LoopAttr loop) {
  auto at = llvm::find(loops, loop);
  return std::any_of(std::next(at), loops.end(),
                     [&](LoopAttr inner) { return travels(store, inner); });
}

/// Where a launch puts the result that `use` stores.
LaunchTarget NestExpander::getTarget(KernelOp kernel, OpOperand &use) {
  auto store = cast<StoreOp>(use.getOwner());
  Value buffer = store.getBufferOf(use);
  LaunchTarget target;
  ArrayRef<Turn> around = turns;
  if (auto leaving = departing.find(buffer);
      leaving != departing.end() && !leaving->second.empty()) {
    const Departure &step = leaving->second.back();
    target.tile = getTile(step.partial, getTileSlot(step.tiles, step.slot));
    around = around.drop_front(step.turns);
    target.overwrites = step.isWritten;
    if (step.isLast) {
      Value home = getTile(step.home, step.homeSlot);
      target.tile = arith::SelectOp::create(builder, nest.getLoc(), step.isLast,
                                            home, target.tile);
      if (step.addsAtHome)
        target.unless = step.isLast;
    }
  } else {
    target.overwrites = written.contains(store) && !entersOnce(kernel);
  }
  Value number; // of the partial result
  for (const Turn &turn : around) {
    if (turn.count == 1 ||
        cast<BufferType>(buffer.getType()).hasAxis(turn.axis))
      continue;
    target.turns.push_back(turn.index);
    number = number ? add(mul(number, turn.count), turn.index) : turn.index;
  }
  if (target.tile)
    return target;
  auto held = waiting.find(buffer);
  if (held == waiting.end() || entersOnce(kernel)) {
    target.tile = getTile(memory[buffer]);
    return target;
  }
  target.tile = getWaitingTile(buffer, number);
  target.turns.clear();
  target.leavesOut = held->second.leavesOut;
  return target;
}

/// Emits a launch: where some result is written at the first of several
/// iterations and merged at the others, one for each case.
void NestExpander::emitVariants(ArrayRef<LaunchTarget> targets,
                                function_ref<void(ArrayRef<bool>)> emit) {
  Location loc = nest.getLoc();
  SmallVector<bool> overwrites;
  // The results that are not decided yet, by what decides them.
  struct Choice {
    const LaunchTarget &by;
    SmallVector<size_t> results;
  };
  SmallVector<Choice> open;
  for (auto [i, target] : llvm::enumerate(targets)) {
    bool always = target.turns.empty() && !target.unless;
    overwrites.push_back(target.overwrites && always);
    if (!target.overwrites || always)
      continue;
    auto same = llvm::find_if(open, [&](const Choice &each) {
      return each.by.turns == target.turns && each.by.unless == target.unless;
    });
    if (same == open.end())
      open.push_back({target, {i}});
    else
      same->results.push_back(i);
  }
  auto decide = [&](auto &&decide, size_t number) -> void {
    if (number == open.size())
      return emit(overwrites);
    const auto &[by, results] = open[number];
    Value first;
    auto require = [&](Value condition) {
      first = first ? arith::AndIOp::create(builder, loc, first, condition)
                    : condition;
    };
    for (Value index : by.turns)
      require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                    index, constant(0)));
    if (by.unless)
      require(arith::XOrIOp::create(
          builder, loc, by.unless,
          arith::ConstantIntOp::create(builder, loc, 1, 1)));
    auto branch =
        scf::IfOp::create(builder, loc, first, /*withElseRegion=*/true);
    for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(block);
      for (size_t result : results)
        overwrites[result] = block == branch.thenBlock();
      decide(decide, number + 1);
    }
  };
  decide(decide, 0);
}
