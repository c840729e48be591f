//===- Defer.cpp - Partial results that wait for one merge ----------------===//
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
// Where partial results are of the result's type, one of them waits where the
// result is, and the others are merged into it.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"

using namespace mlir;
using namespace mlir::commir;

/// How many partial results of an element of an output this rank makes.
int64_t NestSchedule::countPartials(Value buffer) {
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
bool NestSchedule::comesInPieces(StoreOp store, size_t result) {
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
bool NestSchedule::rounds(StoreOp store, size_t result) {
  Value buffer = store.getBuffers()[result];
  Type type = getElementType(buffer);
  Type wide = getWideType(store, result).getElementType();
  if (!store.getOnce().empty() || !getReducedLevels(store).empty() ||
      !isRoundable(wide, type))
    return false;
  if (LoopAttr loop = getChunkedLoop(store); loop && !store.getDeferred())
    return addsRounded(store, result, loop);
  if (llvm::any_of(loops,
                   [&](LoopAttr loop) { return travels(store, loop); })) {
    LoopAttr round = getOnlyRound(store);
    return round && (!isDelivered(buffer, round) || store.getDeferred());
  }
  return written.contains(store) && countPartials(buffer) == 1 &&
         !comesInPieces(store, result) && canRound(store, result) &&
         wide.isF32();
}

/// The type of a result that one kernel makes whole. What enters once does so
/// before the result is rounded.
Type NestSchedule::getMadeType(StoreOp store, size_t result) {
  Type type = getElementType(store.getBuffers()[result]);
  Type wide = getWideType(store, result).getElementType();
  return store.getOnce().empty() && isRoundable(wide, type) ? type : wide;
}

Value NestExpander::makeResult(StoreOp store, size_t result,
                               PlacementAttr placement) {
  Value buffer = store.getBuffers()[result];
  int64_t number = cast<BlockArgument>(buffer).getArgNumber();
  BufferType made = withElementType(cast<BufferType>(buffer.getType()),
                                    getMadeType(store, result));
  if (made == buffer.getType() &&
      isSamePlacement(program, placement,
                      program.getBinding(number).getBoundary()))
    return buffer;
  return makeMemory(made, 1, placement);
}

/// The type in which partial results wait: that of their sums, unless the
/// schedule names another and the launches can write it.
FailureOr<Type> NestSchedule::getWaitingType(StoreOp store, size_t result) {
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
  Waiting held{{}, countPartials(buffer)};
  bool fits = written.contains(store) && getReducedLevels(store).empty();
  for (size_t i = 0; i < store.getBuffers().size(); ++i) {
    FailureOr<Type> waits = getWaitingType(store, i);
    if (failed(waits))
      return failure();
    fits &= *waits == getMadeType(store, i);
  }
  if (fits) {
    findHome(store, result, held);
    --held.count;
  }
  int64_t count = held.count;
  Value slots = held.slots = makeMemory(type, count, placement);
  waiting[buffer] = held;
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

/// Where partial result `number` waits.
Value NestExpander::getWaitingTile(Value buffer, Value number) {
  const Waiting &held = waiting[buffer];
  if (held.home < 0)
    return getTile(held.slots, number);
  Location loc = nest.getLoc();
  auto compare = [&](arith::CmpIPredicate predicate, int64_t than) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, number,
                                 constant(than));
  };
  // Those after the one at home are one slot ahead; nothing is before slot 0.
  Value isHome = compare(arith::CmpIPredicate::eq, held.home);
  Value isAhead =
      compare(arith::CmpIPredicate::uge, std::max<int64_t>(held.home, 1));
  Value before = arith::SubIOp::create(builder, loc, number, constant(1));
  Value slot = arith::SelectOp::create(builder, loc, isAhead, before, number);
  Value home = getTile(memory[buffer]), waits = getTile(held.slots, slot);
  return arith::SelectOp::create(builder, loc, isHome, home, waits);
}

/// Merges what waits of a store's results.
void NestExpander::mergeWaiting(StoreOp store) {
  SmallVector<Value> stacks, sums;
  Waiting any;
  for (Value buffer : store.getBuffers())
    if (auto held = waiting.find(buffer); held != waiting.end()) {
      any = held->second;
      stacks.push_back(getTileAt(any.slots, {}, Value(), any.count));
      sums.push_back(getTileAt(memory[buffer], {}));
    }
  if (stacks.empty())
    return;
  for (LaunchOp merge :
       mergeAll(store, stacks, sums, /*overwrites=*/any.home < 0))
    if (any.leavesOut)
      leaveOut(store, any, merge);
}

/// Puts what a link rounded on its way, and is merged later, to what waits.
void NestExpander::keepArrived(const ShiftedLoop &shifted,
                               const TravellingStore &moved, Value slot) {
  Value rank = getRank(shifted.level);
  for (const Traveller &traveller : moved.results)
    if (traveller.waiting && !traveller.waitsAsItComes())
      CopyOp::create(
          builder, nest.getLoc(),
          getTravelTile(shifted, traveller, traveller.incoming, rank),
          getTravelTile(shifted, traveller, traveller.waiting, rank, slot));
}

/// Merges what waits of a deferred store's results, the own part among it.
void NestExpander::mergeArrived(const ShiftedLoop &shifted,
                                const TravellingStore &moved) {
  SmallVector<Value> stacks, totals;
  for (const Traveller &traveller : moved.results) {
    stacks.push_back(getTravelTile(shifted, traveller, traveller.waiting,
                                   getRank(shifted.level), Value(),
                                   shifted.steps));
    totals.push_back(getTotalTile(shifted, traveller));
  }
  mergeAll(moved.store, stacks, totals,
           /*overwrites=*/getOnlyRound(moved.store) == shifted.loop);
}
