//===- Rules.cpp - Which rule a buffer needs ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The levels that stagger a shifted loop; one of a single rank does not.
SmallVector<StringAttr> NestExpander::getRingLevels(LoopAttr loop) {
  return SmallVector<StringAttr>(llvm::make_filter_range(
      loop.getShift().getLevels(),
      [&](StringAttr level) { return mesh.getLevelSize(level) != 1; }));
}

/// Whether a loop over `axis` runs in parallel on `level`.
bool NestExpander::isParallelOver(StringRef axis, StringRef level) {
  return llvm::any_of(loops, [&](LoopAttr loop) {
    return loop.isOver(axis) && loop.isParallelOn(level);
  });
}

/// Whether a loop over `axis` is shifted on `level`.
bool NestExpander::isShiftedOver(StringRef axis, StringRef level) {
  return llvm::any_of(loops, [&](LoopAttr loop) {
    return loop.isOver(axis) && loop.getShift() &&
           llvm::is_contained(loop.getShift().getLevels(), level);
  });
}

/// Whether a rank's shard holds what its iterations touch: the cut is that of
/// the outermost loops over the axis, in their order.
bool NestExpander::followsLoops(CutAttr cut) {
  SmallVector<Attribute> held = getFactors(mesh, cut);
  SmallVector<Attribute> walked = getLoopFactors(program, nest, cut.getAxis());
  return held.size() <= walked.size() &&
         ArrayRef(walked).take_front(held.size()) == ArrayRef(held);
}

/// Whether some cut of an axis falls within the groups of a dimension.
static bool cutsGroups(ProgramOp program, ForOp nest, DimAttr dim) {
  if (dim.isConstant() || dim.getDivisor() == 1)
    return false;
  AxisAttr axis = program.getAxis(dim.getAxis());
  Layout layout = axis.getLayout().getLayout();
  int64_t parts = nest.getParts(dim.getAxis());
  for (int64_t part = 0; part < parts; ++part)
    for (Interval i : layout.shard(axis.getExtent(), parts, part))
      if (i.begin % dim.getDivisor() != 0 || i.end % dim.getDivisor() != 0)
        return true;
  return false;
}

/// Whether parts of a loop over `axis` make partial results of one position:
/// its buffers lack the axis, or have it divided and a cut falls within a
/// group.
bool NestExpander::isReducedOver(StoreOp store, StringAttr axis) {
  if (!store.getOver() || !llvm::is_contained(*store.getOver(), axis))
    return false;
  return llvm::any_of(store.getBuffers(), [&](Value buffer) {
    auto type = cast<BufferType>(buffer.getType());
    return !type.hasAxis(axis) ||
           llvm::any_of(type.getDims(), [&](DimAttr dim) {
             return dim.getAxis() == axis.getValue() &&
                    cutsGroups(program, nest, dim);
           });
  });
}

/// Two parts of `axis / n` share a position when a cut falls within a group.
/// That is right for what is read beside the whole axis (grouped heads), and
/// for a result that is reduced over the groups. It counts twice in another
/// result and in a sum, and parts that travel must not overlap.
LogicalResult NestExpander::checkDivided(StoreOp store) {
  auto refuse = [&](DimAttr dim) {
    return needsRule(
        "R8", "axis '" + dim.getAxis() + "' is cut within the groups of '" +
                  dim.getAxis() + "/" + Twine(dim.getDivisor()) +
                  "'; cut it at multiples of " + Twine(dim.getDivisor()));
  };
  auto isReduced = [&](DimAttr dim) {
    return !dim.isConstant() &&
           isReducedOver(store, builder.getStringAttr(dim.getAxis()));
  };
  auto isShifted = [&](DimAttr dim) {
    return llvm::any_of(loops, [&](LoopAttr loop) {
      return loop.isOver(dim.getAxis()) && loop.getShift();
    });
  };
  for (Value buffer : store.getBuffers())
    for (DimAttr dim : cast<BufferType>(buffer.getType()).getDims())
      if (cutsGroups(program, nest, dim) && (!isReduced(dim) || isShifted(dim)))
        return refuse(dim);
  for (Value tile : store.getTiles()) {
    auto kernel = tile.getDefiningOp<KernelOp>();
    for (Value input : kernel.getInputs())
      for (DimAttr dim : cast<TileType>(input.getType()).getDims())
        if (isReduced(dim) && cutsGroups(program, nest, dim) &&
            dim.getDivisor() == getFinestDivisor(kernel, dim.getAxis()))
          return refuse(dim);
  }
  return success();
}

/// A result that a parallel loop reduces needs its ranks to merge.
LogicalResult NestExpander::checkStores() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    if (isa_and_nonnull<FlatSymbolRefAttr>(store.getMerge().value_or(nullptr)))
      return store.emitOpError()
             << "has a merge given by the user, which this version does not "
                "lower yet";
    for (Value tile : store.getTiles())
      if (!tile.getDefiningOp<KernelOp>())
        return store.emitOpError() << "stores a tile that no kernel makes, "
                                      "which this version does not lower yet";
    if (llvm::count_if(loops,
                       [&](LoopAttr loop) { return travels(store, loop); }) > 1)
      return needsRule("R9", "results travel along two nested loops");
    if (failed(checkDivided(store)))
      return failure();
    for (Value buffer : store.getBuffers())
      if (failed(
              checkOutput(store, cast<BlockArgument>(buffer).getArgNumber())))
        return failure();
  }
  return success();
}

