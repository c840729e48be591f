//===- MaterializeCommunication.cpp - Loops to one SPMD text --------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "dialect/CommIR/LoopRules.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::commir {
#define GEN_PASS_DEF_MATERIALIZECOMMUNICATION
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

static Type getElementType(Value value) {
  return isa<BufferType>(value.getType())
             ? cast<BufferType>(value.getType()).getElementType()
             : cast<TileType>(value.getType()).getElementType();
}

/// The partial results of a kernel are kept in float32, or in float64 when one
/// of its tensors is.
static Type getAccumulatorType(KernelOp kernel) {
  SmallVector<Value> tensors(kernel.getInputs());
  for (Value output : kernel.getOutputs())
    for (OpOperand &use : output.getUses())
      if (auto store = dyn_cast<StoreOp>(use.getOwner()))
        tensors.push_back(store.getBuffers()[use.getOperandNumber()]);
  bool isDouble = llvm::any_of(
      tensors, [](Value tensor) { return getElementType(tensor).isF64(); });
  Builder builder(kernel.getContext());
  return isDouble ? builder.getF64Type() : builder.getF32Type();
}

namespace {
/// A buffer that moves around the ring of a shifted loop.
struct Ring {
  Value own;   // the buffer of which this rank keeps its shard
  Value slots; // two parts: one being read, one arriving
  SmallVector<StringAttr> levels; // what the shifted axis is cut over
};

/// A part is the rank's own shard at one step, and in a slot at the others.
struct Arrival {
  Value isOwn;
  Value slots;
  Value slot;
};

/// Expands one nest, outside in.
class NestExpander {
public:
  NestExpander(ProgramOp program, ForOp nest, Pass::Statistic &transfers)
      : program(program), mesh(program.getMeshOp()), nest(nest),
        loops(nest.getLoops().getAsRange<LoopAttr>()),
        builder(nest.getContext()), transfers(transfers) {}

  LogicalResult expand();

private:
  /// Which part of an axis an iteration works on: `index` of `count`.
  struct Part {
    Value index;
    int64_t count = 1;
  };

  LogicalResult checkStores();
  LogicalResult checkOutput(int64_t buffer);
  LogicalResult checkShift(LoopAttr loop);
  LogicalResult placeInput(int64_t buffer);
  LogicalResult gather(int64_t buffer, CutAttr cut);
  LogicalResult addToRing(int64_t buffer, CutAttr cut, LoopAttr loop);
  LogicalResult startOutputs();
  void finishOutputs();
  LogicalResult emitLoops(size_t at);
  LogicalResult emitRing(size_t at, StringAttr level);
  LogicalResult emitBody();
  LogicalResult emitLaunch(KernelOp kernel);
  Value getPosition(DimAttr dim);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, nest.getLoc(), value);
  }
  Value add(Value a, Value b) {
    return arith::AddIOp::create(builder, nest.getLoc(), a, b);
  }
  Value mul(Value a, int64_t b) {
    return arith::MulIOp::create(builder, nest.getLoc(), a, constant(b));
  }
  /// a mod n for a that may be negative but not below -n.
  Value wrap(Value a, int64_t n) {
    Value count = constant(n);
    return arith::RemUIOp::create(builder, nest.getLoc(), add(a, count), count);
  }
  Value getRank(StringAttr level);
  SmallVector<StringAttr> getRingLevels(LoopAttr loop);
  bool isParallelOver(StringRef axis, StringRef level);
  bool isShiftedOver(StringRef axis, StringRef level);
  bool followsLoops(CutAttr cut);

  /// Adds index `value` of `count` as the innermost cut of an axis so far.
  void pushPart(StringRef axis, Value value, int64_t count) {
    Part &part = parts[axis];
    part.index = part.index ? add(mul(part.index, count), value) : value;
    part.count *= count;
  }

  /// The tile of `memory` that the current iteration works on; only what is cut
  /// by now is restricted.
  Value getTile(Value memory, Value slot = {});
  /// The tile of `memory` that moves around the ring on `level`: all that a
  /// rank holds, with `part` in place of the rank.
  Value getRingTile(const Ring &ring, Value memory, StringAttr axis,
                    StringAttr level, Value part, Value slot = {});

  InFlightDiagnostic needsRule(StringRef rule, const Twine &why) {
    return nest.emitOpError()
           << "needs rule " << rule << " (" << why << "), which this version "
           << "does not lower yet";
  }
  StringRef getName(int64_t buffer) {
    return program.getBinding(buffer).getName();
  }

  ProgramOp program;
  MeshOp mesh;
  ForOp nest;
  SmallVector<LoopAttr> loops;
  OpBuilder builder;
  Pass::Statistic &transfers;
  llvm::StringMap<Part> parts;
  llvm::StringMap<Value> ranks;
  /// Where the tile of each input is read, and each output merged.
  DenseMap<Value, Value> memory;
  /// Where a step of a shifted loop finds its part of a buffer.
  DenseMap<Value, Arrival> arrived;
  /// The buffers in the ring of each shifted loop.
  llvm::StringMap<SmallVector<Ring>> rings;
};
} // namespace

