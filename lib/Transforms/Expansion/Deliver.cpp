//===- Deliver.cpp - Rule R6: partial results in chunks, or fetched -------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shifted loop of n steps in k chunks makes n*k chunks of partial results, in
// order: chunk u is chunk u mod k of the part of step u / k. Each leaves while
// the next one is made: its owner receives it (deliver), or reads it out of the
// staging where it was made, under a lease of just that chunk (fetch).
//
// The own part comes last. What the first step of the others made is where its
// result starts, so that it need not be filled, and the own part's launches
// merge into what has come: nothing is left to merge afterwards.
//
//   n = 3, k = 2, rank 0  makes  C1'0 | C1'1 | C2'0 | C2'1 | C0 0 += | C0 1 +=
//                         moves       | C1'0 | C1'1 | C2'0 | C2'1    |
//
// Of two ranks, each chunk has a place to leave from, so that none waits for
// another; the own chunks wait for one each.
//
//   n = 2, k = 2, rank 0  makes  C1'0 | C1'1 | C0 0 += | C0 1 +=
//                         moves       | C1'0 ...| C1'1 ...
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"

using namespace mlir;
using namespace mlir::commir;

/// How the results of a store move along a loop; nullopt if in two ways.
std::optional<ResultVia> NestExpander::getResultVia(StoreOp store,
                                                    LoopAttr loop) {
  ShiftAttr shift = loop.getShift();
  std::optional<ResultVia> found;
  for (Value buffer : store.getBuffers()) {
    StringRef name = getName(cast<BlockArgument>(buffer).getArgNumber());
    ResultVia via = shift.getResults();
    if (DictionaryAttr each = shift.getVia())
      if (auto word = each.getAs<StringAttr>(name))
        via = *symbolizeResultVia(word);
    if (found && *found != via)
      return std::nullopt;
    found = via;
  }
  return found;
}

/// Whether this file expands what a store moves along a loop.
bool NestExpander::goesInChunks(StoreOp store, LoopAttr loop) {
  return getResultVia(store, loop) == ResultVia::Fetch ||
         loop.getShift().getChunks() > 1;
}

/// The loop along which all results of a store move in chunks; null if none.
LoopAttr NestExpander::getChunkedLoop(StoreOp store) {
  for (LoopAttr loop : loops)
    if (travels(store, loop))
      return goesInChunks(store, loop) ? loop : LoopAttr();
  return {};
}

/// Whether parts along an axis follow one another in memory: what comes before
/// it is of one element.
bool NestExpander::isOutermost(BufferType type, StringRef axis) {
  for (DimAttr dim : type.getDims()) {
    if (!dim.isConstant() && dim.getAxis() == axis)
      return true;
    if (dim.isConstant() ? dim.getValue() != 1
                         : program.getAxis(dim.getAxis()).getExtent() != 1)
      return false;
  }
  return false;
}

/// Whether the first partial results to come make up what a store's results
/// start from: they lie as these do, no chunk is late, and no loop outside
/// comes back to add more.
bool NestExpander::arrivesInPlace(StoreOp store) {
  LoopAttr loop = getChunkedLoop(store);
  if (!loop || loop.getShift().getChunks() == 1)
    return false;
  for (LoopAttr outer : loops) {
    if (outer == loop)
      break;
    if (!outer.isParallel() && outer.getParts() != 1)
      return false;
  }
  StringRef axis = loop.getAxes().front();
  if (!isOneInterval(program.getAxis(axis)))
    return false;
  bool fetched = getResultVia(store, loop) == ResultVia::Fetch;
  return llvm::all_of(llvm::enumerate(store.getBuffers()), [&](auto each) {
    auto type = cast<BufferType>(each.value().getType());
    Type made = getElementType(memory.lookup(each.value()));
    // A message fills memory without gaps.
    return (getLinkType(loop, made) == made ||
            isLogSumExp(store, each.index())) &&
           (fetched || isOutermost(type, axis));
  });
}

/// What this version does not move in chunks.
LogicalResult NestExpander::checkChunks(LoopAttr loop) {
  ArrayRef<TravellingStore> stores = travellers[loop.getName()];
  auto inChunks = [&](const TravellingStore &moved) {
    return goesInChunks(moved.store, loop);
  };
  if (llvm::none_of(stores, inChunks))
    return success();
  for (const TravellingStore &moved : stores) {
    if (StoreOp(moved.store).getDeferred())
      return needsRule("R6 in chunks of a deferred merge",
                       "what comes in chunks is merged as it comes; do not "
                       "defer it, or let it be delivered in one chunk");
    for (const Traveller &traveller : moved.results)
      if (llvm::any_of(traveller.factors, llvm::IsaPred<IntegerAttr>))
        return needsRule("R6 in chunks of a strided placement",
                         "a part is in pieces");
    for (LoopAttr other : loops)
      if (other != loop && travels(moved.store, other))
        return needsRule("R6 in chunks along nested loops",
                         "what an inner loop moves is not whole yet");
  }
  ShiftAttr shift = loop.getShift();
  int64_t n = loop.getParts(), offset = shift.getOffset();
  if (llvm::any_of(stores, [](const TravellingStore &moved) {
        return moved.via == ResultVia::Travel;
      }))
    return needsRule("R6 in chunks by travel",
                     "results come in chunks by deliver or fetch");
  if (!llvm::all_of(stores, inChunks))
    return needsRule("R6 by deliver and fetch",
                     "the results of one loop move in two ways");
  if ((shift.getDirection() * (n - 1) + offset) % n != 0)
    return needsRule(("R6 in chunks with offset " + Twine(offset)).str(),
                     "the own part must come last: give offset " +
                         Twine(shift.getDirection()));
  for (LoopAttr other : loops)
    if (other != loop && other.isOver(loop.getAxes().front()) &&
        other.getParts() > 1 && shift.getChunks() > 1)
      return needsRule("R6 in chunks of tiles",
                       "a chunk is not whole tiles of the other loops over '" +
                           loop.getAxes().front().getValue() + "'");
  return success();
}

