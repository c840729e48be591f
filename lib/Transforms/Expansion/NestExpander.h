//===- NestExpander.h - Loops to what every rank does -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H
#define LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H

#include "dialect/CommIR/CommIR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::commir {

/// The element type of a buffer or a tile.
Type getElementType(Value value);

/// A buffer that moves around the ring of a shifted loop.
struct Ring {
  Value buffer;                   // as the program names it
  Value own;                      // the memory of this rank's shard
  Value slots;                    // two parts: one being read, one arriving
  SmallVector<StringAttr> levels; // what the shifted axis is cut over
};

/// A part is the rank's own shard at one step, and in a slot at the others.
struct Arrival {
  Value isOwn;
  Value slots;
  Value slot;
};

/// A result whose partial sums go from rank to rank along a shifted loop.
struct Traveller {
  Value buffer;                   // as the program names it
  Value partial;                  // two parts: one made, one on its way out
  Value incoming;                 // the part that arrives
  SmallVector<StringAttr> levels; // what the shifted axis is cut over
};

/// Where a result is merged, and how that is cut.
struct Accumulator {
  Value memory;
  PlacementAttr placement;
};

/// Expands one nest, outside in.
class NestExpander {
public:
  NestExpander(ProgramOp program, ForOp nest, Pass::Statistic &transfers)
      : program(program), mesh(program.getMeshOp()), nest(nest),
        loops(nest.getLoops().getAsRange<LoopAttr>()),
        builder(nest.getContext()), transfers(transfers) {}

  LogicalResult expand();

private:
  /// Which part of an axis an iteration works on: `index` of `count`.
  struct Part {
    Value index;
    int64_t count = 1;
  };

