//===- AssignLanes.cpp - In which lane each op of a plan is ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches that do not depend on each other name a lane: the last blocks of one
// leave room on the device for the first ones of another. From here on the text
// says what is in which lane and where lanes fork and join, so that the plan
// can be checked and its conversion has nothing to choose.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_ASSIGNLANES
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

namespace {
/// The lanes that an op and those inside of it name, as bits.
using LaneSet = uint64_t;

/// Changes lanes between the ops of the body of a function.
class LaneWriter {
public:
  LaneWriter(Block &block, LaneSet lanes)
      : block(block), others(llvm::Log2_64(lanes)),
        builder(block.getParentOp()) {}

  void run();

private:
  void use(int64_t lane, Operation *before);
  void fork(Operation *before);
  void join(Operation *before);

  Block &block;
  int64_t others; // the last lane
  OpBuilder builder;
  int64_t current = 0;
  bool isForked = false;
};
} // namespace

static LaneSet getLanes(Operation &op) {
  LaneSet lanes = 0;
  op.walk([&](Operation *inner) {
    if (auto lane = inner->getAttrOfType<IntegerAttr>(kLane))
      lanes |= LaneSet(1) << lane.getInt();
  });
  return lanes;
}

void LaneWriter::use(int64_t lane, Operation *before) {
  if (lane == current)
    return;
  builder.setInsertionPoint(before);
  LaneUseOp::create(builder, before->getLoc(), lane);
  current = lane;
}

void LaneWriter::fork(Operation *before) {
  builder.setInsertionPoint(before);
  for (int64_t other = 1; other <= others; ++other)
    LaneOrderOp::create(builder, before->getLoc(), /*earlier=*/0, other);
  isForked = true;
}

void LaneWriter::join(Operation *before) {
  use(0, before);
  builder.setInsertionPoint(before);
  for (int64_t other = 1; other <= others; ++other)
    LaneOrderOp::create(builder, before->getLoc(), other, /*later=*/0);
  isForked = false;
}

/// Whether an op starts what moves, or lends memory to it.
static bool isStart(Operation &op) {
  return op.getNumResults() == 1 &&
         isa<TokenType, LeaseType>(op.getResult(0).getType());
}

/// Arithmetic, views, and tables of the host are in no lane.
static bool isInPlan(Operation &op) {
  return (isa<CommIRDialect>(op.getDialect()) || op.getNumRegions() != 0) &&
         !isMemoryEffectFree(&op);
}

/// Whether a transfer is of what comes or goes under launches in lanes: some
/// are behind it. Results of all lanes are reduced, and leave, behind the last.
static bool isBetweenLanes(Operation &start) {
  if (isa<AllReduceStartOp, ReduceScatterStartOp>(start))
    return false;
  for (Operation *op = start.getNextNode(); op; op = op->getNextNode())
    if (isInPlan(*op) && !isStart(*op) && !isa<WaitOp>(op))
      return llvm::has_single_bit(getLanes(*op));
  return false;
}

void LaneWriter::run() {
  // The first of the waits just before an op, and of the starts behind them,
  // which may pass on what has come.
  Operation *awaited = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isInPlan(op))
      continue;
    bool passes = isStart(op) && isBetweenLanes(op);
    if (isa<WaitOp>(op) || (passes && awaited)) {
      awaited = awaited ? awaited : &op;
      continue;
    }
    Operation *first = awaited ? awaited : &op;
    awaited = nullptr;
    LaneSet lanes = getLanes(op);
    if (llvm::has_single_bit(lanes)) {
      // What lanes have in common is waited for before they fork.
      if (!isForked)
        fork(first = &op);
      use(llvm::Log2_64(lanes), first);
      continue;
    }
    if (isForked && !passes)
      join(first);
  }
}

namespace {
struct AssignLanes : public commir::impl::AssignLanesBase<AssignLanes> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("commir.mesh") && failed(assign(function)))
        return signalPassFailure();
  }

  LogicalResult assign(func::FuncOp function) {
    SmallVector<Operation *> named;
    function.walk([&](Operation *op) {
      if (op->hasAttr(kLane))
        named.push_back(op);
    });
    for (Operation *op : named) {
      int64_t lane = op->getAttrOfType<IntegerAttr>(kLane).getInt();
      if (lane < 0 || lane >= kMaxLanes)
        return op->emitOpError() << "names lane " << lane
                                 << "; lanes go from 0 to " << kMaxLanes - 1;
    }
    // What is inside of a loop or a branch goes where all of that does.
    Block &block = function.getBody().front();
    LaneSet lanes = 0;
    int64_t launches = 0;
    for (Operation &op : block) {
      LaneSet inside = getLanes(op);
      if (!llvm::has_single_bit(inside))
        continue;
      lanes |= inside;
      op.walk([&](LaunchOp) { ++launches; });
    }
    if (llvm::popcount(lanes) > 1) {
      numLaunches += launches;
      LaneWriter(block, lanes).run();
    }
    for (Operation *op : named)
      op->removeAttr(kLane);
    return success();
  }
};
} // namespace
