//===- Meaning.cpp - What the source program asks for ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Meaning.h"
#include "dialect/CommIR/KernelSignature.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

int64_t check::getLength(ArrayRef<Segment> segments) {
  int64_t length = 0;
  for (const Segment &segment : segments)
    length += segment.local.size();
  return length;
}

SmallVector<Interval> check::getPositions(ArrayRef<Segment> segments) {
  return normalize(llvm::map_to_vector(
      segments, [](const Segment &s) { return s.getPositions(); }));
}

const Segments *check::findDim(const DimMap &dims, DimAttr wanted) {
  for (const auto &[dim, segments] : dims)
    if (dim == wanted)
      return &segments;
  return nullptr;
}

static int64_t getNumber(Value buffer) {
  return cast<BlockArgument>(buffer).getArgNumber();
}

FailureOr<Meaning> Meaning::create(ProgramOp program) {
  Meaning meaning;
  meaning.program = program;
  meaning.inputs = program.getNumInputs();
  int64_t count = program.getBindings().size();
  for (int64_t i = 0; i < count; ++i) {
    meaning.names.push_back(program.getBinding(i).getName());
    meaning.dims.push_back(program.getBufferType(i).getDims());
    meaning.elementTypes.push_back(program.getBufferType(i).getElementType());
  }
  meaning.results.resize(count);
  for (ForOp nest : program.getBody().getOps<ForOp>())
    if (failed(meaning.readNest(nest)))
      return failure();
  for (int64_t i = meaning.inputs; i < count; ++i)
    if (!meaning.results[i].store)
      return program.emitOpError()
             << "has no loops that make '" << meaning.names[i]
             << "', so no plan of it can be checked";
  meaning.findSame();
  return meaning;
}

LogicalResult Meaning::readNest(ForOp nest) {
  for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
    if (loop.getShift() && loop.getShift().getLink())
      links.push_back(loop.getShift().getLink());
  for (KernelOp kernel : nest.getBody().getOps<KernelOp>()) {
    KernelMeaning &read = kernels.emplace_back();
    read.op = kernel;
    for (Value input : kernel.getInputs()) {
      auto load = input.getDefiningOp<LoadOp>();
      if (!load)
        return kernel.emitOpError() << "takes a tile that is not loaded, which "
                                       "the plan checker does not follow";
      read.inputs.push_back(getNumber(load.getBuffer()));
    }
    read.outputs.assign(kernel.getOutputs().size(), -1);
    read.query = getBoundDim(kernel, {"sq"});
    read.key = getBoundDim(kernel, {"sk"});
    for (KernelSignature::Dim dim :
         KernelSignature::positions(kernel.getKernel()))
      read.positions.push_back(getBoundDim(kernel, dim));
    KernelSignature::getScratch(kernel.getKernel(), [&](StringRef letter) {
      read.scratch[letter] = getBoundDim(kernel, {letter});
      return 0;
    });
  }
  for (StoreOp store : nest.getBody().getOps<StoreOp>())
    if (failed(readStore(store)))
      return failure();
  return success();
}

/// Finds the kernel that makes what is stored to an output.
LogicalResult Meaning::readMaker(StoreOp store, Value tile, int64_t number,
                                 int64_t &kernel) {
  auto made = dyn_cast<OpResult>(tile);
  auto found = llvm::find_if(kernels, [&](KernelMeaning &each) {
    return made && each.op == made.getOwner();
  });
  if (found == kernels.end())
    return store.emitOpError() << "stores a tile that no kernel makes, which "
                                  "the plan checker does not follow";
  int64_t &output = found->outputs[made.getResultNumber()];
  if (output >= 0)
    return store.emitOpError() << "stores a tile that is stored before, which "
                                  "the plan checker does not follow";
  output = number;
  kernel = found - kernels.begin();
  return success();
}

