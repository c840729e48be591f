//===- PlanTraceCode.cpp - A plan as a list of instructions ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanTraceCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::trace;

static int64_t getElementBytes(Type type) {
  return type.isIntOrFloat() ? std::max(1u, type.getIntOrFloatBitWidth() / 8)
                             : 8;
}

namespace {
class Compiler {
public:
  explicit Compiler(MeshOp mesh) : mesh(mesh) {
    for (size_t level = 0; level < mesh.getLevels().size(); ++level)
      code.groups.push_back({static_cast<int64_t>(level)});
  }

  LogicalResult compile(Block &block);

  Code code;

private:
  LogicalResult compile(Operation &op);
  LogicalResult compile(scf::ForOp loop);
  LogicalResult compile(scf::IfOp branch);
  LogicalResult compileArith(Operation &op);
  LogicalResult compileCompare(arith::CmpIOp op);
  LogicalResult compileMemRef(Operation &op);
  LogicalResult compileEvent(Operation &op);
  LogicalResult compileCollective(Operation &op);
  FailureOr<int64_t> getLevel(Operation *op, StringRef name);
  LogicalResult addEvent(EventSite site, ArrayAttr group = {});

  /// Tiles are counted by themselves; all else is a number.
  static bool isTile(Value value) { return isa<MemRefType>(value.getType()); }
  int32_t get(Value value) {
    auto [it, fresh] = slots.try_emplace(value, 0);
    if (fresh)
      it->second = isTile(value) ? code.numTiles++ : addNumber(0);
    return it->second;
  }
  int32_t addNumber(int64_t value) {
    code.numbers.push_back(value);
    return code.numbers.size() - 1;
  }
  int32_t getConstant(int64_t value) {
    auto [it, fresh] = constants.try_emplace(value, 0);
    if (fresh)
      it->second = addNumber(value);
    return it->second;
  }
  int32_t get(OpFoldResult value) {
    if (auto attribute = dyn_cast<Attribute>(value))
      return getConstant(cast<IntegerAttr>(attribute).getInt());
    return get(cast<Value>(value));
  }
  template <typename Range> SmallVector<int32_t> getAll(Range values) {
    SmallVector<int32_t> all;
    for (auto value : values)
      all.push_back(get(value));
    return all;
  }
  Instruction &add(Opcode opcode, Operation *op) {
    code.instructions.push_back({opcode});
    Instruction &added = code.instructions.back();
    added.op = op;
    auto type = op->getNumResults() == 1
                    ? dyn_cast<MemRefType>(op->getResult(0).getType())
                    : MemRefType();
    if (type) {
      added.elementType = type.getElementType();
      added.elementBytes = getElementBytes(added.elementType);
    }
    return added;
  }
  /// A cast is what it casts: that changes only when the cast is done again.
  void alias(Value from, Value to) {
    int32_t slot = get(from);
    slots[to] = slot;
  }
  void move(Value from, Value to, Operation *op);
  void moveAll(ValueRange from, ValueRange to, Operation *op);
  size_t here() const { return code.instructions.size(); }

  MeshOp mesh;
  DenseMap<Value, int32_t> slots;
  DenseMap<int64_t, int32_t> constants;
};
} // namespace

/// i1 is 0 or 1; wider integers are signed.
static int64_t getInteger(IntegerAttr attribute) {
  if (attribute.getType().isInteger(1))
    return attribute.getValue().getZExtValue();
  return attribute.getInt();
}

void Compiler::move(Value from, Value to, Operation *op) {
  Instruction &moved = add(isTile(from) ? Opcode::MoveTile : Opcode::Move, op);
  int32_t a = get(from), result = get(to);
  moved.a = a;
  moved.result = result;
}

