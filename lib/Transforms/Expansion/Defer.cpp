//===- Defer.cpp - Partial results that wait for one merge
//---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a schedule defers a merge, each launch of a rank writes a slot of its
// own, and one kernel merges the slots when all are made. It writes the result
// in its own type: so does a launch that makes a result all at once.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"

using namespace mlir;
using namespace mlir::commir;

/// How many partial results of an element of an output this rank makes.
int64_t NestExpander::countPartials(Value buffer) {
  int64_t count = 1;
  for (LoopAttr loop : loops) {
    if (loop.getParts() == 1 || (loop.isParallel() && !loop.getShift()) ||
        cast<BufferType>(buffer.getType()).hasAxis(loop.getAxes().front()))
      continue;
    count *= loop.getShift() ? describeShift(loop).steps * getChunks(loop)
                             : loop.getParts();
  }
  return count;
}

/// Whether a launch may run once for each piece of an axis that an output
/// lacks, and merge each into the result of the others.
bool NestExpander::comesInPieces(StoreOp store, size_t result) {
  auto type = cast<BufferType>(store.getBuffers()[result].getType());
  if (joinsPieces(store.getTiles()[result].getDefiningOp<KernelOp>()))
    return false;
  return llvm::any_of(loops, [&](LoopAttr loop) {
    return llvm::any_of(loop.getAxes(), [&](StringAttr axis) {
      return !type.hasAxis(axis) &&
             getPieces(program.getAxis(axis), nest.getParts(axis)) > 1;
    });
  });
}

/// Whether whole results can be rounded from the type that they are summed in.
static bool isRoundable(Type wide, Type type) {
  return wide == type || !wide.isF64() || type.isF32();
}

/// Whether a launch writes a result in its own type: it makes all of it at
/// once. So does what ends a travel, or the merge of what was delivered.
bool NestExpander::rounds(StoreOp store, size_t result) {
  Value buffer = store.getBuffers()[result];
  Type type = getElementType(buffer);
  Type wide = getWideType(store, result).getElementType();
  if (!store.getOnce().empty() || !getReducedLevels(store).empty() ||
      !isRoundable(wide, type))
    return false;
  if (llvm::any_of(loops,
                   [&](LoopAttr loop) { return travels(store, loop); })) {
    LoopAttr round = getOnlyRound(store);
    return round && (!isDelivered(buffer, round) || store.getDeferred());
  }
  return written.contains(store) && countPartials(buffer) == 1 &&
         !comesInPieces(store, result) && canRound(store, result) &&
         wide.isF32();
}

Value NestExpander::makeResult(StoreOp store, size_t result,
                               PlacementAttr placement) {
  Value buffer = store.getBuffers()[result];
  int64_t number = cast<BlockArgument>(buffer).getArgNumber();
  auto type = cast<BufferType>(buffer.getType());
  BufferType wide = getWideType(store, result);
  // What enters once does so before the result is rounded.
  bool isWhole = store.getOnce().empty() &&
                 isRoundable(wide.getElementType(), type.getElementType());
  if ((isWhole || wide == type) &&
      isSamePlacement(program, placement,
                      program.getBinding(number).getBoundary()))
    return buffer;
  return makeMemory(isWhole ? type : wide, 1, placement);
}

/// The type in which partial results wait: that of their sums, unless the
/// schedule names another and the launches can write it.
FailureOr<Type> NestExpander::getWaitingType(StoreOp store, size_t result) {
  Type wide = getWideType(store, result).getElementType();
  Type asked = store.getPartial().value_or(wide);
  auto made = cast<OpResult>(store.getTiles()[result]);
  StringRef kernel = cast<KernelOp>(made.getOwner()).getKernel();
  bool isStatistic =
      KernelSignature::makesSoftmax(kernel) && made.getResultNumber() == 1;
  if (asked == wide || isStatistic)
    return wide;
  Value buffer = store.getBuffers()[result];
  StringRef name = getName(cast<BlockArgument>(buffer).getArgNumber());
  auto refuse = [&](const Twine &why) {
    return store.emitOpError()
           << "lets partial results of '" << name << "' wait in " << asked
           << ", but " << why << "; let them wait in " << wide;
  };
  if (asked.getIntOrFloatBitWidth() >= wide.getIntOrFloatBitWidth() ||
      !isRoundable(wide, asked))
    return refuse("that is no rounding of what they are summed in");
  if (!canRound(store, result))
    return refuse("kernel '" + kernel + "' cannot round them");
  if (!written.contains(store) || comesInPieces(store, result))
    return refuse("several launches merge into one of them");
  return asked;
}

LogicalResult NestExpander::startWaiting(StoreOp store, size_t result) {
  Value buffer = store.getBuffers()[result];
  FailureOr<Type> element = getWaitingType(store, result);
  if (failed(element))
    return failure();
  PlacementAttr placement = getPartialPlacement(
      store, getInside(cast<BlockArgument>(buffer).getArgNumber()));
  auto type =
      BufferType::get(nest.getContext(),
                      cast<BufferType>(buffer.getType()).getDims(), *element);
  int64_t count = countPartials(buffer);
  Value slots = makeMemory(type, count, placement);
  waiting[buffer] = {slots, count};
  memory[buffer] = getReducedLevels(store).empty()
                       ? makeResult(store, result, placement)
                       : makeMemory(getWideType(store, result), 1, placement);
  if (written.contains(store))
    return success();
  Value zero = constant(0), end = constant(count), one = constant(1);
  auto loop = scf::ForOp::create(builder, nest.getLoc(), zero, end, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  fillWithIdentity(store, result, getTileAt(slots, {}, loop.getInductionVar()));
  return success();
}
