//===- NestSchedule.cpp - Questions that many rules ask -------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestSchedule.h"
#include "dialect/CommIR/LoopRules.h"

using namespace mlir;
using namespace mlir::commir;

Type mlir::commir::getElementType(Value value) {
  return isa<BufferType>(value.getType())
             ? cast<BufferType>(value.getType()).getElementType()
             : cast<TileType>(value.getType()).getElementType();
}

SmallVector<LoopAttr> mlir::commir::splitSequences(ProgramOp program,
                                                   ForOp nest) {
  SmallVector<LoopAttr> loops;
  for (auto loop : nest.getLoops().getAsRange<LoopAttr>()) {
    if (loop.isParallel() || loop.getAxes().size() == 1) {
      loops.push_back(loop);
      continue;
    }
    // It is cut along whole axes, the outer first: so they nest.
    auto parts = *getPartsOfAxes(program, loop);
    for (auto [axis, count] : llvm::zip_equal(loop.getAxes(), parts))
      loops.push_back(LoopAttr::get(
          loop.getContext(), (loop.getName() + "." + axis.getValue()).str(),
          axis, count, ArrayRef<StringAttr>(), ShiftAttr()));
  }
  return loops;
}

int64_t NestSchedule::countParts(ArrayRef<Attribute> factors) {
  int64_t parts = 1;
  for (Attribute factor : factors) {
    auto level = dyn_cast<StringAttr>(factor);
    parts *=
        level ? mesh.getLevelSize(level) : cast<IntegerAttr>(factor).getInt();
  }
  return parts;
}

bool NestSchedule::isNumberIn(LoopAttr loop, ArrayRef<Attribute> factors) {
  return !loop.isParallel() && loop.getParts() > 1 &&
         (!loop.getShift() ||
          llvm::none_of(getRingLevels(loop), [&](StringAttr level) {
            return llvm::is_contained(factors, level);
          }));
}

bool NestSchedule::isOpenAround(LoopAttr loop, StringRef axis,
                                ArrayRef<Attribute> factors) {
  auto around =
      ArrayRef(loops).take_while([&](LoopAttr outer) { return outer != loop; });
  return llvm::count_if(factors, llvm::IsaPred<IntegerAttr>) <=
         llvm::count_if(around, [&](LoopAttr outer) {
           return outer.isOver(axis) && isNumberIn(outer, factors);
         });
}

PlacementAttr NestSchedule::dropCuts(PlacementAttr placement,
                                     ArrayRef<StringRef> axes) {
  SmallVector<CutAttr> kept(
      llvm::make_filter_range(placement.getCuts(), [&](CutAttr cut) {
        return !llvm::is_contained(axes, cut.getAxis());
      }));
  return PlacementAttr::get(nest.getContext(), kept);
}

/// Whether a kernel's result enters an output once, when that is whole.
bool NestSchedule::entersOnce(KernelOp kernel) {
  return llvm::any_of(kernel->getUsers(), [&](Operation *user) {
    auto store = dyn_cast<StoreOp>(user);
    return store && llvm::any_of(store.getOnce(), [&](Value tile) {
             return tile.getDefiningOp() == kernel;
           });
  });
}

/// The levels that stagger a loop; one of a single rank does not.
SmallVector<StringAttr> NestSchedule::getRingLevels(LoopAttr loop) {
  if (!loop.getShift())
    return {};
  return SmallVector<StringAttr>(llvm::make_filter_range(
      loop.getShift().getLevels(),
      [&](StringAttr level) { return mesh.getLevelSize(level) != 1; }));
}

/// Whether a loop over `axis` runs in parallel on `level`.
bool NestSchedule::isParallelOver(StringRef axis, StringRef level) {
  return llvm::any_of(loops, [&](LoopAttr loop) {
    return loop.isOver(axis) && loop.isParallelOn(level);
  });
}

bool NestSchedule::isStriped(StringRef axis) {
  return program.getAxis(axis).getLayout().getKind() == Layout::Kind::Striped;
}
