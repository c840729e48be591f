//===- Rings.h - Inputs that come one part a step ---------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_RINGS_H
#define LIB_TRANSFORMS_EXPANSION_RINGS_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// A buffer whose parts come to a rank one a step of a loop.
struct Ring {
  Value buffer;                        // as the program names it
  Value own;                           // the memory of this rank's shard
  SmallVector<Attribute> factors = {}; // how the shifted axis is cut
  StringAttr level = {}; // the one that this loop moves along; null: broadcast
  SmallVector<StringAttr> group = {}; // who pull, or get what is broadcast;
                                      // empty: parts rotate
  /// The parts at hand: those being read (of two steps, where these overlap),
  /// one arriving, and of those that rotate the ones between that the neighbour
  /// has yet to receive.
  Value slots = {};
  int64_t numSlots = 2;
  int64_t chunks = 1;  // of each part, in a slot of its own
  Value outgoing = {}; // where an own part is put together to leave; null: it
                       // lies together
  /// Of an axis whose parts lie in pieces within the rank's shard, the first of
  /// the slots, behind the others, that hold the rank's own; 0: they are worked
  /// on where they lie.
  int64_t firstOwnSlot = 0;
  Value lease = {}; // by which parts are pulled
  /// Other axes that loops around the ring run over, and how many parts they
  /// have made of them by then: only the part at hand moves.
  SmallVector<std::pair<StringAttr, int64_t>> slice = {};
  Value packed = {}; // the rank's own of what moves; null: its shard
  /// The part at hand in the buffer's own type, of each lane; none: it moves
  /// so.
  SmallVector<Value, 2> wide = {};
  /// Whether the owner of each part sends it to all, itself included.
  bool isBroadcast() const { return !level; }
  bool isAlwaysInSlot() const { return isBroadcast() || firstOwnSlot; }
};

/// A part is the rank's own shard at one step, and in a slot at the others; or
/// always in a slot, if `isOwn` is null.
struct Arrival {
  Value isOwn;
  Value slots;
  Value slot;
};

/// A buffer that ranks exchange slice by slice, along a loop whose steps
/// overlap.
struct SliceExchange {
  Value buffer;                  // as the program names it
  SmallVector<StringAttr> group; // whose ranks read each other's
  Value slots = {};              // of two slices, as the loops work on them
  Value lease = {};              // by which an input's shards are read
  Value wide = {}; // where a result's slice is made, if it is rounded then
};

/// What a rank holds of a buffer around some loop.
struct Held {
  Value buffer, memory, packed;
  SmallVector<Arrival> arrived;
};

/// A loop along which parts move, while it is emitted. One that is not shifted
/// is, by no rank.
struct ShiftedLoop {
  LoopAttr loop;
  StringAttr axis;
  StringAttr level; // of its only term, where it has but one
  int64_t parts, direction, offset;
  Value phase;       // the part that the rank starts with, before it is wrapped
  int64_t steps = 0; // as many of the parts, in order, as some rank needs
  /// The number of its first pull, where no step starts what the next one
  /// needs: all pulls of all slices are counted, and come ahead.
  Value firstPull = {};
};

/// One step of it.
struct RingStep {
  Value step, part;
  Value next, nextPart;
  Value more; // whether there is a next step; null where it is known not to be
  /// Where a traveller has what this step makes of it, and what the step before
  /// made, which leaves meanwhile.
  Value madeSlot, leavingSlot;
  int64_t lane = 0; // where its launches run, of those of steps that overlap
};

/// A hop of a ring: the part that leaves, the slot it is in where it is not
/// the rank's own, to whom it goes, and from whom another comes.
struct Passing {
  Value part, slot, to, from;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_EXPANSION_RINGS_H
