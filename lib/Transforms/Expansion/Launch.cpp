//===- Launch.cpp - Kernels and their results -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The partial results of a kernel are kept in float32, or in float64 when one
/// of its tensors is.
static Type getAccumulatorType(KernelOp kernel) {
  SmallVector<Value> tensors(kernel.getInputs());
  for (Value output : kernel.getOutputs())
    for (OpOperand &use : output.getUses())
      if (auto store = dyn_cast<StoreOp>(use.getOwner()))
        tensors.push_back(store.getBufferOf(use));
  bool isDouble = llvm::any_of(
      tensors, [](Value tensor) { return getElementType(tensor).isF64(); });
  Builder builder(kernel.getContext());
  return isDouble ? builder.getF64Type() : builder.getF32Type();
}

static BufferType getBuffer(BufferType like, Type elementType) {
  return BufferType::get(like.getContext(), like.getDims(), elementType);
}

Value TileBuilder::getPosition(DimAttr dim) {
  auto part = parts.find(dim.getAxis());
  if (dim.isConstant() || part == parts.end() || part->second.count == 1)
    return constant(0);
  return PositionOp::create(builder, nest.getLoc(), builder.getIndexType(),
                            builder.getStringAttr(dim.getAxis()),
                            part->second.index, part->second.count,
                            dim.getDivisor());
}

static bool isGenerated(KernelOp kernel) {
  return kernel.getImpl().value_or("generated") == "generated";
}

BufferType NestSchedule::getWideType(StoreOp store, size_t result) {
  return getBuffer(
      cast<BufferType>(store.getBuffers()[result].getType()),
      getAccumulatorType(store.getTiles()[result].getDefiningOp<KernelOp>()));
}

/// Whether the kernel of a result may round it as it writes it.
bool NestSchedule::canRound(StoreOp store, size_t result) {
  auto made = cast<OpResult>(store.getTiles()[result]);
  auto kernel = cast<KernelOp>(made.getOwner());
  return KernelSignature::canRound(kernel.getKernel(), made.getResultNumber(),
                                   isGenerated(kernel));
}

