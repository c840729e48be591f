//===- Memory.cpp - Memory of this rank, and tiles of it ------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Localization/ProgramLocalizer.h"

using namespace mlir;
using namespace mlir::commir;

static int64_t getBytes(Type elementType) {
  return elementType.getIntOrFloatBitWidth() / 8;
}

/// The bytes of a whole number of cache lines that hold `slots` times
/// `elements`; nullopt when nothing can hold them.
static std::optional<int64_t> getMemoryBytes(ArrayRef<int64_t> sizes,
                                             int64_t elementBytes,
                                             int64_t slots,
                                             int64_t &slotBytes) {
  slotBytes = elementBytes;
  for (int64_t size : sizes)
    if (llvm::MulOverflow(slotBytes, size, slotBytes))
      return std::nullopt;
  int64_t bytes;
  if (llvm::AddOverflow(slotBytes, int64_t(63), slotBytes) ||
      llvm::MulOverflow(slotBytes &= ~int64_t(63), slots, bytes))
    return std::nullopt;
  return bytes;
}

/// The axis of a cut, in the layout that the cut names.
static AxisAttr getAxis(ProgramOp program, CutAttr cut) {
  AxisAttr axis = program.getAxis(cut.getAxis());
  if (!cut.getLayout())
    return axis;
  return AxisAttr::get(program.getContext(), axis.getName(), axis.getExtent(),
                       cut.getLayout());
}

/// The factors of a cut that cut, without the numbers that end it where the
/// shards of the outer factors are unions of finer ones.
static SmallVector<Attribute> getFactorsThatCut(ProgramOp program,
                                                CutAttr cut) {
  SmallVector<Attribute> factors = getFactors(program.getMeshOp(), cut);
  if (llvm::none_of(factors, llvm::IsaPred<StringAttr>))
    return {};
  Layout::Kind kind = getAxis(program, cut).getLayout().getKind();
  if (kind == Layout::Kind::Block || kind == Layout::Kind::Zigzag)
    while (isa<IntegerAttr>(factors.back()))
      factors.pop_back();
  return factors;
}

ProgramLocalizer::Range ProgramLocalizer::getForm(CutAttr cut) {
  Range form;
  for (Attribute factor : llvm::reverse(getFactorsThatCut(program, cut))) {
    auto number = dyn_cast<IntegerAttr>(factor);
    int64_t size =
        number ? number.getInt() : mesh.getLevelSize(cast<StringAttr>(factor));
    if (number)
      form.steps.push_back({size, form.count});
    form.count *= size;
  }
  std::reverse(form.steps.begin(), form.steps.end());
  return form;
}

Value ProgramLocalizer::getCoordinate(
    Operation *op, StringAttr level,
    const llvm::StringMap<Value> &coordinates) {
  if (Value other = coordinates.lookup(level.getValue()))
    return other;
  return builder.fold<GroupRankOp>(op->getLoc(), builder.getIndexType(), level);
}

ProgramLocalizer::Shard
ProgramLocalizer::getShard(Operation *op, PlacementAttr placement,
                           StringRef axis,
                           const llvm::StringMap<Value> &coordinates) {
  CutAttr cut = placement.getCut(axis);
  if (!cut)
    return {program.getAxis(axis), Range{}};
  Range range = getForm(cut);
  if (range.count == 1)
    return {getAxis(program, cut), Range{}};
  range.index = constant(0);
  for (Attribute factor : getFactorsThatCut(program, cut)) {
    if (auto number = dyn_cast<IntegerAttr>(factor)) {
      range.index = mul(range.index, constant(number.getInt()));
      continue;
    }
    auto level = cast<StringAttr>(factor);
    Value coordinate = getCoordinate(op, level, coordinates);
    range.index = mul(range.index, constant(mesh.getLevelSize(level)));
    range.index = add(range.index, coordinate);
  }
  return {getAxis(program, cut), range};
}

Value ProgramLocalizer::makeView(Value bytes, Value shift, Type element,
                                 ArrayRef<Value> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(getAsOpFoldResult(sizes), dynamic, shape);
  return builder.fold<memref::ViewOp>(
      program.getLoc(), MemRefType::get(shape, element), bytes, shift, dynamic);
}

