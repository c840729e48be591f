//===- Transfers.cpp - Transfers to runtime calls -------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transport.h"
#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"
#include "lib/Conversion/Passes.h"

using namespace mlir;
using namespace mlir::commir;

void FunctionConverter::convert(ExchangeStartOp op) {
  // Nothing started: the token 0, for which nothing is to be waited.
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  auto guarded = scf::IfOp::create(builder, loc, op.getWhen(), false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  callChecked(isPut(op) ? "mercury_rt_put_start" : "mercury_rt_exchange_start",
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

/// Both tiles as rows of bytes: what follows the last dimension that either of
/// them cuts lies together, and what comes before it is counted in rows, which
/// the plan checker has seen to be equally far apart.
LogicalResult FunctionConverter::convert(PullStartOp op) {
  auto type = cast<MemRefType>(op.getSource().getType());
  auto source =
      memref::ExtractStridedMetadataOp::create(builder, loc, op.getSource());
  auto target =
      memref::ExtractStridedMetadataOp::create(builder, loc, op.getTarget());
  int64_t rank = type.getRank();
  Value rows = constant(1), length = constant(1);
  Value fromPitch = constant(0), toPitch = constant(0);
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  };
  auto choose = [&](Value condition, Value a, Value b) -> Value {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  };
  // From the innermost dimension: it joins a row as long as rows of both sides
  // are side by side; from then on it counts rows. One of a single index is no
  // distance.
  Value open = arith::ConstantIntOp::create(builder, loc, 1, 1);
  for (int64_t dim = rank; dim-- > 0;) {
    Value size = source.getSizes()[dim];
    Value from = source.getStrides()[dim], to = target.getStrides()[dim];
    Value areTogether = arith::AndIOp::create(
        builder, loc, isEqual(from, length), isEqual(to, length));
    Value joins =
        arith::AndIOp::create(builder, loc, open,
                              arith::OrIOp::create(builder, loc, areTogether,
                                                   isEqual(size, constant(1))));
    // The first dimension that does not join gives the distance of rows.
    Value first = arith::AndIOp::create(
        builder, loc, open,
        arith::XOrIOp::create(
            builder, loc, joins,
            arith::ConstantIntOp::create(builder, loc, 1, 1)));
    fromPitch = choose(first, from, fromPitch);
    toPitch = choose(first, to, toPitch);
    rows = choose(joins, rows, arith::MulIOp::create(builder, loc, rows, size));
    length = choose(joins, arith::MulIOp::create(builder, loc, length, size),
                    length);
    open = joins;
  }
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  auto inBytes = [&](Value elements) {
    return toI64(arith::MulIOp::create(builder, loc, elements, bytes));
  };
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  auto guarded = scf::IfOp::create(builder, loc, op.getWhen(), false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  callChecked("mercury_rt_pull_start",
              {context, tokens.lookup(op.getLease()), toI64(op.getPeer()),
               getPointer(op.getSource()), inBytes(fromPitch),
               getPointer(op.getTarget()), inBytes(toPitch), inBytes(length),
               toI64(rows), tokenSlot});
  builder.setInsertionPointAfter(guarded);
  tokens[op.getToken()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
  return success();
}
