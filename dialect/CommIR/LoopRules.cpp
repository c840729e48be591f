//===- LoopRules.cpp - What makes a list of loops legal -------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::commir;
using llvm::formatv;

std::optional<SmallVector<int64_t>>
mlir::commir::getPartsOfAxes(ProgramOp program, LoopAttr loop) {
  SmallVector<int64_t> parts(loop.getAxes().size(), 1);
  int64_t left = loop.getParts();
  for (auto [i, name] : llvm::enumerate(loop.getAxes())) {
    int64_t extent = program.getAxis(name).getExtent();
    bool last = i + 1 == loop.getAxes().size();
    // An axis without positions takes every part there is: all are empty.
    if (last || left <= extent || extent == 0) {
      parts[i] = left;
      return parts;
    }
    if (left % extent != 0)
      return std::nullopt;
    parts[i] = extent;
    left /= extent;
  }
  return parts;
}

std::optional<SmallVector<SmallVector<StringAttr>>>
mlir::commir::getLevelsOfAxes(ProgramOp program, MeshOp mesh, LoopAttr loop) {
  std::optional<SmallVector<int64_t>> parts = getPartsOfAxes(program, loop);
  if (!parts)
    return std::nullopt;
  SmallVector<SmallVector<StringAttr>> levels(parts->size());
  size_t axis = 0;
  int64_t ranks = 1;
  for (StringAttr level : loop.getLevels()) {
    // A level of one rank cuts nothing and fits anywhere.
    int64_t size = mesh.getLevelSize(level);
    while (size > 1 && ranks == (*parts)[axis] && axis + 1 < parts->size()) {
      ++axis;
      ranks = 1;
    }
    levels[axis].push_back(level);
    ranks *= size;
    if (ranks > (*parts)[axis] || (*parts)[axis] % ranks != 0)
      return std::nullopt;
  }
  return levels;
}

static std::string checkAxes(ProgramOp program, LoopAttr loop,
                             ArrayRef<LoopAttr> loops) {
  for (StringAttr axis : loop.getAxes()) {
    if (!program.getAxis(axis))
      return formatv("loop '{0}' must run over an axis of the program, '{1}' "
                     "is none",
                     loop.getName(), axis.getValue());
    for (LoopAttr other : loops)
      if (loop.getAxes().size() > 1 && other != loop && other.isOver(axis))
        return formatv("axis '{0}' in joined loop '{1}' must have no other "
                       "loop, got '{2}'",
                       axis.getValue(), loop.getName(), other.getName());
  }
  return "";
}

static std::string checkParallel(ProgramOp program, MeshOp mesh, LoopAttr loop,
                                 llvm::StringMap<StringRef> &taken) {
  int64_t ranks = 1;
  for (StringAttr level : loop.getLevels()) {
    int64_t size = mesh.getLevelSize(level);
    if (size == 0)
      return formatv("parallel loop '{0}' must name levels of the mesh ({1}), "
                     "got '{2}'",
                     loop.getName(), mesh.describeLevels(), level.getValue());
    auto [it, fresh] = taken.try_emplace(level.getValue(), loop.getName());
    if (!fresh)
      return formatv("level '{0}' must not run two parallel loops, '{1}' is "
                     "parallel on it already",
                     level.getValue(), it->second);
    ranks *= size;
  }
  if (loop.isParallel() && loop.getParts() != ranks)
    return formatv("parallel loop '{0}' must have as many parts as its levels "
                   "have ranks, {1}, got {2}",
                   loop.getName(), ranks, loop.getParts());
  if (!getPartsOfAxes(program, loop) || !getLevelsOfAxes(program, mesh, loop))
    return formatv("joined loop '{0}' must be cut along whole axes, {1} parts "
                   "are not; split the level, or parallelize its axes one by "
                   "one",
                   loop.getName(), loop.getParts());
  return "";
}

static const LoopAttr *findLoop(ArrayRef<LoopAttr> loops, StringRef name) {
  return llvm::find_if(loops,
                       [&](LoopAttr loop) { return loop.getName() == name; });
}

std::string mlir::commir::whyNotShiftedBy(StringRef loop, StringRef by,
                                          ArrayRef<LoopAttr> loops) {
  const LoopAttr *found = findLoop(loops, by);
  if (found != loops.end() && found->isParallel())
    return "";
  return formatv("loop '{0}' must be shifted by a parallel loop of the nest, "
                 "'{1}' is {2}",
                 loop, by,
                 found == loops.end() ? "none"
                                      : "not parallel; parallelize it first");
}

