//===- Puts.cpp - Messages that are written to their place ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A receiver's place is known if it is a whole slot that is the same one on
// every rank, as in a ring; the slot of a member's number is not.
//
//   %t = exchange.start %K to %left, %slot from %right
//   =>
//   copy %K to %staging
//   %t = exchange.start %staging to %left, %slot from %right
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Puts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::commir;

namespace {
class Put {
public:
  explicit Put(ExchangeStartOp op)
      : op(op), builder(op), loc(op.getLoc()),
        program(op->getParentOfType<ProgramOp>()) {}

  /// Whether it can; then no source of its is a buffer of the program.
  bool take();

private:
  static bool isSameOnAllRanks(Value value);
  static bool isWholeSlot(PartOp part, AllocOp memory);
  static bool canStage(Value source);
  Value stage(Value source, Value when);

  ExchangeStartOp op;
  OpBuilder builder;
  Location loc;
  ProgramOp program;
};
} // namespace

/// Whether no group rank has a part in a number, but for the bounds of a loop,
/// which the checker has no rank depend on where there is communication.
bool Put::isSameOnAllRanks(Value value) {
  Operation *made = value.getDefiningOp();
  return !made || (!isa<GroupRankOp>(made) && made->getNumRegions() == 0 &&
                   llvm::all_of(made->getOperands(), isSameOnAllRanks));
}

/// A slot holds one part of each axis that is in `parts`, from its first byte.
bool Put::isWholeSlot(PartOp part, AllocOp memory) {
  return !part.getStack() &&
         llvm::all_of(llvm::zip_equal(part.getAxes(), part.getCounts()),
                      [&](auto each) {
                        auto [axis, count] = each;
                        auto held = memory.getParts().getAs<IntegerAttr>(
                            cast<StringAttr>(axis).getValue());
                        return held && held.getInt() == count;
                      });
}

/// The plan's own memory, or a part of an argument that is copied there.
bool Put::canStage(Value source) {
  if (auto select = source.getDefiningOp<arith::SelectOp>())
    return canStage(select.getTrueValue()) && canStage(select.getFalseValue());
  auto part = source.getDefiningOp<PartOp>();
  return part && (part.getBuffer().getDefiningOp<AllocOp>() ||
                  isa<BlockArgument>(part.getBuffer()));
}

/// Gives what is sent in the plan's own memory, in which it is `when` it may be
/// sent.
Value Put::stage(Value source, Value when) {
  if (auto select = source.getDefiningOp<arith::SelectOp>()) {
    Value yes = select.getCondition();
    Value one = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value no = arith::XOrIOp::create(builder, loc, yes, one);
    auto both = [&](Value condition) -> Value {
      return arith::AndIOp::create(builder, loc, when, condition);
    };
    Value first = stage(select.getTrueValue(), both(yes));
    Value second = stage(select.getFalseValue(), both(no));
    return arith::SelectOp::create(builder, loc, yes, first, second);
  }
  auto part = source.getDefiningOp<PartOp>();
  auto argument = dyn_cast<BlockArgument>(part.getBuffer());
  if (!argument)
    return source;
  BindingAttr binding = program.getBinding(argument.getArgNumber());
  SmallVector<NamedAttribute> parts;
  for (auto [axis, count] : llvm::zip_equal(part.getAxes(), part.getCounts()))
    parts.emplace_back(cast<StringAttr>(axis),
                       builder.getI64IntegerAttr(count));
  Value memory = AllocOp::create(
      builder, loc, cast<BufferType>(argument.getType()), /*slots=*/1,
      binding.getBoundary() ? binding.getBoundary() : binding.getInside(),
      builder.getDictionaryAttr(parts));
  Value staged = PartOp::create(builder, loc, part.getTile().getType(), memory,
                                /*slot=*/Value(), part.getIndices(),
                                part.getAxes(), part.getCountsAttr());
  auto guarded = scf::IfOp::create(builder, loc, when, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(guarded.thenBlock());
  CopyOp::create(builder, loc, source, staged);
  return staged;
}

bool Put::take() {
  auto target = op.getTarget().getDefiningOp<PartOp>();
  auto memory =
      target ? target.getBuffer().getDefiningOp<AllocOp>() : AllocOp();
  if (!memory || !isWholeSlot(target, memory) || !canStage(op.getSource()) ||
      (target.getSlot() && !isSameOnAllRanks(target.getSlot())))
    return false;
  op.getSourceMutable().assign(stage(op.getSource(), op.getWhen()));
  return true;
}

bool mlir::commir::makePut(ExchangeStartOp op) { return Put(op).take(); }
