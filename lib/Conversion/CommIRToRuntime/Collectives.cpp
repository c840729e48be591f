//===- Collectives.cpp - Collectives to runtime calls ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"
#include "lib/Conversion/CommIRToRuntime/NamedKernel.h"

using namespace mlir;
using namespace mlir::commir;

/// The type of a tile's elements, as the runtime numbers those that it reduces.
FailureOr<Value> FunctionConverter::getElementType(Operation &op, Value tile) {
  Type type = cast<MemRefType>(tile.getType()).getElementType();
  int64_t number = getElementTypeNumber(type);
  if (number == 0)
    return op.emitOpError()
           << "must reduce f16, bf16, f32 or f64, got " << type;
  return Value(arith::ConstantIntOp::create(builder, loc, number, 32));
}

LogicalResult FunctionConverter::convertCollective(Operation &op) {
  auto getSlot = [&](Value slots, ArrayAttr group) {
    int64_t bytes = cast<MemRefType>(slots.getType()).getDimSize(0);
    return constant64(bytes / mesh.getGroupSize(group));
  };
  auto getReduction = [&](MergeKind kind) -> Value {
    return arith::ConstantIntOp::create(builder, loc,
                                        kind == MergeKind::Max ? 1 : 0, 32);
  };
  Value token = op.getResult(0);
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  auto finish = [&]() {
    tokens[token] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
    return success();
  };
  if (auto scatter = dyn_cast<ReduceScatterStartOp>(op)) {
    FailureOr<Value> type = getElementType(op, scatter.getTarget());
    if (failed(type))
      return failure();
    callChecked(
        "mercury_rt_reduce_scatter_start",
        {context, getGroup(scatter.getGroup()), getPointer(scatter.getSource()),
         getSlot(scatter.getSource(), scatter.getGroup()),
         getPointer(scatter.getTarget()), getPointer(scatter.getBytes()), *type,
         getReduction(scatter.getMerge()), tokenSlot});
    return finish();
  }
  if (auto reduce = dyn_cast<AllReduceStartOp>(op)) {
    FailureOr<Value> type = getElementType(op, reduce.getTarget());
    if (failed(type))
      return failure();
    callChecked("mercury_rt_all_reduce_start",
                {context, getGroup(reduce.getGroup()),
                 getPointer(reduce.getSource()), getPointer(reduce.getTarget()),
                 getBytes(reduce.getTarget()), *type,
                 getReduction(reduce.getMerge()), tokenSlot});
    return finish();
  }
  if (auto deal = dyn_cast<AllToAllStartOp>(op)) {
    callChecked("mercury_rt_all_to_all_start",
                {context, getGroup(deal.getGroup()),
                 getPointer(deal.getSource()),
                 getSlot(deal.getSource(), deal.getGroup()),
                 getPointer(deal.getSends()), getPointer(deal.getTarget()),
                 getSlot(deal.getTarget(), deal.getGroup()),
                 getPointer(deal.getReceives()), tokenSlot});
    return finish();
  }
  auto broadcast = cast<BroadcastStartOp>(op);
  auto guarded = scf::IfOp::create(builder, loc, broadcast.getWhen(), false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  callChecked("mercury_rt_broadcast_start",
              {context, getGroup(broadcast.getGroup()),
               toI64(broadcast.getRoot()), getPointer(broadcast.getSource()),
               getPointer(broadcast.getTarget()),
               getBytes(broadcast.getTarget()), tokenSlot});
  builder.setInsertionPointAfter(guarded);
  return finish();
}
