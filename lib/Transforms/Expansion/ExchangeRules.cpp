//===- ExchangeRules.cpp - What is exchanged in slices --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which ranks read from each other what the steps of a loop need, and what
// moves whole before or after the loops instead: a rank's part of a slice and
// another's shard must meet in one part of the loops or of the boundary.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::commir;
using llvm::formatv;

/// The most ranks that exchange slices: each has an op of its own, as all are
/// read at once, and the plan's text shall not grow with the ranks. A host has
/// as many devices.
static constexpr int64_t kMostMembers = 8;

/// Whether a loop is over an axis of which something is read panel by panel.
bool NestSchedule::walksPanels(LoopAttr loop) {
  return llvm::any_of(nest.getBody().getOps<LoadOp>(), [&](LoadOp load) {
    int64_t buffer = cast<BlockArgument>(load.getBuffer()).getArgNumber();
    return llvm::any_of(program.getBinding(buffer).getBroadcast(),
                        [&](StringAttr axis) { return loop.isOver(axis); });
  });
}

/// The loop in sequence whose steps overlap, or null: no other one repeats
/// them.
LoopAttr NestSchedule::getExchangeLoop() {
  for (LoopAttr loop : loops)
    if (loop.getParts() != 1 && !loop.isParallel())
      return overlaps(loop) && !loop.getShift() && !walksPanels(loop)
                 ? loop
                 : LoopAttr();
  return {};
}

/// Whose ranks hold different parts of a buffer in `from` that each needs in
/// `to`, outermost first.
SmallVector<StringAttr> NestSchedule::getSourceLevels(BufferType type,
                                                      PlacementAttr from,
                                                      PlacementAttr to) {
  SmallVector<StringAttr> levels;
  auto cuts = [&](PlacementAttr placement, DimAttr dim, StringAttr level) {
    CutAttr cut = placement.getCut(dim.getAxis());
    return cut && cut.hasLevel(level);
  };
  for (auto each : mesh.getLevels().getAsRange<LevelAttr>()) {
    StringAttr level = StringAttr::get(nest.getContext(), each.getName());
    bool moves = llvm::any_of(type.getDims(), [&](DimAttr dim) {
      return !dim.isConstant() && cuts(from, dim, level) &&
             !cuts(to, dim, level);
    });
    if (moves && each.getSize() != 1)
      levels.push_back(level);
  }
  return levels;
}

/// Why a buffer moves whole, though the steps of a loop overlap: some rank's
/// part in one placement and another's in the other do not meet in one part of
/// the loops or of the boundary. Empty where it moves in slices.
std::string NestSchedule::whyWhole(int64_t buffer, ArrayRef<StringAttr> group,
                                   LoopAttr slices) {
  PlacementAttr outside = program.getBinding(buffer).getBoundary();
  int64_t members = 1;
  for (StringAttr level : group)
    members *= mesh.getLevelSize(level);
  if (members > kMostMembers)
    return formatv(
        "{0} ranks exchange it, and at most {1} read from each other "
        "at once",
        members, kMostMembers);
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
      return formatv("it is cut along '{0}' in a way of the boundary's own",
                     dim.getAxis());
    bool inSequence = false;
    for (LoopAttr loop : loops) {
      if (!loop.isOver(dim.getAxis()) || loop.getParts() == 1)
        continue;
      if (inSequence && loop.isParallel())
        return formatv("it is cut over ranks inside of a loop in sequence over "
                       "'{0}'",
                       dim.getAxis());
      if (loop == slices)
        here.push_back(
            Builder(nest.getContext()).getI64IntegerAttr(loop.getParts()));
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
        return formatv("all of it is needed where the loops over '{0}' run on "
                       "'{1}'",
                       dim.getAxis(), level.getValue());
    if (cutsGroups(program.getAxis(dim.getAxis()), countParts(there),
                   dim.getDivisor()))
      return formatv("it has shards that share positions of '{0}/{1}'",
                     dim.getAxis(), dim.getDivisor());
    size_t common = std::min(there.size(), here.size());
    if (ArrayRef(there).take_front(common) != ArrayRef(here).take_front(common))
      return formatv("it has shards along '{0}' that no part of the loops is "
                     "within",
                     dim.getAxis());
    // A part of one within a part of the other is the union of finer ones.
    if (isStriped(dim.getAxis()) && there != here && common != 0)
      return formatv("it is striped along '{0}', where a shard is no union of "
                     "finer ones",
                     dim.getAxis());
  }
  return "";
}
