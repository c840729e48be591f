//===- Localize.cpp - Give tiles their sizes on this rank -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Localization/ProgramLocalizer.h"
#include "lib/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::commir {
#define GEN_PASS_DEF_LOCALIZE
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

/// Where an argument lives when the program is called.
static PlacementAttr getBoundary(BindingAttr binding) {
  return binding.getBoundary() ? binding.getBoundary() : binding.getInside();
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
    Value memory = MemoryOp::create(builder, loc, bytes, number);
    memories[argument] = {memory,
                          program.getBufferType(number),
                          getBoundary(program.getBinding(number)),
                          builder.getDictionaryAttr({}),
                          0,
                          {}};
    mapping.map(argument, memory);
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
    auto at = builder.getInsertionPoint();
    Operation *before =
        at == builder.getBlock()->begin() ? nullptr : &*std::prev(at);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto copy = scf::ForOp::create(
          builder, op.getLoc(), mapping.lookup(loop.getLowerBound()),
          mapping.lookup(loop.getUpperBound()), mapping.lookup(loop.getStep()));
      mapping.map(loop.getInductionVar(), copy.getInductionVar());
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(copy.getBody());
      result = convert(*loop.getBody());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      result = convert(branch);
    } else if (isa<AllocOp, LeaseOpenOp, LeaseMemoryOp, PartOp, PositionOp,
                   AllGatherStartOp, ReduceScatterStartOp, RedistributeOp,
                   LaunchOp, PullStartOp, WaitOp>(op)) {
      result = TypeSwitch<Operation *, LogicalResult>(&op)
                   .Case<AllocOp, LeaseOpenOp, LeaseMemoryOp, PartOp,
                         PositionOp, AllGatherStartOp, ReduceScatterStartOp,
                         RedistributeOp, LaunchOp, PullStartOp, WaitOp>(
                       [&](auto op) { return convert(op); });
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      result = convert(select);
    } else {
      bool inPieces = llvm::any_of(op.getOperands(), [&](Value operand) {
        auto tile = tiles.find(operand);
        return tile != tiles.end() &&
               llvm::any_of(tile->second.extents,
                            [](const Extent &e) { return e.inPieces; });
      });
      if (isa<ExchangeStartOp, AllReduceStartOp, BroadcastStartOp>(op))
        for (Value operand : op.getOperands())
          if (isa<TileType>(operand.getType()))
            result = succeeded(result) ? checkWhole(&op, operand) : result;
      if (succeeded(result) && inPieces &&
          isa<CopyOp, AccumulateOp, FillOp>(op))
        result = convertInPieces(op);
      else if (succeeded(result) && inPieces)
        result = op.emitOpError() << "works on a tile in pieces, which this "
                                     "version does not lower yet";
      else if (succeeded(result) && isPure(&op) && op.getNumResults() == 1)
        mapping.map(op.getResult(0),
                    builder.simplify(builder.clone(op, mapping)));
      else if (succeeded(result))
        builder.clone(op, mapping);
    }
    if (failed(result))
      return failure();
    keepTransport(op);
    keepLane(op, before);
  }
  return success();
}

LogicalResult ProgramLocalizer::convert(scf::IfOp op) {
  auto copy =
      scf::IfOp::create(builder, op.getLoc(), mapping.lookup(op.getCondition()),
                        /*withElseRegion=*/op.elseBlock() != nullptr);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(copy.thenBlock());
  if (failed(convert(*op.thenBlock())))
    return failure();
  if (!op.elseBlock())
    return success();
  builder.setInsertionPointToStart(copy.elseBlock());
  return convert(*op.elseBlock());
}

/// What an op became moves as it was chosen for that op.
void ProgramLocalizer::keepTransport(Operation &op) {
  Attribute transport = op.getAttr("commir.transport");
  Value result = transport && op.getNumResults() == 1
                     ? mapping.lookupOrNull(op.getResult(0))
                     : Value();
  if (result)
    result.getDefiningOp()->setAttr("commir.transport", transport);
}

/// What an op became, behind `before`, is in the lane of that op: the pieces of
/// a launch, and what fills their memory first.
void ProgramLocalizer::keepLane(Operation &op, Operation *before) {
  Attribute lane = op.getAttr(kLane);
  if (!lane)
    return;
  auto made =
      before ? std::next(before->getIterator()) : builder.getBlock()->begin();
  for (; made != builder.getInsertionPoint(); ++made)
    made->walk([&](Operation *inner) {
      if (isa<LaunchOp, CopyOp, FillOp, AccumulateOp>(inner))
        inner->setAttr(kLane, lane);
    });
}

LogicalResult ProgramLocalizer::convert(arith::SelectOp op) {
  Value condition = mapping.lookup(op.getCondition());
  Value one = op.getTrueValue(), other = op.getFalseValue();
  mapping.map(op.getResult(), builder.fold<arith::SelectOp>(
                                  op.getLoc(), condition, mapping.lookup(one),
                                  mapping.lookup(other)));
  if (whole.contains(one) && whole.contains(other))
    whole.insert(op.getResult());
  if (!isa<TileType>(op.getType()))
    return success();
  // Both hold the parts asked for; what lies around these may differ.
  Tile chosen = tiles[one], second = tiles[other];
  chosen.frame = builder.fold<arith::SelectOp>(op.getLoc(), condition,
                                               chosen.frame, second.frame);
  if (!chosen.empty)
    chosen.empty = second.empty;
  auto choose = [&](Value &value, Value alternative) {
    if (value && alternative && value != alternative)
      value = builder.fold<arith::SelectOp>(op.getLoc(), condition, value,
                                            alternative);
  };
  for (auto [extent, alternative] :
       llvm::zip_equal(chosen.extents, second.extents)) {
    bool inPieces = extent.inPieces || alternative.inPieces;
    if (!inPieces || extent.liesAs(alternative)) {
      choose(extent.held.index, alternative.held.index);
    } else {
      extent.first = std::make_shared<Extent>(extent);
      extent.second = std::make_shared<Extent>(alternative);
      extent.isFirst = condition;
    }
    extent.inPieces = inPieces;
    choose(extent.offset, alternative.offset);
    choose(extent.size, alternative.size);
  }
  tiles[op.getResult()] = chosen;
  return success();
}

LogicalResult ProgramLocalizer::checkWhole(Operation *op, Value tile) {
  if (whole.contains(tile))
    return success();
  return op->emitOpError() << "works on a slice of its memory, which must be "
                              "packed first; this version does not yet";
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
