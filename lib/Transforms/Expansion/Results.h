//===- Results.h - Where results are made and go ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_RESULTS_H
#define LIB_TRANSFORMS_EXPANSION_RESULTS_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// A result whose partial sums go from rank to rank along a shifted loop.
struct Traveller {
  Value buffer;                   // as the program names it
  Value partial;                  // two parts: one made, one on its way out
  Value incoming;                 // the part that arrives
  SmallVector<Attribute> factors; // how the shifted axis is cut
  /// Other axes, with how they are cut, along which outer loops make the
  /// results move: the part that these are at.
  SmallVector<std::pair<StringAttr, SmallVector<Attribute>>> outer;
  /// Other axes of which but a slice moves, the part that loops around are at.
  SmallVector<StringAttr> slice;
  /// The loops inside whose parts a chunk of a part has a tile of each, so that
  /// it does not lie together: each tile is in a slot of its own.
  SmallVector<LoopAttr> tiles = {};
  /// Where a narrower link rounds what leaves, and gives what came its own type
  /// back; null where it need not.
  Value outgoing = {}, widened = {};
  /// Where partial results wait for one merge, the own part first; null where
  /// it is not deferred. They arrive there, unless a link rounds them.
  Value waiting = {};
  bool waitsAsItComes() const { return waiting && waiting == incoming; }
};

/// The results of one store that move along a shifted loop.
struct TravellingStore {
  StoreOp store;
  SmallVector<Traveller, 0> results;
  ResultVia via;
  /// Whether a launch of the last step, which makes the rank's own part, puts
  /// it where it stays.
  bool staysHome = false;
  /// Whether partial results go straight to the owners, rather than from rank
  /// to rank.
  bool isDelivered() const { return via != ResultVia::Travel; }
};

/// Where a step of a shifted loop makes its part of a result, and how many
/// loops in sequence are around that step.
struct Departure {
  Value partial, slot;
  size_t turns;
  bool isWritten; // by the launches of the step, all of it
  /// The loops whose parts have a slot each, of what leaves in chunks.
  SmallVector<LoopAttr> tiles = {};
  /// At the last step, where it is not null: the memory that it makes the
  /// rank's own part in, and whether that holds the sum of others.
  Value isLast = {}, home = {}, homeSlot = {};
  bool addsAtHome = false;
};

/// Partial results of an output that are merged once, at the end.
struct Waiting {
  Value slots;
  int64_t count;
  /// The number of the one that waits where the result is, and so has no slot;
  /// -1 if none does.
  int64_t home = -1;
  /// Whether launches and the merge leave out the pieces that see nothing.
  bool leavesOut = false;
};

/// Where a launch puts one of its results.
struct LaunchTarget {
  Value tile;
  bool overwrites = false;  // when it is the first of all that merge there
  SmallVector<Value> turns; // these are 0 then
  Value unless = {};        // and this does not hold
  bool leavesOut = false;   // what sees nothing stays as it is
};

/// Where a result is merged, and how that is cut.
struct Accumulator {
  Value memory;
  PlacementAttr placement;
  /// Levels that share it out later: it holds the parts of all their ranks, in
  /// a slot each.
  SmallVector<StringAttr> pending = {};
};

/// A result that the ranks of a level share out along an axis.
struct Share {
  Value partial, sum;            // what there is of all shares; this rank's
  SmallVector<StringAttr> slots; // the ranks whose parts `partial` holds apart
  StringRef axis;
  int64_t stride = 1; // how many parts the next rank's is after this one's
  /// The axes of which memory holds a part at a time, with how they are cut,
  /// and how it is cut along others.
  SmallVector<std::pair<StringRef, SmallVector<Attribute>>> cuts;
  SmallVector<NamedAttribute> parts;
  PlacementAttr others;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_EXPANSION_RESULTS_H