/// What a kernel works in has its place in the plan, so that a run allocates
/// nothing.
FailureOr<Value> NestExpander::makeScratch(KernelOp kernel) {
  auto sizeOf = [&](StringRef letter) -> int64_t {
    DimAttr dim = getBoundDim(kernel, {letter});
    if (dim.isConstant())
      return dim.getValue();
    return llvm::divideCeil(program.getAxis(dim.getAxis()).getExtent(),
                            dim.getDivisor());
  };
  int64_t elements = KernelSignature::getScratch(kernel.getKernel(), sizeOf);
  if (elements == 0)
    return Value();
  if (Value made = scratches.lookup(kernel))
    return made;
  if (elements > int64_t(1) << 40)
    return kernel.emitOpError() << "works in more memory than there is, "
                                << elements << " elements; tile its loops";
  MLIRContext *context = nest.getContext();
  auto type = BufferType::get(context, DimAttr::get(context, "", elements),
                              getAccumulatorType(kernel));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&program.getBody().front());
  Value memory = makeMemory(type, 1, PlacementAttr::get(context, {}));
  return scratches[kernel] = getTileAt(memory, {});
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
  // What a kernel was told and would not hear is refused.
  bool scaled = KernelSignature::isAttention(kernel.getKernel());
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
  FailureOr<Value> scratch = makeScratch(kernel);
  if (failed(scratch))
    return failure();
  SmallVector<Value> inputs;
  for (Value input : kernel.getInputs()) {
    auto load = input.getDefiningOp<LoadOp>();
    if (!load)
      return kernel.emitOpError()
             << "takes a tile that another operation than commir.load makes, "
                "which this version does not lower yet; load it from a buffer";
    Value buffer = load.getBuffer();
    if (Value wide = widened.lookup(buffer); wide && !entersOnce(kernel)) {
      inputs.push_back(getTile(wide));
      continue;
    }
    // What is always in a slot is nowhere else.
    ArrayRef<Arrival> arrivals = arrived[buffer];
    bool inSlot = !arrivals.empty() && !arrivals.back().isOwn;
    if (inSlot)
      arrivals = arrivals.take_back();
    Value tile = inSlot ? Value() : getTile(memory[buffer]);
    for (const Arrival &arrival : arrivals) {
      Value came = getTile(arrival.slots, arrival.slot);
      tile = inSlot ? came
                    : arith::SelectOp::create(builder, kernel.getLoc(),
                                              arrival.isOwn, tile, came);
    }
    inputs.push_back(tile);
  }
  SmallVector<LaunchTarget> targets;
  for (Value output : kernel.getOutputs()) {
    if (!output.hasOneUse() || !isa<StoreOp>(*output.getUsers().begin()))
      return kernel.emitOpError() << "must have each result stored once";
    targets.push_back(getTarget(kernel, *output.getUses().begin()));
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
  auto tiles = llvm::map_to_vector(
      targets, [](const LaunchTarget &target) { return target.tile; });
  bool joined = !entersOnce(kernel) && joinsPieces(kernel);
  auto emit = [&](ArrayRef<Value> places, ArrayRef<bool> overwrites) {
    auto launch = LaunchOp::create(
        builder, kernel.getLoc(), kernel.getKernelAttr(), inputs, places,
        positions, kernel.getMaskAttr(),
        kernel->getAttrOfType<FloatAttr>("scale"),
        group == 1 ? IntegerAttr() : builder.getI64IntegerAttr(group),
        isGenerated(kernel) ? StringAttr() : kernel.getImplAttr(), *scratch,
        llvm::is_contained(overwrites, true)
            ? builder.getDenseBoolArrayAttr(overwrites)
            : DenseBoolArrayAttr());
    if (!joined)
      return;
    launch->setAttr("commir.joined", builder.getUnitAttr());
    auto leavesOut = llvm::map_to_vector(
        targets, [](const LaunchTarget &target) { return target.leavesOut; });
    if (llvm::is_contained(leavesOut, true))
      launch->setAttr("commir.leaves_out",
                      builder.getDenseBoolArrayAttr(leavesOut));
  };
  StoreOp apart = findStoreToMergeApart(kernel);
  emitVariants(targets, [&](ArrayRef<bool> overwrites) {
    if (apart && llvm::is_contained(overwrites, false))
      mergeApart(apart, tiles, emit);
    else
      emit(tiles, overwrites);
  });
  return success();
}

/// Results narrower than float32 are kept in float32 until they are whole. What
/// the launches do not write themselves starts as its merge's identity.
LogicalResult NestExpander::startOutputs() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    auto kind =
        dyn_cast_or_null<MergeKindAttr>(store.getMerge().value_or(nullptr));
    bool moves = llvm::any_of(
        loops, [&](LoopAttr loop) { return travels(store, loop); });
    if (writesAll(store))
      written.insert(store);
    for (auto [i, buffer] : llvm::enumerate(store.getBuffers())) {
      auto kernel = store.getTiles()[i].getDefiningOp<KernelOp>();
      bool softmax = KernelSignature::makesSoftmax(kernel.getKernel());
      // How a kernel reduces what is not cut is how its results merge.
      if (Attribute merge = store.getMerge().value_or(nullptr);
          merge && (!kind || kind.getValue() == MergeKind::Max ||
                    softmax != (kind.getValue() == MergeKind::Softmax)))
        return store.emitOpError()
               << "merge '"
               << (kind ? stringifyMergeKind(kind.getValue())
                        : cast<FlatSymbolRefAttr>(merge).getValue())
               << "' does not fit the generated kernel '" << kernel.getKernel()
               << "' that makes the result; merge by "
               << (softmax ? "softmax" : "sum");
      auto type = cast<BufferType>(buffer.getType());
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      PlacementAttr partial = getPartialPlacement(store, getInside(number));
      if (store.getDeferred() && !moves && countPartials(buffer) > 1) {
        if (failed(startWaiting(store, i)))
          return failure();
        continue;
      }
      bool stays = isSamePlacement(program, partial,
                                   program.getBinding(number).getBoundary());
      if (!stays && !moves && addExchangedResult(store, i))
        continue;
      // The buffer itself will do when it is as wide and lies as it is made.
      BufferType wide = rounds(store, i) ? type : getWideType(store, i);
      Value accumulator = buffer;
      if (wide != type || !stays)
        accumulator = makeMemory(wide, 1, partial);
      memory[buffer] = accumulator;
    }
    LoopAttr chunked = getChunkedLoop(store);
    bool inChunks = chunked && !store.getDeferred();
    bool isStarted = inChunks ? arrivesInPlace(store, chunked)
                     : moves  ? bool(getOnlyRound(store))
                              : written.contains(store);
    for (auto [i, buffer] : llvm::enumerate(store.getBuffers()))
      if (!isStarted && !waiting.contains(buffer))
        fillWithIdentity(store, i, getTileAt(memory[buffer], {}));
  }
  return success();
}

