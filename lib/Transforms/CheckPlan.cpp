//===- CheckPlan.cpp - Prove that a plan means its program ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/PlanCheck.h"
#include "lib/Transforms/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_CHECKPLAN
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

namespace {
struct CheckPlan : public commir::impl::CheckPlanBase<CheckPlan> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr("commir.mesh"))
        continue;
      FailureOr<PlanProof> proof = checkPlan(function);
      if (failed(proof))
        signalPassFailure();
      else
        numMessages += proof->messages;
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