static BufferType getBuffer(BufferType like, Type elementType) {
  return BufferType::get(like.getContext(), like.getDims(), elementType);
}

static TileType getTileType(BufferType buffer) {
  return TileType::get(buffer.getContext(), buffer.getDims(),
                       buffer.getElementType());
}

Value NestExpander::getRank(StringAttr level) {
  Value &rank = ranks[level.getValue()];
  if (!rank) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&program.getBody().front());
    rank = GroupRankOp::create(builder, nest.getLoc(), builder.getIndexType(),
                               level);
  }
  return rank;
}

Value NestExpander::getTile(Value memory, Value slot) {
  auto type = cast<BufferType>(memory.getType());
  SmallVector<Value> indices;
  SmallVector<Attribute> axes;
  SmallVector<int64_t> counts;
  for (DimAttr dim : type.getDims()) {
    auto part = parts.find(dim.getAxis());
    if (dim.isConstant() || part == parts.end() || part->second.count == 1)
      continue;
    indices.push_back(part->second.index);
    axes.push_back(builder.getStringAttr(dim.getAxis()));
    counts.push_back(part->second.count);
  }
  return PartOp::create(builder, nest.getLoc(), getTileType(type), memory, slot,
                        indices, builder.getArrayAttr(axes),
                        builder.getDenseI64ArrayAttr(counts));
}

Value NestExpander::getRingTile(const Ring &ring, Value memory, StringAttr axis,
                                StringAttr level, Value part, Value slot) {
  llvm::StringMap<Part> before = std::exchange(parts, {});
  for (StringAttr own : ring.levels)
    pushPart(axis, own == level ? part : getRank(own), mesh.getLevelSize(own));
  Value tile = getTile(memory, slot);
  parts = std::move(before);
  return tile;
}

LogicalResult NestExpander::expand() {
  builder.setInsertionPoint(nest);
  // What runs in parallel is a coordinate of this rank, known from the start.
  for (LoopAttr loop : loops) {
    if (!loop.isParallel())
      continue;
    auto levels = *getLevelsOfAxes(program, mesh, loop);
    for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels)) {
      (void)axis;
      for (StringAttr level : own)
        getRank(level);
    }
  }
  if (failed(checkStores()))
    return failure();
  for (LoopAttr loop : loops)
    if (failed(checkShift(loop)))
      return failure();
  llvm::SetVector<int64_t> inputs;
  for (LoadOp load : nest.getBody().getOps<LoadOp>())
    inputs.insert(cast<BlockArgument>(load.getBuffer()).getArgNumber());
  for (int64_t buffer : inputs)
    if (failed(placeInput(buffer)))
      return failure();
  if (failed(startOutputs()) || failed(emitLoops(0)))
    return failure();
  builder.setInsertionPoint(nest);
  finishOutputs();
  nest.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Which rule applies
//===----------------------------------------------------------------------===//

