//===- PlanMemory.cpp - Static offsets in one arena -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/CommIR.h"
#include "lib/Transforms/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_PLANMEMORY
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

namespace {
struct PlanMemory : public commir::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("commir.mesh") && failed(planFunction(function)))
        return signalPassFailure();
  }

  /// Memory that communication may touch lives as long as the plan: offsets
  /// follow one another, each at a whole cache line.
  LogicalResult planFunction(func::FuncOp function) {
    SmallVector<memref::AllocOp> allocs;
    function.walk([&](memref::AllocOp op) { allocs.push_back(op); });
    int64_t end = 0;
    SmallVector<int64_t> offsets;
    for (memref::AllocOp alloc : allocs) {
      MemRefType type = alloc.getType();
      if (type.getRank() != 1 || !type.hasStaticShape() ||
          !type.getElementType().isInteger(8))
        return alloc.emitOpError() << "must be of a static number of bytes to "
                                      "have a place in the arena, got "
                                   << type;
      offsets.push_back(end);
      if (llvm::AddOverflow(end, type.getDimSize(0), end) ||
          llvm::AddOverflow(end, int64_t(63), end))
        return alloc.emitOpError() << "needs more memory than there are "
                                      "addresses, with what is in the arena";
      end &= ~int64_t(63);
    }
    OpBuilder builder(&getContext());
    // Planned already.
    if (allocs.empty() && function->hasAttr("commir.arena_bytes"))
      return success();
    function->setAttr("commir.arena_bytes", builder.getI64IntegerAttr(end));
    arenaBytes += end;
    if (allocs.empty())
      return success();

    builder.setInsertionPointToStart(&function.getBody().front());
    auto bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    Value arena = MemoryOp::create(builder, function.getLoc(), bytes,
                                   /*argument=*/IntegerAttr());
    for (auto [alloc, offset] : llvm::zip_equal(allocs, offsets)) {
      builder.setInsertionPoint(alloc);
      Value at =
          arith::ConstantIndexOp::create(builder, alloc.getLoc(), offset);
      Value view = memref::ViewOp::create(
          builder, alloc.getLoc(), alloc.getType(), arena, at, ValueRange{});
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
    return success();
  }
};
} // namespace
