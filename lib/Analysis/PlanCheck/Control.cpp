//===- Control.cpp - Communication under a condition ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/CommIR.h"
#include "lib/Analysis/PlanCheck/PlanCheck.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Finds the values that may differ from rank to rank.
class RankDependence {
public:
  explicit RankDependence(func::FuncOp plan) {
    for (bool grows = true; grows;) {
      size_t before = values.size();
      plan.walk([&](Operation *op) { visit(op); });
      grows = values.size() != before;
    }
  }

  bool depends(ValueRange some) const {
    return llvm::any_of(some, [&](Value v) { return values.contains(v); });
  }

  /// Whether the ranks may disagree on what runs inside of `op`.
  bool isCondition(Operation *op) const {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return depends(
          {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return depends(branch.getCondition());
    return false;
  }

private:
  void add(ValueRange some) { values.insert(some.begin(), some.end()); }

  void visit(Operation *op) {
    if (isa<GroupRankOp>(op))
      return add(op->getResults());
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (isCondition(op)) {
        add(loop.getInductionVar());
        add(loop.getRegionIterArgs());
        return add(loop.getResults());
      }
      for (auto [first, next, argument, result] :
           llvm::zip_equal(loop.getInitArgs(), loop.getYieldedValues(),
                           loop.getRegionIterArgs(), loop.getResults()))
        if (depends({first, next}))
          add({argument, result});
      return;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (isCondition(op))
        return add(branch.getResults());
      for (auto [i, result] : llvm::enumerate(branch.getResults()))
        if (depends({branch.thenYield().getOperand(i),
                     branch.elseYield().getOperand(i)}))
          add(result);
      return;
    }
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      if (depends(op->getOperands()) || isUnderCondition(op))
        add(store.getMemRef());
      return;
    }
    if (depends(op->getOperands()))
      add(op->getResults());
  }

  bool isUnderCondition(Operation *op) const {
    for (Operation *parent = op->getParentOp(); parent;
         parent = parent->getParentOp())
      if (isCondition(parent))
        return true;
    return false;
  }

  DenseSet<Value> values;
};
} // namespace

LogicalResult mlir::commir::checkControl(func::FuncOp plan) {
  RankDependence ranks(plan);
  WalkResult result = plan.walk([&](Operation *op) {
    // A pull asks nothing of its peer, so a rank may go without.
    if (!isa<ExchangeStartOp, AllGatherStartOp, ReduceScatterStartOp,
             AllReduceStartOp, AllToAllStartOp, BroadcastStartOp, LeaseOpenOp,
             LeaseCloseOp>(op))
      return WalkResult::advance();
    for (Operation *parent = op->getParentOp(); parent != plan;
         parent = parent->getParentOp()) {
      if (!ranks.isCondition(parent))
        continue;
      InFlightDiagnostic error =
          op->emitOpError()
          << "is under a condition that depends on the rank; all ranks of a "
             "group must take part in its communication";
      error.attachNote(parent->getLoc()) << "the condition is here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
