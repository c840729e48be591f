//===- NestExpander.h - Loops to what every rank does -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H
#define LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H

#include "lib/Transforms/Expansion/TileBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::commir {

/// Inputs in other placements than the boundary's, for all nests of a program.
using MovedInputs = DenseMap<std::pair<Value, PlacementAttr>, Value>;

/// Expands one nest, outside in.
class NestExpander : TileBuilder {
public:
  NestExpander(ProgramOp program, ForOp nest, MovedInputs &movedInputs,
               Pass::Statistic &transfers)
      : TileBuilder(program, nest, transfers), movedInputs(movedInputs) {}

  LogicalResult expand();

private:
  LogicalResult checkTouched(int64_t buffer);
  LogicalResult placeOutputs();
  LogicalResult placeInput(int64_t buffer);
  LogicalResult gather(int64_t buffer, CutAttr cut);
  void addPanels(int64_t buffer, CutAttr cut, LoopAttr loop);
  Value startBroadcast(const ShiftedLoop &shifted, const Ring &member,
                       Value panel, Value slot, Value when);
  LogicalResult addToRings(int64_t buffer, const Movement &movement);
  void addRing(LoopAttr loop, bool arrives, Ring ring, BufferType wide);
  Value makeRingMemory(const Ring &ring, StringAttr axis, BufferType type,
                       int64_t slots, int64_t parts);
  Value makeSlices(int64_t buffer, BufferType type, int64_t slots);
  bool addExchange(int64_t buffer, PlacementAttr from, PlacementAttr to,
                   bool isMade, SmallVectorImpl<SliceExchange> &exchanges);
  bool addExchangedInput(int64_t buffer, PlacementAttr inside);
  bool addExchangedResult(StoreOp store, size_t result);
  llvm::StringMap<Part> getShards(const SliceExchange &exchange);
  void forEachSource(
      const SliceExchange &exchange, Value slice, bool isResult,
      function_ref<void(Value, ArrayRef<std::pair<StringRef, Part>>)> read);
  void startArrivals(Value slice, Value slot, Value when,
                     SmallVectorImpl<Value> &tokens);
  void startDepartures(Value slice, Value slot, Value when,
                       SmallVectorImpl<Value> &tokens,
                       SmallVectorImpl<Value> &opened);
  LogicalResult emitExchanges(size_t at);
  LogicalResult emitTurn(size_t at, Value index);
  SmallVector<std::pair<StringRef, Part>> getMoved(const Ring &member,
                                                   StringAttr axis, Part part);
  SmallVector<Held, 0> packSlices(const ShiftedLoop &shifted);
  void returnSlices(const ShiftedLoop &shifted, MutableArrayRef<Held> before);
  LogicalResult addTravellers(LoopAttr loop);
  Value getTravelTile(const ShiftedLoop &shifted, const Traveller &traveller,
                      Value memory, Value part, Value slot = {},
                      int64_t stack = 0);
  Value reshard(Value source, PlacementAttr to, Value target = {});
  Value reshardInput(Value input, PlacementAttr to);
  LogicalResult startOutputs();
  LogicalResult finishOutputs();
  LogicalResult mergeOnce(StoreOp store);
  void fillWithIdentity(StoreOp store, size_t result, Value tile);
  void reduceOverRanks(StoreOp store);
  void allReduce(StoreOp store, StringAttr level,
                 MutableArrayRef<Accumulator> results);
  Share makeShare(StoreOp store, size_t result, StringAttr level,
                  Accumulator &accumulator);
  Value getShareTile(const Share &share, StringAttr level, Value memory,
                     Value member, Value slot = {}, int64_t stack = 0);
  Value getPartialShare(const Share &share, StringAttr level, Value member);
  void reduceScatter(StoreOp store, StringAttr level,
                     MutableArrayRef<Accumulator> results);
  void allReduceTogether(StoreOp store, StringAttr level,
                         ArrayRef<Accumulator> results);
  void reduceScatterTogether(StoreOp store, StringAttr level,
                             MutableArrayRef<Accumulator> results);
  void merge(StoreOp store, ArrayRef<Value> from, ArrayRef<Value> to);
  SmallVector<LaunchOp> mergeAll(StoreOp store, ArrayRef<Value> stacks,
                                 ArrayRef<Value> to, bool overwrites = true);
  /// Where the whole result of a store goes, in its own type if it can.
  Value makeResult(StoreOp store, size_t result, PlacementAttr placement);
  void forEachTile(const TravellingStore &moved, function_ref<void()> body);
  void startEachTile(
      const TravellingStore &moved, SmallVectorImpl<Value> &tokens,
      SmallVectorImpl<Value> &opened,
      function_ref<void(SmallVectorImpl<Value> &, SmallVectorImpl<Value> &)>
          start);
  LogicalResult emitLoops(size_t at);
  std::optional<size_t> findRingOfSlices(size_t at);
  LogicalResult emitSlices(size_t at, size_t ring);
  LogicalResult emitRing(size_t at);
  LogicalResult emitSteps(size_t at, const ShiftedLoop &shifted);
  RingStep getStep(const ShiftedLoop &shifted, Value number);
  Value getPull(const ShiftedLoop &shifted, Value step);
  LogicalResult emitStep(size_t at, const ShiftedLoop &shifted,
                         const RingStep &step);
  LogicalResult emitStepBody(size_t at, const ShiftedLoop &shifted,
                             const RingStep &step, std::optional<Part> chunk);
  void remarkInTurn(LoopAttr loop);
  LogicalResult emitOverlap(size_t at, const ShiftedLoop &shifted);
  /// The part that step `step` works on.
  Value getPartAt(const ShiftedLoop &shifted, Value step);
  Value isOwnPart(const ShiftedLoop &shifted, const Ring &member, Value part);
  Value isForeignPart(const ShiftedLoop &shifted, const Ring &member,
                      Value part);
  Part getPartOf(const ShiftedLoop &shifted, const Ring &member, Value part,
                 std::optional<Part> chunk = std::nullopt);
  Value getOwner(const ShiftedLoop &shifted, const Ring &member, Value part);
  Value getSlot(const Ring &member, Value number, std::optional<Part> chunk);
  Value getOwnSlot(const ShiftedLoop &shifted, const Ring &member, Value part,
                   std::optional<Part> chunk);
  void keepOwnParts(const ShiftedLoop &shifted, const Ring &member);
  Value getHeldSlot(const ShiftedLoop &shifted, const Ring &member,
                    const RingStep &step, std::optional<Part> chunk);
  Value getSkew(const ShiftedLoop &shifted, const Ring &member);
  void openRing(const ShiftedLoop &shifted, const Ring &member,
                SmallVectorImpl<Value> &tokens);
  Value startArrival(const ShiftedLoop &shifted, const Ring &member,
                     const RingStep &step, std::optional<Part> chunk);
  Passing getPassing(const ShiftedLoop &shifted, const Ring &member,
                     const RingStep &step, std::optional<Part> chunk);
  Passing getOpening(const ShiftedLoop &shifted, const Ring &member,
                     Value ahead);
  Value getLeavingTile(const ShiftedLoop &shifted, const Ring &member,
                       const Passing &passing, Value when,
                       std::optional<Part> chunk);
  Value startRotation(const ShiftedLoop &shifted, const Ring &member,
                      const Passing &passing, Value part, Value slot,
                      Value when, std::optional<Part> chunk);
  Value startPull(const ShiftedLoop &shifted, const Ring &member, Value part,
                  Value slot, Value when, std::optional<Part> chunk);
  std::pair<Value, Value> getDelivery(const ShiftedLoop &shifted, Value part);
  SmallVector<std::pair<StringRef, Part>> getPlace(const ShiftedLoop &shifted,
                                                   const Traveller &traveller,
                                                   Value part, Part chunk);
  Departure getTotal(const Traveller &traveller);
  Value getTotalTile(const ShiftedLoop &shifted, const Traveller &traveller,
                     Value chunk = {});
  Value getArrivalTile(const ShiftedLoop &shifted, const TravellingStore &moved,
                       const Traveller &traveller, const RingStep &step);
  void startTravel(const ShiftedLoop &shifted, const RingStep &step,
                   SmallVectorImpl<Value> &tokens);
  void mergeTravel(const ShiftedLoop &shifted, const RingStep &step);
  void closeTravel(const ShiftedLoop &shifted);
  void keepArrived(const ShiftedLoop &shifted, const TravellingStore &moved,
                   Value slot);
  void mergeArrived(const ShiftedLoop &shifted, const TravellingStore &moved);
  void narrowDepartures(const ShiftedLoop &shifted, const RingStep &step);
  void startChunkTravel(const ShiftedLoop &shifted, const RingStep &step,
                        Part chunk, SmallVectorImpl<Value> &tokens);
  void mergeChunkTravel(const ShiftedLoop &shifted, const RingStep &step,
                        Part chunk);
  void closeChunkTravel(const ShiftedLoop &shifted);
  void moveChunk(const ShiftedLoop &shifted, Value step, Value chunk,
                 Value when, SmallVectorImpl<Value> &tokens);
  Value getArrivedChunk(const ShiftedLoop &shifted, const Traveller &traveller,
                        Value part, Value chunk);
  void bringChunkHome(const ShiftedLoop &shifted, Value chunk,
                      function_ref<Value(const Traveller &)> getTile);
  bool movesInChunks(LoopAttr loop);
  bool arrivesInPlace(StoreOp store, LoopAttr loop);
  LogicalResult emitChunks(size_t at, const ShiftedLoop &shifted);
  LogicalResult emitChunksOfTwo(size_t at, const ShiftedLoop &shifted);
  LogicalResult emitChunksOfMany(size_t at, const ShiftedLoop &shifted);
  LogicalResult emitChunk(size_t at, const ShiftedLoop &shifted, Value number,
                          bool own);
  Value getChunkTile(const ShiftedLoop &shifted, const Traveller &traveller,
                     Value memory, Value part, Value chunk, Value slot = {});
  Value getArrivalSlot(const ShiftedLoop &shifted, const Traveller &traveller,
                       Value number);
  void narrowChunk(const ShiftedLoop &shifted, const TravellingStore &moved,
                   Value part, Value chunk, Value slot);
  void startDelivery(const ShiftedLoop &shifted, Value number, bool direct,
                     SmallVectorImpl<Value> &tokens,
                     SmallVectorImpl<Value> &opened);
  void mergeDelivery(const ShiftedLoop &shifted, Value number, bool direct);
  LogicalResult narrowRing(ArrayRef<Move> moves, PlacementAttr inside,
                           Ring &ring);
  void widenArrival(const ShiftedLoop &shifted, const Ring &member,
                    const RingStep &step, std::optional<Part> chunk);
  void makeTravelMemory(StoreOp store, LoopAttr loop, BufferType type,
                        PlacementAttr others, ArrayRef<NamedAttribute> parts,
                        Traveller &traveller);
  Value narrowTile(const ShiftedLoop &shifted, const Traveller &traveller,
                   Value tile, Value part);
  Value widenTile(const ShiftedLoop &shifted, const Traveller &traveller,
                  Value tile, Value part);
  LogicalResult emitBody();
  LogicalResult emitLaunch(KernelOp kernel);
  void findHome(StoreOp store, size_t result, Waiting &held);
  Value getPhase(const ShiftedLoop &shifted);
  void leaveOut(StoreOp store, const Waiting &held, LaunchOp merge);
  LogicalResult startWaiting(StoreOp store, size_t result);
  Value getWaitingTile(Value buffer, Value number);
  void mergeWaiting(StoreOp store);
  LaunchTarget getTarget(KernelOp kernel, OpOperand &use);
  void emitVariants(ArrayRef<LaunchTarget> targets,
                    function_ref<void(ArrayRef<bool>)> emit);
  FailureOr<Value> makeScratch(KernelOp kernel);
  Value makePartial(StoreOp store, size_t result);
  void mergeApart(StoreOp store, ArrayRef<Value> targets,
                  function_ref<void(ArrayRef<Value>, ArrayRef<bool>)> launch);