/// One chunk of a part, in memory that holds it or its part.
Value NestExpander::getChunkTile(const ShiftedLoop &shifted,
                                 const Traveller &traveller, Value memory,
                                 Value part, Value chunk, Value slot) {
  int64_t count = shifted.loop.getShift().getChunks();
  Part at = getPart(traveller.factors, shifted.level, part, shifted.axis);
  at.index = add(mul(at.index, count), chunk);
  at.count *= count;
  return getTileAt(memory, {{shifted.axis, at}}, slot);
}

/// Where a chunk waits that does not come to where the result is: of two ranks,
/// each chunk has a place of its own.
Value NestExpander::getArrivalSlot(const ShiftedLoop &shifted, Value chunk) {
  return shifted.parts == 2 ? chunk : Value();
}

/// Chunk `number` leaves for its owner, and what was made of this rank's own
/// part at the same time comes: to where the result is, or to wait there.
void NestExpander::startDelivery(const ShiftedLoop &shifted, Value number,
                                 bool direct, SmallVectorImpl<Value> &tokens,
                                 SmallVectorImpl<Value> &opened) {
  Location loc = nest.getLoc();
  Value count = constant(shifted.loop.getShift().getChunks());
  Value step = arith::DivUIOp::create(builder, loc, number, count);
  Value chunk = arith::RemUIOp::create(builder, loc, number, count);
  Value slot = arith::RemUIOp::create(builder, loc, number,
                                      constant(countChunkSlots(shifted.loop)));
  Value part = getPartAt(shifted, step), rank = getRank(shifted.level);
  auto [to, from] = getDelivery(shifted, part);
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value arrival = getArrivalSlot(shifted, chunk);
  for (const TravellingStore &moved : travellers[shifted.loop.getName()]) {
    for (const Traveller &traveller : moved.results) {
      Value made = traveller.outgoing ? traveller.outgoing : traveller.partial;
      bool arrives = direct && arrivesInPlace(moved.store);
      Value target = arrives ? memory[traveller.buffer] : traveller.incoming;
      Value coming = getChunkTile(shifted, traveller, target, rank, chunk,
                                  arrives ? Value() : arrival);
      if (moved.via == ResultVia::Deliver) {
        Value leaving =
            getChunkTile(shifted, traveller, made, part, chunk, slot);
        tokens.push_back(
            startExchange(shifted.level, leaving, to, coming, from, always));
        continue;
      }
      Value lease =
          LeaseOpenOp::create(builder, loc, LeaseType::get(nest.getContext()),
                              made, slot, builder.getArrayAttr(shifted.level));
      Value theirs =
          LeaseMemoryOp::create(builder, loc, made.getType(), lease, from);
      Value source = getChunkTile(shifted, traveller, theirs, rank, chunk);
      tokens.push_back(
          PullStartOp::create(builder, loc, TokenType::get(nest.getContext()),
                              source, coming, lease, from, always));
      opened.push_back(lease);
      ++transfers;
    }
  }
}

/// What came beside the result is merged into it.
void NestExpander::mergeDelivery(const ShiftedLoop &shifted, Value number,
                                 bool direct) {
  Value count = constant(shifted.loop.getShift().getChunks());
  Value chunk = arith::RemUIOp::create(builder, nest.getLoc(), number, count);
  Value rank = getRank(shifted.level), slot = getArrivalSlot(shifted, chunk);
  for (const TravellingStore &moved : travellers[shifted.loop.getName()]) {
    if (direct && arrivesInPlace(moved.store))
      continue;
    SmallVector<Value> came, sums;
    for (const Traveller &traveller : moved.results) {
      Value tile = getChunkTile(shifted, traveller, traveller.incoming, rank,
                                chunk, slot);
      if (traveller.widened) {
        Value wide =
            getChunkTile(shifted, traveller, traveller.widened, rank, chunk);
        CopyOp::create(builder, nest.getLoc(), tile, wide);
        tile = wide;
      }
      came.push_back(tile);
      sums.push_back(getChunkTile(shifted, traveller, memory[traveller.buffer],
                                  rank, chunk));
    }
    merge(moved.store, came, sums);
  }
}

