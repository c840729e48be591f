//===- Localize.cpp - Give tiles their sizes on this rank -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/LayoutBuilder.h"
#include "lib/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::commir {
#define GEN_PASS_DEF_LOCALIZE
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Rewrites one SPMD program on tiles as a function on memrefs.
class ProgramLocalizer {
public:
  explicit ProgramLocalizer(ProgramOp program)
      : program(program), mesh(program.getMeshOp()),
        builder(program.getContext()), layouts(builder, program.getLoc()) {}

  LogicalResult localize();

private:
  /// The memory behind a buffer: bytes, and what part of each axis they hold.
  struct Memory {
    Value bytes;
    BufferType type;
    PlacementAttr placement;
    DictionaryAttr parts;
    int64_t slotBytes = 0;
  };
  /// A part of an axis: shard `index` of `count`, or all of it.
  struct Range {
    Value index;
    int64_t count = 1;
  };
  /// One dimension of a tile inside the memory that holds it.
  struct Extent {
    Value offset, size, held;
    bool whole = true;
  };

  LogicalResult convert(Block &block);
  LogicalResult convert(AllocOp op);
  LogicalResult convert(PartOp op);
  LogicalResult convert(PositionOp op);
  LogicalResult convert(AllGatherStartOp op);
  LogicalResult checkWhole(Operation *op, Value tile);
  FailureOr<Range> getHeldRange(PartOp op, const Memory &memory, AxisAttr axis,
                                Range asked);
  FailureOr<Extent> getExtent(PartOp op, const Memory &memory, DimAttr dim);
  FailureOr<int64_t> getShards(Operation *op, CutAttr cut);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, program.getLoc(), value);
  }

  ProgramOp program;
  MeshOp mesh;
  OpBuilder builder;
  LayoutBuilder layouts;
  IRMapping mapping;
  DenseMap<Value, Memory> memories;
  /// Tiles that are all of their memory, so contiguous.
  DenseSet<Value> whole;
};
} // namespace

static Type getTileElement(Value tile) {
  return cast<TileType>(tile.getType()).getElementType();
}

/// Where an argument lives when the program is called.
static PlacementAttr getBoundary(BindingAttr binding) {
  return binding.getBoundary() ? binding.getBoundary() : binding.getInside();
}

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

LogicalResult ProgramLocalizer::localize() {
  if (!program.getBody().getOps<ForOp>().empty())
    return program.emitOpError() << "still has loops to schedule; run "
                                    "commir-materialize-communication first";
  for (int64_t i = 0, e = program.getBindings().size(); i < e; ++i)
    if (!program.getBinding(i).getInside())
      return program.emitOpError() << "has no placement for buffer '"
                                   << program.getBinding(i).getName()
                                   << "'; run commir-infer-placement first";
  MLIRContext *context = program.getContext();
  Location loc = program.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(context);
  builder.setInsertionPoint(program);
  auto function = func::FuncOp::create(
      builder, loc, program.getSymName(),
      builder.getFunctionType({pointer, pointer}, {builder.getI32Type()}));
  function->setAttr("commir.mesh", program.getMeshAttr());
  if (Attribute source = program->getAttr("commir.source"))
    function->setAttr("commir.source", source);
  builder.setInsertionPointToStart(function.addEntryBlock());

  auto bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
  for (BlockArgument argument : program.getBody().getArguments()) {
    int64_t number = argument.getArgNumber();
    Value memory = MemoryOp::create(builder, loc, bytes,
                                    builder.getI64IntegerAttr(number));
    memories[argument] = {memory, program.getBufferType(number),
                          getBoundary(program.getBinding(number)),
                          builder.getDictionaryAttr({})};
  }
  if (failed(convert(program.getBody().front())))
    return failure();
  Value status = StatusOp::create(builder, loc, builder.getI32Type());
  func::ReturnOp::create(builder, loc, status);
  program.erase();
  return success();
}

