//===- NestExpander.h - Loops to what every rank does -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H
#define LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H

#include "lib/Transforms/Expansion/Results.h"
#include "lib/Transforms/Expansion/Rings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::commir {

/// The element type of a buffer or a tile.
Type getElementType(Value value);

/// A buffer of the same dimensions with other elements.
BufferType withElementType(BufferType type, Type element);

/// A loop that is not parallel, and which part it is at.
struct Visit {
  LoopAttr loop;
  Value part;
};

/// A loop that runs in sequence, while its body is emitted.
struct Turn {
  StringRef axis;
  Value index;
  int64_t count;
};

/// Whether some cut of an axis falls within the groups of a dimension.
bool cutsGroups(ProgramOp program, ForOp nest, DimAttr dim);

/// Whether two of some parts of `axis / divisor` share a position.
bool cutsGroups(AxisAttr axis, int64_t parts, int64_t divisor);

/// Inputs in other placements than the boundary's, for all nests of a program.
using MovedInputs = DenseMap<std::pair<Value, PlacementAttr>, Value>;

/// The loops of a nest, those that run in sequence over several axes as one
/// over each of these.
SmallVector<LoopAttr> splitSequences(ProgramOp program, ForOp nest);

/// Expands one nest, outside in.
class NestExpander {
public:
  NestExpander(ProgramOp program, ForOp nest, MovedInputs &movedInputs,
               Pass::Statistic &transfers)
      : program(program), mesh(program.getMeshOp()), nest(nest),
        loops(splitSequences(program, nest)), builder(nest.getContext()),
        movedInputs(movedInputs), transfers(transfers) {}

  LogicalResult expand();

private:
  /// Which part of an axis an iteration works on: `index` of `count`; a null
  /// index stands for all of it.
  struct Part {
    Value index;
    int64_t count = 1;
  };

  /// How an input comes to the ranks that use it: around rings, gathered along
  /// one cut, or by the general exchange.
  struct Movement {
    CutAttr cut;
    SmallVector<LoopAttr> rings;
    bool exchanges = false;
  };

  /// A loop that brings the parts of an input along a level.
  struct Move {
    LoopAttr loop;
    StringAttr level;
    bool pulled;
    /// Whether it has a ring: of loops that pull, one right within the other,
    /// the innermost reads the owner, wherever that is.
    bool hasRing;
  };

