//===- Compiler.cpp - Control flow and integers of a plan -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanTrace/Compiler.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::trace;

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

/// i1 is 0 or 1; wider integers are signed.
static int64_t getInteger(IntegerAttr attribute) {
  if (attribute.getType().isInteger(1))
    return attribute.getValue().getZExtValue();
  return attribute.getInt();
}

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
// All of it
//===----------------------------------------------------------------------===//

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
