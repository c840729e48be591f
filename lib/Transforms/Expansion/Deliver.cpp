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

#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"

using namespace mlir;
using namespace mlir::commir;

/// How the results of a store move along a loop; nullopt if in two ways.
std::optional<ResultVia> NestSchedule::getResultVia(StoreOp store,
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
bool NestSchedule::goesInChunks(StoreOp store, LoopAttr loop) {
  std::optional<ResultVia> via = getResultVia(store, loop);
  return via == ResultVia::Fetch ||
         (via == ResultVia::Deliver && loop.getShift().getChunks() > 1);
}

/// Whether results leave along a shifted loop in chunks.
bool NestExpander::movesInChunks(LoopAttr loop) {
  return llvm::any_of(travellers[loop.getName()], [&](const auto &moved) {
    return goesInChunks(moved.store, loop);
  });
}

/// The loop along which all results of a store move in chunks; null if none.
LoopAttr NestSchedule::getChunkedLoop(StoreOp store) {
  for (LoopAttr loop : loops)
    if (travels(store, loop))
      return goesInChunks(store, loop) ? loop : LoopAttr();
  return {};
}

/// Whether parts along an axis follow one another in memory: what comes before
/// it is of one element.
bool NestSchedule::isOutermost(BufferType type, StringRef axis) {
  for (DimAttr dim : type.getDims()) {
    if (!dim.isConstant() && dim.getAxis() == axis)
      return true;
    if (dim.isConstant() ? dim.getValue() != 1
                         : program.getAxis(dim.getAxis()).getExtent() != 1)
      return false;
  }
  return false;
}

/// Whether what moves of the results of a store along a loop lies together in
/// the rank's memory for them: nothing but what is of one element comes before
/// what they are cut along.
bool NestSchedule::liesTogether(StoreOp store, LoopAttr loop) {
  return llvm::all_of(store.getBuffers(), [&](Value buffer) {
    auto type = cast<BufferType>(buffer.getType());
    return llvm::all_of(loops, [&](LoopAttr cut) {
      StringRef axis = cut.getAxes().front();
      bool slices = cut != loop && movesInSlices(store, cut, loop);
      bool chunks = cut == loop && getChunks(loop) != 1;
      return (!slices && !chunks) || isOutermost(type, axis);
    });
  });
}

/// Whether the first partial results to come make up what a store's results
/// start from: they lie as these do, no chunk is late, and no loop outside
/// comes back to add more.
bool NestExpander::arrivesInPlace(StoreOp store, LoopAttr loop) {
  if (loop != getChunkedLoop(store) || loop.getShift().getChunks() == 1)
    return false;
  StringRef axis = loop.getAxes().front();
  for (LoopAttr outer : loops) {
    if (outer == loop)
      break;
    if (!outer.isParallel() && outer.getParts() != 1 && !outer.isOver(axis) &&
        !movesInSlices(store, outer, loop))
      return false;
  }
  if (!isOneInterval(program.getAxis(axis)))
    return false;
  bool fetched = getResultVia(store, loop) == ResultVia::Fetch;
  return llvm::all_of(llvm::enumerate(store.getBuffers()),
                      [&](auto each) {
                        Type made = getElementType(memory.lookup(each.value()));
                        return getLinkType(loop, made) == made ||
                               isLogSumExp(store, each.index());
                      }) &&
         (fetched || liesTogether(store, loop)); // a message has no gaps
}

/// The first loop inside of a shifted one that moves parts of its parts between
/// the same ranks; null if there is none.
LoopAttr NestSchedule::findRingInside(LoopAttr loop) {
  StringAttr axis = loop.getAxes().front();
  SmallVector<StringAttr> levels = getRingLevels(loop);
  auto inside =
      llvm::drop_begin(llvm::make_range(llvm::find(loops, loop), loops.end()));
  for (LoopAttr inner : inside)
    if (inner.getShift() && inner.getParts() != 1 && inner.isOver(axis) &&
        llvm::any_of(getRingLevels(inner), [&](StringAttr level) {
          return llvm::is_contained(levels, level);
        }))
      return inner;
  return {};
}

/// Where chunk `number` waits that does not come to where the result is. Of two
/// ranks, each chunk has a place of its own; and so has what is merged at the
/// end, behind the own part.
Value NestExpander::getArrivalSlot(const ShiftedLoop &shifted,
                                   const Traveller &traveller, Value number) {
  if (traveller.waiting)
    return traveller.waitsAsItComes() ? add(number, constant(1)) : Value();
  return shifted.parts == 2 ? number : Value();
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
  for (const TravellingStore &moved : travellers[shifted.loop.getName()]) {
    bool arrives = direct && arrivesInPlace(moved.store, shifted.loop);
    auto start = [&](SmallVectorImpl<Value> &tokens,
                     SmallVectorImpl<Value> &opened) {
      for (const Traveller &traveller : moved.results) {
        Value made =
            traveller.outgoing ? traveller.outgoing : traveller.partial;
        Value coming =
            arrives ? getTotalTile(shifted, traveller, chunk)
                    : getChunkTile(shifted, traveller, traveller.incoming, rank,
                                   chunk,
                                   getArrivalSlot(shifted, traveller, number));
        if (moved.via == ResultVia::Deliver) {
          Value leaving =
              getChunkTile(shifted, traveller, made, part, chunk, slot);
          tokens.push_back(
              startExchange(shifted.level, leaving, to, coming, from, always));
          continue;
        }
        Value lease =
            LeaseOpenOp::create(builder, loc, LeaseType::get(nest.getContext()),
                                made, getTileSlot(traveller.tiles, slot),
                                builder.getArrayAttr(shifted.level));
        Value theirs =
            LeaseMemoryOp::create(builder, loc, made.getType(), lease, from);
        // What is lent is the tile, so that it has no slot.
        Value source =
            getTileAt(theirs, getPlace(shifted, traveller, rank,
                                       {chunk, getChunks(shifted.loop)}));
        tokens.push_back(
            PullStartOp::create(builder, loc, TokenType::get(nest.getContext()),
                                source, coming, lease, from, always));
        opened.push_back(lease);
        ++transfers;
      }
    };
    startEachTile(moved, tokens, opened, start);
  }
}

/// What came beside the result is merged into it.
void NestExpander::mergeDelivery(const ShiftedLoop &shifted, Value number,
                                 bool direct) {
  Value count = constant(shifted.loop.getShift().getChunks());
  Value chunk = arith::RemUIOp::create(builder, nest.getLoc(), number, count);
  Value rank = getRank(shifted.level);
  for (const TravellingStore &moved : travellers[shifted.loop.getName()]) {
    StoreOp store = moved.store;
    keepArrived(shifted, moved, add(number, constant(1)));
    if (store.getDeferred() || (direct && arrivesInPlace(store, shifted.loop)))
      continue;
    forEachTile(moved, [&] {
      SmallVector<Value> came, sums;
      for (const Traveller &traveller : moved.results) {
        Value tile =
            getChunkTile(shifted, traveller, traveller.incoming, rank, chunk,
                         getArrivalSlot(shifted, traveller, chunk));
        if (traveller.widened) {
          Value wide =
              getChunkTile(shifted, traveller, traveller.widened, rank, chunk);
          CopyOp::create(builder, nest.getLoc(), tile, wide);
          tile = wide;
        }
        came.push_back(tile);
        sums.push_back(getTotalTile(shifted, traveller, chunk));
      }
      merge(store, came, sums);
    });
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
  // Launches write what leaves, and merge into what has come.
  size_t inner = turns.size() + (chunks == 1 ? 1 : 2);
  for (const TravellingStore &moved : stores) {
    StoreOp store = moved.store;
    bool isWritten = writesStep(store, shifted.loop);
    auto getMade = [&](const Traveller &traveller) -> Departure {
      if (own && store.getDeferred())
        return {traveller.waiting, constant(0), inner, isWritten};
      if (own) {
        Departure total = getTotal(traveller);
        return {total.partial, total.slot, inner, /*isWritten=*/false};
      }
      return {traveller.partial, traveller.outgoing ? constant(0) : slot, inner,
              isWritten, traveller.tiles};
    };
    if (!isWritten && (!own || store.getDeferred()))
      forEachTile(moved, [&] {
        for (auto [i, traveller] : llvm::enumerate(moved.results)) {
          Departure made = getMade(traveller);
          fillWithIdentity(store, i,
                           getChunkTile(shifted, traveller, made.partial,
                                        step.part, chunk, made.slot));
        }
      });
    for (const Traveller &traveller : moved.results)
      departing[traveller.buffer].push_back(getMade(traveller));
  }
  LogicalResult result = emitStepBody(
      at, shifted, step,
      chunks == 1 ? std::nullopt : std::optional(Part{chunk, chunks}));
  for (const TravellingStore &moved : stores) {
    for (const Traveller &traveller : moved.results)
      departing[traveller.buffer].pop_back();
    if (!own)
      narrowChunk(shifted, moved, step.part, chunk, slot);
  }
  return result;
}

/// Rounds a chunk that was made, for it to leave.
void NestExpander::narrowChunk(const ShiftedLoop &shifted,
                               const TravellingStore &moved, Value part,
                               Value chunk, Value slot) {
  if (llvm::none_of(moved.results,
                    [](const Traveller &each) { return each.outgoing; }))
    return;
  forEachTile(moved, [&] {
    for (const Traveller &traveller : moved.results) {
      if (!traveller.outgoing)
        continue;
      Value narrow = getChunkTile(shifted, traveller, traveller.outgoing, part,
                                  chunk, slot);
      Value wide =
          getChunkTile(shifted, traveller, traveller.partial, part, chunk);
      CopyOp::create(builder, nest.getLoc(), wide, narrow);
    }
  });
}

LogicalResult NestExpander::emitChunks(size_t at, const ShiftedLoop &shifted) {
  LogicalResult result = shifted.parts == 2 ? emitChunksOfTwo(at, shifted)
                                            : emitChunksOfMany(at, shifted);
  for (const TravellingStore &moved : travellers[shifted.loop.getName()])
    if (StoreOp(moved.store).getDeferred())
      mergeArrived(shifted, moved);
  return result;
}

/// More ranks: one chunk moves while the next one is made.
LogicalResult NestExpander::emitChunksOfMany(size_t at,
                                             const ShiftedLoop &shifted) {
  Location loc = nest.getLoc();
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
    closeAll(opened);
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
