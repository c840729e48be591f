//===- CommIRToRuntime.cpp - Transfers and memory to runtime calls --------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"
#include "lib/Conversion/CommIRToRuntime/NamedKernel.h"
#include "lib/Conversion/KernelsToNVVM/DeviceLibrary.h"
#include "lib/Conversion/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_CONVERTCOMMIRTORUNTIME
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

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
      bool isLocal = memory.getArena() == Arena::Local;
      start = call(isLocal ? "mercury_rt_local_arena"
                           : "mercury_rt_symmetric_arena",
                   pointer, {context});
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
  if (isa<ReduceScatterStartOp, AllReduceStartOp, AllToAllStartOp,
          BroadcastStartOp>(op))
    return convertCollective(op);
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
  if (auto made = dyn_cast<FillOp>(op)) {
    guard();
    return fill(made, made.getTile(), made.getValue());
  }
  if (auto copy = dyn_cast<CopyOp>(op)) {
    guard();
    return convert(copy);
  }
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    guard();
    return convert(accumulate);
  }
  if (auto launch = dyn_cast<LaunchOp>(op))
    return convert(launch);
  if (auto use = dyn_cast<LaneUseOp>(op))
    return useLane(lane = use.getLane()), success();
  if (auto order = dyn_cast<LaneOrderOp>(op))
    return convert(order), success();
  return op.emitOpError() << "must be lowered before the runtime is called; "
                             "run commir-to-spmd first";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

FailureOr<func::FuncOp> FunctionConverter::getKernel(StringRef kernel,
                                                     KernelTypes types) {
  return onDevice ? getOrCreateLauncher(module, kernel, types, loc)
                  : getOrCreateKernel(module, kernel, types, loc);
}

void FunctionConverter::callKernel(func::FuncOp kernel, ValueRange operands) {
  if (!onDevice) {
    func::CallOp::create(builder, loc, kernel, operands);
    return;
  }
  SmallVector<Value> given = {context};
  llvm::append_range(given, operands);
  callChecked(kernel.getSymName(), given);
}

static Type elementOf(Value tile) {
  return cast<MemRefType>(tile.getType()).getElementType();
}

LogicalResult FunctionConverter::convertTiles(Operation *op, StringRef kernel,
                                              KernelTypes types,
                                              ValueRange tiles,
                                              ValueRange others) {
  FailureOr<func::FuncOp> callee = getKernel(kernel, types);
  if (failed(callee))
    return failure();
  int64_t rank = cast<MemRefType>(tiles.front().getType()).getRank();
  SmallVector<Value> outer =
      loopOver(tiles.front(), std::max<int64_t>(rank - 4, 0));
  SmallVector<Value> operands;
  for (Value tile : tiles)
    operands.push_back(getInnermost(tile, outer));
  llvm::append_range(operands, others);
  callKernel(*callee, operands);
  return success();
}

/// Tiles stacked along one more, first dimension, summed four dimensions at a
/// time.
void FunctionConverter::sumAll(func::FuncOp kernel, Value stack, Value sum) {
  OpBuilder::InsertionGuard guard(builder);
  int64_t rank = cast<MemRefType>(sum.getType()).getRank();
  SmallVector<Value> outer = loopOver(sum, std::max<int64_t>(rank - 4, 0));
  callKernel(kernel, {getInnermost(stack, outer, /*stacked=*/1),
                      getInnermost(sum, outer)});
}

/// Stores bits, as a copy does: any type is an integer of its width.
LogicalResult FunctionConverter::fill(Operation *op, Value tile,
                                      APFloat number) {
  bool lossy;
  number.convert(cast<FloatType>(elementOf(tile)).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &lossy);
  Value bits = getBits(tile);
  Type element = elementOf(bits);
  Value value = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(element, number.bitcastToAPInt()));
  return convertTiles(op, "fill", {element, element, element}, bits, value);
}