  LogicalResult checkStores();
  LogicalResult checkDivided(StoreOp store);
  bool isMadeInPlace(StoreOp store, int64_t buffer);
  void alignPairs();
  LogicalResult settleRings();
  LogicalResult checkCuts();
  LogicalResult keepBack(StoreOp store, LoopAttr loop, const Twine &why);
  SmallVector<StoreOp> getStoresAlong(LoopAttr loop);
  std::string whyNotAlong(StoreOp store, LoopAttr loop);
  std::string whyNotInChunks(LoopAttr loop);
  std::string whyNotLast(LoopAttr loop);
  LogicalResult checkTouched(int64_t buffer);
  LogicalResult placeOutputs();
  bool movesUnlikeSlices(LoopAttr ring, BufferType type,
                         ArrayRef<StringAttr> levels);
  Movement findMovement(int64_t buffer);
  bool isReducedOver(StoreOp store, StringAttr axis);
  LogicalResult placeInput(int64_t buffer);
  LogicalResult gather(int64_t buffer, CutAttr cut);
  void cutPanels();
  void remarkBroadcast(int64_t buffer, const Twine &why);
  LoopAttr findPanelLoop(int64_t buffer, CutAttr cut);
  void addPanels(int64_t buffer, CutAttr cut, LoopAttr loop);
  Value startBroadcast(const ShiftedLoop &shifted, const Ring &member,
                       Value panel, Value slot, Value when);
  SmallVector<Move> findMoves(int64_t buffer, const Movement &movement);
  LogicalResult addToRings(int64_t buffer, const Movement &movement);
  void addRing(LoopAttr loop, bool arrives, Ring ring, BufferType wide);
  Value makeRingMemory(const Ring &ring, StringAttr axis, BufferType type,
                       int64_t slots, int64_t parts);
  Value lend(Value own, ArrayRef<StringAttr> group);
  void findSlice(LoopAttr loop, Ring &ring);
  bool movesInSlices(StoreOp store, LoopAttr outer, LoopAttr loop);
  bool walksPanels(LoopAttr loop);
  LoopAttr getExchangeLoop();
  SmallVector<StringAttr> getSourceLevels(BufferType type, PlacementAttr from,
                                          PlacementAttr to);
  std::string whyWhole(int64_t buffer, ArrayRef<StringAttr> group,
                       LoopAttr slices);
  Value makeSlices(int64_t buffer, BufferType type, int64_t slots);
  bool addExchange(int64_t buffer, PlacementAttr from, PlacementAttr to,
                   bool isMade, SmallVectorImpl<SliceExchange> &exchanges);
  bool addExchangedInput(int64_t buffer, PlacementAttr inside);
  bool addExchangedResult(StoreOp store, size_t result);
  llvm::StringMap<Part> getPartsIn(Value slice);
  llvm::StringMap<Part> getShards(const SliceExchange &exchange);
  void asMember(ArrayRef<StringAttr> group, Value member,
                function_ref<void()> build);
  SmallVector<std::pair<StringRef, Part>>
  getMeeting(const SliceExchange &exchange, const llvm::StringMap<Part> &used,
             const llvm::StringMap<Part> &owned);
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
  bool travels(StoreOp store, LoopAttr loop);
  LogicalResult addTravellers(LoopAttr loop);
  Value getTravelTile(const ShiftedLoop &shifted, const Traveller &traveller,
                      Value memory, Value part, Value slot = {},
                      int64_t stack = 0);
  Value reshard(Value source, PlacementAttr to, Value target = {});
  Value reshardInput(Value input, PlacementAttr to);
  SmallVector<StringAttr> getParallelLevels(StringRef axis);
  PlacementAttr getTouchedPlacement(BufferType type,
                                    ArrayRef<LoopAttr> moving = {});
  PlacementAttr getPlacementBesideResult(int64_t buffer);
  /// Where a buffer lives while the nest runs.
  PlacementAttr getInside(int64_t buffer) {
    auto moved = touched.find(buffer);
    return moved == touched.end() ? program.getBinding(buffer).getInside()
                                  : moved->second;
  }
  bool isInMeshOrder(ArrayRef<StringAttr> levels);
  LogicalResult startOutputs();
  LogicalResult finishOutputs();
  LogicalResult mergeOnce(StoreOp store);
  void fillWithIdentity(StoreOp store, size_t result, Value tile);
  SmallVector<StringAttr> getReducedLevels(StoreOp store);
  PlacementAttr getPartialPlacement(StoreOp store, PlacementAttr inside);
  PlacementAttr getMergedPlacement(StoreOp store, PlacementAttr inside);
  PlacementAttr addCut(PlacementAttr placement, StringRef axis,
                       StringAttr level);
  void reduceOverRanks(StoreOp store);
  void allReduce(StoreOp store, StringAttr level,
                 MutableArrayRef<Accumulator> results);
  SmallVector<StringAttr> getMergeOrder(StoreOp store);
  StringAttr findAxisToShare(StoreOp store, StringAttr level);
  void shareBeforeGathering(StoreOp store);
  SmallVector<StringAttr> getPendingLevels(StoreOp store, PlacementAttr inside,
                                           StringAttr level);
  Share makeShare(StoreOp store, size_t result, StringAttr level,
                  Accumulator &accumulator);
  Value getShareTile(const Share &share, StringAttr level, Value memory,
                     Value member, Value slot = {}, int64_t stack = 0);
  Value getPartialShare(const Share &share, StringAttr level, Value member);
  void forEachMember(ArrayRef<StringAttr> group,
                     function_ref<void(Value)> body);
  void reduceScatter(StoreOp store, StringAttr level,
                     MutableArrayRef<Accumulator> results);
  bool reducesTogether(StoreOp store);
  void allReduceTogether(StoreOp store, StringAttr level,
                         ArrayRef<Accumulator> results);
  void reduceScatterTogether(StoreOp store, StringAttr level,
                             MutableArrayRef<Accumulator> results);
  void merge(StoreOp store, ArrayRef<Value> from, ArrayRef<Value> to);
  SmallVector<LaunchOp> mergeAll(StoreOp store, ArrayRef<Value> stacks,
                                 ArrayRef<Value> to, bool overwrites = true);
  /// Where the whole result of a store goes, in its own type if it can.
  Value makeResult(StoreOp store, size_t result, PlacementAttr placement);
  void whenTrue(Value condition, function_ref<void()> body);
  void findChunks();
  /// Into how many chunks the work of a step is cut: as what moves is.
  int64_t getChunks(LoopAttr loop) {
    auto found = chunkCounts.find(loop.getName());
    return found == chunkCounts.end() ? 1 : found->second;
  }
  int64_t countChunksAround(LoopAttr loop, StringRef axis);
  bool isLastShared(LoopAttr loop, StringRef axis);
  void cutInChunks(LoopAttr loop, StringRef axis);
  SmallVector<LoopAttr> getTiles(LoopAttr loop, ArrayRef<Attribute> factors);
  Value getVisited(LoopAttr loop);
  Value getTileSlot(ArrayRef<LoopAttr> tiles, Value slot);
  void atTile(ArrayRef<LoopAttr> tiles, Value number, function_ref<void()> at);
  void forEachTile(const TravellingStore &moved, function_ref<void()> body);
  void startEachTile(
      const TravellingStore &moved, SmallVectorImpl<Value> &tokens,
      SmallVectorImpl<Value> &opened,
      function_ref<void(SmallVectorImpl<Value> &, SmallVectorImpl<Value> &)>
          start);
  void closeAll(SmallVectorImpl<Value> &opened);
  LogicalResult emitLoops(size_t at);
  void pushRanks(LoopAttr loop);
  std::optional<size_t> findRingOfSlices(size_t at);
  LogicalResult emitSlices(size_t at, size_t ring);
  ShiftedLoop describeShift(LoopAttr loop);
  LogicalResult emitRing(size_t at);
  SmallVector<Interval> getTouched(AxisAttr axis,
                                   ArrayRef<int64_t> coordinates);
  int64_t getNumberInLayout(const ShiftedLoop &shifted, int64_t part);
  int64_t countSteps(const ShiftedLoop &shifted);
  bool entersOnce(KernelOp kernel);
  LogicalResult emitSteps(size_t at, const ShiftedLoop &shifted);
  RingStep getStep(const ShiftedLoop &shifted, Value number);
  Value getPull(const ShiftedLoop &shifted, Value step);
  LogicalResult emitStep(size_t at, const ShiftedLoop &shifted,
                         const RingStep &step);
  LogicalResult emitStepBody(size_t at, const ShiftedLoop &shifted,
                             const RingStep &step, std::optional<Part> chunk);
  bool overlaps(LoopAttr loop);
  std::string whyInTurn(LoopAttr loop);
  bool runsInLanes(LoopAttr loop);
  void remarkInTurn(LoopAttr loop);
  LogicalResult emitOverlap(size_t at, const ShiftedLoop &shifted);
  /// The part that step `step` works on.
  Value getPartAt(const ShiftedLoop &shifted, Value step);
  Value isOwnPart(const ShiftedLoop &shifted, const Ring &member, Value part);
  Value isForeignPart(const ShiftedLoop &shifted, const Ring &member,
                      Value part);
  Part getPartOf(const ShiftedLoop &shifted, const Ring &member, Value part,
                 std::optional<Part> chunk = std::nullopt);
  int64_t getPartsARank(const ShiftedLoop &shifted, const Ring &member) {
    return shifted.parts / mesh.getLevelSize(member.level);
  }
  /// The same for all rings of the loop, where it is shifted on one level.
  int64_t getPartsARank(const ShiftedLoop &shifted) {
    return shifted.level ? shifted.parts / mesh.getLevelSize(shifted.level) : 1;
  }
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
  Value startExchange(StringAttr level, Value source, Value to, Value target,
                      Value from, Value when);
  void waitForAll(SmallVectorImpl<Value> &tokens);
  std::pair<Value, Value> getDelivery(const ShiftedLoop &shifted, Value part);
  SmallVector<std::pair<StringRef, Part>> getPlace(const ShiftedLoop &shifted,
                                                   const Traveller &traveller,
                                                   Value part, Part chunk);
  Departure getTotal(const Traveller &traveller);
  Value getTotalTile(const ShiftedLoop &shifted, const Traveller &traveller,
                     Value chunk = {});
  int64_t getClosing(const ShiftedLoop &shifted);
  Value getArrivalTile(const ShiftedLoop &shifted, const TravellingStore &moved,
                       const Traveller &traveller, const RingStep &step);
  bool sumsFirst(const ShiftedLoop &shifted, const TravellingStore &moved);
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
  std::optional<ResultVia> getResultVia(StoreOp store, LoopAttr loop);
  bool goesInChunks(StoreOp store, LoopAttr loop);
  bool movesInChunks(LoopAttr loop);
  LoopAttr getChunkedLoop(StoreOp store);
  bool liesTogether(StoreOp store, LoopAttr loop);
  bool arrivesInPlace(StoreOp store, LoopAttr loop);
  LoopAttr findRingInside(LoopAttr loop);
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
  Type getLinkType(LoopAttr loop, Type type);
  LogicalResult checkLink(LoopAttr loop);
  LogicalResult narrowRing(ArrayRef<Move> moves, PlacementAttr inside,
                           Ring &ring);
  void widenArrival(const ShiftedLoop &shifted, const Ring &member,
                    const RingStep &step, std::optional<Part> chunk);
  bool isOutermost(BufferType type, StringRef axis);
  bool isLogSumExp(StoreOp store, size_t result);
  bool narrows(StoreOp store, size_t result, LoopAttr loop);
  bool leavesRounded(StoreOp store, size_t result, LoopAttr loop);
  bool addsRounded(StoreOp store, size_t result, LoopAttr loop);
  /// How many chunks wait in memory on their way out: of two ranks, all; else
  /// one is made while one leaves.
  int64_t countChunkSlots(LoopAttr loop) {
    return loop.getParts() == 2 ? loop.getShift().getChunks() : 2;
  }
  void makeTravelMemory(StoreOp store, LoopAttr loop, BufferType type,
                        PlacementAttr others, ArrayRef<NamedAttribute> parts,
                        Traveller &traveller);
  Value narrowTile(const ShiftedLoop &shifted, const Traveller &traveller,
                   Value tile, Value part);
  Value widenTile(const ShiftedLoop &shifted, const Traveller &traveller,
                  Value tile, Value part);
  LogicalResult emitBody();
  LogicalResult emitLaunch(KernelOp kernel);
  LoopAttr getOnlyShift(StringRef axis, BufferType result);
  void findHome(StoreOp store, size_t result, Waiting &held);
  Value getPhase(const ShiftedLoop &shifted);
  void leaveOut(StoreOp store, const Waiting &held, LaunchOp merge);
  bool holdsWholeParts(Value buffer, StringRef axis);
  /// Whether a kernel takes the pieces of its parts in one launch.
  bool joinsPieces(KernelOp kernel);
  bool writesAll(StoreOp store);
  bool writesStep(StoreOp store, LoopAttr loop);
  int64_t countPartials(Value buffer);
  bool comesInPieces(StoreOp store, size_t result);
  bool canRound(StoreOp store, size_t result);
  bool rounds(StoreOp store, size_t result);
  FailureOr<Type> getWaitingType(StoreOp store, size_t result);
  Type getMadeType(StoreOp store, size_t result);
  LogicalResult startWaiting(StoreOp store, size_t result);
  Value getWaitingTile(Value buffer, Value number);
  void mergeWaiting(StoreOp store);
  BufferType getWideType(StoreOp store, size_t result);
  bool isDelivered(Value buffer, LoopAttr loop);
  LoopAttr getOnlyRound(StoreOp store);
  bool travelsInside(StoreOp store, LoopAttr loop);
  LaunchTarget getTarget(KernelOp kernel, OpOperand &use);
  void emitVariants(ArrayRef<LaunchTarget> targets,
                    function_ref<void(ArrayRef<bool>)> emit);
  FailureOr<Value> makeScratch(KernelOp kernel);
  StoreOp findStoreToMergeApart(KernelOp kernel);
  Value makePartial(StoreOp store, size_t result);
  void mergeApart(StoreOp store, ArrayRef<Value> targets,
                  function_ref<void(ArrayRef<Value>, ArrayRef<bool>)> launch);
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
  size_t getTerms(LoopAttr loop) {
    return loop.getShift() ? loop.getShift().getLevels().size() : 0;
  }
  bool isParallelOver(StringRef axis, StringRef level);
  bool isStriped(StringRef axis);
  bool followsLoops(CutAttr cut);