/// All at once: a loop may swap the values that it carries.
void Compiler::moveAll(ValueRange from, ValueRange to, Operation *op) {
  if (from.size() == 1)
    return move(from[0], to[0], op);
  SmallVector<int32_t> through;
  for (Value value : from) {
    bool tile = isTile(value);
    int32_t source = get(value);
    through.push_back(tile ? code.numTiles++ : addNumber(0));
    Instruction &moved = add(tile ? Opcode::MoveTile : Opcode::Move, op);
    moved.a = source;
    moved.result = through.back();
  }
  for (auto [kept, value] : llvm::zip_equal(through, to)) {
    int32_t result = get(value);
    Instruction &moved =
        add(isTile(value) ? Opcode::MoveTile : Opcode::Move, op);
    moved.a = kept;
    moved.result = result;
  }
}

LogicalResult Compiler::compile(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>() && failed(compile(op)))
      return failure();
  return success();
}

LogicalResult Compiler::compile(scf::ForOp loop) {
  if (!loop.getInductionVar().getType().isIndex())
    return loop.emitOpError()
           << "counts in " << loop.getInductionVar().getType()
           << "; a plan's loops count in index";
  int32_t lower = get(loop.getLowerBound()), upper = get(loop.getUpperBound());
  int32_t step = get(loop.getStep()), index = get(loop.getInductionVar());
  moveAll(loop.getInitArgs(), loop.getRegionIterArgs(), loop);
  Instruction &enter = add(Opcode::EnterLoop, loop);
  enter.result = index;
  enter.a = lower;
  enter.b = step;
  size_t test = here();
  int32_t more = addNumber(0);
  Instruction &compare = add(Opcode::LessSigned, loop);
  compare.result = more;
  compare.a = index;
  compare.b = upper;
  size_t leave = here();
  add(Opcode::JumpUnless, loop).a = more;
  add(Opcode::SetStep, loop).a = index;
  if (failed(compile(*loop.getBody())))
    return failure();
  moveAll(loop.getYieldedValues(), loop.getRegionIterArgs(), loop);
  Instruction &next = add(Opcode::NextLoop, loop);
  next.result = index;
  next.a = step;
  next.immediate = test;
  code.instructions[leave].immediate = here();
  add(Opcode::LeaveLoop, loop);
  moveAll(loop.getRegionIterArgs(), loop.getResults(), loop);
  return success();
}

LogicalResult Compiler::compile(scf::IfOp branch) {
  size_t test = here();
  int32_t condition = get(branch.getCondition());
  add(Opcode::JumpUnless, branch).a = condition;
  if (failed(compile(*branch.thenBlock())))
    return failure();
  moveAll(branch.thenYield().getResults(), branch.getResults(), branch);
  size_t leave = here();
  add(Opcode::Jump, branch);
  code.instructions[test].immediate = here();
  if (Block *otherwise = branch.elseBlock()) {
    if (failed(compile(*otherwise)))
      return failure();
    moveAll(branch.elseYield().getResults(), branch.getResults(), branch);
  }
  code.instructions[leave].immediate = here();
  return success();
}

