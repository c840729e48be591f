//===- CommIRTransformOps.cpp - The schedule ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transform/CommIRTransformOps.h"
#include "dialect/CommIR/LoopRules.h"
#include "dialect/CommIR/Syntax.h"
#include "dialect/CommIR/Transform/Draft.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace mlir::commir;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Pieces of assembly
//===----------------------------------------------------------------------===//

/// `4` or `"gpu0"`.
static ParseResult parseInto(OpAsmParser &parser, Attribute &into) {
  int64_t parts = 0;
  OptionalParseResult number = parser.parseOptionalInteger(parts);
  if (number.has_value()) {
    into = parser.getBuilder().getI64IntegerAttr(parts);
    return *number;
  }
  std::string level;
  if (parser.parseString(&level))
    return failure();
  into = parser.getBuilder().getStringAttr(level);
  return success();
}
static void printInto(OpAsmPrinter &printer, Operation *, Attribute into) {
  if (auto number = dyn_cast<IntegerAttr>(into))
    printer << number.getInt();
  else
    printer << into;
}

/// `(gpu0 = 2, gpu1 = 4)`.
static ParseResult parseLevels(OpAsmParser &parser, ArrayAttr &levels) {
  SmallVector<Attribute> parsed;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<LevelAttr> level = syntax::parseLevel(parser);
    if (failed(level))
      return failure();
    parsed.push_back(*level);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  levels = parser.getBuilder().getArrayAttr(parsed);
  return success();
}
static void printLevels(OpAsmPrinter &printer, Operation *, ArrayAttr levels) {
  printer << "(";
  llvm::interleaveComma(
      levels.getAsRange<LevelAttr>(), printer.getStream(),
      [&](LevelAttr level) { syntax::print(printer, level); });
  printer << ")";
}

#define GET_OP_CLASSES
#include "dialect/CommIR/Transform/CommIRTransformOps.cpp.inc"

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

/// Edits every program of the handle on a draft, then writes all drafts back.
/// `edit` returns why it cannot; `step` says what was asked for.
static DiagnosedSilenceableFailure
applyStep(transform::TransformOpInterface op, transform::TransformState &state,
          Value target, const Twine &step,
          function_ref<std::string(Draft &)> edit) {
  SmallVector<Draft> drafts;
  std::string asked = step.str();
  for (Operation *payload : state.getPayloadOps(target)) {
    auto program = dyn_cast<ProgramOp>(payload);
    if (!program)
      return emitDefiniteFailure(op)
             << "cannot " << asked << ": expected a handle to commir.program, "
             << "got '" << payload->getName() << "'";
    Draft &draft = drafts.emplace_back(program);
    std::string why = edit(draft);
    if (why.empty())
      why = draft.whyNot();
    if (why.empty())
      continue;
    DiagnosedSilenceableFailure failure =
        emitSilenceableFailure(op) << "cannot " << asked << ": " << why;
    failure.attachNote(program.getLoc()) << "the program is here";
    return failure;
  }
  for (Draft &draft : drafts)
    draft.commit();
  return DiagnosedSilenceableFailure::success();
}

static SmallVector<StringAttr> getNames(ArrayAttr names) {
  return SmallVector<StringAttr>(names.getAsRange<StringAttr>());
}

static std::string quote(ArrayAttr names) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(names.getAsRange<StringAttr>(), stream,
                        [&](StringAttr n) { stream << "'" << n.getValue() << "'"; });
  return text;
}

static LoopAttr makeLoop(MLIRContext *context, StringRef name,
                         ArrayRef<StringAttr> axes, int64_t parts = 1,
                         ArrayRef<StringAttr> levels = {},
                         ShiftAttr shift = {}) {
  return LoopAttr::get(context, name, axes, parts, levels, shift);
}

static bool isWhole(LoopAttr loop) {
  return loop.getParts() == 1 && !loop.isParallel() && !loop.getShift();
}

//===----------------------------------------------------------------------===//
// tile, join, reorder, patch
//===----------------------------------------------------------------------===//

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
    int64_t parts = number ? number.getInt()
                           : draft.getMesh().getLevelSize(
                                 cast<StringAttr>(getInto()));
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
    found.loop() =
        makeLoop(draft.getContext(), outer, loop.getAxes(), parts);
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
    std::string name = getName()        ? getName()->str()
                       : axes.size() == 1 ? axes.front().str()
                                          : (getOuter() + "_" + getInner()).str();
    if (name.empty() || (name != getOuter() && name != getInner() &&
                         draft.hasLoop(name)))
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
      if ((nest && found.nest != nest) ||
          llvm::is_contained(places, found.at))
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
  DiagnosedSilenceableFailure result =
      applyStep(*this, state, getTarget(),
                "patch kernels '" + getPattern() + "'", edit);
  if (result.succeeded())
    for (KernelOp kernel : matched)
      kernel.setImplAttr(getImplAttr());
  return result;
}

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
    int64_t ranks = 1;
    for (StringAttr level : getNames(getLevels()))
      ranks *= std::max<int64_t>(draft.getMesh().getLevelSize(level), 1);
    found.loop() = makeLoop(draft.getContext(), loop.getName(), loop.getAxes(),
                            loop.getParts() == 1 ? ranks : loop.getParts(),
                            getNames(getLevels()));
    return "";
  };
  return applyStep(*this, state, getTarget(),
                   "parallelize loop '" + getLoop() + "' over " +
                       quote(getLevels()),
                   edit);
}