LogicalResult ProgramLocalizer::convert(Block &block) {
  for (Operation &op : block.without_terminator()) {
    LogicalResult result = success();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto copy = scf::ForOp::create(
          builder, op.getLoc(), mapping.lookup(loop.getLowerBound()),
          mapping.lookup(loop.getUpperBound()), mapping.lookup(loop.getStep()));
      mapping.map(loop.getInductionVar(), copy.getInductionVar());
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(copy.getBody());
      result = convert(*loop.getBody());
    } else if (auto alloc = dyn_cast<AllocOp>(op)) {
      result = convert(alloc);
    } else if (auto part = dyn_cast<PartOp>(op)) {
      result = convert(part);
    } else if (auto gather = dyn_cast<AllGatherStartOp>(op)) {
      result = convert(gather);
    } else if (auto position = dyn_cast<PositionOp>(op)) {
      result = convert(position);
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      Value chosen = arith::SelectOp::create(
          builder, op.getLoc(), mapping.lookup(select.getCondition()),
          mapping.lookup(select.getTrueValue()),
          mapping.lookup(select.getFalseValue()));
      mapping.map(select.getResult(), chosen);
      if (whole.contains(select.getTrueValue()) &&
          whole.contains(select.getFalseValue()))
        whole.insert(select.getResult());
    } else {
      auto copy = dyn_cast<CopyOp>(op);
      bool converts = copy && getTileElement(copy.getSource()) !=
                                  getTileElement(copy.getTarget());
      if (isa<ExchangeStartOp, FillOp>(op) || converts)
        for (Value operand : op.getOperands())
          if (isa<TileType>(operand.getType()))
            result = succeeded(result) ? checkWhole(&op, operand) : result;
      if (succeeded(result))
        builder.clone(op, mapping);
    }
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult ProgramLocalizer::checkWhole(Operation *op, Value tile) {
  if (whole.contains(tile))
    return success();
  return op->emitOpError() << "works on a slice of its memory, which must be "
                              "packed first; this version does not yet";
}

/// The number of shards of a cut over levels alone.
FailureOr<int64_t> ProgramLocalizer::getShards(Operation *op, CutAttr cut) {
  int64_t shards = 1;
  for (Attribute factor : cut.getFactors()) {
    auto level = dyn_cast<StringAttr>(factor);
    if (!level)
      return op->emitOpError()
             << "lives in the strided placement of axis '" << cut.getAxis()
             << "', which this version does not lower yet";
    shards *= mesh.getLevelSize(level);
  }
  return shards;
}

//===----------------------------------------------------------------------===//
// Memory and tiles
//===----------------------------------------------------------------------===//

LogicalResult ProgramLocalizer::convert(AllocOp op) {
  BufferType type = op.getBuffer().getType();
  SmallVector<int64_t> sizes;
  for (DimAttr dim : type.getDims()) {
    if (dim.isConstant()) {
      sizes.push_back(dim.getValue());
      continue;
    }
    AxisAttr axis = program.getAxis(dim.getAxis());
    int64_t shards = 1;
    if (auto parts = op.getParts().getAs<IntegerAttr>(dim.getAxis())) {
      shards = parts.getInt();
    } else if (CutAttr cut = op.getPlacement().getCut(dim.getAxis())) {
      FailureOr<int64_t> found = getShards(op, cut);
      if (failed(found))
        return failure();
      shards = *found;
    }
    sizes.push_back(getLargestSize(axis, shards, dim.getDivisor()));
  }
  int64_t slotBytes;
  std::optional<int64_t> bytes = getMemoryBytes(
      sizes, getBytes(type.getElementType()), op.getSlots(), slotBytes);
  if (!bytes)
    return op.emitOpError() << "needs more memory than there are addresses";
  auto memory = memref::AllocOp::create(
      builder, op.getLoc(), MemRefType::get({*bytes}, builder.getI8Type()));
  memories[op.getBuffer()] = {memory, type, op.getPlacement(), op.getParts(),
                              slotBytes};
  mapping.map(op.getBuffer(), memory.getResult());
  return success();
}

/// Which part of an axis the memory holds, given the part that is asked for.
FailureOr<ProgramLocalizer::Range>
ProgramLocalizer::getHeldRange(PartOp op, const Memory &memory, AxisAttr axis,
                               Range asked) {
  if (auto parts = memory.parts.getAs<IntegerAttr>(axis.getName())) {
    int64_t count = parts.getInt();
    if (count == 1)
      return Range{};
    if (!asked.index || asked.count % count != 0)
      return op.emitOpError() << "must name one of the " << count
                              << " parts of axis '" << axis.getName() << "'";
    Value index = asked.index;
    if (asked.count != count)
      index = arith::DivUIOp::create(builder, op.getLoc(), index,
                                     constant(asked.count / count));
    return Range{index, count};
  }
  CutAttr cut = memory.placement.getCut(axis.getName());
  if (!cut)
    return Range{};
  if (cut.getLayout() && cut.getLayout() != axis.getLayout())
    return op.emitOpError()
           << "lives in another layout than that of axis '" << axis.getName()
           << "', which this version does not lower yet";
  FailureOr<int64_t> shards = getShards(op, cut);
  if (failed(shards))
    return failure();
  Value index = constant(0);
  for (Attribute factor : cut.getFactors()) {
    auto level = cast<StringAttr>(factor);
    Value rank = GroupRankOp::create(builder, op.getLoc(),
                                     builder.getIndexType(), level);
    index = arith::MulIOp::create(builder, op.getLoc(), index,
                                  constant(mesh.getLevelSize(level)));
    index = arith::AddIOp::create(builder, op.getLoc(), index, rank);
  }
  return Range{index, *shards};
}

FailureOr<ProgramLocalizer::Extent>
ProgramLocalizer::getExtent(PartOp op, const Memory &memory, DimAttr dim) {
  if (dim.isConstant()) {
    Value size = constant(dim.getValue());
    return Extent{constant(0), size, size};
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
  Value size = layouts.size(axis, held->index, held->count, divisor);
  // An access of as many parts as the memory is cut into is its own part.
  if (!asked.index || asked.count == held->count)
    return Extent{constant(0), size, size};
  if (!isOneInterval(axis))
    return op.emitOpError()
           << "is not one interval of its memory: axis '" << axis.getName()
           << "' is " << axis.getLayout() << " in " << held->count
           << " parts there, accessed in " << asked.count
           << "; this version does not lower that yet";
  Value first = layouts.begin(axis, asked.index, asked.count, divisor);
  Value from = layouts.begin(axis, held->index, held->count, divisor);
  Value offset = arith::SubIOp::create(builder, op.getLoc(), first, from);
  return Extent{offset, layouts.size(axis, asked.index, asked.count, divisor),
                size, /*whole=*/false};
}

LogicalResult ProgramLocalizer::convert(PartOp op) {
  const Memory &memory = memories[op.getBuffer()];
  SmallVector<Value> held;
  SmallVector<OpFoldResult> offsets, sizes;
  bool all = true, empty = false;
  for (DimAttr dim : memory.type.getDims()) {
    FailureOr<Extent> extent = getExtent(op, memory, dim);
    if (failed(extent))
      return failure();
    held.push_back(extent->held);
    offsets.push_back(extent->offset);
    sizes.push_back(extent->size);
    all &= extent->whole;
    empty |=
        (dim.isConstant() ? dim.getValue()
                          : program.getAxis(dim.getAxis()).getExtent()) == 0;
  }
  // Memory of no elements is any tile of it: no offset lies inside.
  if (empty) {
    held = llvm::map_to_vector(
        sizes, [](OpFoldResult size) { return cast<Value>(size); });
    all = true;
  }
  Location loc = op.getLoc();
  Value shift = constant(0);
  if (op.getSlot())
    shift = arith::MulIOp::create(builder, loc, mapping.lookup(op.getSlot()),
                                  constant(memory.slotBytes));
  SmallVector<int64_t> dynamic(held.size(), ShapedType::kDynamic);
  Type element = memory.type.getElementType();
  Value tile =
      memref::ViewOp::create(builder, loc, MemRefType::get(dynamic, element),
                             memory.bytes, shift, held);
  if (!all) {
    SmallVector<OpFoldResult> strides(held.size(), builder.getIndexAttr(1));
    tile =
        memref::SubViewOp::create(builder, loc, tile, offsets, sizes, strides);
  }
  // Every tile has the same, fully dynamic type, which kernels take.
  auto layout =
      StridedLayoutAttr::get(op.getContext(), ShapedType::kDynamic, dynamic);
  tile = memref::CastOp::create(
      builder, loc, MemRefType::get(dynamic, element, layout), tile);
  mapping.map(op.getTile(), tile);
  if (all)
    whole.insert(op.getTile());
  return success();
}

LogicalResult ProgramLocalizer::convert(PositionOp op) {
  AxisAttr axis = program.getAxis(op.getAxis());
  if (!isOneInterval(axis))
    return op.emitOpError() << "a part of axis '" << axis.getName()
                            << "' in layout " << axis.getLayout()
                            << " is several intervals of positions; this "
                               "version does not split a kernel over them yet";
  mapping.map(op.getPosition(),
              layouts.begin(axis, mapping.lookup(op.getPart()), op.getParts(),
                            op.getDivisor()));
  return success();
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Both ends size a message from the axis' layout: the lengths of all members'
/// tiles, which differ along the gathered axis only.
LogicalResult ProgramLocalizer::convert(AllGatherStartOp op) {
  if (failed(checkWhole(op, op.getSource())))
    return failure();
  Location loc = op.getLoc();
  AxisAttr axis = op.getAxis() ? program.getAxis(*op.getAxis()) : AxisAttr();
  int64_t members = mesh.getGroupSize(op.getGroup());
  auto source = cast<TileType>(op.getSource().getType());
  Value tile = mapping.lookup(op.getSource());
  Value row = constant(getBytes(source.getElementType()));
  int64_t divisor = 1;
  for (auto [i, dim] : llvm::enumerate(source.getDims())) {
    if (axis && dim.getAxis() == axis.getName()) {
      divisor = dim.getDivisor();
      continue;
    }
    Value size = memref::DimOp::create(builder, loc, tile, i);
    row = arith::MulIOp::create(builder, loc, row, size);
  }
  auto lengths = memref::AllocaOp::create(
      builder, loc, MemRefType::get({members}, builder.getI64Type()));
  Value zero = constant(0), count = constant(members), one = constant(1);
  auto loop = scf::ForOp::create(builder, loc, zero, count, one);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value member = loop.getInductionVar();
    Value bytes = row;
    if (axis)
      bytes = arith::MulIOp::create(
          builder, loc, layouts.size(axis, member, members, divisor), row);
    bytes =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), bytes);
    memref::StoreOp::create(builder, loc, bytes, lengths, member);
  }
  Value token =
      AllGatherStartOp::create(builder, loc, op.getToken().getType(), tile,
                               mapping.lookup(op.getTarget()), lengths,
                               op.getGroupAttr(), op.getAxisAttr());
  mapping.map(op.getToken(), token);
  return success();
}

namespace {
struct Localize : public commir::impl::LocalizeBase<Localize> {
  void runOnOperation() override {
    SmallVector<ProgramOp> programs;
    getOperation().walk([&](ProgramOp op) {
      if (!op->hasAttr("commir.is_source"))
        programs.push_back(op);
    });
    for (ProgramOp program : programs)
      if (failed(ProgramLocalizer(program).localize()))
        return signalPassFailure();
  }
};
} // namespace