LogicalResult Compiler::compile(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return compile(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return compile(branch);
  if (isa<arith::ArithDialect>(op.getDialect()))
    return compileArith(op);
  if (isa<memref::MemRefDialect>(op.getDialect()))
    return compileMemRef(op);
  if (isa<CommIRDialect>(op.getDialect()))
    return compileEvent(op);
  return op.emitOpError() << "is not known to the trace of plans";
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

LogicalResult Compiler::compileCompare(arith::CmpIOp op) {
  using Predicate = arith::CmpIPredicate;
  int32_t a = get(op.getLhs()), b = get(op.getRhs()),
          result = get(op.getResult());
  auto [opcode, swapped] = [&]() -> std::pair<Opcode, bool> {
    switch (op.getPredicate()) {
    case Predicate::eq:
      return {Opcode::Equal, false};
    case Predicate::ne:
      return {Opcode::NotEqual, false};
    case Predicate::slt:
      return {Opcode::LessSigned, false};
    case Predicate::sle:
      return {Opcode::LessEqualSigned, false};
    case Predicate::sgt:
      return {Opcode::LessSigned, true};
    case Predicate::sge:
      return {Opcode::LessEqualSigned, true};
    case Predicate::ult:
      return {Opcode::LessUnsigned, false};
    case Predicate::ule:
      return {Opcode::LessEqualUnsigned, false};
    case Predicate::ugt:
      return {Opcode::LessUnsigned, true};
    case Predicate::uge:
      return {Opcode::LessEqualUnsigned, true};
    }
    llvm_unreachable("all predicates are above");
  }();
  Instruction &added = add(opcode, op);
  added.result = result;
  added.a = swapped ? b : a;
  added.b = swapped ? a : b;
  return success();
}

static std::optional<Opcode> getBinary(Operation &op) {
  return llvm::TypeSwitch<Operation *, std::optional<Opcode>>(&op)
      .Case<arith::AddIOp>([](auto) { return Opcode::Add; })
      .Case<arith::SubIOp>([](auto) { return Opcode::Sub; })
      .Case<arith::MulIOp>([](auto) { return Opcode::Mul; })
      .Case<arith::DivUIOp>([](auto) { return Opcode::DivUnsigned; })
      .Case<arith::DivSIOp>([](auto) { return Opcode::DivSigned; })
      .Case<arith::CeilDivUIOp>([](auto) { return Opcode::CeilDivUnsigned; })
      .Case<arith::CeilDivSIOp>([](auto) { return Opcode::CeilDivSigned; })
      .Case<arith::FloorDivSIOp>([](auto) { return Opcode::FloorDivSigned; })
      .Case<arith::RemUIOp>([](auto) { return Opcode::RemUnsigned; })
      .Case<arith::RemSIOp>([](auto) { return Opcode::RemSigned; })
      .Case<arith::AndIOp>([](auto) { return Opcode::And; })
      .Case<arith::OrIOp>([](auto) { return Opcode::Or; })
      .Case<arith::XOrIOp>([](auto) { return Opcode::Xor; })
      .Case<arith::MinSIOp>([](auto) { return Opcode::MinSigned; })
      .Case<arith::MaxSIOp>([](auto) { return Opcode::MaxSigned; })
      .Case<arith::MinUIOp>([](auto) { return Opcode::MinUnsigned; })
      .Case<arith::MaxUIOp>([](auto) { return Opcode::MaxUnsigned; })
      .Default(std::nullopt);
}

LogicalResult Compiler::compileArith(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<IntegerAttr>(constant.getValue());
    if (!number)
      return op.emitOpError() << "is not an integer, which is all that a plan "
                                 "computes with";
    slots[constant.getResult()] = getConstant(getInteger(number));
    return success();
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compileCompare(compare);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    int32_t a = get(select.getCondition()), b = get(select.getTrueValue());
    int32_t c = get(select.getFalseValue()), result = get(select.getResult());
    Instruction &added = add(
        isTile(select.getResult()) ? Opcode::SelectTile : Opcode::Select, &op);
    added.result = result;
    added.a = a;
    added.b = b;
    added.c = c;
    return success();
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp>(op)) {
    alias(op.getOperand(0), op.getResult(0));
    return success();
  }
  std::optional<Opcode> opcode = getBinary(op);
  if (!opcode)
    return op.emitOpError() << "is not known to the trace of plans";
  int32_t a = get(op.getOperand(0)), b = get(op.getOperand(1));
  int32_t result = get(op.getResult(0));
  Instruction &added = add(*opcode, &op);
  added.result = result;
  added.a = a;
  added.b = b;
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The sizes of a type, static ones as constants.
static SmallVector<OpFoldResult> getMixedSizes(MemRefType type,
                                               ValueRange dynamic) {
  Builder builder(type.getContext());
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : type.getShape()) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(builder.getIndexAttr(size));
      continue;
    }
    sizes.push_back(dynamic.front());
    dynamic = dynamic.drop_front();
  }
  return sizes;
}

