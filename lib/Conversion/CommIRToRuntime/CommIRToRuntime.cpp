//===- CommIRToRuntime.cpp - Transfers and memory to runtime calls --------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Conversion/CommIRToRuntime/Fill.h"
#include "lib/Conversion/CommIRToRuntime/NamedKernel.h"
#include "lib/Conversion/CommIRToRuntime/SumAll.h"
#include "lib/Conversion/KernelsToLLVM/KernelLibrary.h"
#include "lib/Conversion/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_CONVERTCOMMIRTORUNTIME
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Converts the commir ops of one function, each where it stands.
class FunctionConverter {
public:
  FunctionConverter(func::FuncOp function, MeshOp mesh)
      : function(function), mesh(mesh),
        module(function->getParentOfType<ModuleOp>()),
        builder(function.getContext()), loc(function.getLoc()),
        pointer(LLVM::LLVMPointerType::get(function.getContext())),
        i32(builder.getI32Type()), i64(builder.getI64Type()) {}

  LogicalResult convert();

private:
  LogicalResult convert(Operation &op);
  void convert(ExchangeStartOp op);
  void convert(AllGatherStartOp op);
  void convert(LeaseOpenOp op);
  void convert(LeaseMemoryOp op);
  LogicalResult convert(PullStartOp op);
  SmallVector<Value> loopOver(Value tile, int64_t dims);
  Value getBits(Value tile);
  LogicalResult convert(CopyOp op);
  Value getInnermost(Value tile, ValueRange outer);
  void convert(AccumulateOp op);
  LogicalResult convert(LaunchOp op);
  Value makeMemory(Value start);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value constant64(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(builder, loc, i64, index);
  }
  Value getLevel(StringRef level) {
    return constant64(mesh.getLevelNumber(level));
  }
  /// A group as the runtime names it: a level's number, or a set of them.
  Value getGroup(ArrayAttr group) {
    if (group.size() == 1)
      return getLevel(cast<StringAttr>(group[0]).getValue());
    int64_t code = int64_t(1) << 62;
    for (auto level : group.getAsRange<StringAttr>())
      code |= int64_t(1) << mesh.getLevelNumber(level);
    return constant64(code);
  }
  Value call(StringRef name, Type result, ValueRange operands);
  /// Calls a function that returns a status, and keeps the first failure.
  void callChecked(StringRef name, ValueRange operands);
  Value loadStatus() { return LLVM::LoadOp::create(builder, loc, i32, status); }
  /// Starts an insertion where nothing failed yet.
  scf::IfOp guard(Value also = {});
  Value getPointer(Value tile);
  Value getBytes(Value tile);
  Value getFlat(Value tile);

  func::FuncOp function;
  MeshOp mesh;
  ModuleOp module;
  OpBuilder builder;
  Location loc;
  Type pointer, i32, i64;
  Value context, buffers, status, tokenSlot;
  DenseMap<Value, Value> tokens;
};
} // namespace

Value FunctionConverter::call(StringRef name, Type result,
                              ValueRange operands) {
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    func::FuncOp::create(builder, loc, name,
                         builder.getFunctionType(operands.getTypes(), {result}))
        .setPrivate();
  }
  return func::CallOp::create(builder, loc, name, result, operands)
      .getResult(0);
}

void FunctionConverter::callChecked(StringRef name, ValueRange operands) {
  Value code = call(name, i32, operands);
  Value before = loadStatus();
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value fine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                     before, zero);
  Value now = arith::SelectOp::create(builder, loc, fine, code, before);
  LLVM::StoreOp::create(builder, loc, now, status);
}

scf::IfOp FunctionConverter::guard(Value also) {
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value run = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                    loadStatus(), zero);
  if (also)
    run = arith::AndIOp::create(builder, loc, run, also);
  auto guarded = scf::IfOp::create(builder, loc, run, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  return guarded;
}

Value FunctionConverter::getPointer(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, tile);
  Value start =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, tile);
  Value offset =
      arith::MulIOp::create(builder, loc, metadata.getOffset(),
                            constant(type.getElementTypeBitWidth() / 8));
  start = arith::AddIOp::create(builder, loc, start, offset);
  return LLVM::IntToPtrOp::create(builder, loc, pointer, toI64(start));
}