static std::string checkShift(ProgramOp program, MeshOp mesh, LoopAttr loop,
                              ArrayRef<LoopAttr> loops) {
  ShiftAttr shift = loop.getShift();
  if (!shift)
    return "";
  if (loop.getAxes().size() != 1)
    return formatv("shifted loop '{0}' must run over one axis, got {1}",
                   loop.getName(), loop.getAxes().size());
  for (auto [by, level] :
       llvm::zip_equal(shift.getLoops(), shift.getLevels())) {
    if (std::string why = whyNotShiftedBy(loop.getName(), by, loops);
        !why.empty())
      return why;
    const LoopAttr *found = findLoop(loops, by);
    if (loop.isParallelOn(level))
      return formatv("shifted loop '{0}' must not be parallel on the level it "
                     "is shifted on, '{1}'",
                     loop.getName(), level.getValue());
    if (!found->isParallelOn(level))
      return formatv("loop '{0}' must be shifted on a level of the loop it is "
                     "shifted by, '{1}' is not parallel on '{2}'",
                     loop.getName(), by.getValue(), level.getValue());
    if (loop.getParts() % mesh.getLevelSize(level) != 0)
      return formatv(
          "the parts of shifted loop '{0}' must be a multiple of the "
          "ranks it is shifted over, {1} on '{2}', got {3}",
          loop.getName(), mesh.getLevelSize(level), level.getValue(),
          loop.getParts());
  }
  if (!shift.getVia())
    return "";
  for (NamedAttribute entry : shift.getVia()) {
    int64_t buffer = program.getBufferNumber(entry.getName());
    if (buffer < 0)
      return formatv("the shift's via must name buffers of the program, '{0}' "
                     "is none",
                     entry.getName().getValue());
    StringRef mode = cast<StringAttr>(entry.getValue()).getValue();
    if (program.isInput(buffer) != symbolizeReadVia(mode).has_value())
      return formatv("the shift's via must move an input by rotate or pull, an "
                     "output by travel, deliver or fetch, '{0}' is an {1} and "
                     "has {2}",
                     entry.getName().getValue(),
                     program.isInput(buffer) ? "input" : "output", mode);
  }
  return "";
}

std::string mlir::commir::whyNotLoops(ProgramOp program, MeshOp mesh,
                                      ArrayRef<LoopAttr> loops) {
  llvm::StringMap<StringRef> taken;
  llvm::StringMap<int64_t> parts;
  for (LoopAttr loop : loops) {
    if (std::string why = checkAxes(program, loop, loops); !why.empty())
      return why;
    if (std::string why = checkParallel(program, mesh, loop, taken);
        !why.empty())
      return why;
  }
  for (LoopAttr loop : loops) {
    if (std::string why = checkShift(program, mesh, loop, loops); !why.empty())
      return why;
    // A part that moves in chunks is cut into them.
    int64_t chunks = loop.getShift() ? loop.getShift().getChunks() : 1;
    for (auto [axis, cut] :
         llvm::zip_equal(loop.getAxes(), *getPartsOfAxes(program, loop))) {
      int64_t &total = parts.try_emplace(axis.getValue(), 1).first->second;
      if (cut > kMaxShards / total / chunks)
        return formatv("the parts of axis '{0}' must be at most 2^20",
                       axis.getValue());
      total *= cut * chunks;
    }
  }
  for (auto axis : program.getAxes().getAsRange<AxisAttr>()) {
    auto cut = parts.find(axis.getName());
    if (cut == parts.end())
      continue;
    std::string why =
        axis.getLayout().getLayout().whyNot(axis.getExtent(), cut->second);
    if (!why.empty())
      return formatv("the parts of axis '{0}' must fit its layout: {1}",
                     axis.getName(), why);
  }
  return "";
}

static std::string checkPlacement(ProgramOp program, MeshOp mesh,
                                  BindingAttr binding, BufferType type,
                                  PlacementAttr placement) {
  if (!placement)
    return "";
  for (CutAttr cut : placement.getCuts()) {
    if (!type.hasAxis(cut.getAxis()))
      return formatv(
          "the placement of '{0}' must cut axes of its buffer, '{1}' "
          "is none",
          binding.getName(), cut.getAxis());
    int64_t shards = 1;
    for (Attribute factor : cut.getFactors()) {
      auto level = dyn_cast<StringAttr>(factor);
      int64_t size =
          level ? mesh.getLevelSize(level) : cast<IntegerAttr>(factor).getInt();
      if (size == 0)
        return formatv("the placement of '{0}' must name levels of the mesh "
                       "({1}), got '{2}'",
                       binding.getName(), mesh.describeLevels(),
                       level.getValue());
      if (size > kMaxShards / shards)
        return formatv("the placement of '{0}' must cut into at most 2^20 "
                       "shards",
                       binding.getName());
      shards *= size;
    }
    AxisAttr axis = program.getAxis(cut.getAxis());
    LayoutAttr layout = cut.getLayout() ? cut.getLayout() : axis.getLayout();
    std::string why = layout.getLayout().whyNot(axis.getExtent(), shards);
    if (!why.empty())
      return formatv("the layout of the cut of '{0}' along '{1}' must fit the "
                     "axis: {2}",
                     binding.getName(), cut.getAxis(), why);
  }
  return "";
}