/// The levels that stagger a shifted loop; one of a single rank does not.
SmallVector<StringAttr> NestExpander::getRingLevels(LoopAttr loop) {
  return SmallVector<StringAttr>(llvm::make_filter_range(
      loop.getShift().getLevels(),
      [&](StringAttr level) { return mesh.getLevelSize(level) != 1; }));
}

/// Whether a loop over `axis` runs in parallel on `level`.
bool NestExpander::isParallelOver(StringRef axis, StringRef level) {
  return llvm::any_of(loops, [&](LoopAttr loop) {
    return loop.isOver(axis) && loop.isParallelOn(level);
  });
}

/// Whether a loop over `axis` is shifted on `level`.
bool NestExpander::isShiftedOver(StringRef axis, StringRef level) {
  return llvm::any_of(loops, [&](LoopAttr loop) {
    return loop.isOver(axis) && loop.getShift() &&
           llvm::is_contained(loop.getShift().getLevels(), level);
  });
}

/// Whether a rank's shard holds what its iterations touch: the cut is that of
/// the outermost loops over the axis, in their order.
bool NestExpander::followsLoops(CutAttr cut) {
  SmallVector<Attribute> held = getFactors(mesh, cut);
  SmallVector<Attribute> walked = getLoopFactors(program, nest, cut.getAxis());
  return held.size() <= walked.size() &&
         ArrayRef(walked).take_front(held.size()) == ArrayRef(held);
}

/// A result that a parallel loop reduces needs its ranks to merge.
LogicalResult NestExpander::checkStores() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    if (isa_and_nonnull<FlatSymbolRefAttr>(store.getMerge().value_or(nullptr)))
      return store.emitOpError()
             << "has a merge given by the user, which this version does not "
                "lower yet";
    for (Value tile : store.getTiles())
      if (!tile.getDefiningOp<KernelOp>())
        return store.emitOpError() << "stores a tile that no kernel makes, "
                                      "which this version does not lower yet";
    for (LoopAttr loop : loops)
      for (StringAttr axis : loop.getAxes())
        if (loop.isParallel() && loop.getParts() != 1 && store.getOver() &&
            llvm::is_contained(*store.getOver(), axis))
          return needsRule("R4, R5 or R6", "a result is reduced over a "
                                           "parallel loop");
    for (Value buffer : store.getBuffers())
      if (failed(checkOutput(cast<BlockArgument>(buffer).getArgNumber())))
        return failure();
  }
  return success();
}

/// Each rank makes the shard of an output that it owns, all of it and no more.
LogicalResult NestExpander::checkOutput(int64_t buffer) {
  BindingAttr binding = program.getBinding(buffer);
  if (!isSamePlacement(program, binding.getBoundary(), binding.getInside()))
    return needsRule("R7", "the boundary placement of '" + getName(buffer) +
                               "' differs from the inside one");
  for (CutAttr cut : binding.getInside().getCuts()) {
    for (Attribute factor : getFactors(mesh, cut)) {
      auto level = dyn_cast<StringAttr>(factor);
      if (!level || isParallelOver(cut.getAxis(), level))
        continue;
      if (isShiftedOver(cut.getAxis(), level))
        return needsRule("R6", "'" + getName(buffer) +
                                   "' is sharded along a shifted axis");
      return needsRule("R8", "'" + getName(buffer) + "' is sharded over '" +
                                 level.getValue() + "', where no loop over '" +
                                 cut.getAxis() + "' runs in parallel");
    }
    if (!followsLoops(cut))
      return needsRule("R8", "'" + getName(buffer) + "' is cut along '" +
                                 cut.getAxis() +
                                 "' otherwise than the loops run");
  }
  for (DimAttr dim : program.getBufferType(buffer).getDims())
    for (auto level : mesh.getLevels().getAsRange<LevelAttr>())
      if (!dim.isConstant() && level.getSize() != 1 &&
          isParallelOver(dim.getAxis(), level.getName()) &&
          !binding.getInside().hasLevel(level.getName()))
        return needsRule(
            "R8", "'" + getName(buffer) + "' is whole on each rank of '" +
                      level.getName() + "', which makes a part of it");
  return success();
}

