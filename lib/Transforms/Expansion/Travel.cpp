//===- Travel.cpp - Rule R6: partial results go from rank to rank ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Step t of a shifted loop makes a partial result of part p(t) on every rank,
// each of another part. The accumulator of a part travels against the direction
// in which the parts are visited: it reaches each rank just when that rank
// works on its part, and with offset d it ends at its owner.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Whether the results of a store travel along the ring of `loop`: ranks of its
/// level share the sum out along its axis.
bool NestExpander::travels(StoreOp store, LoopAttr loop) {
  if (!loop.getShift() || loop.getParts() == 1 || !store.getOver())
    return false;
  SmallVector<StringAttr> levels = getRingLevels(loop);
  if (levels.size() != 1)
    return false;
  bool reduced = llvm::any_of(store.getOver()->getAsRange<StringAttr>(),
                              [&](StringAttr axis) {
                                return isReducedOver(store, axis) &&
                                       isParallelOver(axis, levels.front());
                              });
  return reduced && llvm::all_of(store.getBuffers(), [&](Value buffer) {
           int64_t number = cast<BlockArgument>(buffer).getArgNumber();
           CutAttr cut = program.getBinding(number).getInside().getCut(
               loop.getAxes().front());
           return cut && cut.hasLevel(levels.front());
         });
}

LogicalResult NestExpander::addTravellers(LoopAttr loop) {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    if (!travels(store, loop))
      continue;
    ShiftAttr shift = loop.getShift();
    StringRef axis = loop.getAxes().front();
    SmallVector<Traveller> made;
    for (Value buffer : store.getBuffers()) {
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      StringRef name = getName(number);
      auto via = shift.getVia()
                     ? dyn_cast_or_null<StringAttr>(shift.getVia().get(name))
                     : StringAttr();
      if (via ? via == "deliver" : shift.getResults() == ResultVia::Deliver)
        return needsRule("R6 by deliver", "only travel is lowered");
      auto type = cast<BufferType>(memory[buffer].getType());
      if (shift.getLink() && shift.getLink() != type.getElementType())
        return needsRule("R6 with a link type", "partial results travel as "
                                                "they are merged");
      if (shift.getChunks() != 1)
        return needsRule("R6 in chunks", "only whole parts are lowered");
      PlacementAttr inside = program.getBinding(number).getInside();
      Traveller traveller{buffer, {}, {}, {}};
      for (Attribute factor : inside.getCut(axis).getFactors()) {
        auto level = dyn_cast<StringAttr>(factor);
        if (!level)
          return needsRule("R6 of a strided placement", "a part is in pieces");
        traveller.levels.push_back(level);
      }
      NamedAttribute parts(
          builder.getStringAttr(axis),
          builder.getI64IntegerAttr(getRanks(traveller.levels)));
      PlacementAttr others = dropCuts(getPartialPlacement(store, inside), axis);
      traveller.partial = makeMemory(type, 2, others, parts);
      traveller.incoming = makeMemory(type, 1, others, parts);
      made.push_back(traveller);
    }
    travellers[loop.getName()].emplace_back(store, made);
  }
  return success();
}

/// The tile of a traveller's memory for `part` of the ring on `level`.
Value NestExpander::getTravelTile(const Traveller &traveller, StringRef axis,
                                  StringAttr level, Value memory, Value part,
                                  Value slot) {
  std::pair<StringRef, Part> at(axis, getPart(traveller.levels, level, part));
  return getTileAt(memory, at, slot);
}
