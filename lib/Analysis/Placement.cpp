//===- Placement.cpp - Where a schedule makes buffers live ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "dialect/CommIR/LoopRules.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Finds the cut of one axis of a buffer from the loops over that axis.
class CutFinder {
public:
  CutFinder(ProgramOp program, ForOp nest, BufferType type, BindingAttr binding)
      : program(program), mesh(program.getMeshOp()), nest(nest), type(type),
        builder(program.getContext()) {
    for (StringAttr level : binding.getReplicate())
      taken.insert(level.getValue());
    if (PlacementAttr shard = binding.getShard())
      for (CutAttr cut : shard.getCuts())
        for (auto level : llvm::make_filter_range(cut.getFactors(),
                                                  llvm::IsaPred<StringAttr>))
          taken.insert(cast<StringAttr>(level).getValue());
    // A parallel loop over any axis of the buffer wins over a shifted one, and
    // the outermost of two loops that are shifted on one level.
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>()) {
      if (llvm::none_of(loop.getAxes(), [&](StringAttr a) { return uses(a); }))
        continue;
      for (StringAttr level : loop.getLevels())
        parallel.insert(level.getValue());
      if (loop.getShift())
        for (StringAttr level : loop.getShift().getLevels())
          shifted.try_emplace(level.getValue(), loop.getName());
    }
  }

  /// The factors of `axis`, outermost first; trailing numbers cut nothing that
  /// a placement need know.
  SmallVector<Attribute> find(StringRef axis) {
    SmallVector<Attribute> factors;
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>()) {
      if (!loop.isOver(axis))
        continue;
      if (loop.isParallel())
        addParallel(loop, axis, factors);
      else if (loop.getShift())
        addShifted(loop, factors);
      else if (loop.getParts() > 1)
        factors.push_back(builder.getI64IntegerAttr(loop.getParts()));
    }
    while (!factors.empty() && isa<IntegerAttr>(factors.back()))
      factors.pop_back();
    return factors;
  }

private:
  bool uses(StringRef axis) {
    return llvm::any_of(type.getDims(), [&](DimAttr dim) {
      return !dim.isConstant() && dim.getAxis() == axis;
    });
  }

  void addParallel(LoopAttr loop, StringRef axis,
                   SmallVectorImpl<Attribute> &factors) {
    auto levels = *getLevelsOfAxes(program, mesh, loop);
    for (auto [name, own] : llvm::zip_equal(loop.getAxes(), levels)) {
      if (name != axis)
        continue;
      for (StringAttr level : own) {
        if (taken.contains(level.getValue()))
          factors.push_back(
              builder.getI64IntegerAttr(mesh.getLevelSize(level)));
        else
          factors.push_back(level);
      }
    }
  }

  /// Each rank owns the m = J / n consecutive parts that it starts with.
  void addShifted(LoopAttr loop, SmallVectorImpl<Attribute> &factors) {
    int64_t left = loop.getParts();
    for (StringAttr level : loop.getShift().getLevels()) {
      int64_t size = mesh.getLevelSize(level);
      if (taken.contains(level.getValue()) ||
          parallel.contains(level.getValue()) ||
          shifted.lookup(level.getValue()) != loop.getName() ||
          left % size != 0)
        continue;
      factors.push_back(level);
      left /= size;
    }
    if (left > 1)
      factors.push_back(builder.getI64IntegerAttr(left));
  }

  ProgramOp program;
  MeshOp mesh;
  ForOp nest;
  BufferType type;
  Builder builder;
  llvm::StringSet<> taken;
  llvm::StringSet<> parallel;
  /// The loop that cuts the buffer over each level by being shifted on it.
  llvm::StringMap<StringRef> shifted;
};
} // namespace

