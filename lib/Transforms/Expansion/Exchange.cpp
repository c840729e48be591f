//===- Exchange.cpp - Rule R7 in slices: under the work on others ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What lives in one place outside of the loops and in another one inside is
// moved before and after them. Where the steps of the outermost loop overlap,
// each step moves its own slice: a rank reads what the next step needs out of
// its owners' shards, and what the last step made for it out of the slot where
// it was made, under a lease of just that. Its own share it reads in the same
// way: a device copies that where kernels leave it room, as one ends.
//
//   3 slices   read    in 0 | in 1        | in 2  out 0 |       out 1 | out 2
//              work         | 0           | 1           | 2           |
//
// One slice is worked on while another one comes or leaves: two slots of each.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Memory for slices of a buffer, as the loops work on them.
Value NestExpander::makeSlices(int64_t buffer, BufferType type, int64_t slots) {
  StringAttr axis = getExchangeLoop().getAxes().front();
  // What the loops in parallel make of the axis, too.
  int64_t count = getPartsIn(constant(0)).lookup(axis).count;
  return makeMemory(type, slots, dropCuts(getInside(buffer), axis.getValue()),
                    NamedAttribute(axis, builder.getI64IntegerAttr(count)));
}

/// Lets a buffer be exchanged slice by slice between two placements; false
/// where a rank holds all that it needs, or the buffer moves whole.
bool NestExpander::addExchange(int64_t buffer, PlacementAttr from,
                               PlacementAttr to, bool isMade,
                               SmallVectorImpl<SliceExchange> &exchanges) {
  LoopAttr loop = getExchangeLoop();
  BufferType type = program.getBufferType(buffer);
  if (!loop || !type.hasAxis(loop.getAxes().front()))
    return false;
  SmallVector<StringAttr> group = getSourceLevels(type, from, to);
  if (group.empty())
    return false;
  std::string why =
      isMade ? whyWhole(buffer, group, loop) : "a step leaves it unfinished";
  if (!why.empty()) {
    nest.emitRemark() << "'" << getName(buffer)
                      << "' is exchanged whole, not under the steps of '"
                      << loop.getName() << "' (R7): " << why;
    return false;
  }
  exchanges.push_back({program.getBody().getArgument(buffer), group,
                       makeSlices(buffer, type, /*slots=*/2)});
  return true;
}

/// An input comes slice by slice, where it can.
bool NestExpander::addExchangedInput(int64_t buffer, PlacementAttr inside) {
  PlacementAttr outside = program.getBinding(buffer).getBoundary();
  if (!addExchange(buffer, outside, inside, /*isMade=*/true, exchangedInputs))
    return false;
  SliceExchange &input = exchangedInputs.back();
  input.lease = lend(input.buffer, input.group);
  leases.push_back(input.lease);
  return true;
}

/// The parts that a rank works on in a step, of all axes.
llvm::StringMap<NestSchedule::Part> TileBuilder::getPartsIn(Value slice) {
  llvm::StringMap<Part> before = std::exchange(parts, {});
  LoopAttr slices = getExchangeLoop();
  for (LoopAttr loop : loops) {
    if (loop == slices)
      pushPart(loop.getAxes().front(), slice, loop.getParts());
    else if (loop.isParallel() && loop.getParts() != 1)
      pushRanks(loop);
  }
  return std::exchange(parts, std::move(before));
}

/// Where what the loops work on meets a shard: of each axis, the finer of the
/// two parts.
SmallVector<std::pair<StringRef, NestSchedule::Part>>
NestSchedule::getMeeting(const SliceExchange &exchange,
                         const llvm::StringMap<Part> &used,
                         const llvm::StringMap<Part> &owned) {
  SmallVector<std::pair<StringRef, Part>> at;
  for (DimAttr dim : cast<BufferType>(exchange.buffer.getType()).getDims()) {
    if (dim.isConstant())
      continue;
    Part inside = used.lookup(dim.getAxis());
    Part outside = owned.lookup(dim.getAxis());
    Part finer = inside.count >= outside.count ? inside : outside;
    if (finer.count != 1)
      at.emplace_back(dim.getAxis(), finer);
  }
  return at;
}

/// This rank's shards of a buffer outside of the loops.
llvm::StringMap<NestSchedule::Part>
NestExpander::getShards(const SliceExchange &exchange) {
  llvm::StringMap<Part> owned;
  int64_t number = cast<BlockArgument>(exchange.buffer).getArgNumber();
  for (CutAttr cut : program.getBinding(number).getBoundary().getCuts())
    owned[cut.getAxis()] =
        getPart(getFactors(mesh, cut), StringAttr(), Value(), cut.getAxis());
  return owned;
}

/// Calls `read` for each member of a group, the next ranks first and this one
/// last, with what the two have in common: what this rank uses of the member's
/// shards, or owns of what that one made.
void NestExpander::forEachSource(
    const SliceExchange &exchange, Value slice, bool isResult,
    function_ref<void(Value, ArrayRef<std::pair<StringRef, Part>>)> read) {
  Value own;
  int64_t members = 1;
  for (StringAttr level : exchange.group) {
    int64_t size = mesh.getLevelSize(level);
    own = own ? add(mul(own, size), getRank(level)) : getRank(level);
    members *= size;
  }
  llvm::StringMap<Part> used = getPartsIn(slice), owned = getShards(exchange);
  for (int64_t hop = 1; hop <= members; ++hop) {
    Value member =
        hop == members ? own : wrap(add(own, constant(hop - members)), members);
    asMember(exchange.group, member, [&] {
      (isResult ? used : owned) =
          isResult ? getPartsIn(slice) : getShards(exchange);
    });
    read(member, getMeeting(exchange, used, owned));
  }
}

