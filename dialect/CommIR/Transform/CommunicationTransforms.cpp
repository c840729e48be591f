//===- CommunicationTransforms.cpp - How a schedule communicates ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "dialect/CommIR/Overlap.h"
#include "dialect/CommIR/Transform/CommIRTransformOps.h"
#include "dialect/CommIR/Transform/Step.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace mlir::commir;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// parallelize, shift
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure
transform::ParallelizeTransform::apply(TransformRewriter &, TransformResults &,
                                       TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    Draft::Found found = draft.findLoop(getLoop(), why);
    if (!found.nest)
      return why;
    LoopAttr loop = found.loop();
    if (loop.isParallel() || loop.getShift())
      return formatv("a loop to parallelize must not be parallel or shifted "
                     "already, '{0}' is",
                     getLoop());
    SmallVector<StringAttr> levels = getNames(getLevels());
    if (levels.empty())
      return "a loop must be spread over at least one level, got none";
    // What the mesh lacks or what is named twice, the loop rules refuse.
    int64_t ranks = 1;
    for (StringAttr level :
         llvm::SmallSetVector<StringAttr, 4>(levels.begin(), levels.end()))
      ranks *= std::max<int64_t>(draft.getMesh().getLevelSize(level), 1);
    found.loop() =
        makeLoop(draft.getContext(), loop.getName(), loop.getAxes(),
                 loop.getParts() == 1 ? ranks : loop.getParts(), levels);
    return "";
  };
  return applyStep(
      *this, state, getTarget(),
      "parallelize loop '" + getLoop() + "' over " + quote(getLevels()), edit);
}

/// A shift's loops and levels, term by term.
struct ShiftTerms {
  SmallVector<StringAttr> loops;
  SmallVector<StringAttr> levels;
};

/// The terms of a shift by the loops in `by`: every level that they are
/// parallel on, or those in `over`.
static std::string collectTerms(Draft::Nest &nest, StringRef loop, ArrayAttr by,
                                std::optional<ArrayAttr> over,
                                ShiftTerms &terms) {
  for (StringAttr name : getNames(by)) {
    if (std::string why = whyNotShiftedBy(loop, name, nest.loops); !why.empty())
      return why;
    const LoopAttr *found = llvm::find_if(
        nest.loops, [&](LoopAttr other) { return other.getName() == name; });
    size_t before = terms.levels.size();
    for (StringAttr level : found->getLevels())
      if (!over || llvm::is_contained(*over, level)) {
        terms.loops.push_back(name);
        terms.levels.push_back(level);
      }
    if (terms.levels.size() == before)
      return formatv(
          "the levels to shift over must be levels of the loop it is "
          "shifted by, got {0} for '{1}'",
          over->empty() ? std::string("none") : quote(*over), name.getValue());
  }
  for (StringAttr level :
       getNames(over.value_or(ArrayAttr::get(by.getContext(), {}))))
    if (!llvm::is_contained(terms.levels, level))
      return formatv(
          "the levels to shift over must be levels of the loop it is "
          "shifted by, '{0}' is none",
          level.getValue());
  return "";
}

DiagnosedSilenceableFailure
transform::ShiftTransform::apply(TransformRewriter &, TransformResults &,
                                 TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    Draft::Found found = draft.findLoop(getLoop(), why);
    if (!found.nest)
      return why;
    LoopAttr loop = found.loop();
    if (loop.getShift())
      return formatv("a loop to shift must not be shifted already, '{0}' is",
                     getLoop());
    if (getBy().empty() || llvm::is_contained(getBy(), getLoopAttr()))
      return formatv("a loop must be shifted by other loops, got {0}",
                     getBy().empty() ? std::string("none") : quote(getBy()));
    ShiftTerms terms;
    why = collectTerms(*found.nest, getLoop(), getBy(), getOver(), terms);
    if (!why.empty())
      return why;
    auto makeShift = [&](ArrayRef<StringAttr> loops,
                         ArrayRef<StringAttr> levels) {
      int64_t direction = getDirection(), offset = getOffset(),
              chunks = getChunks();
      return makeLegal<ShiftAttr>(getContext(), why, loops, levels, direction,
                                  offset, getReads(), getResults(),
                                  getVia().value_or(DictionaryAttr()), chunks,
                                  getLink().value_or(Type()));
    };
    ShiftAttr shift = makeShift(terms.loops, terms.levels);
    if (!shift)
      return why;

    MeshOp mesh = draft.getMesh();
    if (getBy().size() > 1 || terms.levels.size() == 1) {
      int64_t parts = loop.getParts();
      if (isWhole(loop))
        for (StringAttr level : terms.levels)
          parts = std::lcm(parts, mesh.getLevelSize(level));
      found.loop() = makeLoop(getContext(), loop.getName(), loop.getAxes(),
                              parts, loop.getLevels(), shift);
      return "";
    }
    // One loop over several levels: a loop a level, the slow one outermost.
    if (!isWhole(loop))
      return formatv("a nested shift must be of a loop that is not cut, '{0}' "
                     "has {1} parts",
                     getLoop(), loop.getParts());
    SmallVector<LoopAttr> nested;
    for (auto [by, level] : llvm::zip_equal(terms.loops, terms.levels)) {
      std::string name = getLoop().str() + "_" + level.str();
      if (draft.hasLoop(name))
        return formatv("the loops of a nested shift must have new names, there "
                       "is a loop '{0}' already",
                       name);
      nested.push_back(makeLoop(getContext(), name, loop.getAxes(),
                                mesh.getLevelSize(level), {},
                                makeShift(by, level)));
    }
    SmallVector<LoopAttr> &all = found.nest->loops;
    all.erase(all.begin() + found.at);
    all.insert(all.begin() + found.at, nested.begin(), nested.end());
    return "";
  };
  return applyStep(*this, state, getTarget(),
                   "shift loop '" + getLoop() + "' by " + quote(getBy()), edit);
}

