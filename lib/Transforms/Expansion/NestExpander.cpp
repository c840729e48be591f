//===- NestExpander.cpp - The loops of a nest -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"
#include "dialect/CommIR/LoopRules.h"

using namespace mlir;
using namespace mlir::commir;

Value NestExpander::getHeldTile(const Ring &ring,
                                ArrayRef<std::pair<StringRef, Part>> at) {
  Value slice = packed.lookup(ring.buffer);
  Value tile = getTileAt(slice ? slice : ring.own, at);
  if (auto outer = arrived.find(ring.buffer); outer != arrived.end())
    for (const Arrival &arrival : outer->second) {
      Value came = getTileAt(arrival.slots, at, arrival.slot);
      tile = arith::SelectOp::create(builder, nest.getLoc(), arrival.isOwn,
                                     tile, came);
    }
  return tile;
}

LogicalResult NestExpander::expand() {
  builder.setInsertionPoint(nest);
  cutPanels();
  // What runs in parallel is a coordinate of this rank, known from the start.
  for (LoopAttr loop : loops) {
    if (!loop.isParallel())
      continue;
    auto levels = *getLevelsOfAxes(program, mesh, loop);
    for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels)) {
      (void)axis;
      for (StringAttr level : own)
        getRank(level);
    }
  }
  if (failed(checkStores()))
    return failure();
  for (LoopAttr loop : loops)
    if (loop.getShift() && loop.isParallel() && loop.getParts() != 1)
      return needsRule("R3 of a parallel loop",
                       "the parts of '" + loop.getName() +
                           "' are spread already; tile it first, and shift the "
                           "loop that is not parallel");
  alignPairs();
  if (failed(settleRings()) || failed(placeOutputs()))
    return failure();
  findChunks();
  if (failed(checkCuts()))
    return failure();
  llvm::SetVector<int64_t> inputs;
  for (LoadOp load : nest.getBody().getOps<LoadOp>())
    inputs.insert(cast<BlockArgument>(load.getBuffer()).getArgNumber());
  for (int64_t buffer : inputs)
    if (failed(placeInput(buffer)))
      return failure();
  if (failed(startOutputs()))
    return failure();
  for (LoopAttr loop : loops) {
    if (failed(addTravellers(loop)))
      return failure();
    remarkInTurn(loop);
  }
  if (failed(emitLoops(0)))
    return failure();
  builder.setInsertionPoint(nest);
  for (Value lease : llvm::reverse(leases))
    LeaseCloseOp::create(builder, nest.getLoc(), lease);
  if (failed(finishOutputs()))
    return failure();
  nest.erase();
  return success();
}

/// A parallel loop is at the part of this rank.
void TileBuilder::pushRanks(LoopAttr loop) {
  auto levels = *getLevelsOfAxes(program, mesh, loop);
  for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels))
    for (StringAttr level : own)
      pushPart(axis, getRank(level), mesh.getLevelSize(level));
  for (StringAttr axis : loop.getAxes())
    cutInChunks(loop, axis);
}

LogicalResult NestExpander::emitLoops(size_t at) {
  if (at == loops.size())
    return emitBody();
  LoopAttr loop = loops[at];
  if (loop.getParts() == 1)
    return emitLoops(at + 1);
  if (loop.getShift() || !rings[loop.getName()].empty())
    return emitRing(at);
  if (loop.isParallel()) {
    llvm::StringMap<Part> before = parts;
    pushRanks(loop);
    LogicalResult result = emitLoops(at + 1);
    parts = before;
    return result;
  }
  bool exchanges = !exchangedInputs.empty() || !exchangedResults.empty();
  if (exchanges && loop == getExchangeLoop())
    return emitExchanges(at);
  if (std::optional<size_t> ring = findRingOfSlices(at))
    return emitSlices(at, *ring);

  Value zero = constant(0), count = constant(loop.getParts());
  auto sequence =
      scf::ForOp::create(builder, nest.getLoc(), zero, count, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(sequence.getBody());
  return emitTurn(at, sequence.getInductionVar());
}

/// One iteration of a loop in sequence.
LogicalResult NestExpander::emitTurn(size_t at, Value index) {
  LoopAttr loop = loops[at];
  StringRef axis = loop.getAxes().front();
  Part before = parts.lookup(axis);
  pushPart(axis, index, loop.getParts());
  visited[axis].push_back({loop, index});
  turns.push_back({axis, index, loop.getParts()});
  LogicalResult result = emitLoops(at + 1);
  turns.pop_back();
  visited[axis].pop_back();
  parts[axis] = before;
  return result;
}

LogicalResult NestExpander::emitBody() {
  for (KernelOp kernel : nest.getBody().getOps<KernelOp>())
    if (!entersOnce(kernel) && failed(emitLaunch(kernel)))
      return failure();
  return success();
}
