//===- InferPlacement.cpp - Find where every buffer lives -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_INFERPLACEMENT
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

static bool usesBuffer(ForOp nest, Value buffer) {
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    return user->getParentOp() == nest;
  });
}

/// The placement that every nest which uses a buffer agrees on; null, with an
/// error, when they do not.
static FailureOr<PlacementAttr> inferFromUsers(ProgramOp program,
                                               int64_t buffer) {
  PlacementAttr found;
  ForOp first;
  for (ForOp nest : program.getBody().getOps<ForOp>()) {
    if (!usesBuffer(nest, program.getBody().getArgument(buffer)))
      continue;
    PlacementAttr here = inferPlacement(program, nest, buffer);
    if (found && here != found) {
      InFlightDiagnostic error =
          nest.emitOpError()
          << "wants buffer '" << program.getBinding(buffer).getName()
          << "' in another place than an earlier nest: " << here << ", not "
          << found << "; shard or replicate it explicitly";
      error.attachNote(first.getLoc()) << "the earlier nest is here";
      return failure();
    }
    if (!found)
      first = nest;
    found = here;
  }
  return found ? found : PlacementAttr::get(program.getContext(), {});
}

namespace {
struct InferPlacement
    : public commir::impl::InferPlacementBase<InferPlacement> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](ProgramOp program) {
      // What is lowered already has nothing left to infer from.
      if (!llvm::all_of(program.getBody().getOps(), llvm::IsaPred<ForOp>))
        return WalkResult::advance();
      SmallVector<Attribute> bindings;
      for (int64_t i = 0, e = program.getBindings().size(); i < e; ++i) {
        FailureOr<PlacementAttr> inside = inferFromUsers(program, i);
        if (failed(inside))
          return WalkResult::interrupt();
        BindingAttr old = program.getBinding(i);
        bindings.push_back(
            BindingAttr::get(&getContext(), old.getName(),
                             old.getBoundary() ? old.getBoundary() : *inside,
                             old.getShard(), old.getReplicate(), *inside));
        ++numBuffers;
      }
      program.setBindingsAttr(ArrayAttr::get(&getContext(), bindings));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
