//===- Transfers.cpp - Transfers to runtime calls -------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"
#include "lib/Conversion/Passes.h"

using namespace mlir;
using namespace mlir::commir;

void FunctionConverter::convert(ExchangeStartOp op) {
  // Nothing started: the token 0, for which nothing is to be waited.
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  auto guarded = scf::IfOp::create(builder, loc, op.getWhen(), false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  callChecked("mercury_rt_exchange_start",
              {context, getGroup(op.getGroup()), toI64(op.getTo()),
               getPointer(op.getSource()), getBytes(op.getSource()),
               toI64(op.getFrom()), getPointer(op.getTarget()),
               getBytes(op.getTarget()), tokenSlot});
  builder.setInsertionPointAfter(guarded);
  tokens[op.getToken()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
}

void FunctionConverter::convert(AllGatherStartOp op) {
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  int64_t bytes = cast<MemRefType>(op.getTarget().getType()).getDimSize(0);
  callChecked("mercury_rt_all_gather_start",
              {context, getGroup(op.getGroup()), getPointer(op.getSource()),
               getBytes(op.getSource()), getPointer(op.getTarget()),
               constant64(bytes / mesh.getGroupSize(op.getGroup())),
               getPointer(op.getBytes()), tokenSlot});
  tokens[op.getToken()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
}

void FunctionConverter::convert(LeaseOpenOp op) {
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  int64_t bytes = cast<MemRefType>(op.getMemory().getType()).getDimSize(0);
  // An argument is as large as its caller made it.
  if (ShapedType::isDynamic(bytes))
    bytes = std::numeric_limits<int64_t>::max();
  callChecked("mercury_rt_lease_open",
              {context, getGroup(op.getGroup()), getPointer(op.getMemory()),
               constant64(bytes), tokenSlot});
  tokens[op.getLease()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
}

void FunctionConverter::convert(LeaseMemoryOp op) {
  Value slot =
      LLVM::AllocaOp::create(builder, loc, pointer, pointer, constant64(1));
  LLVM::StoreOp::create(builder, loc,
                        LLVM::ZeroOp::create(builder, loc, pointer), slot);
  callChecked(
      "mercury_rt_lease_address",
      {context, tokens.lookup(op.getLease()), toI64(op.getPeer()), slot});
  op.getMemory().replaceAllUsesWith(
      makeMemory(LLVM::LoadOp::create(builder, loc, pointer, slot)));
}