void NestExpander::fillWithIdentity(StoreOp store, size_t result, Value tile) {
  auto made = cast<OpResult>(store.getTiles()[result]);
  auto kernel = cast<KernelOp>(made.getOwner());
  double identity =
      KernelSignature::getIdentity(kernel.getKernel(), made.getResultNumber());
  FillOp::create(builder, nest.getLoc(), tile,
                 builder.getF64FloatAttr(identity));
}

/// Merges what enters once into the result, which is whole by now: so it does
/// whatever ranks, steps and tiles made the result.
LogicalResult NestExpander::mergeOnce(StoreOp store) {
  SmallVector<KernelOp> kernels;
  for (Value tile : store.getOnce()) {
    auto kernel = tile.getDefiningOp<KernelOp>();
    auto made = store.getTiles().front().getDefiningOp<KernelOp>();
    if (!kernel || KernelSignature::makesSoftmax(kernel.getKernel()) !=
                       KernelSignature::makesSoftmax(made.getKernel()))
      return store.emitOpError()
             << "merges once what no generated kernel of its merge makes; let "
                "a kernel make both that gives "
             << (KernelSignature::makesSoftmax(made.getKernel())
                     ? "softmax pairs"
                     : "sums");
    if (!llvm::is_contained(kernels, kernel))
      kernels.push_back(kernel);
  }
  // The part of each axis that this rank holds of the result; of a strided
  // placement one after the other.
  llvm::StringMap<Part> before = std::exchange(parts, {});
  OpBuilder::InsertionGuard guard(builder);
  for (Value buffer : store.getBuffers()) {
    int64_t number = cast<BlockArgument>(buffer).getArgNumber();
    for (CutAttr cut : getInside(number).getCuts()) {
      if (kernels.empty() || parts.contains(cut.getAxis()))
        continue;
      for (Attribute factor : getFactors(mesh, cut)) {
        if (auto level = dyn_cast<StringAttr>(factor)) {
          pushPart(cut.getAxis(), getRank(level), mesh.getLevelSize(level));
          continue;
        }
        int64_t count = cast<IntegerAttr>(factor).getInt();
        Value zero = constant(0), end = constant(count), one = constant(1);
        auto each = scf::ForOp::create(builder, nest.getLoc(), zero, end, one);
        builder.setInsertionPointToStart(each.getBody());
        pushPart(cut.getAxis(), each.getInductionVar(), count);
      }
    }
  }
  LogicalResult result = success();
  for (KernelOp kernel : kernels)
    result = succeeded(result) ? emitLaunch(kernel) : result;
  parts = std::move(before);
  return result;
}

/// What ranks made in parts is merged, rounded to the buffer's type, and
/// brought to where the buffer lives outside.
LogicalResult NestExpander::finishOutputs() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    mergeWaiting(store);
    if (!getReducedLevels(store).empty())
      reduceOverRanks(store);
    if (failed(mergeOnce(store)))
      return failure();
    for (Value buffer : store.getBuffers()) {
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      PlacementAttr inside = getInside(number);
      Value made = memory[buffer];
      if (made == buffer)
        continue;
      bool stays = isSamePlacement(program, inside,
                                   program.getBinding(number).getBoundary());
      auto type = cast<BufferType>(buffer.getType());
      if (stays || made.getType() != type) {
        Value rounded = stays ? buffer : makeMemory(type, 1, inside);
        Value source = getTileAt(made, {}), target = getTileAt(rounded, {});
        CopyOp::create(builder, nest.getLoc(), source, target);
        made = rounded;
      }
      if (!stays)
        reshard(made, inside, buffer);
    }
  }
  return success();
}