Value FunctionConverter::getBytes(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value size = memref::DimOp::create(builder, loc, tile, dim);
    bytes = arith::MulIOp::create(builder, loc, bytes, size);
  }
  return toI64(bytes);
}

/// A contiguous tile as a row of elements.
Value FunctionConverter::getFlat(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  Value elements = constant(1);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value size = memref::DimOp::create(builder, loc, tile, dim);
    elements = arith::MulIOp::create(builder, loc, elements, size);
  }
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, tile);
  auto layout =
      StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1});
  auto flat =
      MemRefType::get({ShapedType::kDynamic}, type.getElementType(), layout);
  return memref::ReinterpretCastOp::create(
      builder, loc, flat, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), ArrayRef<OpFoldResult>(elements),
      ArrayRef<OpFoldResult>(builder.getIndexAttr(1)));
}

/// A memref of bytes from a pointer; the views of it state their own sizes.
Value FunctionConverter::makeMemory(Value start) {
  auto array = LLVM::LLVMArrayType::get(i64, 1);
  auto descriptor = LLVM::LLVMStructType::getLiteral(
      builder.getContext(), {pointer, pointer, i64, array, array});
  Value value = LLVM::PoisonOp::create(builder, loc, descriptor);
  auto insert = [&](Value element, ArrayRef<int64_t> at) {
    value = LLVM::InsertValueOp::create(builder, loc, value, element, at);
  };
  insert(start, {0});
  insert(start, {1});
  insert(constant64(0), {2});
  insert(constant64(std::numeric_limits<int64_t>::max()), {3, 0});
  insert(constant64(1), {4, 0});
  auto type = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
  return UnrealizedConversionCastOp::create(builder, loc, type, value)
      .getResult(0);
}

LogicalResult FunctionConverter::convert() {
  builder.setInsertionPointToStart(&function.getBody().front());
  context = function.getArgument(0);
  buffers = function.getArgument(1);
  Value one = constant64(1);
  status = LLVM::AllocaOp::create(builder, loc, pointer, i32, one);
  tokenSlot = LLVM::AllocaOp::create(builder, loc, pointer, i64, one);
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  LLVM::StoreOp::create(builder, loc, zero, status);

  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<CommIRDialect>(op->getDialect()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    builder.setInsertionPoint(op);
    loc = op->getLoc();
    if (failed(convert(*op)))
      return failure();
  }
  // A wait follows its start, so tokens are erased last use first.
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  return success();
}

/// Whether an op works on memory as commir-localize leaves it.
static bool isLocalized(Operation &op) {
  auto isLocal = [](Type type) { return !isa<BufferType, TileType>(type); };
  return llvm::all_of(op.getOperandTypes(), isLocal) &&
         llvm::all_of(op.getResultTypes(), isLocal);
}

