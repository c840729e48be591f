//===- Reshard.cpp - Rules R7 and R8: from one placement to another -------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// R7 moves a buffer between its place outside the program and that inside. R8
// brings what no other rule does: it moves a buffer to where the loops make its
// parts, or use them.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Gives a buffer another placement, in `target` or in memory of its own.
Value NestExpander::reshard(Value source, PlacementAttr to, Value target) {
  if (!target)
    target = makeMemory(cast<BufferType>(source.getType()), 1, to);
  RedistributeOp::create(builder, nest.getLoc(), source, target);
  ++transfers;
  return target;
}

/// An input in another placement than the boundary's; nests of a program that
/// want it so share it.
Value NestExpander::reshardInput(Value input, PlacementAttr to) {
  Value &moved = movedInputs[{input, to}];
  if (!moved)
    moved = reshard(input, to);
  return moved;
}

/// The levels that the outermost loops over an axis are parallel on.
SmallVector<StringAttr> NestSchedule::getParallelLevels(StringRef axis) {
  SmallVector<StringAttr> levels;
  for (LoopAttr loop : loops) {
    auto at = llvm::find_if(loop.getAxes(),
                            [&](StringAttr name) { return name == axis; });
    if (at == loop.getAxes().end())
      continue;
    if (!loop.isParallel() && loop.getParts() != 1)
      break;
    if (!loop.isParallel())
      continue;
    size_t number = at - loop.getAxes().begin();
    auto spread = *getLevelsOfAxes(program, mesh, loop);
    for (StringAttr level : spread[number])
      if (mesh.getLevelSize(level) != 1)
        levels.push_back(level);
  }
  return levels;
}

/// The placement in which each rank holds just the parts of a buffer that its
/// iterations touch: cut as the loops over each axis run, of which a rank
/// visits all parts but where they run in parallel. What a loop among `moving`
/// visits travels to the ranks of its level.
PlacementAttr NestSchedule::getTouchedPlacement(BufferType type,
                                                ArrayRef<LoopAttr> moving) {
  SmallVector<CutAttr> cuts;
  for (DimAttr dim : type.getDims()) {
    if (dim.isConstant())
      continue;
    SmallVector<Attribute> factors;
    for (LoopAttr loop : loops) {
      auto at = llvm::find(loop.getAxes(),
                           StringAttr::get(nest.getContext(), dim.getAxis()));
      if (at == loop.getAxes().end() || loop.getParts() == 1)
        continue;
      size_t number = at - loop.getAxes().begin();
      if (llvm::is_contained(moving, loop)) {
        factors.push_back(getRingLevels(loop).front());
        continue;
      }
      if (!loop.isParallel()) {
        int64_t count = (*getPartsOfAxes(program, loop))[number];
        // What follows one another in a shifted loop is dealt in turn: as an
        // outermost cut of stripes, all of which a rank visits, it cuts none.
        if (isStriped(dim.getAxis()) && loop.getShift())
          count /= getPartsARank(describeShift(loop));
        factors.push_back(Builder(nest.getContext()).getI64IntegerAttr(count));
        continue;
      }
      auto spread = *getLevelsOfAxes(program, mesh, loop);
      for (StringAttr level : spread[number])
        factors.push_back(level);
    }
    bool isUnion = !isStriped(dim.getAxis());
    while (isUnion && !factors.empty() && isa<IntegerAttr>(factors.back()))
      factors.pop_back();
    if (llvm::any_of(factors, llvm::IsaPred<StringAttr>))
      cuts.push_back(CutAttr::get(nest.getContext(), dim.getAxis(), factors,
                                  LayoutAttr()));
  }
  return PlacementAttr::get(nest.getContext(), cuts);
}