/// A shifted loop is a ring on one level, a part a rank.
LogicalResult NestExpander::checkShift(LoopAttr loop) {
  if (!loop.getShift() || loop.getParts() == 1)
    return success();
  if (loop.isParallel())
    return needsRule("R3 of a parallel loop", "its parts are spread already");
  SmallVector<StringAttr> levels = getRingLevels(loop);
  if (levels.size() > 1)
    return needsRule("R3 with several terms", "Cannon's opening skew");
  if (levels.empty() || loop.getParts() != mesh.getLevelSize(levels.front()))
    return needsRule("R3 with several parts a rank", "J is not the ranks");
  return success();
}

/// Finds the rule for each level that an input is sharded over.
LogicalResult NestExpander::placeInput(int64_t buffer) {
  BindingAttr binding = program.getBinding(buffer);
  memory[program.getBody().getArgument(buffer)] =
      program.getBody().getArgument(buffer);
  if (!isSamePlacement(program, binding.getBoundary(), binding.getInside()))
    return needsRule("R7", "the boundary placement of '" + getName(buffer) +
                               "' differs from the inside one");
  int64_t moved = 0;
  for (CutAttr cut : binding.getInside().getCuts()) {
    SmallVector<StringAttr> foreign;
    LoopAttr shifted;
    for (Attribute factor : getFactors(mesh, cut)) {
      auto level = dyn_cast<StringAttr>(factor);
      // R1: the loop over the axis runs in parallel on the level.
      if (!level || isParallelOver(cut.getAxis(), level))
        continue;
      foreign.push_back(level);
      for (LoopAttr loop : loops)
        if (loop.isOver(cut.getAxis()) && loop.getShift() &&
            llvm::is_contained(loop.getShift().getLevels(), level))
          shifted = loop;
    }
    if (!foreign.empty() && ++moved > 1)
      return needsRule("R8",
                       "'" + getName(buffer) + "' moves along two of its axes");
    if (foreign.size() > 1 && shifted) {
      if (llvm::all_of(foreign, [&](StringAttr level) {
            return isShiftedOver(cut.getAxis(), level);
          }))
        return needsRule("R9", "shifts of '" + getName(buffer) +
                                   "' nest on two levels");
      return needsRule("R8", "'" + getName(buffer) +
                                 "' is shifted on one of the levels that it "
                                 "moves over");
    }
    for (StringAttr level : foreign)
      for (DimAttr dim : program.getBufferType(buffer).getDims())
        if (!dim.isConstant() && isParallelOver(dim.getAxis(), level))
          return needsRule("R8", "'" + getName(buffer) + "' is sharded over '" +
                                     level.getValue() +
                                     "', where another of its axes is "
                                     "parallel");
    bool gathered = !foreign.empty() && !shifted;
    if (!gathered && !followsLoops(cut))
      return needsRule("R8", "'" + getName(buffer) + "' is cut along '" +
                                 cut.getAxis() +
                                 "' otherwise than the loops run");
    if (failed(gathered  ? gather(buffer, cut)
               : shifted ? addToRing(buffer, cut, shifted)
                         : success()))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// R2: all_gather before the loops
//===----------------------------------------------------------------------===//

LogicalResult NestExpander::gather(int64_t buffer, CutAttr cut) {
  SmallVector<Attribute> factors = getFactors(mesh, cut);
  if (factors.size() != 1)
    return needsRule("R8", "'" + getName(buffer) +
                               "' is gathered over several levels");
  auto level = cast<StringAttr>(factors.front());
  Value own = program.getBody().getArgument(buffer);
  auto type = cast<BufferType>(own.getType());
  SmallVector<CutAttr> others(
      llvm::make_filter_range(program.getBinding(buffer).getInside().getCuts(),
                              [&](CutAttr other) { return other != cut; }));
  auto placement = PlacementAttr::get(nest.getContext(), others);
  int64_t size = mesh.getLevelSize(level);
  Location loc = nest.getLoc();
  NamedAttribute part(builder.getStringAttr(cut.getAxis()),
                      builder.getI64IntegerAttr(size));
  Value slots = AllocOp::create(builder, loc, type, size, placement,
                                builder.getDictionaryAttr(part));
  Value whole = AllocOp::create(builder, loc, type, 1, placement,
                                builder.getDictionaryAttr({}));
  Value token = AllGatherStartOp::create(
      builder, loc, TokenType::get(nest.getContext()), getTile(own), slots,
      /*bytes=*/Value(), level, builder.getStringAttr(cut.getAxis()));
  WaitOp::create(builder, loc, token);
  ++transfers;

  Value zero = constant(0), count = constant(size), one = constant(1);
  auto unpack = scf::ForOp::create(builder, loc, zero, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(unpack.getBody());
  Value member = unpack.getInductionVar();
  pushPart(cut.getAxis(), member, size);
  Value source = getTile(slots, member), target = getTile(whole);
  CopyOp::create(builder, loc, source, target);
  parts.erase(cut.getAxis());
  memory[own] = whole;
  return success();
}

//===----------------------------------------------------------------------===//
// R3: one part a step
//===----------------------------------------------------------------------===//

LogicalResult NestExpander::addToRing(int64_t buffer, CutAttr cut,
                                      LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  Value own = program.getBody().getArgument(buffer);
  auto via =
      shift.getVia()
          ? dyn_cast_or_null<StringAttr>(shift.getVia().get(getName(buffer)))
          : StringAttr();
  if (via ? via == "pull" : shift.getReads() == ReadVia::Pull)
    return needsRule("R3 by pull", "only rotate is lowered");
  if (shift.getChunks() != 1)
    return needsRule("R3 in chunks", "only whole parts are lowered");
  if (shift.getLink() && shift.getLink() != getElementType(own))
    return needsRule("R3 with a link type", "parts travel as they are stored");
  for (LoopAttr outer : loops) {
    if (outer == loop)
      break;
    for (DimAttr dim : program.getBufferType(buffer).getDims())
      if (!outer.isParallel() && outer.getParts() > 1 && !dim.isConstant() &&
          outer.isOver(dim.getAxis()))
        return needsRule("R3 under a loop over the buffer", "a slice moves");
  }
  Ring ring{own, {}, {}};
  int64_t count = 1;
  for (Attribute factor : getFactors(mesh, cut)) {
    auto level = dyn_cast<StringAttr>(factor);
    if (!level)
      return needsRule("R3 of a strided placement", "a part is in pieces");
    ring.levels.push_back(level);
    count *= mesh.getLevelSize(level);
  }
  SmallVector<CutAttr> others(
      llvm::make_filter_range(program.getBinding(buffer).getInside().getCuts(),
                              [&](CutAttr other) { return other != cut; }));
  NamedAttribute part(loop.getAxes().front(), builder.getI64IntegerAttr(count));
  ring.slots =
      AllocOp::create(builder, nest.getLoc(), own.getType(), /*slots=*/2,
                      PlacementAttr::get(nest.getContext(), others),
                      builder.getDictionaryAttr(part));
  rings[loop.getName()].push_back(ring);
  return success();
}

/// Step t works on part p(t) = (d*t + r + o) mod n while p(t+1) arrives from
/// the neighbour that works on it now. A part that comes home is not sent: the
/// rank kept its own.
LogicalResult NestExpander::emitRing(size_t at, StringAttr level) {
  LoopAttr loop = loops[at];
  ShiftAttr shift = loop.getShift();
  StringAttr axis = loop.getAxes().front();
  int64_t parts = loop.getParts(), d = shift.getDirection();
  int64_t o = ((shift.getOffset() % parts) + parts) % parts;
  Location loc = nest.getLoc();

  Value rank = getRank(level);
  // The part of a step, and whether it is the rank's own.
  auto partAt = [&](Value step) {
    Value ahead = step;
    if (d == -1)
      ahead = arith::SubIOp::create(builder, loc, constant(parts), step);
    ahead = add(ahead, rank);
    return wrap(o == 0 ? ahead : add(ahead, constant(o)), parts);
  };
  auto isOwn = [&](Value part) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, part,
                                 rank);
  };
  auto slotAt = [&](Value step) -> Value {
    return arith::RemUIOp::create(builder, loc, step, constant(2));
  };
  auto ownTile = [&](const Ring &member) {
    return getRingTile(member, member.own, axis, level, rank);
  };
  auto slotTile = [&](const Ring &member, Value part, Value slot) {
    return getRingTile(member, member.slots, axis, level, part, slot);
  };
  SmallVector<Ring> &ring = rings[loop.getName()];
  SmallVector<Value> tokens;
  // Sends `source` to the rank `hop` before this one, and receives from the one
  // as far behind.
  auto exchange = [&](int64_t hop, Value source, Value target, Value when) {
    Value to = wrap(add(rank, constant(-hop)), parts);
    Value from = wrap(add(rank, constant(hop)), parts);
    tokens.push_back(
        ExchangeStartOp::create(builder, loc, TokenType::get(nest.getContext()),
                                source, to, target, from, level, when));
    ++transfers;
  };
  auto waitForAll = [&] {
    for (Value token : tokens)
      WaitOp::create(builder, loc, token);
    tokens.clear();
  };

  // Opening hop: the first part is not the rank's own.
  Value zero = constant(0);
  if (o != 0) {
    Value first = partAt(zero);
    Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
    for (Ring &member : ring) {
      Value source = ownTile(member);
      Value target = slotTile(member, first, zero);
      exchange(o, source, target, always);
    }
    waitForAll();
  }

  Value count = constant(parts), one = constant(1);
  auto steps = scf::ForOp::create(builder, loc, zero, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(steps.getBody());
  Value step = steps.getInductionVar();
  Value part = partAt(step), own = isOwn(part), slot = slotAt(step);
  Value nextStep = add(step, one);
  Value nextPart = partAt(nextStep), nextSlot = slotAt(nextStep);
  // All ranks agree on this: it depends on the step alone.
  Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                     nextStep, count);
  if (o != 0) {
    Value home = constant(d == 1 ? parts - o : o);
    Value notHome = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ne, nextStep, home);
    more = arith::AndIOp::create(builder, loc, more, notHome);
  }
  for (Ring &member : ring) {
    Value kept = ownTile(member), came = slotTile(member, part, slot);
    Value current = arith::SelectOp::create(builder, loc, own, kept, came);
    Value target = slotTile(member, nextPart, nextSlot);
    exchange(d, current, target, more);
    arrived[member.own] = {own, member.slots, slot};
  }
  Part before = this->parts.lookup(axis.getValue());
  pushPart(axis, part, parts);
  LogicalResult result = emitLoops(at + 1);
  this->parts[axis.getValue()] = before;
  builder.setInsertionPoint(steps.getBody()->getTerminator());
  waitForAll();
  for (Ring &member : ring)
    arrived.erase(member.own);
  return result;
}