  LogicalResult checkStores();
  LogicalResult checkDivided(StoreOp store);
  bool isReducedOver(StoreOp store, StringAttr axis);
  LogicalResult checkOutput(StoreOp store, int64_t buffer);
  LogicalResult checkShift(LoopAttr loop);
  LogicalResult placeInput(int64_t buffer);
  LogicalResult gather(int64_t buffer, CutAttr cut);
  LogicalResult addToRing(int64_t buffer, CutAttr cut, LoopAttr loop);
  bool travels(StoreOp store, LoopAttr loop);
  LogicalResult addTravellers(LoopAttr loop);
  Value getTravelTile(const Traveller &traveller, StringRef axis,
                      StringAttr level, Value memory, Value part,
                      Value slot = {});
  FailureOr<Value> reshard(StringRef name, Value source, PlacementAttr from,
                           PlacementAttr to, Value target = {});
  LogicalResult startOutputs();
  LogicalResult finishOutputs();
  LogicalResult mergeOnce(StoreOp store);
  void fillWithIdentity(StoreOp store, size_t result, Value tile);
  SmallVector<StringAttr> getReducedLevels(StoreOp store);
  PlacementAttr getPartialPlacement(StoreOp store, PlacementAttr inside);
  LogicalResult reduceOverRanks(StoreOp store);
  void allReduce(StoreOp store, StringAttr level,
                 MutableArrayRef<Accumulator> results);
  void reduceScatter(StoreOp store, StringAttr level, ArrayRef<StringRef> axes,
                     MutableArrayRef<Accumulator> results);
  void merge(StoreOp store, ArrayRef<Value> from, ArrayRef<Value> to);
  LogicalResult emitLoops(size_t at);
  LogicalResult emitRing(size_t at, StringAttr level);
  LogicalResult emitBody();
  LogicalResult emitLaunch(KernelOp kernel);
  FailureOr<Value> makeScratch(KernelOp kernel);
  Value getPosition(DimAttr dim);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, nest.getLoc(), value);
  }
  Value add(Value a, Value b) {
    return arith::AddIOp::create(builder, nest.getLoc(), a, b);
  }
  Value mul(Value a, int64_t b) {
    return arith::MulIOp::create(builder, nest.getLoc(), a, constant(b));
  }
  /// a mod n for a that may be negative but not below -n.
  Value wrap(Value a, int64_t n) {
    Value count = constant(n);
    return arith::RemUIOp::create(builder, nest.getLoc(), add(a, count), count);
  }
  Value getRank(StringAttr level);
  SmallVector<StringAttr> getRingLevels(LoopAttr loop);
  bool isParallelOver(StringRef axis, StringRef level);
  bool isShiftedOver(StringRef axis, StringRef level);
  bool followsLoops(CutAttr cut);

  /// Adds index `value` of `count` as the innermost cut of an axis so far.
  void pushPart(StringRef axis, Value value, int64_t count) {
    Part &part = parts[axis];
    part.index = part.index ? add(mul(part.index, count), value) : value;
    part.count *= count;
  }

  /// The tile of `memory` that the current iteration works on; only what is cut
  /// by now is restricted.
  Value getTile(Value memory, Value slot = {});
  /// The tile of `memory` at these parts of these axes, and all that it holds
  /// of the others.
  Value getTileAt(Value memory, ArrayRef<std::pair<StringRef, Part>> at,
                  Value slot = {});
  /// The part of this rank in a cut over `levels`, with `member` in place of
  /// its group rank on `level`. Inside the rings over `axis`, the parts that
  /// the outer ones are at stand in place of its ranks on their levels.
  Part getPart(ArrayRef<StringAttr> levels, StringAttr level, Value member,
               StringRef axis = {});
  /// The tile that outer rings brought of a buffer; its own where there are
  /// none.
  Value getHeldTile(const Ring &ring, std::pair<StringRef, Part> at);
  int64_t getRanks(ArrayRef<StringAttr> levels);

  /// Local memory for parts of a buffer.
  Value makeMemory(BufferType type, int64_t slots, PlacementAttr placement,
                   ArrayRef<NamedAttribute> parts = {});
  /// A placement without the cuts of some axes.
  PlacementAttr dropCuts(PlacementAttr placement, ArrayRef<StringRef> axes);

  /// For each other member of the level's group, in turn: to whom this rank
  /// sends, and from whom it receives meanwhile.
  void forEachHop(StringAttr level, function_ref<void(Value, Value)> body);
  /// Sends one tile, receives another, and waits for both.
  void exchange(StringAttr level, Value source, Value to, Value target,
                Value from);

  InFlightDiagnostic needsRule(StringRef rule, const Twine &why) {
    return nest.emitOpError()
           << "needs rule " << rule << " (" << why << "), which this version "
           << "does not lower yet";
  }
  StringRef getName(int64_t buffer) {
    return program.getBinding(buffer).getName();
  }

  ProgramOp program;
  MeshOp mesh;
  ForOp nest;
  SmallVector<LoopAttr> loops;
  OpBuilder builder;
  Pass::Statistic &transfers;
  llvm::StringMap<Part> parts;
  llvm::StringMap<Value> ranks;
  /// What all launches of a kernel work in, one after the other.
  DenseMap<Operation *, Value> scratches;
  /// Where the tile of each input is read, and each output merged.
  DenseMap<Value, Value> memory;
  /// Where the steps of shifted loops, outermost first, find their part of a
  /// buffer.
  DenseMap<Value, SmallVector<Arrival>> arrived;
  /// Which part the ring over an axis on a level is at.
  llvm::DenseMap<std::pair<StringRef, StringAttr>, Value> visiting;
  /// The buffers in the ring of each shifted loop.
  llvm::StringMap<SmallVector<Ring>> rings;
  /// The results that travel along each shifted loop, by store.
  llvm::StringMap<SmallVector<std::pair<StoreOp, SmallVector<Traveller>>>>
      travellers;
  /// Where a step of a shifted loop makes its part of a result.
  DenseMap<Value, std::pair<Value, Value>> departing;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H
