//===- ExchangeRules.cpp - What is exchanged in slices --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which ranks read from each other what the steps of a loop need, and what this
// version refuses: a rank's part of a slice and another's shard must meet in
// one part of the loops or of the boundary.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The most ranks that exchange slices: each has an op of its own, as all are
/// read at once, and the plan's text shall not grow with the ranks. A host has
/// as many devices.
static constexpr int64_t kMostMembers = 8;

/// The loop in sequence whose steps overlap, or null.
LoopAttr NestExpander::getExchangeLoop() {
  for (LoopAttr loop : loops)
    if (overlaps(loop) && !loop.getShift())
      return loop;
  return {};
}

InFlightDiagnostic NestExpander::needsSlices(LoopAttr loop, const Twine &why) {
  return needsRule("R7 in slices",
                   why + "; leave out overlap(" + loop.getName() + ")");
}

/// Whose ranks hold different parts of a buffer in `from` that each needs in
/// `to`, outermost first.
SmallVector<StringAttr> NestExpander::getSourceLevels(BufferType type,
                                                      PlacementAttr from,
                                                      PlacementAttr to) {
  SmallVector<StringAttr> levels;
  auto cuts = [&](PlacementAttr placement, DimAttr dim, StringAttr level) {
    CutAttr cut = placement.getCut(dim.getAxis());
    return cut && cut.hasLevel(level);
  };
  for (auto each : mesh.getLevels().getAsRange<LevelAttr>()) {
    StringAttr level = builder.getStringAttr(each.getName());
    bool moves = llvm::any_of(type.getDims(), [&](DimAttr dim) {
      return !dim.isConstant() && cuts(from, dim, level) &&
             !cuts(to, dim, level);
    });
    if (moves && each.getSize() != 1)
      levels.push_back(level);
  }
  return levels;
}

/// Whether each rank's part in one placement and that in the other meet in one
/// part of the loops or of the boundary.
LogicalResult NestExpander::checkSlices(int64_t buffer,
                                        ArrayRef<StringAttr> group,
                                        LoopAttr slices) {
  PlacementAttr outside = program.getBinding(buffer).getBoundary();
  auto refuse = [&](const Twine &why) {
    return needsSlices(slices, "'" + getName(buffer) + "' " + why);
  };
  int64_t members = 1;
  for (StringAttr level : group)
    members *= mesh.getLevelSize(level);
  if (members > kMostMembers)
    return refuse("is exchanged by " + Twine(members) + " ranks, and at most " +
                  Twine(kMostMembers) + " read from each other at once");
  for (DimAttr dim : program.getBufferType(buffer).getDims()) {
    if (dim.isConstant())
      continue;
    CutAttr cut = outside.getCut(dim.getAxis());
    SmallVector<Attribute> there, here;
    if (cut)
      there = getFactors(mesh, cut);
    if (cut &&
        ((cut.getLayout() &&
          cut.getLayout() != program.getAxis(dim.getAxis()).getLayout()) ||
         llvm::any_of(there, llvm::IsaPred<IntegerAttr>)))
      return refuse("is cut along '" + dim.getAxis() +
                    "' in a way of the boundary's own");
    bool inSequence = false;
    for (LoopAttr loop : loops) {
      if (!loop.isOver(dim.getAxis()) || loop.getParts() == 1)
        continue;
      if (inSequence && loop.isParallel())
        return refuse("is cut over ranks inside of a loop in sequence over '" +
                      dim.getAxis() + "'");
      if (loop == slices)
        here.push_back(builder.getI64IntegerAttr(loop.getParts()));
      inSequence |= !loop.isParallel() && loop != slices;
      if (!loop.isParallel())
        continue;
      auto levels = *getLevelsOfAxes(program, mesh, loop);
      for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels))
        if (axis == dim.getAxis())
          here.append(own.begin(), own.end());
    }
    llvm::erase_if(here, [&](Attribute factor) {
      auto level = dyn_cast<StringAttr>(factor);
      return level && mesh.getLevelSize(level) == 1;
    });
    for (StringAttr level : group)
      if (llvm::is_contained(there, level) && llvm::is_contained(here, level))
        return refuse("is to be whole where the loops over '" + dim.getAxis() +
                      "' run on '" + level.getValue() + "'");
    if (cutsGroups(program.getAxis(dim.getAxis()), countParts(there),
                   dim.getDivisor()))
      return refuse("has shards that share positions of '" + dim.getAxis() +
                    "/" + Twine(dim.getDivisor()) + "'");
    size_t common = std::min(there.size(), here.size());
    if (ArrayRef(there).take_front(common) != ArrayRef(here).take_front(common))
      return refuse("has shards along '" + dim.getAxis() +
                    "' that no part of the loops is within");
    // A part of one within a part of the other is the union of finer ones.
    if (isStriped(dim.getAxis()) && there != here && common != 0)
      return refuse("is striped along '" + dim.getAxis() +
                    "', where a shard is no union of finer ones");
  }
  return success();
}

LogicalResult NestExpander::checkExchanges(LoopAttr loop) {
  if (!rings[loop.getName()].empty())
    return needsSlices(loop, "the loop walks panels, the next of which comes "
                             "meanwhile without that");
  for (LoopAttr outer : loops) {
    if (outer == loop)
      break;
    if (!outer.isParallel() && outer.getParts() != 1)
      return needsSlices(loop,
                         "loop '" + outer.getName() + "' repeats its steps");
  }
  if (loop.getAxes().size() > 1)
    return needsSlices(loop, "the loop is over several axes");
  bool isAlone =
      llvm::all_of(mesh.getLevels().getAsRange<LevelAttr>(),
                   [](LevelAttr level) { return level.getSize() == 1; });
  if (!isAlone && exchangedInputs.empty() && exchangedResults.empty())
    return needsSlices(loop, "nothing that its steps use or make is owned by "
                             "other ranks outside of the loops");
  return success();
}
