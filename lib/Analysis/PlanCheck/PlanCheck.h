//===- PlanCheck.h - Prove that a plan means its program --------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the source program and the lowered plan alone: every rank is run against
// the others, with what its memory holds in place of numbers. It shares the
// layout arithmetic with the passes that made the plan, and nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_PLANCHECK_H
#define LIB_ANALYSIS_PLANCHECK_PLANCHECK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::commir {

/// What was proved, counted over all ranks.
struct PlanProof {
  int64_t ranks = 0;
  int64_t launches = 0;
  int64_t messages = 0;
  int64_t bytes = 0;
};

/// Proves that a plan does what the program that it names as its source means.
/// Fails with an error at the op that breaks it, which names the rank, the step
/// and the buffer.
FailureOr<PlanProof> checkPlan(func::FuncOp plan);

/// Checks that no rank can skip communication that others take part in: no such
/// op is under a condition, or in a loop, that depends on the rank.
LogicalResult checkControl(func::FuncOp plan);

} // namespace mlir::commir

#endif // LIB_ANALYSIS_PLANCHECK_PLANCHECK_H
