//===- DeliverPair.cpp - Rule R6 in chunks, of two ranks ------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of two ranks, all chunks for the other one are made before any of the own
// part: Deliver.cpp has them in order.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Lets the launches of chunks run two at a time, each chunk's in the lane in
/// which it is made for the other rank: they write memory of their own, and the
/// own ones wait for what came. The blocks of one fill the device while those
/// of another end.
static void useTwoLanes(Block *block, Operation *before, Operation *end,
                        int64_t chunks) {
  SmallVector<LaunchOp> launches;
  Operation *op = before ? before->getNextNode() : &block->front();
  for (; op != end; op = op->getNextNode()) {
    auto launch = dyn_cast<LaunchOp>(op);
    // What a kernel works in is one for all its launches.
    if (launch && launch.getScratch())
      return;
    if (launch)
      launches.push_back(launch);
    else if (isa<CopyOp, FillOp, AccumulateOp>(op) || op->getNumRegions() != 0)
      return;
  }
  // One for each chunk of either part.
  if (int64_t(launches.size()) != 2 * chunks)
    return;
  Builder builder(block->getParentOp()->getContext());
  for (auto [number, launch] : llvm::enumerate(launches))
    launch->setAttr(kLane, builder.getI64IntegerAttr(number % chunks % 2));
}

/// Two ranks: all that leaves is made at once, and moves as it is made.
LogicalResult NestExpander::emitChunksOfTwo(size_t at,
                                            const ShiftedLoop &shifted) {
  int64_t chunks = shifted.loop.getShift().getChunks();
  SmallVector<SmallVector<Value>, 0> tokens(chunks);
  Block *block = builder.getInsertionBlock();
  auto start = builder.getInsertionPoint();
  Operation *before = start == block->begin() ? nullptr : &*std::prev(start);
  SmallVector<Value> opened;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Value number = constant(chunk);
    if (failed(emitChunk(at, shifted, number, /*own=*/false)))
      return failure();
    startDelivery(shifted, number, /*direct=*/true, tokens[chunk], opened);
  }
  const auto &stores = travellers[shifted.loop.getName()];
  bool areInPlace = llvm::all_of(stores, [&](const TravellingStore &moved) {
    return arrivesInPlace(moved.store, shifted.loop);
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (areInPlace)
      waitForAll(tokens[chunk]);
    if (failed(emitChunk(at, shifted, constant(chunks + chunk), /*own=*/true)))
      return failure();
    waitForAll(tokens[chunk]);
    mergeDelivery(shifted, constant(chunk), /*direct=*/true);
  }
  if (areInPlace && block == nest->getBlock())
    useTwoLanes(block, before, nest, chunks);
  closeAll(opened);
  return success();
}