LogicalResult Meaning::readStore(StoreOp store) {
  if (std::optional<Type> partial = store.getPartial())
    links.push_back(*partial);
  auto kind =
      dyn_cast_or_null<MergeKindAttr>(store.getMerge().value_or(nullptr));
  if (store.getMerge() && !kind)
    return store.emitOpError() << "has a merge given by the user, which the "
                                  "plan checker does not follow";
  for (auto [tile, buffer] :
       llvm::zip_equal(store.getTiles(), store.getBuffers())) {
    int64_t number = getNumber(buffer);
    ResultMeaning &result = results[number];
    result.store = store;
    result.same = number;
    if (failed(readMaker(store, tile, number, result.kernel)))
      return failure();
    auto made = cast<OpResult>(tile);
    result.merges = kind != nullptr;
    result.merge = kind ? kind.getValue() : MergeKind::Sum;
    if (result.merge == MergeKind::Max)
      result.identity = -std::numeric_limits<double>::infinity();
    if (result.merge == MergeKind::Softmax) {
      // The pair is (o, lse) in the order of the kernel's results.
      Value other = store.getTiles()[tile == store.getTiles()[0] ? 1 : 0];
      result.partner =
          getNumber(store.getBuffers()[tile == store.getTiles()[0] ? 1 : 0]);
      if (made.getResultNumber() > cast<OpResult>(other).getResultNumber())
        result.identity = -std::numeric_limits<double>::infinity();
    }
    auto add = [&](StringRef axis) {
      if (llvm::is_contained(result.axes, axis))
        return;
      result.axes.push_back(axis);
      result.extents.push_back(program.getAxis(axis).getExtent());
    };
    if (store.getOver())
      for (auto axis : store.getOver()->getAsRange<StringAttr>())
        add(axis.getValue());
    for (DimAttr dim : dims[number])
      if (dim.getDivisor() != 1)
        add(dim.getAxis());
  }
  for (auto [tile, buffer] : llvm::zip(store.getOnce(), store.getBuffers())) {
    ResultMeaning &result = results[getNumber(buffer)];
    if (failed(readMaker(store, tile, getNumber(buffer), result.once)))
      return failure();
    kernels[result.once].entersOnce = true;
  }
  for (Value buffer : store.getBuffers())
    if (kernels[results[getNumber(buffer)].kernel].entersOnce)
      return store.emitOpError() << "has a kernel of which one result enters "
                                    "once, and another does not";
  return success();
}

//===----------------------------------------------------------------------===//
// Outputs that hold the same
//===----------------------------------------------------------------------===//

/// Whether two kernels make the same of the same inputs, and their results are
/// merged in the same way.
bool Meaning::isSame(const KernelMeaning &one,
                     const KernelMeaning &other) const {
  KernelOp a = one.op, b = other.op;
  if (a.getKernel() != b.getKernel() || one.getMask() != other.getMask() ||
      a.getSignature() != b.getSignature() || one.inputs != other.inputs ||
      a->getDiscardableAttrDictionary() != b->getDiscardableAttrDictionary() ||
      one.outputs.size() != other.outputs.size())
    return false;
  for (auto [i, j] : llvm::zip_equal(one.outputs, other.outputs)) {
    if (i < 0 || j < 0)
      return false;
    const ResultMeaning &first = results[i], &second = results[j];
    if (dims[i] != dims[j] || first.merges != second.merges ||
        first.merge != second.merge || first.axes != second.axes ||
        first.once >= 0 || second.once >= 0)
      return false;
  }
  return true;
}

