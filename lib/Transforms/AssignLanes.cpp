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

/// The lane that a launch names, if it does.
static std::optional<int64_t> getLane(Operation &op) {
  auto lane = op.getAttrOfType<IntegerAttr>(kLane);
  return lane ? std::optional(lane.getInt()) : std::nullopt;
}

namespace {
/// Changes lanes between the ops of the body of a function.
class LaneWriter {
public:
  LaneWriter(Block &block, int64_t lanes)
      : block(block), lanes(lanes), builder(block.getParentOp()) {}

  void run();

private:
  void use(int64_t lane, Operation *before);
  void fork(Operation *before);
  void join(Operation *before);

  Block &block;
  int64_t lanes;
  OpBuilder builder;
  int64_t current = 0;
  bool isForked = false;
};
} // namespace

void LaneWriter::use(int64_t lane, Operation *before) {
  if (lane == current)
    return;
  builder.setInsertionPoint(before);
  LaneUseOp::create(builder, before->getLoc(), lane);
  current = lane;
}

void LaneWriter::fork(Operation *before) {
  builder.setInsertionPoint(before);
  for (int64_t other = 1; other < lanes; ++other)
    LaneOrderOp::create(builder, before->getLoc(), /*earlier=*/0, other);
  isForked = true;
}

void LaneWriter::join(Operation *before) {
  use(0, before);
  builder.setInsertionPoint(before);
  for (int64_t other = 1; other < lanes; ++other)
    LaneOrderOp::create(builder, before->getLoc(), other, /*later=*/0);
  isForked = false;
}

void LaneWriter::run() {
  // The first of the waits just before an op.
  Operation *waits = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    // Arithmetic, views, and tables of the host are in no lane.
    bool isOfPlan =
        isa<CommIRDialect>(op.getDialect()) || op.getNumRegions() != 0;
    if (!isOfPlan || isMemoryEffectFree(&op))
      continue;
    if (isa<WaitOp>(op)) {
      waits = waits ? waits : &op;
      continue;
    }
    Operation *first = waits ? waits : &op;
    waits = nullptr;
    if (std::optional<int64_t> lane = getLane(op)) {
      // What lanes have in common is waited for before they fork.
      if (!isForked)
        fork(first = &op);
      use(*lane, first);
      op.removeAttr(kLane);
      continue;
    }
    bool starts = op.getNumResults() == 1 &&
                  isa<TokenType, LeaseType>(op.getResult(0).getType());
    if (isForked && !starts)
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
    SmallVector<LaunchOp> launches;
    function.walk([&](LaunchOp launch) {
      if (getLane(*launch))
        launches.push_back(launch);
    });
    int64_t most = 0;
    bool isFlat = true;
    for (LaunchOp launch : launches) {
      int64_t lane = *getLane(*launch);
      if (lane < 0 || lane >= kMaxLanes)
        return launch.emitOpError() << "names lane " << lane
                                    << "; lanes go from 0 to " << kMaxLanes - 1;
      most = std::max(most, lane);
      isFlat &= launch->getParentOp() == function;
    }
    if (most == 0 || !isFlat) {
      for (LaunchOp launch : launches)
        launch->removeAttr(kLane);
      return success();
    }
    numLaunches += launches.size();
    LaneWriter(function.getBody().front(), most + 1).run();
    return success();
  }
};
} // namespace