//===----------------------------------------------------------------------===//
// shard, replicate
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure
transform::OverlapTransform::apply(TransformRewriter &, TransformResults &,
                                   TransformState &state) {
  SmallVector<ForOp> nests;
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    Draft::Found found = draft.findLoop(getLoop(), why);
    if (!found.nest)
      return why;
    LoopAttr loop = found.loop();
    if (!loop.getShift() && (loop.isParallel() || loop.getParts() == 1))
      return formatv("a loop whose steps overlap must be shifted or cut into "
                     "steps, '{0}' is neither",
                     getLoop());
    if (found.nest->op->hasAttr(kOverlap))
      return formatv("the steps of a loop must not overlap already, those of "
                     "{0} do",
                     found.nest->op->getAttr(kOverlap));
    nests.push_back(found.nest->op);
    return "";
  };
  DiagnosedSilenceableFailure result =
      applyStep(*this, state, getTarget(),
                "overlap the steps of loop '" + getLoop() + "'", edit);
  if (result.succeeded())
    for (ForOp nest : nests)
      nest->setAttr(kOverlap, getLoopAttr());
  return result;
}

DiagnosedSilenceableFailure
transform::ShardTransform::apply(TransformRewriter &, TransformResults &,
                                 TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    BindingAttr *binding = draft.findBinding(getBuffer(), why);
    if (!binding)
      return why;
    if (getLevels().empty())
      return "a buffer must be sharded over at least one level, got none";
    SmallVector<CutAttr> cuts;
    SmallVector<Attribute> factors;
    if (PlacementAttr old = binding->getShard()) {
      for (CutAttr cut : old.getCuts()) {
        if (cut.getAxis() == getAxis())
          factors.append(cut.getFactors().begin(), cut.getFactors().end());
        else
          cuts.push_back(cut);
      }
    }
    for (StringAttr level : getNames(getLevels())) {
      if (llvm::is_contained(factors, level) ||
          (binding->getShard() && binding->getShard().hasLevel(level)))
        return formatv("a buffer must not be sharded twice over a level, '{0}' "
                       "is over '{1}' already",
                       getBuffer(), level.getValue());
      factors.push_back(level);
    }
    cuts.push_back(CutAttr::get(getContext(), getAxis(), factors, {}));
    SmallVector<StringAttr> broadcast(binding->getBroadcast());
    if (getReads() == ShardVia::Broadcast &&
        !llvm::is_contained(broadcast, getAxisAttr()))
      broadcast.push_back(getAxisAttr());
    *binding = BindingAttr::get(
        getContext(), binding->getName(), binding->getBoundary(),
        PlacementAttr::get(getContext(), cuts), binding->getReplicate(),
        broadcast, PlacementAttr());
    return "";
  };
  return applyStep(*this, state, getTarget(),
                   "shard buffer '" + getBuffer() + "' along '" + getAxis() +
                       "' over " + quote(getLevels()),
                   edit);
}

DiagnosedSilenceableFailure
transform::ReplicateTransform::apply(TransformRewriter &, TransformResults &,
                                     TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    BindingAttr *binding = draft.findBinding(getBuffer(), why);
    if (!binding)
      return why;
    SmallVector<StringAttr> levels(binding->getReplicate());
    levels.push_back(getLevelAttr());
    *binding = BindingAttr::get(
        getContext(), binding->getName(), binding->getBoundary(),
        binding->getShard(), levels, binding->getBroadcast(), PlacementAttr());
    return "";
  };
  return applyStep(
      *this, state, getTarget(),
      "replicate buffer '" + getBuffer() + "' over '" + getLevel() + "'", edit);
}

//===----------------------------------------------------------------------===//
// split_level
//===----------------------------------------------------------------------===//

/// Replaces a name in a list by several.
template <typename AttrTy>
static SmallVector<AttrTy> splitName(ArrayRef<AttrTy> names, StringAttr name,
                                     ArrayRef<StringAttr> parts) {
  SmallVector<AttrTy> split;
  for (AttrTy attr : names) {
    if (attr == name)
      split.append(parts.begin(), parts.end());
    else
      split.push_back(attr);
  }
  return split;
}