/// Each rank makes the shard of an output that it owns, all of it and no more.
LogicalResult NestExpander::checkOutput(StoreOp store, int64_t buffer) {
  BindingAttr binding = program.getBinding(buffer);
  SmallVector<StringAttr> reduced = getReducedLevels(store);
  PlacementAttr partial = getPartialPlacement(store, binding.getInside());
  for (CutAttr cut : binding.getInside().getCuts()) {
    for (Attribute factor : getFactors(mesh, cut)) {
      auto level = dyn_cast<StringAttr>(factor);
      if (!level || isParallelOver(cut.getAxis(), level))
        continue;
      // R6: the sum comes along the ring.
      if (llvm::any_of(loops, [&](LoopAttr loop) {
            return loop.isOver(cut.getAxis()) && travels(store, loop) &&
                   getRingLevels(loop).front() == level;
          }))
        continue;
      if (isShiftedOver(cut.getAxis(), level))
        return needsRule("R6", "'" + getName(buffer) +
                                   "' is sharded along a shifted axis");
      // R5: the ranks of the level share the sum out.
      if (llvm::is_contained(reduced, level))
        continue;
      return needsRule("R8", "'" + getName(buffer) + "' is sharded over '" +
                                 level.getValue() + "', where no loop over '" +
                                 cut.getAxis() + "' runs in parallel");
    }
    CutAttr made = partial.getCut(cut.getAxis());
    if (made && !followsLoops(made))
      return needsRule("R8", "'" + getName(buffer) + "' is cut along '" +
                                 cut.getAxis() +
                                 "' otherwise than the loops run");
  }
  for (DimAttr dim : program.getBufferType(buffer).getDims())
    for (auto level : mesh.getLevels().getAsRange<LevelAttr>())
      if (!dim.isConstant() && level.getSize() != 1 &&
          isParallelOver(dim.getAxis(), level.getName()) &&
          !binding.getInside().hasLevel(level.getName()))
        return needsRule(
            "R8", "'" + getName(buffer) + "' is whole on each rank of '" +
                      level.getName() + "', which makes a part of it");
  return success();
}

/// A shifted loop is a ring on one level, a part a rank.
LogicalResult NestExpander::checkShift(LoopAttr loop) {
  if (!loop.getShift() || loop.getParts() == 1)
    return success();
  if (loop.isParallel())
    return needsRule("R3 of a parallel loop", "its parts are spread already");
  SmallVector<StringAttr> levels = getRingLevels(loop);
  if (levels.size() > 1)
    return needsRule("R3 with several terms", "Cannon's opening skew");
  if (levels.empty() || loop.getParts() != mesh.getLevelSize(levels.front()))
    return needsRule("R3 with several parts a rank", "J is not the ranks");
  return success();
}

/// Finds the rule for each level that an input is sharded over.
LogicalResult NestExpander::placeInput(int64_t buffer) {
  BindingAttr binding = program.getBinding(buffer);
  Value argument = program.getBody().getArgument(buffer);
  memory[argument] = argument;
  if (!isSamePlacement(program, binding.getBoundary(), binding.getInside())) {
    FailureOr<Value> moved = reshard(
        getName(buffer), argument, binding.getBoundary(), binding.getInside());
    if (failed(moved))
      return failure();
    memory[argument] = *moved;
  }
  int64_t moved = 0;
  for (CutAttr cut : binding.getInside().getCuts()) {
    SmallVector<StringAttr> foreign;
    SmallVector<LoopAttr> shifted;
    for (Attribute factor : getFactors(mesh, cut)) {
      auto level = dyn_cast<StringAttr>(factor);
      // R1: the loop over the axis runs in parallel on the level.
      if (!level || isParallelOver(cut.getAxis(), level))
        continue;
      foreign.push_back(level);
      for (LoopAttr loop : loops)
        if (loop.isOver(cut.getAxis()) && loop.getShift() &&
            llvm::is_contained(loop.getShift().getLevels(), level))
          shifted.push_back(loop);
    }
    if (!foreign.empty() && ++moved > 1)
      return needsRule("R8",
                       "'" + getName(buffer) + "' moves along two of its axes");
    // Each level has its own ring, or none has one.
    if (!shifted.empty() && shifted.size() != foreign.size())
      return needsRule("R8", "'" + getName(buffer) +
                                 "' is shifted on one of the levels that it "
                                 "moves over");
    for (StringAttr level : foreign)
      for (DimAttr dim : program.getBufferType(buffer).getDims())
        if (!dim.isConstant() && isParallelOver(dim.getAxis(), level))
          return needsRule("R8", "'" + getName(buffer) + "' is sharded over '" +
                                     level.getValue() +
                                     "', where another of its axes is "
                                     "parallel");
    bool gathered = !foreign.empty() && shifted.empty();
    if (!gathered && !followsLoops(cut))
      return needsRule("R8", "'" + getName(buffer) + "' is cut along '" +
                                 cut.getAxis() +
                                 "' otherwise than the loops run");
    if (gathered && failed(gather(buffer, cut)))
      return failure();
    // Outermost first, as the loops are.
    for (LoopAttr loop : loops)
      if (llvm::is_contained(shifted, loop) &&
          failed(addToRing(buffer, cut, loop)))
        return failure();
  }
  return success();
}