  /// Adds index `value` of `count` as the innermost cut of an axis so far.
  void pushPart(StringRef axis, Value value, int64_t count, int64_t each = 1) {
    addPart(axis, parts[axis], value, count, each);
  }

  /// One of several parts of a part of an axis. Stripes are dealt in turn, so
  /// that those of one part are of one of more parts, too.
  Part cutPart(StringRef axis, Part part, Part by);

  /// Adds index `index` of `count` as the innermost cut of a part so far. Of a
  /// shifted loop each rank has `each` that follow one another, as the finer
  /// parts of a striped axis do not.
  void addPart(StringRef axis, Part &part, Value index, int64_t count,
               int64_t each = 1);

  /// The tile of `memory` that the current iteration works on; only what is cut
  /// by now is restricted.
  Value getTile(Value memory, Value slot = {}, int64_t stack = 0);
  /// The tile of `memory` at these parts of these axes, and all that it holds
  /// of the others.
  Value getTileAt(Value memory, ArrayRef<std::pair<StringRef, Part>> at,
                  Value slot = {}, int64_t stack = 0);
  /// The part of this rank in a cut by `factors`, with `member` in place of
  /// its group rank on `level`. Inside the loops over `axis`, the parts that
  /// outer rings are at stand in place of its ranks on their levels, and those
  /// of other loops for the numbers. `level` may have more `members` than
  /// ranks.
  Part getPart(ArrayRef<Attribute> factors, StringAttr level, Value member,
               StringRef axis = {}, int64_t members = 0);
  /// The tile that outer rings brought of a buffer; its own where there are
  /// none.
  Value getHeldTile(const Ring &ring, ArrayRef<std::pair<StringRef, Part>> at);
  int64_t countParts(ArrayRef<Attribute> factors);
  /// Whether it is a number that a loop would be in this cut of its axis.
  bool isNumberIn(LoopAttr loop, ArrayRef<Attribute> factors);
  /// Whether the numbers in a cut of an axis are those of loops around `loop`.
  bool isOpenAround(LoopAttr loop, StringRef axis, ArrayRef<Attribute> factors);

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
  MovedInputs &movedInputs;
  Pass::Statistic &transfers;
  llvm::StringMap<Part> parts;
  /// Into how many chunks each loop along which something moves cuts its work.
  llvm::StringMap<int64_t> chunkCounts;
  /// Which chunk of its part the shifted loops over an axis work on.
  llvm::StringMap<Part> chunksOf;
  /// What the loops over an axis that are not parallel are at, outermost first.
  llvm::StringMap<SmallVector<Visit>> visited;
  llvm::StringMap<Value> ranks;
  /// The loops in sequence around what is emitted, outermost first.
  SmallVector<Turn> turns;
  /// The stores whose launches write all of the memory that they merge in.
  DenseSet<Operation *> written;
  /// The outputs whose partial results of this rank are merged at the end.
  DenseMap<Value, Waiting> waiting;
  /// What all launches of a kernel work in, one after the other.
  DenseMap<Operation *, Value> scratches;
  /// Where the tile of each input is read, and each output merged.
  DenseMap<Value, Value> memory;
  /// The stores whose results do not move along a loop, though the schedule has
  /// it so.
  DenseSet<std::pair<Operation *, StringRef>> keptBack;
  /// What R8 moves to where the loops use it, or from where they make it.
  DenseMap<int64_t, PlacementAttr> touched;
  /// Where the steps of shifted loops, outermost first, find their part of a
  /// buffer.
  DenseMap<Value, SmallVector<Arrival>> arrived;
  /// The slices of buffers that are at hand, of those that move in slices.
  DenseMap<Value, Value> packed;
  /// Buffers of which a narrower type moves: where their part is widened.
  DenseMap<Value, Value> widened;
  /// Which part the ring over an axis on a level is at.
  llvm::DenseMap<std::pair<StringRef, StringAttr>, Value> visiting;
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