std::string mlir::commir::whyNotBinding(ProgramOp program, MeshOp mesh,
                                        BindingAttr binding, BufferType type) {
  for (PlacementAttr placement :
       {binding.getBoundary(), binding.getShard(), binding.getInside()})
    if (std::string why =
            checkPlacement(program, mesh, binding, type, placement);
        !why.empty())
      return why;
  for (StringAttr axis : binding.getBroadcast()) {
    CutAttr cut =
        binding.getShard() ? binding.getShard().getCut(axis) : CutAttr();
    if (!program.isInput(program.getBufferNumber(binding.getName())) || !cut ||
        !llvm::all_of(cut.getFactors(), llvm::IsaPred<StringAttr>))
      return formatv(
          "what is broadcast must be an input, along an axis that it "
          "is sharded on, '{0}' along '{1}' is not",
          binding.getName(), axis.getValue());
  }
  llvm::StringSet<> seen;
  for (StringAttr level : binding.getReplicate()) {
    if (!seen.insert(level.getValue()).second)
      return formatv(
          "a buffer must not be replicated twice over a level, '{0}' "
          "is over '{1}' already",
          binding.getName(), level.getValue());
    if (mesh.getLevelSize(level) == 0)
      return formatv("the placement of '{0}' must name levels of the mesh "
                     "({1}), got '{2}'",
                     binding.getName(), mesh.describeLevels(),
                     level.getValue());
    if (binding.getShard() && binding.getShard().hasLevel(level))
      return formatv("level '{0}' must not be both replicated and sharded for "
                     "'{1}'",
                     level.getValue(), binding.getName());
  }
  return "";
}

/// The rule for one axis of one binding.
static std::string checkBroadcast(ProgramOp program, MeshOp mesh,
                                  BindingAttr binding, StringAttr axis,
                                  ArrayRef<LoopAttr> loops) {
  int64_t shards = 1;
  SmallVector<StringAttr> levels;
  for (Attribute factor : binding.getShard().getCut(axis).getFactors()) {
    auto level = cast<StringAttr>(factor);
    shards *= mesh.getLevelSize(level);
    if (mesh.getLevelSize(level) != 1)
      levels.push_back(level);
  }
  // R1, or R8: where the axis runs in parallel on one of them, nothing is
  // broadcast.
  if (llvm::any_of(loops, [&](LoopAttr loop) {
        return loop.isOver(axis) && llvm::any_of(levels, [&](StringAttr level) {
                 return loop.isParallelOn(level);
               });
      }))
    return "";
  bool outermost = true;
  for (LoopAttr loop : loops) {
    if (!loop.isOver(axis))
      continue;
    for (StringAttr level : levels)
      if (loop.getShift() &&
          llvm::is_contained(loop.getShift().getLevels(), level))
        return formatv("loop '{0}' must not be shifted over a level that its "
                       "axis is broadcast on, '{1}' of '{2}'",
                       loop.getName(), level.getValue(), binding.getName());
    size_t number = llvm::find(loop.getAxes(), axis) - loop.getAxes().begin();
    int64_t parts = (*getPartsOfAxes(program, loop))[number];
    if (outermost && parts != 1 && parts % shards != 0)
      return formatv("the outermost cut of an axis must be a multiple of the "
                     "shards that are broadcast along it, {0} of '{1}', got "
                     "{2} in loop '{3}'",
                     shards, binding.getName(), parts, loop.getName());
    outermost &= parts == 1;
  }
  return "";
}

std::string mlir::commir::whyNotBroadcast(MeshOp mesh, ForOp nest,
                                          ArrayRef<LoopAttr> loops,
                                          ArrayRef<BindingAttr> bindings) {
  auto program = nest->getParentOfType<ProgramOp>();
  for (LoadOp load : nest.getBody().getOps<LoadOp>()) {
    BindingAttr binding =
        bindings[cast<BlockArgument>(load.getBuffer()).getArgNumber()];
    for (StringAttr axis : binding.getBroadcast())
      if (std::string why = checkBroadcast(program, mesh, binding, axis, loops);
          !why.empty())
        return why;
  }
  return "";
}