Value mlir::commir::castTile(FoldingBuilder &builder, Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  SmallVector<int64_t> dynamic(type.getRank(), ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, dynamic);
  return builder.fold<memref::CastOp>(
      tile.getLoc(), MemRefType::get(dynamic, type.getElementType(), layout),
      tile);
}

Value ProgramLocalizer::makeSubview(Value frame, ArrayRef<Value> offsets,
                                    ArrayRef<Value> sizes) {
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> begins = getAsOpFoldResult(offsets);
  // What is empty behind all others would begin outside of the memory.
  for (auto [begin, size] : llvm::zip_equal(begins, sizes))
    if (isConstantIntValue(size, 0))
      begin = builder.getIndexAttr(0);
  Value tile = builder.fold<memref::SubViewOp>(
      program.getLoc(), frame, begins, getAsOpFoldResult(sizes), strides);
  return castTile(builder, tile);
}

/// Some positions of a tile. Of memory of no elements no offset lies inside: it
/// is any tile that has none, of whatever other sizes.
Value ProgramLocalizer::takeSlab(const Tile &tile, ArrayRef<Value> offsets,
                                 ArrayRef<Value> sizes) {
  if (!tile.empty)
    return makeSubview(tile.frame, offsets, sizes);
  Type element = cast<MemRefType>(tile.frame.getType()).getElementType();
  return castTile(builder, makeView(tile.empty, constant(0), element, sizes));
}

/// The same frame in each of several slots, along a dimension of its own.
Value ProgramLocalizer::makeStack(Value frame, int64_t slots,
                                  int64_t slotElements, ArrayRef<Value> sizes) {
  SmallVector<Value> strides{constant(1)};
  for (Value size : llvm::reverse(sizes.drop_front(sizes.empty() ? 0 : 1)))
    strides.push_back(mul(strides.back(), size));
  if (sizes.empty())
    strides.clear();
  strides.push_back(constant(slotElements));
  std::reverse(strides.begin(), strides.end());
  SmallVector<OpFoldResult> all{constant(slots)},
      steps(strides.begin(), strides.end());
  all.append(sizes.begin(), sizes.end());
  SmallVector<int64_t> dynamic(all.size(), ShapedType::kDynamic);
  auto layout = StridedLayoutAttr::get(program.getContext(),
                                       ShapedType::kDynamic, dynamic);
  auto type = MemRefType::get(
      dynamic, cast<MemRefType>(frame.getType()).getElementType(), layout);
  return builder.fold<memref::ReinterpretCastOp>(
      program.getLoc(), type, frame, OpFoldResult(constant(0)), all, steps);
}

LogicalResult ProgramLocalizer::convert(AllocOp op) {
  BufferType type = op.getBuffer().getType();
  SmallVector<int64_t> sizes;
  for (DimAttr dim : type.getDims()) {
    if (dim.isConstant()) {
      sizes.push_back(dim.getValue());
      continue;
    }
    AxisAttr axis = program.getAxis(dim.getAxis());
    Range form;
    if (auto parts = op.getParts().getAs<IntegerAttr>(dim.getAxis())) {
      form.count = parts.getInt();
    } else if (CutAttr cut = op.getPlacement().getCut(dim.getAxis())) {
      form = getForm(cut);
      axis = getAxis(program, cut);
    }
    sizes.push_back(getLargestSize(axis, form, dim.getDivisor()));
  }
  int64_t slotBytes;
  FailureOr<Value> memory =
      makeBytes(op, sizes, type.getElementType(), op.getSlots(), slotBytes);
  if (failed(memory))
    return failure();
  memories[op.getBuffer()] = {*memory,       type,      op.getPlacement(),
                              op.getParts(), slotBytes, {}};
  mapping.map(op.getBuffer(), *memory);
  return success();
}