static PlacementAttr splitPlacement(PlacementAttr placement, StringAttr level,
                                    ArrayRef<StringAttr> parts) {
  if (!placement)
    return {};
  SmallVector<CutAttr> cuts;
  for (CutAttr cut : placement.getCuts())
    cuts.push_back(CutAttr::get(
        cut.getContext(), cut.getAxis(),
        splitName<Attribute>(cut.getFactors(), level, parts), cut.getLayout()));
  return PlacementAttr::get(placement.getContext(), cuts);
}

static void splitProgram(ProgramOp program, StringAttr level,
                         ArrayRef<StringAttr> parts) {
  Builder builder(program.getContext());
  SmallVector<Attribute> bindings;
  for (auto binding : program.getBindings().getAsRange<BindingAttr>())
    bindings.push_back(BindingAttr::get(
        binding.getContext(), binding.getName(),
        splitPlacement(binding.getBoundary(), level, parts),
        splitPlacement(binding.getShard(), level, parts),
        splitName<StringAttr>(binding.getReplicate(), level, parts),
        binding.getBroadcast(),
        splitPlacement(binding.getInside(), level, parts)));
  program.setBindingsAttr(builder.getArrayAttr(bindings));
  for (ForOp nest : program.getBody().getOps<ForOp>()) {
    SmallVector<Attribute> loops;
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
      loops.push_back(makeLoop(
          loop.getContext(), loop.getName(), loop.getAxes(), loop.getParts(),
          splitName<StringAttr>(loop.getLevels(), level, parts),
          loop.getShift()));
    nest.setLoopsAttr(builder.getArrayAttr(loops));
  }
}

/// Says why the level of `mesh` cannot become the levels in `into`.
static std::string whyNotSplit(MeshOp mesh, StringAttr level, ArrayAttr into,
                               ArrayRef<ProgramOp> programs) {
  int64_t size = mesh.getLevelSize(level);
  if (size == 0)
    return formatv("a level to split must be a level of the mesh ({0})",
                   mesh.describeLevels());
  int64_t product = 1;
  llvm::SmallDenseSet<StringRef> names;
  for (auto part : into.getAsRange<LevelAttr>()) {
    if (part.getSize() > size)
      return formatv("the new sizes must multiply to the size of the level, "
                     "{0}, got {1} for '{2}'",
                     size, part.getSize(), part.getName());
    product *= part.getSize();
    if (!names.insert(part.getName()).second ||
        (part.getName() != level && mesh.getLevelSize(part.getName()) != 0))
      return formatv("the new levels must have new names, got '{0}' again",
                     part.getName());
    if (product > size)
      break;
  }
  if (into.empty() || product != size)
    return formatv("the new sizes must multiply to the size of the level, {0}, "
                   "got {1}",
                   size, product);
  for (ProgramOp program : programs)
    for (ForOp nest : program.getBody().getOps<ForOp>())
      for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
        if (loop.getShift() &&
            llvm::is_contained(loop.getShift().getLevels(), level))
          return formatv("a level to split must not have shifted loops, '{0}' "
                         "is shifted on it; split first",
                         loop.getName());
  return "";
}

DiagnosedSilenceableFailure
transform::SplitLevelTransform::apply(TransformRewriter &, TransformResults &,
                                      TransformState &state) {
  SmallVector<StringAttr> parts;
  for (auto part : getInto().getAsRange<LevelAttr>())
    parts.push_back(StringAttr::get(getContext(), part.getName()));

  // Programs that share a mesh are split together, and once.
  llvm::SetVector<Operation *> meshes;
  auto collect = [&](Draft &draft) -> std::string {
    if (!meshes.insert(draft.getMesh()))
      return "";
    SmallVector<ProgramOp> programs;
    draft.getMesh()->getParentOp()->walk([&](ProgramOp program) {
      if (program.getMeshOp() == draft.getMesh())
        programs.push_back(program);
    });
    return whyNotSplit(draft.getMesh(), getLevelAttr(), getInto(), programs);
  };
  DiagnosedSilenceableFailure result = applyStep(
      *this, state, getTarget(), "split level '" + getLevel() + "'", collect);
  if (!result.succeeded())
    return result;

  for (Operation *op : meshes) {
    auto mesh = cast<MeshOp>(op);
    mesh->getParentOp()->walk([&](ProgramOp program) {
      if (program.getMeshOp() == mesh)
        splitProgram(program, getLevelAttr(), parts);
    });
    SmallVector<Attribute> levels;
    for (auto level : mesh.getLevels().getAsRange<LevelAttr>()) {
      if (level.getName() == getLevel())
        levels.append(getInto().begin(), getInto().end());
      else
        levels.push_back(level);
    }
    mesh.setLevelsAttr(ArrayAttr::get(getContext(), levels));
  }
  return DiagnosedSilenceableFailure::success();
}