//===----------------------------------------------------------------------===//
// Loops and body
//===----------------------------------------------------------------------===//

LogicalResult NestExpander::emitLoops(size_t at) {
  if (at == loops.size())
    return emitBody();
  LoopAttr loop = loops[at];
  if (loop.getParts() == 1)
    return emitLoops(at + 1);
  if (loop.getShift())
    return emitRing(at, getRingLevels(loop).front());
  if (loop.isParallel()) {
    auto levels = *getLevelsOfAxes(program, mesh, loop);
    llvm::StringMap<Part> before = parts;
    for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels))
      for (StringAttr level : own)
        pushPart(axis, getRank(level), mesh.getLevelSize(level));
    LogicalResult result = emitLoops(at + 1);
    parts = before;
    return result;
  }
  if (loop.getAxes().size() > 1)
    return needsRule("R1", "a joined loop that is cut in sequence");

  Value zero = constant(0), count = constant(loop.getParts());
  auto sequence =
      scf::ForOp::create(builder, nest.getLoc(), zero, count, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(sequence.getBody());
  StringRef axis = loop.getAxes().front();
  Part before = parts.lookup(axis);
  pushPart(axis, sequence.getInductionVar(), loop.getParts());
  LogicalResult result = emitLoops(at + 1);
  parts[axis] = before;
  return result;
}