LogicalResult Compiler::compileMemRef(Operation &op) {
  // Operands first: reading one may add to what `add` refers to.
  auto emit = [&](Opcode opcode, Value result, int32_t a = -1, int32_t b = -1,
                  ArrayRef<int32_t> list = {}) {
    int32_t slot = result ? get(result) : -1;
    Instruction &added = add(opcode, &op);
    added.result = slot;
    added.a = a;
    added.b = b;
    added.list.append(list.begin(), list.end());
    return success();
  };
  if (auto view = dyn_cast<memref::ViewOp>(op))
    return emit(Opcode::View, view, get(view.getSource()),
                get(view.getByteShift()),
                getAll(getMixedSizes(view.getType(), view.getSizes())));
  if (auto view = dyn_cast<memref::SubViewOp>(op)) {
    SmallVector<int32_t> list = getAll(view.getMixedOffsets());
    list.append(getAll(view.getMixedSizes()));
    list.append(getAll(view.getMixedStrides()));
    llvm::SmallBitVector dropped = view.getDroppedDims();
    for (unsigned dim = 0; dim < dropped.size(); ++dim)
      list.push_back(!dropped[dim]);
    return emit(Opcode::SubView, view, get(view.getSource()), -1, list);
  }
  if (auto stack = dyn_cast<memref::ReinterpretCastOp>(op)) {
    // It counts from where a view begins, but not from where a subview does.
    if (!stack.getSource().getDefiningOp<memref::ViewOp>())
      return op.emitOpError() << "is not known to the trace of plans";
    SmallVector<int32_t> list = getAll(stack.getMixedOffsets());
    list.append(getAll(stack.getMixedSizes()));
    list.append(getAll(stack.getMixedStrides()));
    return emit(Opcode::Reinterpret, stack, get(stack.getSource()), -1, list);
  }
  if (auto cast = dyn_cast<memref::CastOp>(op)) {
    if (!isa<MemRefType>(cast.getType()))
      return op.emitOpError() << "is not known to the trace of plans";
    alias(cast.getSource(), cast);
    return success();
  }
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return emit(Opcode::Dim, dim, get(dim.getSource()), get(dim.getIndex()));
  if (auto table = dyn_cast<memref::AllocaOp>(op)) {
    auto sizes =
        getAll(getMixedSizes(table.getType(), table.getDynamicSizes()));
    emit(Opcode::Table, table, -1, -1, sizes).succeeded();
    code.instructions.back().immediate = code.tables.size();
    code.tables.emplace_back();
    return success();
  }
  if (auto get = dyn_cast<memref::GetGlobalOp>(op)) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
        get, get.getNameAttr());
    auto values = global && global.getConstant()
                      ? dyn_cast_or_null<DenseIntElementsAttr>(
                            global.getInitialValueAttr())
                      : DenseIntElementsAttr();
    if (!values)
      return op.emitOpError() << "is no constant table of integers, which is "
                                 "all that a plan may share";
    emit(Opcode::KnownTable, get, -1, -1,
         getAll(getMixedSizes(get.getType(), {})))
        .succeeded();
    code.instructions.back().immediate = code.tables.size();
    std::vector<int64_t> &table = code.tables.emplace_back();
    for (const APInt &value : values)
      table.push_back(value.getSExtValue());
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return emit(Opcode::StoreTable, {}, get(store.getValueToStore()),
                get(store.getMemRef()), getAll(store.getIndices()));
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return emit(Opcode::LoadTable, load, -1, get(load.getMemRef()),
                getAll(load.getIndices()));
  if (isa<memref::AllocOp>(op))
    return op.emitOpError() << "has no place in an arena yet; run "
                               "commir-plan-memory first";
  return op.emitOpError() << "is not known to the trace of plans";
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

FailureOr<int64_t> Compiler::getLevel(Operation *op, StringRef name) {
  int64_t level = mesh.getLevelNumber(name);
  if (level >= 0)
    return level;
  return op->emitOpError() << "must name a level of the mesh ("
                           << mesh.describeLevels() << "), got '" << name
                           << "'";
}