LogicalResult FunctionConverter::convert(Operation &op) {
  if (!isLocalized(op))
    return op.emitOpError() << "must be lowered before the runtime is called; "
                               "run commir-to-spmd first";
  SmallVector<Attribute> levels;
  if (auto level = op.getAttrOfType<StringAttr>("level"))
    levels.push_back(level);
  if (auto group = op.getAttrOfType<ArrayAttr>("group"))
    llvm::append_range(levels, group);
  for (Attribute level : levels)
    if (mesh.getLevelNumber(cast<StringAttr>(level)) < 0)
      return op.emitOpError()
             << "must name a level of the mesh (" << mesh.describeLevels()
             << "), got '" << cast<StringAttr>(level).getValue() << "'";
  if (auto rank = dyn_cast<GroupRankOp>(op)) {
    Value found = call("mercury_rt_group_rank", i64,
                       {context, getLevel(rank.getLevel())});
    rank.getRank().replaceAllUsesWith(arith::IndexCastOp::create(
        builder, loc, builder.getIndexType(), found));
    return success();
  }
  if (auto memory = dyn_cast<MemoryOp>(op)) {
    Value start;
    if (std::optional<int64_t> argument = memory.getArgument()) {
      Value at = LLVM::GEPOp::create(
          builder, loc, pointer, pointer, buffers,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(*argument)});
      start = LLVM::LoadOp::create(builder, loc, pointer, at);
    } else {
      start = call("mercury_rt_arena", pointer, {context});
    }
    memory.getBytes().replaceAllUsesWith(makeMemory(start));
    return success();
  }
  if (auto read = dyn_cast<StatusOp>(op)) {
    read.getStatus().replaceAllUsesWith(loadStatus());
    return success();
  }
  if (auto wait = dyn_cast<WaitOp>(op)) {
    callChecked("mercury_rt_wait", {context, tokens.lookup(wait.getToken())});
    return success();
  }
  if (auto exchange = dyn_cast<ExchangeStartOp>(op))
    return convert(exchange), success();
  if (auto gather = dyn_cast<AllGatherStartOp>(op))
    return convert(gather), success();
  if (auto open = dyn_cast<LeaseOpenOp>(op))
    return convert(open), success();
  if (auto memory = dyn_cast<LeaseMemoryOp>(op))
    return convert(memory), success();
  if (auto pull = dyn_cast<PullStartOp>(op))
    return convert(pull);
  if (auto close = dyn_cast<LeaseCloseOp>(op)) {
    callChecked("mercury_rt_lease_close",
                {context, tokens.lookup(close.getLease())});
    return success();
  }
  if (auto fill = dyn_cast<FillOp>(op)) {
    guard();
    fillTile(builder, loc, fill.getTile(), fill.getValue().convertToDouble());
    return success();
  }
  if (auto copy = dyn_cast<CopyOp>(op)) {
    guard();
    return convert(copy);
  }
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    guard();
    return convert(accumulate), success();
  }
  if (auto launch = dyn_cast<LaunchOp>(op))
    return convert(launch);
  return op.emitOpError() << "must be lowered before the runtime is called; "
                             "run commir-to-spmd first";
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void FunctionConverter::convert(ExchangeStartOp op) {
  // Nothing started: the token 0, for which nothing is to be waited.
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  auto guarded = scf::IfOp::create(builder, loc, op.getWhen(), false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  callChecked("mercury_rt_exchange_start",
              {context, getGroup(op.getGroup()), toI64(op.getTo()),
               getPointer(op.getSource()), getBytes(op.getSource()),
               toI64(op.getFrom()), getPointer(op.getTarget()),
               getBytes(op.getTarget()), tokenSlot});
  builder.setInsertionPointAfter(guarded);
  tokens[op.getToken()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
}

void FunctionConverter::convert(AllGatherStartOp op) {
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  int64_t bytes = cast<MemRefType>(op.getTarget().getType()).getDimSize(0);
  callChecked("mercury_rt_all_gather_start",
              {context, getGroup(op.getGroup()), getPointer(op.getSource()),
               getBytes(op.getSource()), getPointer(op.getTarget()),
               constant64(bytes / mesh.getGroupSize(op.getGroup())),
               getPointer(op.getBytes()), tokenSlot});
  tokens[op.getToken()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
}

void FunctionConverter::convert(LeaseOpenOp op) {
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  int64_t bytes = cast<MemRefType>(op.getMemory().getType()).getDimSize(0);
  // An argument is as large as its caller made it.
  if (ShapedType::isDynamic(bytes))
    bytes = std::numeric_limits<int64_t>::max();
  callChecked("mercury_rt_lease_open",
              {context, getGroup(op.getGroup()), getPointer(op.getMemory()),
               constant64(bytes), tokenSlot});
  tokens[op.getLease()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
}

void FunctionConverter::convert(LeaseMemoryOp op) {
  Value slot =
      LLVM::AllocaOp::create(builder, loc, pointer, pointer, constant64(1));
  LLVM::StoreOp::create(builder, loc,
                        LLVM::ZeroOp::create(builder, loc, pointer), slot);
  callChecked(
      "mercury_rt_lease_address",
      {context, tokens.lookup(op.getLease()), toI64(op.getPeer()), slot});
  op.getMemory().replaceAllUsesWith(
      makeMemory(LLVM::LoadOp::create(builder, loc, pointer, slot)));
}

/// Both tiles as rows of bytes: what follows the last dimension that either of
/// them cuts lies together, and what comes before it is counted in rows.
LogicalResult FunctionConverter::convert(PullStartOp op) {
  auto type = cast<MemRefType>(op.getSource().getType());
  auto source =
      memref::ExtractStridedMetadataOp::create(builder, loc, op.getSource());
  auto target =
      memref::ExtractStridedMetadataOp::create(builder, loc, op.getTarget());
  int64_t rank = type.getRank();
  Value rows = constant(1), length = constant(1);
  Value fromPitch = constant(0), toPitch = constant(0);
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  };
  auto choose = [&](Value condition, Value a, Value b) -> Value {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  };
  // From the innermost dimension: it joins a row as long as rows of both sides
  // are side by side; from then on it counts rows.
  Value open = arith::ConstantIntOp::create(builder, loc, 1, 1);
  for (int64_t dim = rank; dim-- > 0;) {
    Value size = source.getSizes()[dim];
    Value from = source.getStrides()[dim], to = target.getStrides()[dim];
    Value joins = arith::AndIOp::create(
        builder, loc, open,
        arith::AndIOp::create(builder, loc, isEqual(from, length),
                              isEqual(to, length)));
    // The first dimension that does not join gives the distance of rows.
    Value first = arith::AndIOp::create(
        builder, loc, open,
        arith::XOrIOp::create(
            builder, loc, joins,
            arith::ConstantIntOp::create(builder, loc, 1, 1)));
    fromPitch = choose(first, from, fromPitch);
    toPitch = choose(first, to, toPitch);
    rows = choose(joins, rows, arith::MulIOp::create(builder, loc, rows, size));
    length = choose(joins, arith::MulIOp::create(builder, loc, length, size),
                    length);
    open = joins;
  }
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  auto inBytes = [&](Value elements) {
    return toI64(arith::MulIOp::create(builder, loc, elements, bytes));
  };
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  auto guarded = scf::IfOp::create(builder, loc, op.getWhen(), false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  callChecked("mercury_rt_pull_start",
              {context, tokens.lookup(op.getLease()), toI64(op.getPeer()),
               getPointer(op.getSource()), inBytes(fromPitch),
               getPointer(op.getTarget()), inBytes(toPitch), inBytes(length),
               toI64(rows), tokenSlot});
  builder.setInsertionPointAfter(guarded);
  tokens[op.getToken()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Opens a loop over each of the first `dims` dimensions of a tile; the
/// insertion point is inside.
SmallVector<Value> FunctionConverter::loopOver(Value tile, int64_t dims) {
  SmallVector<Value> indices;
  Value zero = constant(0), one = constant(1);
  for (int64_t dim = 0; dim < dims; ++dim) {
    Value size = memref::DimOp::create(builder, loc, tile, dim);
    auto loop = scf::ForOp::create(builder, loc, zero, size, one);
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  return indices;
}

/// The same memory as integers. A copy need not know what it copies, and LLVM's
/// back ends do not know all vectors of bf16.
Value FunctionConverter::getBits(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  auto bits = MemRefType::get(
      type.getShape(), builder.getIntegerType(type.getElementTypeBitWidth()),
      type.getLayout(), type.getMemorySpace());
  return UnrealizedConversionCastOp::create(builder, loc, bits, tile)
      .getResult(0);
}

/// The four inner dimensions of a tile, of size 1 where it has fewer, at
/// `outer` of those before them.
Value FunctionConverter::getInnermost(Value tile, ValueRange outer) {
  auto type = cast<MemRefType>(tile.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, tile);
  SmallVector<OpFoldResult> sizes, strides;
  for (int64_t dim = type.getRank(); dim < 4; ++dim) {
    sizes.push_back(builder.getIndexAttr(1));
    strides.push_back(builder.getIndexAttr(1));
  }
  Value offset = metadata.getOffset();
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value stride = metadata.getStrides()[dim];
    if (dim < static_cast<int64_t>(outer.size())) {
      Value skipped = arith::MulIOp::create(builder, loc, outer[dim], stride);
      offset = arith::AddIOp::create(builder, loc, offset, skipped);
      continue;
    }
    sizes.push_back(metadata.getSizes()[dim]);
    strides.push_back(stride);
  }
  SmallVector<int64_t> dynamic(4, ShapedType::kDynamic);
  auto layout = StridedLayoutAttr::get(builder.getContext(),
                                       ShapedType::kDynamic, dynamic);
  auto inner = MemRefType::get(dynamic, type.getElementType(), layout);
  // Sizes and strides that are known are values here: the kernel takes any.
  auto toValue = [&](OpFoldResult &known) {
    if (auto constant = dyn_cast<Attribute>(known))
      known = this->constant(cast<IntegerAttr>(constant).getInt());
  };
  llvm::for_each(sizes, toValue);
  llvm::for_each(strides, toValue);
  return memref::ReinterpretCastOp::create(
      builder, loc, inner, metadata.getBaseBuffer(), OpFoldResult(offset),
      sizes, strides);
}

/// One kernel for all copies between two types: packing, unpacking, rounding.
LogicalResult FunctionConverter::convert(CopyOp op) {
  auto elementOf = [](Value tile) {
    return cast<MemRefType>(tile.getType()).getElementType();
  };
  Value source = op.getSource(), target = op.getTarget();
  if (elementOf(source) == elementOf(target)) {
    source = getBits(source);
    target = getBits(target);
  }
  // Through the wider of both, and float32 at least, which holds either.
  Type from = elementOf(source), to = elementOf(target), wide = from;
  if (from != to)
    wide = from.isF64() || to.isF64() ? builder.getF64Type()
                                      : Type(builder.getF32Type());
  FailureOr<func::FuncOp> callee =
      getOrCreateKernel(module, "copy", {from, wide, to}, op.getLoc());
  if (failed(callee))
    return failure();
  int64_t rank = cast<MemRefType>(source.getType()).getRank();
  SmallVector<Value> outer = loopOver(source, std::max<int64_t>(rank - 4, 0));
  Value inner[] = {getInnermost(source, outer), getInnermost(target, outer)};
  func::CallOp::create(builder, loc, *callee, inner);
  return success();
}

/// Calls a function of its own, one for each type of tile: in line, code would
/// grow with every use.
void FunctionConverter::convert(AccumulateOp op) {
  auto type = cast<MemRefType>(op.getSource().getType());
  std::string name;
  llvm::raw_string_ostream(name) << "mercury_accumulate_" << type.getRank()
                                 << "_" << type.getElementType();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    auto callee = func::FuncOp::create(
        builder, loc, name, builder.getFunctionType({type, type}, {}));
    callee.setPrivate();
    callee->setAttr("no_inline", builder.getUnitAttr());
    builder.setInsertionPointToStart(callee.addEntryBlock());
    // Elements of the innermost dimension follow one another in every tile.
    SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
    if (!strides.empty())
      strides.back() = 1;
    auto layout = StridedLayoutAttr::get(builder.getContext(),
                                         ShapedType::kDynamic, strides);
    auto row = MemRefType::get(type.getShape(), type.getElementType(), layout);
    Value from =
        memref::CastOp::create(builder, loc, row, callee.getArgument(0));
    Value to = memref::CastOp::create(builder, loc, row, callee.getArgument(1));
    SmallVector<Value> indices = loopOver(from, type.getRank());
    Value part = memref::LoadOp::create(builder, loc, from, indices);
    Value sum = memref::LoadOp::create(builder, loc, to, indices);
    sum = arith::AddFOp::create(builder, loc, sum, part);
    memref::StoreOp::create(builder, loc, sum, to, indices);
    builder.setInsertionPointToEnd(&callee.getBody().front());
    func::ReturnOp::create(builder, loc);
  }
  func::CallOp::create(builder, loc, name, TypeRange(),
                       ValueRange{op.getSource(), op.getTarget()});
}

LogicalResult FunctionConverter::convert(LaunchOp op) {
  if (op.getImpl()) {
    guard();
    fillOverwritten(builder, op);
    NamedKernel named(builder, op, function);
    FailureOr<SmallVector<Value>> operands = named.makeArguments();
    if (failed(operands))
      return failure();
    callChecked("mercury_rt_launch", {context, (*operands)[0], (*operands)[1]});
    return success();
  }
  auto elementOf = [](Value tile) {
    return cast<MemRefType>(tile.getType()).getElementType();
  };
  SmallVector<Value> tiles(op.getInputs());
  llvm::append_range(tiles, op.getOutputs());
  bool isDouble =
      llvm::any_of(tiles, [&](Value tile) { return elementOf(tile).isF64(); });
  Type accumulator = isDouble ? builder.getF64Type() : builder.getF32Type();
  Type input = elementOf(op.getInputs().front());
  Type output = elementOf(op.getOutputs().front());
  if (output != accumulator && !op.overwrites(0))
    return op.emitOpError()
           << "merges into a result of " << output
           << ", which each launch would round; overwrite it, or give it "
              "elements of "
           << accumulator;
  FailureOr<func::FuncOp> callee = getOrCreateKernel(
      module, op.getKernel(), {input, accumulator, output}, op.getLoc());
  if (failed(callee))
    return failure();

  bool attention = KernelSignature::isAttention(op.getKernel());
  ArrayRef<Type> wanted = callee->getArgumentTypes();
  size_t given = op.getInputs().size() + op.getOutputs().size() +
                 (op.getScratch() ? 1 : 0) +
                 (attention ? op.getPositions().size() + 4 : 0);
  if (wanted.size() != given)
    return op.emitOpError() << "must have the operands of kernel '"
                            << op.getKernel() << "', scratch included, "
                            << wanted.size() << " in all, got " << given;
  // Statistics, such as a log-sum-exp, are of the accumulators' type.
  for (auto [number, tile] : llvm::enumerate(tiles)) {
    Type element = cast<MemRefType>(wanted[number]).getElementType();
    if (elementOf(tile) != element)
      return op.emitOpError() << "must have elements of " << element
                              << " in operand " << number << " of kernel '"
                              << op.getKernel() << "', got " << elementOf(tile);
  }

  guard();
  fillOverwritten(builder, op);
  if (op.getKernel() == "sum_all") {
    callSumAll(builder, op, *callee);
    return success();
  }
  SmallVector<Value> operands(tiles);
  if (op.getScratch())
    operands.push_back(getFlat(op.getScratch()));
  if (attention) {
    double scale = op.getScale() ? op.getScale()->convertToDouble() : 1.0;
    operands.push_back(arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(accumulator, scale)));
    llvm::append_range(operands, op.getPositions());
    operands.push_back(constant(op.getGroup().value_or(1)));
    MaskAttr mask = op.getMask().value_or(MaskAttr());
    int64_t far = MaskAttr::kUnbounded;
    operands.push_back(constant64(mask ? mask.getLeft() : far));
    operands.push_back(constant64(mask ? mask.getRight() : far));
  }
  func::CallOp::create(builder, loc, *callee, operands);
  return success();
}

/// Whether compiled code calls, or defines, a function of this name itself: the
/// runtime's, and what kernels need of the C library.
static bool isTaken(StringRef name) {
  static constexpr StringLiteral kLibrary[] = {"exp",    "expf",    "fma",
                                               "fmaf",   "log",     "logf",
                                               "memcpy", "memmove", "memset"};
  return name.starts_with("mercury_") || llvm::is_contained(kLibrary, name);
}

namespace {
struct ConvertCommIRToRuntime
    : public commir::impl::ConvertCommIRToRuntimeBase<ConvertCommIRToRuntime> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      auto symbol = function->getAttrOfType<FlatSymbolRefAttr>("commir.mesh");
      if (!symbol)
        continue;
      auto mesh = module.lookupSymbol<MeshOp>(symbol.getAttr());
      if (!mesh) {
        function.emitOpError() << "must run on a commir.mesh, '"
                               << symbol.getValue() << "' is none";
        return signalPassFailure();
      }
      if (isTaken(function.getSymName())) {
        function.emitOpError()
            << "must not be called '" << function.getSymName()
            << "', as a function that the compiled code "
               "calls; give the program another name";
        return signalPassFailure();
      }
      if (failed(FunctionConverter(function, mesh).convert()))
        return signalPassFailure();
      function->removeAttr("commir.mesh");
      // It only counts and calls: to optimize it costs more than it gains.
      Builder builder(&getContext());
      function->setAttr("passthrough",
                        builder.getStrArrayAttr({"noinline", "optnone"}));
      function->removeAttr("commir.source");
    }
    // What the plan means was for checking it.
    for (auto op : llvm::make_early_inc_range(module.getOps<ProgramOp>()))
      if (op->hasAttr("commir.is_source"))
        op.erase();
    for (auto op : llvm::make_early_inc_range(module.getOps<MeshOp>()))
      op.erase();
    WalkResult left = module.walk([&](Operation *op) {
      if (!isa<CommIRDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError() << "is left after conversion to the runtime";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