LogicalResult NestExpander::emitBody() {
  for (KernelOp kernel : nest.getBody().getOps<KernelOp>())
    if (failed(emitLaunch(kernel)))
      return failure();
  return success();
}

Value NestExpander::getPosition(DimAttr dim) {
  auto part = parts.find(dim.getAxis());
  if (dim.isConstant() || part == parts.end() || part->second.count == 1)
    return constant(0);
  return PositionOp::create(builder, nest.getLoc(), builder.getIndexType(),
                            builder.getStringAttr(dim.getAxis()),
                            part->second.index, part->second.count,
                            dim.getDivisor());
}

LogicalResult NestExpander::emitLaunch(KernelOp kernel) {
  if (KernelSignature::known(kernel.getKernel()).empty())
    return kernel.emitOpError() << "has no generated implementation of kernel '"
                                << kernel.getKernel() << "'";
  if (kernel.getSignature() &&
      *kernel.getSignature() != KernelSignature::known(kernel.getKernel()))
    return kernel.emitOpError()
           << "has a signature of its own; the generated kernel '"
           << kernel.getKernel() << "' is \""
           << KernelSignature::known(kernel.getKernel()) << "\"";
  if (kernel.getImpl() && *kernel.getImpl() != "generated")
    return kernel.emitOpError()
           << "implementation '" << *kernel.getImpl()
           << "' is not there; this version has 'generated' only";
  // What a kernel was told and would not hear is refused.
  bool scaled = kernel.getKernel() == "attention_fwd";
  for (NamedAttribute option : kernel->getDiscardableAttrs()) {
    auto number = dyn_cast<FloatAttr>(option.getValue());
    if (!scaled || option.getName() != "scale" || !number ||
        !number.getType().isF64())
      return kernel.emitOpError()
             << "has the option '" << option.getName().getValue()
             << "' = " << option.getValue() << ", which the generated kernel '"
             << kernel.getKernel() << "' does not take"
             << (scaled ? "; it takes scale, an f64" : "");
  }
  SmallVector<Value> inputs, outputs;
  for (Value input : kernel.getInputs()) {
    auto load = input.getDefiningOp<LoadOp>();
    if (!load)
      return kernel.emitOpError() << "takes a tile that is not loaded, which "
                                     "this version does not lower yet";
    Value buffer = load.getBuffer();
    Value tile = getTile(memory[buffer]);
    if (auto it = arrived.find(buffer); it != arrived.end()) {
      Value came = getTile(it->second.slots, it->second.slot);
      tile = arith::SelectOp::create(builder, kernel.getLoc(), it->second.isOwn,
                                     tile, came);
    }
    inputs.push_back(tile);
  }
  for (Value output : kernel.getOutputs()) {
    auto store = output.hasOneUse()
                     ? dyn_cast<StoreOp>(*output.getUsers().begin())
                     : StoreOp();
    if (!store)
      return kernel.emitOpError() << "must have each result stored once";
    unsigned number = output.getUses().begin()->getOperandNumber();
    outputs.push_back(getTile(memory[store.getBuffers()[number]]));
  }

  // Positions matter to a mask and to grouped heads, not otherwise.
  SmallVector<Value> positions;
  DimAttr whole = getBoundDim(kernel, {"h"});
  DimAttr grouped = getBoundDim(kernel, {"h", /*divided=*/true});
  int64_t group =
      whole && grouped ? grouped.getDivisor() / whole.getDivisor() : 1;
  bool masked = kernel.getMask() && !kernel.getMask()->isFull();
  for (KernelSignature::Dim dim :
       KernelSignature::positions(kernel.getKernel())) {
    bool matters = dim.letter == "h" ? group != 1 : masked;
    positions.push_back(matters ? getPosition(getBoundDim(kernel, dim))
                                : constant(0));
  }
  if (masked && !kernel.getMask()->getDocuments().empty())
    return kernel.emitOpError()
           << "has a mask of documents, which this version does not lower yet";
  LaunchOp::create(builder, kernel.getLoc(), kernel.getKernelAttr(), inputs,
                   outputs, positions, kernel.getMaskAttr(),
                   kernel->getAttrOfType<FloatAttr>("scale"),
                   group == 1 ? IntegerAttr()
                              : builder.getI64IntegerAttr(group));
  return success();
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Kernels merge into their results, so each result starts as its merge's
/// identity. Those narrower than float32 are kept in float32 until the end.
LogicalResult NestExpander::startOutputs() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    auto kind =
        dyn_cast_or_null<MergeKindAttr>(store.getMerge().value_or(nullptr));
    for (auto [i, buffer] : llvm::enumerate(store.getBuffers())) {
      auto kernel = store.getTiles()[i].getDefiningOp<KernelOp>();
      bool softmax = kernel.getKernel() == "attention_fwd";
      if (kind && (kind.getValue() == MergeKind::Max ||
                   softmax != (kind.getValue() == MergeKind::Softmax)))
        return store.emitOpError()
               << "merge '" << stringifyMergeKind(kind.getValue())
               << "' does not fit the generated kernel that makes the result";
      auto type = cast<BufferType>(buffer.getType());
      Type wide = getAccumulatorType(kernel);
      Value accumulator = buffer;
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      if (wide != type.getElementType())
        accumulator =
            AllocOp::create(builder, nest.getLoc(), getBuffer(type, wide), 1,
                            program.getBinding(number).getInside(),
                            builder.getDictionaryAttr({}));
      bool isLSE =
          softmax && cast<OpResult>(store.getTiles()[i]).getResultNumber() == 1;
      double identity = isLSE ? -std::numeric_limits<double>::infinity() : 0.0;
      FillOp::create(builder, nest.getLoc(), getTile(accumulator),
                     builder.getF64FloatAttr(identity));
      memory[buffer] = accumulator;
    }
  }
  return success();
}