/// The levels that loop `by` is parallel on, `over` only when it is given. Empty
/// when it is not parallel, which the loop rules explain.
static SmallVector<StringAttr> getShiftLevels(LoopAttr by,
                                              std::optional<ArrayAttr> over) {
  SmallVector<StringAttr> levels;
  for (StringAttr level : by.getLevels())
    if (!over || llvm::is_contained(*over, level))
      levels.push_back(level);
  return levels;
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

    SmallVector<StringAttr> loops, levels, unknown;
    if (getOver())
      unknown = getNames(*getOver());
    for (StringAttr name : getNames(getBy())) {
      Draft::Found by = draft.findLoop(name, why);
      if (!by.nest)
        return why;
      SmallVector<StringAttr> own = getShiftLevels(by.loop(), getOver());
      // A loop that is not parallel keeps a term, for the rule to refuse.
      if (own.empty() && !by.loop().isParallel())
        own.push_back(StringAttr::get(getContext(), "?"));
      loops.append(own.size(), name);
      levels.append(own);
      llvm::erase_if(unknown, [&](StringAttr level) {
        return by.loop().isParallelOn(level);
      });
    }
    if (!unknown.empty() || loops.empty())
      return formatv("the levels to shift over must be levels of the loop it "
                     "is shifted by, got {0}",
                     getOver() ? quote(*getOver()) : std::string("none"));

    auto makeShift = [&](ArrayRef<StringAttr> loops,
                         ArrayRef<StringAttr> levels) {
      return ShiftAttr::get(getContext(), loops, levels, getDirection(),
                            getOffset(), getReads(), getResults(),
                            getVia().value_or(DictionaryAttr()), getChunks(),
                            getLink().value_or(Type()));
    };
    MeshOp mesh = draft.getMesh();
    if (getBy().size() > 1 || levels.size() == 1) {
      int64_t parts = loop.getParts();
      if (isWhole(loop))
        for (StringAttr level : levels)
          parts = std::lcm(parts,
                           std::max<int64_t>(mesh.getLevelSize(level), 1));
      found.loop() =
          makeLoop(getContext(), loop.getName(), loop.getAxes(), parts,
                   loop.getLevels(), makeShift(loops, levels));
      return "";
    }
    // One loop over several levels: a loop a level, the slow one outermost.
    if (!isWhole(loop))
      return formatv("a nested shift must be of a loop that is not cut, by one "
                     "loop: '{0}' has {1} parts",
                     getLoop(), loop.getParts());
    SmallVector<LoopAttr> nested;
    for (auto [by, level] : llvm::zip_equal(loops, levels)) {
      std::string name = getLoop().str() + "_" + level.str();
      if (draft.hasLoop(name))
        return formatv("there is a loop '{0}' already", name);
      nested.push_back(makeLoop(getContext(), name, loop.getAxes(),
                                mesh.getLevelSize(level), {},
                                makeShift(by, level)));
    }
    SmallVector<LoopAttr> &all = found.nest->loops;
    all.erase(all.begin() + found.at);
    all.insert(all.begin() + found.at, nested.begin(), nested.end());
    return "";
  };
  if (getDirection() != 1 && getDirection() != -1)
    return emitSilenceableError() << "cannot shift loop '" << getLoop()
                                  << "': the direction of a shift must be 1 or "
                                     "-1, got "
                                  << getDirection();
  if (getChunks() < 1)
    return emitSilenceableError() << "cannot shift loop '" << getLoop()
                                  << "': the chunks of a shift must be at least "
                                     "1, got "
                                  << getChunks();
  return applyStep(*this, state, getTarget(),
                   "shift loop '" + getLoop() + "' by " + quote(getBy()), edit);
}

//===----------------------------------------------------------------------===//
// shard, replicate
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure
transform::ShardTransform::apply(TransformRewriter &, TransformResults &,
                                 TransformState &state) {
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    BindingAttr *binding = draft.findBinding(getBuffer(), why);
    if (!binding)
      return why;
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
    if (factors.empty())
      return "the list of levels is empty";
    cuts.push_back(CutAttr::get(getContext(), getAxis(), factors, {}));
    *binding = BindingAttr::get(
        getContext(), binding->getName(), binding->getBoundary(),
        PlacementAttr::get(getContext(), cuts), binding->getReplicate(),
        PlacementAttr());
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
    if (llvm::is_contained(levels, getLevelAttr()))
      return formatv("a buffer must not be replicated twice over a level, '{0}' "
                     "is over '{1}' already",
                     getBuffer(), getLevel());
    levels.push_back(getLevelAttr());
    *binding = BindingAttr::get(getContext(), binding->getName(),
                                binding->getBoundary(), binding->getShard(),
                                levels, PlacementAttr());
    return "";
  };
  return applyStep(*this, state, getTarget(),
                   "replicate buffer '" + getBuffer() + "' over '" +
                       getLevel() + "'",
                   edit);
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
    cuts.push_back(
        CutAttr::get(cut.getContext(), cut.getAxis(),
                     splitName<Attribute>(cut.getFactors(), level, parts),
                     cut.getLayout()));
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
    return formatv("a level to split must be a level of the mesh, {0}",
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
  if (product != size)
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

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {
class CommIRTransformExtension
    : public transform::TransformDialectExtension<CommIRTransformExtension> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CommIRTransformExtension)
  using Base::Base;

  void init() {
    declareGeneratedDialect<CommIRDialect>();
    registerTransformOps<
#define GET_OP_LIST
#include "dialect/CommIR/Transform/CommIRTransformOps.cpp.inc"
        >();
  }
};
} // namespace

void mlir::commir::registerTransformExtension(DialectRegistry &registry) {
  registry.addExtensions<CommIRTransformExtension>();
}
