//===- ComputeTransforms.cpp - tile, join, reorder, patch -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transform/CommIRTransformOps.h"
#include "dialect/CommIR/Transform/Step.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::commir;
using llvm::formatv;

DiagnosedSilenceableFailure
transform::TileTransform::apply(TransformRewriter &, TransformResults &,
                                TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    Draft::Found found = draft.findLoop(getLoop(), why);
    if (!found.nest)
      return why;
    LoopAttr loop = found.loop();
    if (!isWhole(loop))
      return formatv("a loop to tile must not be cut yet, '{0}' has {1} parts",
                     getLoop(), loop.getParts());
    auto number = dyn_cast<IntegerAttr>(getInto());
    auto sizes = dyn_cast<DenseI64ArrayAttr>(getInto());
    if (sizes) {
      if (loop.getAxes().size() > 1)
        return formatv("the sizes of parts must be of a loop over one axis, "
                       "'{0}' is over {1}",
                       getLoop(), loop.getAxes().size());
      why = draft.setSizes(loop.getAxes().front(), sizes);
      if (!why.empty())
        return why;
    }
    int64_t parts =
        number  ? number.getInt()
        : sizes ? sizes.size()
                : draft.getMesh().getLevelSize(cast<StringAttr>(getInto()));
    if (parts < 1)
      return "a loop must be tiled into a number of parts or a level, got " +
             (number ? std::to_string(parts)
                     : formatv("'{0}'; the levels are {1}",
                               cast<StringAttr>(getInto()).getValue(),
                               draft.getMesh().describeLevels())
                           .str());
    std::string outer = getLoop().str() + "_outer";
    std::string inner = getLoop().str() + "_inner";
    if (std::optional<ArrayAttr> names = getNames()) {
      if (names->size() != 2)
        return formatv("the outer and the inner loop must have two new names, "
                       "got {0}",
                       names->size());
      outer = cast<StringAttr>((*names)[0]).str();
      inner = cast<StringAttr>((*names)[1]).str();
    }
    for (StringRef name : {outer, inner})
      if (outer == inner || name.empty() ||
          (name != getLoop() && draft.hasLoop(name)))
        return formatv("the outer and the inner loop must have two new names, "
                       "got '{0}' and '{1}'",
                       outer, inner);
    found.loop() = makeLoop(draft.getContext(), outer, loop.getAxes(), parts);
    found.nest->loops.insert(
        found.nest->loops.begin() + found.at + 1,
        makeLoop(draft.getContext(), inner, loop.getAxes()));
    return "";
  };
  return applyStep(*this, state, getTarget(), "tile loop '" + getLoop() + "'",
                   edit);
}

DiagnosedSilenceableFailure
transform::JoinTransform::apply(TransformRewriter &, TransformResults &,
                                TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    Draft::Found outer = draft.findLoop(getOuter(), why);
    Draft::Found inner = draft.findLoop(getInner(), why);
    if (!outer.nest || !inner.nest)
      return why;
    if (outer.nest != inner.nest || inner.at != outer.at + 1)
      return formatv("loops to join must be adjacent, outer first: '{0}' does "
                     "not follow '{1}' directly; reorder them first",
                     getInner(), getOuter());
    SmallVector<StringAttr> axes;
    int64_t parts = 1;
    for (LoopAttr loop : {outer.loop(), inner.loop()}) {
      if (loop.isParallel() || loop.getShift())
        return formatv("a loop to join must not be parallel or shifted, '{0}' "
                       "is",
                       loop.getName());
      parts *= loop.getParts();
      for (StringAttr axis : loop.getAxes())
        if (!llvm::is_contained(axes, axis))
          axes.push_back(axis);
    }
    if (axes.size() > 1 && parts > 1)
      return "loops over different axes must be whole to be joined; join "
             "first, then cut";
    std::string name = getName() ? getName()->str()
                       : axes.size() == 1
                           ? axes.front().str()
                           : (getOuter() + "_" + getInner()).str();
    if (name.empty() ||
        (name != getOuter() && name != getInner() && draft.hasLoop(name)))
      return formatv("a joined loop must have a new name, got '{0}'", name);
    outer.loop() = makeLoop(draft.getContext(), name, axes, parts);
    outer.nest->loops.erase(outer.nest->loops.begin() + inner.at);
    return "";
  };
  return applyStep(*this, state, getTarget(),
                   "join loops '" + getOuter() + "' and '" + getInner() + "'",
                   edit);
}

/// The loops over `axis`, in order.
static SmallVector<LoopAttr> getLoopsOver(ArrayRef<LoopAttr> loops,
                                          StringAttr axis) {
  SmallVector<LoopAttr> found;
  for (LoopAttr loop : loops)
    if (loop.isOver(axis))
      found.push_back(loop);
  return found;
}

DiagnosedSilenceableFailure
transform::ReorderTransform::apply(TransformRewriter &, TransformResults &,
                                   TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    Draft::Nest *nest = nullptr;
    SmallVector<size_t> places;
    SmallVector<LoopAttr> order;
    for (StringAttr name : getNames(getLoops())) {
      Draft::Found found = draft.findLoop(name, why);
      if (!found.nest)
        return why;
      if ((nest && found.nest != nest) || llvm::is_contained(places, found.at))
        return "loops to reorder must be at least two different loops of one "
               "nest";
      nest = found.nest;
      places.push_back(found.at);
      order.push_back(found.loop());
    }
    if (places.size() < 2)
      return "loops to reorder must be at least two different loops of one "
             "nest";
    SmallVector<LoopAttr> before = nest->loops;
    llvm::sort(places);
    for (auto [place, loop] : llvm::zip_equal(places, order))
      nest->loops[place] = loop;
    for (LoopAttr loop : order)
      for (StringAttr axis : loop.getAxes())
        if (getLoopsOver(before, axis) != getLoopsOver(nest->loops, axis))
          return formatv("a loop must stay inside the loop that cuts its axis "
                         "first, '{0}' of axis '{1}' would not",
                         loop.getName(), axis.getValue());
    return "";
  };
  return applyStep(*this, state, getTarget(),
                   "reorder loops " + quote(getLoops()), edit);
}

DiagnosedSilenceableFailure
transform::PatchTransform::apply(TransformRewriter &, TransformResults &,
                                 TransformState &state) {
  StringRef prefix = getPattern();
  bool open = prefix.consume_back("*");
  SmallVector<KernelOp> matched;
  auto edit = [&](Draft &draft) -> std::string {
    size_t before = matched.size();
    draft.getProgram().walk([&](KernelOp kernel) {
      if (open ? kernel.getKernel().starts_with(prefix)
               : kernel.getKernel() == prefix)
        matched.push_back(kernel);
    });
    if (matched.size() == before)
      return formatv("the pattern must match a kernel of the program, '{0}' "
                     "matches none",
                     getPattern());
    return "";
  };
  DiagnosedSilenceableFailure result = applyStep(
      *this, state, getTarget(), "patch kernels '" + getPattern() + "'", edit);
  if (result.succeeded())
    for (KernelOp kernel : matched)
      kernel.setImplAttr(getImplAttr());
  return result;
}