/// Makes chunk `number`: of another's part from nothing, of the own part into
/// what has come.
LogicalResult NestExpander::emitChunk(size_t at, const ShiftedLoop &shifted,
                                      Value number, bool own) {
  Location loc = nest.getLoc();
  int64_t chunks = shifted.loop.getShift().getChunks();
  Value count = constant(chunks);
  RingStep step =
      getStep(shifted, arith::DivUIOp::create(builder, loc, number, count));
  if (own)
    step.part = getRank(shifted.level);
  Value chunk = arith::RemUIOp::create(builder, loc, number, count);
  Value slot = arith::RemUIOp::create(builder, loc, number,
                                      constant(countChunkSlots(shifted.loop)));
  auto &stores = travellers[shifted.loop.getName()];
  auto forEach = [&](auto body) {
    for (const TravellingStore &moved : stores)
      for (auto [i, traveller] : llvm::enumerate(moved.results))
        body(moved.store, i, traveller);
  };
  auto tileOf = [&](const Traveller &traveller) {
    return getChunkTile(shifted, traveller, traveller.partial, step.part, chunk,
                        traveller.outgoing ? Value() : slot);
  };
  // Launches write what leaves, and merge into what has come.
  size_t inner = turns.size() + (chunks == 1 ? 1 : 2);
  forEach([&](StoreOp store, size_t i, const Traveller &traveller) {
    Departure made{memory[traveller.buffer], Value(), inner,
                   /*isWritten=*/false};
    if (!own)
      made = {traveller.partial, traveller.outgoing ? constant(0) : slot, inner,
              writesStep(store, shifted.loop)};
    if (!own && !made.isWritten)
      fillWithIdentity(store, i, tileOf(traveller));
    departing[traveller.buffer].push_back(made);
  });
  LogicalResult result = emitStepBody(
      at, shifted, step,
      chunks == 1 ? std::nullopt : std::optional(Part{chunk, chunks}));
  forEach([&](StoreOp, size_t, const Traveller &traveller) {
    departing[traveller.buffer].pop_back();
    if (own || !traveller.outgoing)
      return;
    Value narrow = getChunkTile(shifted, traveller, traveller.outgoing,
                                step.part, chunk, slot);
    CopyOp::create(builder, loc, tileOf(traveller), narrow);
  });
  return result;
}

/// Lets the launches of chunks run two at a time, each chunk's in the lane in
/// which it is made for the other rank: they write memory of their own, and the
/// own ones wait for what came. The blocks of one fill the device while those
/// of another end.
static void useTwoLanes(Block *block, Operation *before, Operation *end,
                        int64_t chunks) {
  SmallVector<LaunchOp> launches;
  Operation *op = before ? before->getNextNode() : &block->front();
  for (; op != end; op = op->getNextNode()) {
    if (auto launch = dyn_cast<LaunchOp>(op))
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
    return arrivesInPlace(moved.store);
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
  for (Value lease : llvm::reverse(opened))
    LeaseCloseOp::create(builder, nest.getLoc(), lease);
  return success();
}

LogicalResult NestExpander::emitChunks(size_t at, const ShiftedLoop &shifted) {
  Location loc = nest.getLoc();
  if (shifted.steps != shifted.parts)
    return needsRule("R6 in chunks behind a window",
                     "some parts of the results have fewer partial results");
  if (shifted.parts == 2)
    return emitChunksOfTwo(at, shifted);
  int64_t chunks = shifted.loop.getShift().getChunks();
  int64_t others = (shifted.parts - 1) * chunks;
  // While the chunks of numbers [first, last) are made, those before them move.
  auto emitRun = [&](int64_t first, int64_t last, bool own, bool moves) {
    if (first >= last)
      return success();
    OpBuilder::InsertionGuard guard(builder);
    Value number = constant(first);
    if (last - first > 1) {
      auto run =
          scf::ForOp::create(builder, loc, number, constant(last), constant(1));
      builder.setInsertionPointToStart(run.getBody());
      number = run.getInductionVar();
    }
    bool direct = first <= chunks;
    SmallVector<Value> tokens, opened;
    Value before;
    if (moves) {
      before = arith::SubIOp::create(builder, loc, number, constant(1));
      startDelivery(shifted, before, direct, tokens, opened);
    }
    LogicalResult result = emitChunk(at, shifted, number, own);
    waitForAll(tokens);
    for (Value lease : llvm::reverse(opened))
      LeaseCloseOp::create(builder, loc, lease);
    if (moves)
      mergeDelivery(shifted, before, direct);
    return result;
  };
  // The first step's chunks come while those up to the second's first are made.
  int64_t second = std::min(chunks + 1, others);
  return failure(failed(emitRun(0, 1, /*own=*/false, /*moves=*/false)) ||
                 failed(emitRun(1, second, /*own=*/false, /*moves=*/true)) ||
                 failed(emitRun(second, others, /*own=*/false,
                                /*moves=*/true)) ||
                 failed(emitRun(others, others + 1, /*own=*/true,
                                /*moves=*/true)) ||
                 failed(emitRun(others + 1, others + chunks, /*own=*/true,
                                /*moves=*/false)));
}