FailureOr<Value> ProgramLocalizer::makeBytes(Operation *op,
                                             ArrayRef<int64_t> sizes,
                                             Type element, int64_t slots,
                                             int64_t &slotBytes) {
  std::optional<int64_t> bytes =
      getMemoryBytes(sizes, getBytes(element), slots, slotBytes);
  if (!bytes)
    return op->emitOpError() << "needs more memory than there are addresses";
  return memref::AllocOp::create(builder, op->getLoc(),
                                 MemRefType::get({*bytes}, builder.getI8Type()))
      .getResult();
}

/// Lends the memory of a buffer, or of one of its slots.
LogicalResult ProgramLocalizer::convert(LeaseOpenOp op) {
  Value bytes = mapping.lookup(op.getMemory());
  if (op.getSlot()) {
    int64_t slotBytes = memories[op.getMemory()].slotBytes;
    OpFoldResult shift = mul(mapping.lookup(op.getSlot()), constant(slotBytes));
    bytes = builder.fold<memref::SubViewOp>(
        op.getLoc(), bytes, ArrayRef<OpFoldResult>(shift),
        ArrayRef<OpFoldResult>(builder.getIndexAttr(slotBytes)),
        ArrayRef<OpFoldResult>(builder.getIndexAttr(1)));
  }
  mapping.map(op.getLease(), LeaseOpenOp::create(builder, op.getLoc(), bytes,
                                                 op.getGroupAttr())
                                 .getLease());
  return success();
}

/// A member of a lease's group holds what its coordinates say.
LogicalResult ProgramLocalizer::convert(LeaseMemoryOp op) {
  auto open = op.getLease().getDefiningOp<LeaseOpenOp>();
  if (!open)
    return op.emitOpError() << "reads a lease that this program did not open";
  Memory memory = memories[open.getMemory()];
  Value left = mapping.lookup(op.getPeer());
  for (Attribute level : llvm::reverse(open.getGroup())) {
    Value size = constant(mesh.getLevelSize(cast<StringAttr>(level)));
    memory.coordinates[cast<StringAttr>(level).getValue()] =
        builder.fold<arith::RemUIOp>(op.getLoc(), left, size);
    left = builder.fold<arith::DivUIOp>(op.getLoc(), left, size);
  }
  memory.bytes = LeaseMemoryOp::create(
      builder, op.getLoc(),
      MemRefType::get({ShapedType::kDynamic}, builder.getI8Type()),
      mapping.lookup(op.getLease()), mapping.lookup(op.getPeer()));
  memories[op.getMemory()] = memory;
  mapping.map(op.getMemory(), memory.bytes);
  return success();
}

FailureOr<ProgramLocalizer::Range>
ProgramLocalizer::getHeldRange(Operation *op, const Memory &memory,
                               AxisAttr axis, Range asked) {
  if (auto parts = memory.parts.getAs<IntegerAttr>(axis.getName())) {
    int64_t count = parts.getInt();
    if (count == 1)
      return Range{};
    if (!asked.index || asked.count % count != 0)
      return op->emitOpError() << "must name one of the " << count
                               << " parts of axis '" << axis.getName() << "'";
    return Range{layouts.findAround(axis, asked.index, asked.count, count),
                 count};
  }
  Shard held =
      getShard(op, memory.placement, axis.getName(), memory.coordinates);
  if (held.axis != axis)
    return op->emitOpError()
           << "lives in another layout than that of axis '" << axis.getName()
           << "', which this version does not lower yet";
  return held.range;
}