LogicalResult Compiler::addEvent(EventSite site, ArrayAttr group) {
  SmallVector<int64_t> levels;
  if (group)
    for (auto name : group.getAsRange<StringAttr>()) {
      FailureOr<int64_t> level = getLevel(site.op, name);
      if (failed(level))
        return failure();
      levels.push_back(*level);
    }
  if (group) {
    // A set: its ranks are row-major in the order of the mesh.
    llvm::sort(levels);
    levels.erase(llvm::unique(levels), levels.end());
    site.group = llvm::find(code.groups, levels) - code.groups.begin();
    if (site.group == static_cast<int64_t>(code.groups.size()))
      code.groups.push_back(levels);
  }
  for (Value operand : site.op->getOperands())
    if (isa<BufferType, TileType>(operand.getType()))
      return site.op->emitOpError() << "works on tiles without a place in "
                                       "memory; run commir-to-spmd first";
  add(Opcode::Event, site.op).immediate = code.sites.size();
  code.sites.push_back(std::move(site));
  return success();
}

LogicalResult Compiler::compileCollective(Operation &op) {
  using Kind = PlanEvent::Kind;
  EventSite site{Kind::AllReduce, &op};
  site.token = get(op.getResult(0));
  if (auto scatter = dyn_cast<ReduceScatterStartOp>(op)) {
    if (!scatter.getBytes())
      return op.emitOpError() << "has no table of lengths; run commir-to-spmd "
                                 "first";
    site.kind = Kind::ReduceScatter;
    site.inputs = {get(scatter.getSource())};
    site.outputs = {get(scatter.getTarget())};
    site.lengths = get(scatter.getBytes());
    return addEvent(site, scatter.getGroup());
  }
  if (auto reduce = dyn_cast<AllReduceStartOp>(op)) {
    site.inputs = {get(reduce.getSource())};
    site.outputs = {get(reduce.getTarget())};
    return addEvent(site, reduce.getGroup());
  }
  if (auto deal = dyn_cast<AllToAllStartOp>(op)) {
    site.kind = Kind::AllToAll;
    site.inputs = {get(deal.getSource())};
    site.outputs = {get(deal.getTarget())};
    site.lengths = get(deal.getSends());
    site.arrivals = get(deal.getReceives());
    return addEvent(site, deal.getGroup());
  }
  auto broadcast = cast<BroadcastStartOp>(op);
  site.kind = Kind::Broadcast;
  site.inputs = {get(broadcast.getSource())};
  site.outputs = {get(broadcast.getTarget())};
  site.from = get(broadcast.getRoot());
  site.when = get(broadcast.getWhen());
  return addEvent(site, broadcast.getGroup());
}

