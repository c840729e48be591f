//===- TravelInChunks.cpp - Rule R6: accumulators travel in chunks --------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The accumulator of a part travels as in Travel.cpp, but each chunk leaves as
// soon as it is made and merged with what came of it, while the next one is
// made. It arrives all but one chunk before the next rank makes its own, and
// waits there in a slot of its own.
//
//   k = 2, rank r     step 0       step 1        step 2
//   makes             A0    A1     B0+=  B1+=    C0+=  C1+=
//   sends r - d             A0     A1    B0      B1    C0 ...
//   receives                B0     B1    C0      C1            of rank r + d
//
// After the last step a chunk goes home, or is there.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// A chunk that was made in `step` leaves: for the rank that works on its part
/// next, or after the last step for its owner. Where it went in this rank's
/// next step, or in its own part, another comes.
void NestExpander::moveChunk(const ShiftedLoop &shifted, Value step,
                             Value chunk, Value when,
                             SmallVectorImpl<Value> &tokens) {
  Location loc = nest.getLoc();
  int64_t n = shifted.parts, d = shifted.direction;
  int64_t closing = getClosing(shifted);
  Value rank = getRank(shifted.level);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       step, constant(shifted.steps - 1));
  auto choose = [&](Value atEnd, Value before) -> Value {
    return arith::SelectOp::create(builder, loc, isLast, atEnd, before);
  };
  Value to = wrap(add(rank, constant(-d)), n);
  Value from = wrap(add(rank, constant(d)), n);
  Value part = getPartAt(shifted, step);
  Value coming = getPartAt(shifted, add(step, constant(1)));
  if (closing == 0) {
    when = arith::AndIOp::create(
        builder, loc, when,
        arith::XOrIOp::create(
            builder, loc, isLast,
            arith::ConstantIntOp::create(builder, loc, 1, 1)));
  } else {
    to = choose(wrap(add(rank, constant(closing)), n), to);
    from = choose(wrap(add(rank, constant(-closing)), n), from);
    coming = choose(rank, coming);
  }
  int64_t chunks = shifted.loop.getShift().getChunks();
  Value slot = arith::RemUIOp::create(
      builder, loc, add(mul(step, chunks), chunk), constant(2));
  SmallVector<Value> none; // no leases
  for (const TravellingStore &moved : travellers[shifted.loop.getName()])
    startEachTile(
        moved, tokens, none, [&](SmallVectorImpl<Value> &tokens, auto &) {
          for (const Traveller &traveller : moved.results) {
            Value made =
                traveller.outgoing ? traveller.outgoing : traveller.partial;
            Value leaving =
                getChunkTile(shifted, traveller, made, part, chunk, slot);
            Value target = getChunkTile(shifted, traveller, traveller.incoming,
                                        coming, chunk, chunk);
            tokens.push_back(
                startExchange(shifted.level, leaving, to, target, from, when));
          }
        });
}

/// The chunk before this one leaves while this one is made.
void NestExpander::startChunkTravel(const ShiftedLoop &shifted,
                                    const RingStep &step, Part chunk,
                                    SmallVectorImpl<Value> &tokens) {
  auto &stores = travellers[shifted.loop.getName()];
  if (stores.empty())
    return;
  Location loc = nest.getLoc();
  Value zero = constant(0), one = constant(1), count = constant(chunk.count);
  Value number = add(mul(step.step, chunk.count), chunk.index);
  Value started = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        number, zero);
  // Before the first there is none.
  Value before = arith::MaxSIOp::create(
      builder, loc, arith::SubIOp::create(builder, loc, number, one), zero);
  moveChunk(shifted, arith::DivUIOp::create(builder, loc, before, count),
            arith::RemUIOp::create(builder, loc, before, count), started,
            tokens);
  Value slot = arith::RemUIOp::create(builder, loc, number, constant(2));
  for (TravellingStore &moved : stores) {
    bool isWritten = writesStep(moved.store, shifted.loop);
    auto getSlot = [&](const Traveller &traveller) {
      return traveller.outgoing ? zero : slot;
    };
    if (!isWritten)
      forEachTile(moved, [&] {
        for (auto [i, traveller] : llvm::enumerate(moved.results))
          fillWithIdentity(moved.store, i,
                           getChunkTile(shifted, traveller, traveller.partial,
                                        step.part, chunk.index,
                                        getSlot(traveller)));
      });
    for (const Traveller &traveller : moved.results)
      departing[traveller.buffer].push_back(
          {traveller.partial, getSlot(traveller), turns.size() + 2, isWritten,
           traveller.tiles});
  }
}