PlacementAttr mlir::commir::inferPlacement(ProgramOp program, ForOp nest,
                                           int64_t buffer) {
  BindingAttr binding = program.getBinding(buffer);
  BufferType type = program.getBufferType(buffer);
  CutFinder finder(program, nest, type, binding);
  SmallVector<CutAttr> cuts;
  for (DimAttr dim : type.getDims()) {
    if (dim.isConstant())
      continue;
    // What was asked for comes first; the loops cut it further.
    SmallVector<Attribute> factors;
    if (CutAttr shard = binding.getShard()
                            ? binding.getShard().getCut(dim.getAxis())
                            : CutAttr())
      factors.append(shard.getFactors().begin(), shard.getFactors().end());
    SmallVector<Attribute> found = finder.find(dim.getAxis());
    if (factors.empty() || llvm::any_of(found, llvm::IsaPred<StringAttr>))
      factors.append(found);
    if (llvm::any_of(factors, llvm::IsaPred<StringAttr>))
      cuts.push_back(CutAttr::get(program.getContext(), dim.getAxis(), factors,
                                  LayoutAttr()));
  }
  return PlacementAttr::get(program.getContext(), cuts);
}

SmallVector<Attribute> mlir::commir::getFactors(MeshOp mesh, CutAttr cut) {
  SmallVector<Attribute> factors;
  for (Attribute factor : cut.getFactors()) {
    auto level = dyn_cast<StringAttr>(factor);
    if (level ? mesh.getLevelSize(level) != 1
              : cast<IntegerAttr>(factor).getInt() != 1)
      factors.push_back(factor);
  }
  return factors;
}

SmallVector<Attribute>
mlir::commir::getLoopFactors(ProgramOp program, ForOp nest, StringRef axis) {
  MeshOp mesh = program.getMeshOp();
  Builder builder(program.getContext());
  SmallVector<Attribute> factors;
  auto getCutting = [&](ArrayRef<StringAttr> levels) {
    return SmallVector<Attribute>(
        llvm::make_filter_range(levels, [&](StringAttr level) {
          return mesh.getLevelSize(level) != 1;
        }));
  };
  // A level cuts an axis once: where a parallel loop does it, one that is
  // staggered over the same level walks parts of its own.
  auto isParallelOver = [&](Attribute level) {
    return llvm::any_of(nest.getLoops().getAsRange<LoopAttr>(),
                        [&](LoopAttr loop) {
                          return loop.isOver(axis) &&
                                 loop.isParallelOn(cast<StringAttr>(level));
                        });
  };
  for (auto loop : nest.getLoops().getAsRange<LoopAttr>()) {
    size_t at = llvm::find_if(loop.getAxes(),
                              [&](StringAttr name) { return name == axis; }) -
                loop.getAxes().begin();
    if (at == loop.getAxes().size())
      continue;
    SmallVector<Attribute> levels;
    if (loop.isParallel())
      levels = getCutting((*getLevelsOfAxes(program, mesh, loop))[at]);
    else if (loop.getShift())
      levels = getCutting(loop.getShift().getLevels());
    if (loop.isParallel() ||
        (!levels.empty() && llvm::none_of(levels, isParallelOver)))
      factors.append(levels);
    else if (int64_t parts = (*getPartsOfAxes(program, loop))[at]; parts != 1)
      factors.push_back(builder.getI64IntegerAttr(parts));
  }
  return factors;
}

bool mlir::commir::isSamePlacement(ProgramOp program, PlacementAttr one,
                                   PlacementAttr other) {
  MeshOp mesh = program.getMeshOp();
  // The cuts in the order of their axes, with what they leave unsaid.
  auto normalize = [&](PlacementAttr placement) {
    SmallVector<CutAttr> cuts;
    for (CutAttr cut : placement.getCuts()) {
      LayoutAttr layout = cut.getLayout()
                              ? cut.getLayout()
                              : program.getAxis(cut.getAxis()).getLayout();
      SmallVector<Attribute> factors = getFactors(mesh, cut);
      if (llvm::any_of(factors, llvm::IsaPred<StringAttr>))
        cuts.push_back(
            CutAttr::get(program.getContext(), cut.getAxis(), factors, layout));
    }
    llvm::sort(cuts,
               [](CutAttr a, CutAttr b) { return a.getAxis() < b.getAxis(); });
    return cuts;
  };
  return normalize(one) == normalize(other);
}