LogicalResult Compiler::compileEvent(Operation &op) {
  using Kind = PlanEvent::Kind;
  if (auto rank = dyn_cast<GroupRankOp>(op)) {
    FailureOr<int64_t> level = getLevel(&op, rank.getLevel());
    if (failed(level))
      return failure();
    int32_t result = get(rank.getRank());
    Instruction &added = add(Opcode::GroupRank, &op);
    added.result = result;
    added.immediate = *level;
    return success();
  }
  if (auto memory = dyn_cast<MemoryOp>(op)) {
    int32_t result = get(memory.getBytes());
    std::optional<Arena> arena = memory.getArena();
    Instruction &added = add(arena ? Opcode::Arena : Opcode::Argument, &op);
    added.result = result;
    added.immediate =
        arena ? static_cast<int64_t>(*arena) : *memory.getArgument();
    return success();
  }
  if (auto status = dyn_cast<StatusOp>(op)) {
    slots[status.getStatus()] = getConstant(0);
    return success();
  }
  EventSite site{Kind::Wait, &op};
  if (auto wait = dyn_cast<WaitOp>(op)) {
    site.token = get(wait.getToken());
    return addEvent(site);
  }
  if (auto fill = dyn_cast<FillOp>(op)) {
    site.kind = Kind::Fill;
    site.outputs = {get(fill.getTile())};
    site.value = fill.getValue().convertToDouble();
    return addEvent(site);
  }
  if (isa<CopyOp, AccumulateOp>(op)) {
    site.kind = isa<CopyOp>(op) ? Kind::Copy : Kind::Accumulate;
    site.inputs = {get(op.getOperand(0))};
    site.outputs = {get(op.getOperand(1))};
    return addEvent(site);
  }
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    site.kind = Kind::Launch;
    site.inputs = getAll(launch.getInputs());
    site.outputs = getAll(launch.getOutputs());
    site.positions = getAll(launch.getPositions());
    if (launch.getScratch())
      site.scratch = {get(launch.getScratch())};
    return addEvent(site);
  }
  if (auto exchange = dyn_cast<ExchangeStartOp>(op)) {
    site.kind = Kind::Exchange;
    site.inputs = {get(exchange.getSource())};
    site.outputs = {get(exchange.getTarget())};
    site.to = get(exchange.getTo());
    site.from = get(exchange.getFrom());
    site.when = get(exchange.getWhen());
    site.token = get(exchange.getToken());
    return addEvent(site, exchange.getGroup());
  }
  if (auto gather = dyn_cast<AllGatherStartOp>(op)) {
    if (!gather.getBytes())
      return op.emitOpError() << "has no table of lengths; run commir-to-spmd "
                                 "first";
    site.kind = Kind::AllGather;
    site.inputs = {get(gather.getSource())};
    site.outputs = {get(gather.getTarget())};
    site.lengths = get(gather.getBytes());
    site.token = get(gather.getToken());
    return addEvent(site, gather.getGroup());
  }
  if (isa<ReduceScatterStartOp, AllReduceStartOp, AllToAllStartOp,
          BroadcastStartOp>(op))
    return compileCollective(op);
  if (auto open = dyn_cast<LeaseOpenOp>(op)) {
    site.kind = Kind::LeaseOpen;
    site.inputs = {get(open.getMemory())};
    site.lease = get(open.getLease());
    return addEvent(site, open.getGroup());
  }
  if (auto close = dyn_cast<LeaseCloseOp>(op)) {
    site.kind = Kind::LeaseClose;
    site.lease = get(close.getLease());
    return addEvent(site);
  }
  if (auto use = dyn_cast<LaneUseOp>(op)) {
    site.kind = Kind::LaneUse;
    site.to = getConstant(use.getLane());
    return addEvent(site);
  }
  if (auto order = dyn_cast<LaneOrderOp>(op)) {
    site.kind = Kind::LaneOrder;
    site.from = getConstant(order.getEarlier());
    site.to = getConstant(order.getLater());
    return addEvent(site);
  }
  if (auto leased = dyn_cast<LeaseMemoryOp>(op)) {
    if (!isa<MemRefType>(leased.getMemory().getType()))
      return op.emitOpError() << "gives a buffer without a place in memory; "
                                 "run commir-to-spmd first";
    int32_t lease = get(leased.getLease()), peer = get(leased.getPeer());
    int32_t result = get(leased.getMemory());
    Instruction &added = add(Opcode::LeasedMemory, &op);
    added.result = result;
    added.a = lease;
    added.b = peer;
    return success();
  }
  if (auto pull = dyn_cast<PullStartOp>(op)) {
    site.kind = Kind::Pull;
    site.inputs = {get(pull.getSource())};
    site.outputs = {get(pull.getTarget())};
    site.lease = get(pull.getLease());
    site.from = get(pull.getPeer());
    site.when = get(pull.getWhen());
    site.token = get(pull.getToken());
    return addEvent(site);
  }
  return op.emitOpError() << "is not known to the trace of plans";
}

std::shared_ptr<const Code> trace::compile(func::FuncOp function, MeshOp mesh) {
  if (!function.getBody().hasOneBlock()) {
    function.emitOpError() << "must have one block to be traced; a plan's "
                              "control flow is scf";
    return nullptr;
  }
  Compiler compiler(mesh);
  if (failed(compiler.compile(function.getBody().front())))
    return nullptr;
  compiler.code.instructions.push_back({Opcode::Return});
  return std::make_shared<const Code>(std::move(compiler.code));
}