/// One kernel for all copies between two types: packing, unpacking, rounding.
LogicalResult FunctionConverter::convert(CopyOp op) {
  Value source = op.getSource(), target = op.getTarget();
  bool isSame = elementOf(source) == elementOf(target);
  if (isSame && onDevice) {
    auto dense = scf::IfOp::create(builder, loc, isDense(source, target),
                                   /*withElseRegion=*/true);
    builder.setInsertionPointToStart(dense.thenBlock());
    Value bytes = getBytes(source);
    callChecked("mercury_rt_copy",
                {context, getPointer(source), bytes, getPointer(target), bytes,
                 bytes, constant64(1)});
    builder.setInsertionPointToStart(dense.elseBlock());
  }
  if (isSame) {
    source = getBits(source);
    target = getBits(target);
  }
  // Through the wider of both, and float32 at least, which holds either.
  Type from = elementOf(source), to = elementOf(target), wide = from;
  if (from != to)
    wide = from.isF64() || to.isF64() ? builder.getF64Type()
                                      : Type(builder.getF32Type());
  return convertTiles(op, "copy", {from, wide, to}, {source, target});
}

LogicalResult FunctionConverter::convert(AccumulateOp op) {
  Type sum = elementOf(op.getTarget());
  return convertTiles(op, "accumulate", {elementOf(op.getSource()), sum, sum},
                      {op.getSource(), op.getTarget()});
}

/// A kernel that merges is given the identity where it is to write.
LogicalResult FunctionConverter::fillOverwritten(LaunchOp op) {
  for (auto [i, tile] : llvm::enumerate(op.getOutputs())) {
    OpBuilder::InsertionGuard guard(builder);
    APFloat identity(KernelSignature::getIdentity(op.getKernel(), i));
    if (op.overwrites(i) && failed(fill(op, tile, identity)))
      return failure();
  }
  return success();
}

LogicalResult FunctionConverter::convert(LaunchOp op) {
  if (op.getImpl()) {
    guard();
    // On a device, a kernel by name is told what to overwrite.
    if (!onDevice && failed(fillOverwritten(op)))
      return failure();
    NamedKernel named(builder, op, function, onDevice);
    FailureOr<SmallVector<Value>> operands = named.makeArguments();
    if (failed(operands))
      return failure();
    callChecked("mercury_rt_launch", {context, (*operands)[0], (*operands)[1]});
    return success();
  }
  SmallVector<Value> tiles(op.getInputs());
  llvm::append_range(tiles, op.getOutputs());
  bool isDouble =
      llvm::any_of(tiles, [&](Value tile) { return elementOf(tile).isF64(); });
  Type accumulator = isDouble ? builder.getF64Type() : builder.getF32Type();
  Type input = elementOf(op.getInputs().front());
  Type output = elementOf(op.getOutputs().front());
  // What merges many at once rounds their sum once.
  bool isMany =
      op.getKernel() == "softmax_merge_all" || op.getKernel() == "sum_all";
  if (output != accumulator && !op.overwrites(0) && !isMany &&
      !KernelSignature::addsBeforeRounding(op.getKernel()))
    return op.emitOpError()
           << "merges into a result of " << output
           << ", which each launch would round; overwrite it, or give it "
              "elements of "
           << accumulator;
  bool overwritesAll =
      canOverwrite(op.getKernel()) &&
      llvm::all_of(llvm::seq<size_t>(0, op.getOutputs().size()),
                   [&](size_t i) { return op.overwrites(i); });
  FailureOr<func::FuncOp> callee =
      getKernel(op.getKernel(), {input, accumulator, output, overwritesAll});
  if (failed(callee))
    return failure();

  bool attention = KernelSignature::isAttention(op.getKernel());
  ArrayRef<Type> wanted = callee->getArgumentTypes();
  if (onDevice)
    wanted = wanted.drop_front(); // the context
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
  if (!overwritesAll && failed(fillOverwritten(op)))
    return failure();
  if (op.getKernel() == "sum_all") {
    sumAll(*callee, op.getInputs()[0], op.getOutputs()[0]);
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
  callKernel(*callee, operands);
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
  using ConvertCommIRToRuntimeBase::ConvertCommIRToRuntimeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (target != "cpu" && target != "cuda") {
      module.emitError() << "the target must be 'cpu' or 'cuda', got '"
                         << target << "'";
      return signalPassFailure();
    }
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
      if (failed(FunctionConverter(function, mesh, target == "cuda").convert()))
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
