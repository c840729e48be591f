//===- Placement.cpp - Where a schedule makes buffers live ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "dialect/CommIR/LoopRules.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Finds the cut of one axis of a buffer from the loops over that axis.
class CutFinder {
public:
  CutFinder(ProgramOp program, ForOp nest, BufferType type,
            BindingAttr binding)
      : program(program), mesh(program.getMeshOp()), nest(nest), type(type),
        builder(program.getContext()) {
    for (StringAttr level : binding.getReplicate())
      taken.insert(level.getValue());
    if (PlacementAttr shard = binding.getShard())
      for (CutAttr cut : shard.getCuts())
        for (auto level : llvm::make_filter_range(cut.getFactors(),
                                                  llvm::IsaPred<StringAttr>))
          taken.insert(cast<StringAttr>(level).getValue());
    // A parallel loop over any axis of the buffer wins over a shifted one.
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
      if (llvm::any_of(loop.getAxes(), [&](StringAttr a) { return uses(a); }))
        for (StringAttr level : loop.getLevels())
          parallel.insert(level.getValue());
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
          parallel.contains(level.getValue()) || left % size != 0)
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