/// A chunk of this rank's own part has come home: it is the result, or one of
/// several sums of it.
void NestExpander::bringChunkHome(
    const ShiftedLoop &shifted, Value chunk,
    function_ref<Value(const Traveller &)> getTile) {
  for (const TravellingStore &moved : travellers[shifted.loop.getName()])
    forEachTile(moved, [&] {
      SmallVector<Value> sums, totals;
      for (const Traveller &traveller : moved.results) {
        sums.push_back(getTile(traveller));
        totals.push_back(getTotalTile(shifted, traveller, chunk));
      }
      if (getOnlyRound(moved.store) != shifted.loop)
        return merge(moved.store, sums, totals);
      for (auto [sum, total] : llvm::zip_equal(sums, totals))
        CopyOp::create(builder, nest.getLoc(), sum, total);
    });
}

/// A chunk that came, in the type that it is summed in.
Value NestExpander::getArrivedChunk(const ShiftedLoop &shifted,
                                    const Traveller &traveller, Value part,
                                    Value chunk) {
  Value came =
      getChunkTile(shifted, traveller, traveller.incoming, part, chunk, chunk);
  if (!traveller.widened)
    return came;
  Value wide = getChunkTile(shifted, traveller, traveller.widened, part, chunk);
  CopyOp::create(builder, nest.getLoc(), came, wide);
  return wide;
}

/// What came of a chunk before it was made is merged into it, and what came
/// home stays.
void NestExpander::mergeChunkTravel(const ShiftedLoop &shifted,
                                    const RingStep &step, Part chunk) {
  auto &stores = travellers[shifted.loop.getName()];
  if (stores.empty())
    return;
  Location loc = nest.getLoc();
  Value zero = constant(0), rank = getRank(shifted.level);
  Value slot = arith::RemUIOp::create(
      builder, loc, add(mul(step.step, chunk.count), chunk.index), constant(2));
  auto getMade = [&](const Traveller &traveller) {
    return getChunkTile(shifted, traveller, traveller.partial, step.part,
                        chunk.index, traveller.outgoing ? zero : slot);
  };
  for (const TravellingStore &moved : stores)
    for (const Traveller &traveller : moved.results)
      departing[traveller.buffer].pop_back();
  auto isAfter = [&](Value number) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, number,
                                 zero);
  };
  if (shifted.steps > 1)
    whenTrue(isAfter(step.step), [&] {
      for (const TravellingStore &moved : stores)
        forEachTile(moved, [&] {
          SmallVector<Value> came, sums;
          for (const Traveller &traveller : moved.results) {
            came.push_back(
                getArrivedChunk(shifted, traveller, step.part, chunk.index));
            sums.push_back(getMade(traveller));
          }
          merge(moved.store, came, sums);
        });
    });
  for (const TravellingStore &moved : stores)
    narrowChunk(shifted, moved, step.part, chunk.index, slot);
  Value isLast =
      arith::XOrIOp::create(builder, loc, step.more,
                            arith::ConstantIntOp::create(builder, loc, 1, 1));
  if (getClosing(shifted) == 0) {
    whenTrue(isLast, [&] { bringChunkHome(shifted, chunk.index, getMade); });
    return;
  }
  // The chunk before this one took the closing hop meanwhile.
  whenTrue(arith::AndIOp::create(builder, loc, isLast, isAfter(chunk.index)),
           [&] {
             Value before =
                 arith::SubIOp::create(builder, loc, chunk.index, constant(1));
             bringChunkHome(shifted, before, [&](const Traveller &traveller) {
               return getArrivedChunk(shifted, traveller, rank, before);
             });
           });
}

/// The last chunk takes the closing hop, if there is one.
void NestExpander::closeChunkTravel(const ShiftedLoop &shifted) {
  if (travellers[shifted.loop.getName()].empty() || getClosing(shifted) == 0)
    return;
  Value step = constant(shifted.steps - 1), rank = getRank(shifted.level);
  Value chunk = constant(shifted.loop.getShift().getChunks() - 1);
  Value always = arith::ConstantIntOp::create(builder, nest.getLoc(), 1, 1);
  SmallVector<Value> tokens;
  moveChunk(shifted, step, chunk, always, tokens);
  waitForAll(tokens);
  bringChunkHome(shifted, chunk, [&](const Traveller &traveller) {
    return getArrivedChunk(shifted, traveller, rank, chunk);
  });
}