void NestExpander::finishOutputs() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>())
    for (Value buffer : store.getBuffers())
      if (memory[buffer] != buffer) {
        Value source = getTile(memory[buffer]), target = getTile(buffer);
        CopyOp::create(builder, nest.getLoc(), source, target);
      }
}

/// The element types that generated kernels are written for.
static LogicalResult checkElementTypes(ProgramOp program) {
  for (int64_t i = 0, e = program.getBindings().size(); i < e; ++i) {
    Type type = program.getBufferType(i).getElementType();
    if (!type.isBF16() && !type.isF16() && !type.isF32() && !type.isF64())
      return program.emitOpError()
             << "has elements of " << type << " in buffer '"
             << program.getBinding(i).getName()
             << "', which this version does not lower yet; bf16, f16, f32 and "
                "f64 it does";
  }
  return success();
}

namespace {
struct MaterializeCommunication
    : public commir::impl::MaterializeCommunicationBase<
          MaterializeCommunication> {
  void runOnOperation() override {
    SmallVector<std::pair<ProgramOp, ForOp>> nests;
    getOperation().walk([&](ProgramOp program) {
      for (ForOp nest : program.getBody().getOps<ForOp>())
        nests.emplace_back(program, nest);
    });
    for (auto [program, nest] : nests) {
      for (int64_t i = 0, e = program.getBindings().size(); i < e; ++i)
        if (!program.getBinding(i).getInside()) {
          program.emitOpError() << "has no placement for buffer '"
                                << program.getBinding(i).getName()
                                << "'; run commir-infer-placement first";
          return signalPassFailure();
        }
      if (failed(checkElementTypes(program)) ||
          failed(NestExpander(program, nest, numTransfers).expand()))
        return signalPassFailure();
    }
  }
};
} // namespace