FailureOr<ProgramLocalizer::Extent>
ProgramLocalizer::getExtent(PartOp op, const Memory &memory, DimAttr dim) {
  if (dim.isConstant()) {
    Value size = constant(dim.getValue());
    return Extent{{}, {}, constant(0), size, size};
  }
  AxisAttr axis = program.getAxis(dim.getAxis());
  Range asked;
  for (auto [name, index, count] :
       llvm::zip_equal(op.getAxes().getAsRange<StringAttr>(), op.getIndices(),
                       op.getCounts()))
    if (name == dim.getAxis())
      asked = {mapping.lookup(index), count};
  FailureOr<Range> held = getHeldRange(op, memory, axis, asked);
  if (failed(held))
    return failure();
  int64_t divisor = dim.getDivisor();
  Value size = layouts.size(axis, *held, divisor);
  if (asked.index && !held->steps.empty() && asked.count % held->count != 0)
    return op->emitOpError()
           << "must name a part of the " << held->count << " of axis '"
           << axis.getName() << "' that its memory holds some of, got one of "
           << asked.count;
  // An access of as many parts as the memory is cut into is its own part.
  if (!asked.index || (asked.count == held->count && held->steps.empty()))
    return Extent{asked.index ? asked : *held, *held, constant(0), size, size};
  Extent extent{asked, *held, constant(0), {}, size, /*whole=*/false};
  extent.inPieces = !isOneInterval(axis);
  if (!extent.inPieces) {
    Value first = layouts.begin(axis, asked, divisor);
    if (held->steps.empty()) {
      extent.offset = sub(first, layouts.begin(axis, *held, divisor));
    } else {
      Value shard = layouts.findShard(axis, *held, asked.index, asked.count);
      Piece around = layouts.piece(axis, *held, shard, divisor);
      extent.offset = add(around.local, sub(first, around.begin));
    }
  }
  extent.size = layouts.size(axis, asked, divisor);
  return extent;
}

LogicalResult ProgramLocalizer::convert(PartOp op) {
  const Memory &memory = memories[op.getBuffer()];
  Tile tile;
  SmallVector<Value> held, offsets, sizes;
  // A slab of rows lies together as all of them do.
  bool all = true, empty = false, together = true, single = true;
  for (DimAttr dim : memory.type.getDims()) {
    FailureOr<Extent> extent = getExtent(op, memory, dim);
    if (failed(extent))
      return failure();
    tile.extents.push_back(*extent);
    held.push_back(extent->heldSize);
    offsets.push_back(extent->offset);
    sizes.push_back(extent->size);
    all &= extent->whole;
    together &= extent->whole || (single && !extent->inPieces);
    single &=
        (dim.isConstant() ? dim.getValue()
                          : program.getAxis(dim.getAxis()).getExtent()) == 1;
    // An axis of no positions, or a part behind all of them.
    empty |=
        isConstantIntValue(extent->heldSize, 0) ||
        (dim.isConstant() ? dim.getValue()
                          : program.getAxis(dim.getAxis()).getExtent()) == 0;
  }
  if (empty) {
    held = sizes;
    all = true;
    tile.empty = memory.bytes;
    for (Extent &extent : tile.extents)
      extent.inPieces = false;
  }
  Value shift = constant(0);
  if (op.getSlot())
    shift = mul(mapping.lookup(op.getSlot()), constant(memory.slotBytes));
  Value frame =
      makeView(memory.bytes, shift, memory.type.getElementType(), held);
  tile.frame = castTile(builder, frame);
  if (std::optional<int64_t> slots = op.getStack()) {
    frame = makeStack(frame, *slots,
                      memory.slotBytes / getBytes(memory.type.getElementType()),
                      held);
    Value count = constant(*slots);
    tile.extents.insert(tile.extents.begin(),
                        Extent{{}, {}, constant(0), count, count});
    offsets.insert(offsets.begin(), constant(0));
    sizes.insert(sizes.begin(), count);
    tile.frame = frame;
    all = empty;
    together = false;
  }
  // What is in pieces stands for all of its memory until it is taken apart.
  bool inPieces = llvm::any_of(
      tile.extents, [](const Extent &extent) { return extent.inPieces; });
  mapping.map(op.getTile(), all || inPieces
                                ? tile.frame
                                : makeSubview(frame, offsets, sizes));
  if (all || together)
    whole.insert(op.getTile());
  tiles[op.getTile()] = std::move(tile);
  return success();
}

LogicalResult ProgramLocalizer::convert(PositionOp op) {
  AxisAttr axis = program.getAxis(op.getAxis());
  Range range{mapping.lookup(op.getPart()), op.getParts()};
  positions[op.getPosition()] = {axis, range, int64_t(op.getDivisor())};
  return success();
}