void Meaning::findSame() {
  for (KernelMeaning &kernel : kernels) {
    KernelMeaning *first = &*llvm::find_if(kernels, [&](KernelMeaning &each) {
      return &each == &kernel || isSame(each, kernel);
    });
    if (first == &kernel)
      continue;
    for (auto [output, same] : llvm::zip_equal(kernel.outputs, first->outputs))
      results[output].same = same;
  }
  for (KernelMeaning &kernel : kernels)
    for (int64_t &output : kernel.outputs)
      if (output >= 0)
        output = results[output].same;
  for (ResultMeaning &result : results)
    if (result.partner >= 0)
      result.partner = results[result.partner].same;
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

/// The shards that a rank holds of a cut: a number among its factors is a cut
/// inside the rank, which has all parts of it.
static SmallVector<int64_t> getHeldShards(const PlanTrace &trace, int64_t rank,
                                          CutAttr cut, int64_t &shards) {
  SmallVector<int64_t> held{0};
  shards = 1;
  for (Attribute factor : cut.getFactors()) {
    int64_t size = 1, own = -1;
    if (auto number = dyn_cast<IntegerAttr>(factor)) {
      size = number.getInt();
    } else {
      for (int64_t level = 0, e = trace.getLevelSizes().size(); level < e;
           ++level) {
        if (trace.getLevelName(level) != cast<StringAttr>(factor).getValue())
          continue;
        size = trace.getLevelSizes()[level];
        own = trace.getCoordinate(rank, level);
      }
    }
    SmallVector<int64_t> next;
    for (int64_t outer : held)
      for (int64_t i = 0; i < size; ++i)
        if (own < 0 || i == own)
          next.push_back(outer * size + i);
    held = next;
    shards *= size;
  }
  return held;
}

SmallVector<Segments> Meaning::getShard(const PlanTrace &trace, int64_t rank,
                                        int64_t buffer) const {
  BindingAttr binding = ProgramOp(program).getBinding(buffer);
  PlacementAttr placement =
      binding.getBoundary() ? binding.getBoundary() : binding.getInside();
  SmallVector<Segments> shard;
  for (DimAttr dim : dims[buffer]) {
    SmallVector<Interval> held;
    CutAttr cut = placement && !dim.isConstant()
                      ? placement.getCut(dim.getAxis())
                      : CutAttr();
    int64_t divisor = dim.getDivisor();
    if (dim.isConstant()) {
      held = normalize({{0, dim.getValue()}});
    } else {
      AxisAttr axis = ProgramOp(program).getAxis(dim.getAxis());
      if (!cut) {
        held = normalize({{0, axis.getExtent()}});
      } else {
        LayoutAttr layout =
            cut.getLayout() ? cut.getLayout() : axis.getLayout();
        int64_t shards;
        for (int64_t index : getHeldShards(trace, rank, cut, shards))
          held.append(
              layout.getLayout().shard(axis.getExtent(), shards, index));
        held = normalize(held);
      }
    }
    // Of grouped heads a rank holds each that one of its heads uses.
    for (Interval &interval : held)
      interval = {interval.begin / divisor,
                  llvm::divideCeilSigned(interval.end, divisor)};
    Segments &segments = shard.emplace_back();
    int64_t at = 0;
    for (Interval interval : normalize(held)) {
      segments.push_back({{at, at + interval.size()}, interval.begin});
      at += interval.size();
    }
  }
  return shard;
}

//===----------------------------------------------------------------------===//
// What an output needs
//===----------------------------------------------------------------------===//

Box Meaning::getNeeded(int64_t output, const Box &elements) const {
  const ResultMeaning &result = results[output];
  Box needed;
  for (int64_t extent : result.extents)
    needed.push_back({0, extent});
  for (auto [dim, interval] : llvm::zip_equal(dims[output], elements))
    if (dim.getDivisor() != 1)
      for (auto [i, axis] : llvm::enumerate(result.axes))
        if (axis == dim.getAxis())
          needed[i] = {
              interval.begin * dim.getDivisor(),
              std::min(interval.end * dim.getDivisor(), result.extents[i])};
  return needed;
}

bool Meaning::isMasked(int64_t output, const Box &elements,
                       const Box &reduced) const {
  const ResultMeaning &result = results[output];
  const KernelMeaning &kernel = kernels[result.kernel];
  MaskAttr mask = kernel.getMask();
  if (!mask || mask.isFull())
    return false;
  auto find = [&](DimAttr wanted) -> std::optional<Interval> {
    for (auto [axis, interval] : llvm::zip_equal(result.axes, reduced))
      if (axis == wanted.getAxis())
        return interval;
    for (auto [dim, interval] : llvm::zip_equal(dims[output], elements))
      if (dim == wanted)
        return interval;
    return std::nullopt;
  };
  std::optional<Interval> queries = find(kernel.query), keys = find(kernel.key);
  return queries && keys && isOutsideMask(mask, *queries, *keys);
}

std::optional<Box> Meaning::getMissing(int64_t output, const Box &elements,
                                       const BoxSet &merged) const {
  for (const Box &box : merged.getMissing(getNeeded(output, elements)))
    if (!isMasked(output, elements, box))
      return box;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string check::describe(DimAttr dim) {
  if (dim.isConstant())
    return std::to_string(dim.getValue());
  std::string text = dim.getAxis().str();
  return dim.getDivisor() == 1 ? text
                               : text + "/" + std::to_string(dim.getDivisor());
}

std::string check::describe(ArrayRef<Segment> segments) {
  std::string text;
  for (const Segment &segment : segments) {
    Interval positions = segment.getPositions();
    text += (text.empty() ? "[" : ", [") + std::to_string(positions.begin) +
            ", " + std::to_string(positions.end) + ")";
  }
  return text.empty() ? "nothing" : text;
}

static std::string describeInterval(StringRef name, Interval interval) {
  return (name + " [" + Twine(interval.begin) + ", " + Twine(interval.end) +
          ")")
      .str();
}

std::string Meaning::describe(int64_t buffer, const Box &box) const {
  std::string text;
  for (auto [dim, interval] : llvm::zip_equal(dims[buffer], box)) {
    // A whole constant dimension says nothing.
    if (dim.isConstant() && interval == Interval{0, dim.getValue()})
      continue;
    if (interval.begin < 0)
      continue; // the same anywhere
    std::string name = (dim.isConstant() ? "of " : "") + check::describe(dim);
    text += (text.empty() ? "" : ", ") + describeInterval(name, interval);
  }
  return text.empty() ? "all of it" : text;
}

std::string Meaning::describeReduced(int64_t output, const Box &box) const {
  std::string text;
  for (auto [axis, interval] : llvm::zip_equal(results[output].axes, box))
    text += (text.empty() ? "" : ", ") + describeInterval(axis, interval);
  return text.empty() ? "the only part" : text;
}