/// Reads what a step needs of the inputs.
void NestExpander::startArrivals(Value slice, Value slot, Value when,
                                 SmallVectorImpl<Value> &tokens) {
  Location loc = nest.getLoc();
  for (const SliceExchange &input : exchangedInputs)
    forEachSource(input, slice, /*isResult=*/false, [&](Value member, auto at) {
      Value theirs = LeaseMemoryOp::create(builder, loc, input.buffer.getType(),
                                           input.lease, member);
      Value source = getTileAt(theirs, at);
      Value target = getTileAt(input.slots, at, slot);
      tokens.push_back(
          PullStartOp::create(builder, loc, TokenType::get(nest.getContext()),
                              source, target, input.lease, member, when));
      ++transfers;
    });
}

/// Reads what a step made of the results that this rank owns.
void NestExpander::startDepartures(Value slice, Value slot, Value when,
                                   SmallVectorImpl<Value> &tokens,
                                   SmallVectorImpl<Value> &opened) {
  Location loc = nest.getLoc();
  for (const SliceExchange &result : exchangedResults) {
    SmallVector<Attribute> group(result.group.begin(), result.group.end());
    Value lease =
        LeaseOpenOp::create(builder, loc, LeaseType::get(nest.getContext()),
                            result.slots, slot, builder.getArrayAttr(group));
    opened.push_back(lease);
    forEachSource(result, slice, /*isResult=*/true, [&](Value member, auto at) {
      Value theirs = LeaseMemoryOp::create(builder, loc, result.slots.getType(),
                                           lease, member);
      Value source = getTileAt(theirs, at);
      Value target = getTileAt(result.buffer, at);
      tokens.push_back(
          PullStartOp::create(builder, loc, TokenType::get(nest.getContext()),
                              source, target, lease, member, when));
      ++transfers;
    });
  }
}

/// A result leaves slice by slice, each after the step that makes it whole.
bool NestExpander::addExchangedResult(StoreOp store, size_t result) {
  Value buffer = store.getBuffers()[result];
  int64_t number = cast<BlockArgument>(buffer).getArgNumber();
  bool isMade = written.contains(store) && getReducedLevels(store).empty() &&
                store.getOnce().empty() && countPartials(buffer) == 1;
  if (!addExchange(number, getInside(number),
                   program.getBinding(number).getBoundary(), isMade,
                   exchangedResults))
    return false;
  BufferType wide = getWideType(store, result);
  if (!rounds(store, result) && wide != buffer.getType())
    exchangedResults.back().wide = makeSlices(number, wide, /*slots=*/1);
  memory[buffer] = buffer;
  return true;
}

/// Emits a loop whose steps overlap.
LogicalResult NestExpander::emitExchanges(size_t at) {
  Location loc = nest.getLoc();
  int64_t slices = loops[at].getParts();
  StringRef axis = loops[at].getAxes().front();
  Value zero = constant(0), count = constant(slices), one = constant(1);
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  SmallVector<Value> tokens, opened;
  startArrivals(zero, zero, always, tokens);
  waitForAll(tokens);

  auto steps = scf::ForOp::create(builder, loc, zero, count, one);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(steps.getBody());
    Value slice = steps.getInductionVar();
    auto slotOf = [&](Value number) -> Value {
      return arith::RemUIOp::create(builder, loc, number, constant(2));
    };
    auto differs = [&](Value number, int64_t from) -> Value {
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                   number, constant(from));
    };
    Value next = add(slice, one), slot = slotOf(slice), other = slotOf(next);
    startArrivals(wrap(add(slice, constant(1 - slices)), slices), other,
                  differs(next, slices), tokens);
    startDepartures(wrap(add(slice, constant(-1)), slices), other,
                    differs(slice, 0), tokens, opened);

    for (const SliceExchange &input : exchangedInputs)
      arrived[input.buffer].push_back({Value(), input.slots, slot});
    for (const SliceExchange &result : exchangedResults)
      departing[result.buffer].push_back(
          {result.wide ? result.wide : result.slots, result.wide ? zero : slot,
           turns.size() + 1, /*isWritten=*/true});
    LogicalResult body = emitTurn(at, slice);
    for (const SliceExchange &input : exchangedInputs)
      arrived[input.buffer].pop_back();
    for (const SliceExchange &result : exchangedResults) {
      departing[result.buffer].pop_back();
      if (!result.wide)
        continue;
      Part made = getPartsIn(slice).lookup(axis);
      Value wide = getTileAt(result.wide, {{axis, made}}, zero);
      Value narrow = getTileAt(result.slots, {{axis, made}}, slot);
      CopyOp::create(builder, loc, wide, narrow);
    }
    if (failed(body))
      return failure();
    waitForAll(tokens);
    for (Value lease : llvm::reverse(opened))
      LeaseCloseOp::create(builder, loc, lease);
    opened.clear();
  }
  startDepartures(constant(slices - 1), constant((slices - 1) % 2), always,
                  tokens, opened);
  waitForAll(tokens);
  for (Value lease : llvm::reverse(opened))
    LeaseCloseOp::create(builder, loc, lease);
  return success();
}
