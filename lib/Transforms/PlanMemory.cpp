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
      if (function->hasAttr("commir.mesh"))
        planFunction(function);
  }

  /// Memory that communication may touch lives as long as the plan: offsets
  /// follow one another, each at a whole cache line.
  void planFunction(func::FuncOp function) {
    SmallVector<memref::AllocOp> allocs;
    function.walk([&](memref::AllocOp op) { allocs.push_back(op); });
    int64_t offset = 0;
    OpBuilder builder(&getContext());
    builder.setInsertionPointToStart(&function.getBody().front());
    auto bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    Value arena = MemoryOp::create(builder, function.getLoc(), bytes,
                                   /*argument=*/IntegerAttr());
    for (memref::AllocOp alloc : allocs) {
      builder.setInsertionPoint(alloc);
      Value at = arith::ConstantIndexOp::create(builder, alloc.getLoc(), offset);
      Value view = memref::ViewOp::create(builder, alloc.getLoc(),
                                          alloc.getType(), arena, at,
                                          ValueRange{});
      alloc.replaceAllUsesWith(view);
      alloc.erase();
      offset += llvm::alignTo(cast<MemRefType>(view.getType()).getDimSize(0),
                              64);
    }
    function->setAttr("commir.arena_bytes", builder.getI64IntegerAttr(offset));
    arenaBytes += offset;
  }
};
} // namespace