  /// The tile that outer rings brought of a buffer; its own where there are
  /// none.
  Value getHeldTile(const Ring &ring, ArrayRef<std::pair<StringRef, Part>> at);

  MovedInputs &movedInputs;
  /// The outputs whose partial results of this rank are merged at the end.
  DenseMap<Value, Waiting> waiting;
  /// What all launches of a kernel work in, one after the other.
  DenseMap<Operation *, Value> scratches;
  /// Where the tile of each input is read, and each output merged.
  DenseMap<Value, Value> memory;
  /// Where the steps of shifted loops, outermost first, find their part of a
  /// buffer.
  DenseMap<Value, SmallVector<Arrival>> arrived;
  /// The slices of buffers that are at hand, of those that move in slices.
  DenseMap<Value, Value> packed;
  /// Buffers of which a narrower type moves: where their part is widened.
  DenseMap<Value, Value> widened;
  /// The buffers in the ring of each shifted loop.
  llvm::StringMap<SmallVector<Ring, 0>> rings;
  /// The results that travel along each shifted loop, by store.
  llvm::StringMap<SmallVector<TravellingStore>> travellers;
  /// Where the steps of shifted loops, outermost first, make their part of a
  /// result.
  DenseMap<Value, SmallVector<Departure>> departing;
  /// What the steps of a loop exchange while others work.
  SmallVector<SliceExchange> exchangedInputs, exchangedResults;
  SmallVector<Value> leases;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H
