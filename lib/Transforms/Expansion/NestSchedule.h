//===- NestSchedule.h - What a schedule comes to ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_NESTSCHEDULE_H
#define LIB_TRANSFORMS_EXPANSION_NESTSCHEDULE_H

#include "lib/Transforms/Expansion/Results.h"
#include "lib/Transforms/Expansion/Rings.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::commir {

/// The element type of a buffer or a tile.
Type getElementType(Value value);

/// A buffer of the same dimensions with other elements.
BufferType withElementType(BufferType type, Type element);

/// Whether some cut of an axis falls within the groups of a dimension.
bool cutsGroups(ProgramOp program, ForOp nest, DimAttr dim);

/// Whether two of some parts of `axis / divisor` share a position.
bool cutsGroups(AxisAttr axis, int64_t parts, int64_t divisor);

/// The loops of a nest, those that run in sequence over several axes as one
/// over each of these.
SmallVector<LoopAttr> splitSequences(ProgramOp program, ForOp nest);

/// What the schedule of a nest comes to, before any op is made: which rule each
/// buffer needs and where it lives, which results move along which loop, in how
/// many chunks and lanes, and what gives way where something does not serve.
class NestSchedule {
protected:
  NestSchedule(ProgramOp program, ForOp nest)
      : program(program), mesh(program.getMeshOp()), nest(nest),
        loops(splitSequences(program, nest)) {}

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
  bool movesUnlikeSlices(LoopAttr ring, BufferType type,
                         ArrayRef<StringAttr> levels);
  Movement findMovement(int64_t buffer);
  bool isReducedOver(StoreOp store, StringAttr axis);
  void cutPanels();
  void remarkBroadcast(int64_t buffer, const Twine &why);
  LoopAttr findPanelLoop(int64_t buffer, CutAttr cut);
  SmallVector<Move> findMoves(int64_t buffer, const Movement &movement);
  void findSlice(LoopAttr loop, Ring &ring);
  bool movesInSlices(StoreOp store, LoopAttr outer, LoopAttr loop);
  bool walksPanels(LoopAttr loop);
  LoopAttr getExchangeLoop();
  SmallVector<StringAttr> getSourceLevels(BufferType type, PlacementAttr from,
                                          PlacementAttr to);
  std::string whyWhole(int64_t buffer, ArrayRef<StringAttr> group,
                       LoopAttr slices);
  SmallVector<std::pair<StringRef, Part>>
  getMeeting(const SliceExchange &exchange, const llvm::StringMap<Part> &used,
             const llvm::StringMap<Part> &owned);
  bool travels(StoreOp store, LoopAttr loop);
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
  SmallVector<StringAttr> getReducedLevels(StoreOp store);
  PlacementAttr getPartialPlacement(StoreOp store, PlacementAttr inside);
  PlacementAttr getMergedPlacement(StoreOp store, PlacementAttr inside);
  PlacementAttr addCut(PlacementAttr placement, StringRef axis,
                       StringAttr level);
  SmallVector<StringAttr> getMergeOrder(StoreOp store);
  StringAttr findAxisToShare(StoreOp store, StringAttr level);
  void shareBeforeGathering(StoreOp store);
  SmallVector<StringAttr> getPendingLevels(StoreOp store, PlacementAttr inside,
                                           StringAttr level);
  bool reducesTogether(StoreOp store);
  void findChunks();
  /// Into how many chunks the work of a step is cut: as what moves is.
  int64_t getChunks(LoopAttr loop) {
    auto found = chunkCounts.find(loop.getName());
    return found == chunkCounts.end() ? 1 : found->second;
  }
  int64_t countChunksAround(LoopAttr loop, StringRef axis);
  bool isLastShared(LoopAttr loop, StringRef axis);
  SmallVector<LoopAttr> getTiles(LoopAttr loop, ArrayRef<Attribute> factors);
  ShiftedLoop describeShift(LoopAttr loop);
  SmallVector<Interval> getTouched(AxisAttr axis,
                                   ArrayRef<int64_t> coordinates);
  int64_t getNumberInLayout(const ShiftedLoop &shifted, int64_t part);
  int64_t countSteps(const ShiftedLoop &shifted);
  bool entersOnce(KernelOp kernel);
  bool overlaps(LoopAttr loop);
  std::string whyInTurn(LoopAttr loop);
  bool runsInLanes(LoopAttr loop);
  int64_t getPartsARank(const ShiftedLoop &shifted, const Ring &member) {
    return shifted.parts / mesh.getLevelSize(member.level);
  }
  /// The same for all rings of the loop, where it is shifted on one level.
  int64_t getPartsARank(const ShiftedLoop &shifted) {
    return shifted.level ? shifted.parts / mesh.getLevelSize(shifted.level) : 1;
  }
  int64_t getClosing(const ShiftedLoop &shifted);
  bool sumsFirst(const ShiftedLoop &shifted, const TravellingStore &moved);
  std::optional<ResultVia> getResultVia(StoreOp store, LoopAttr loop);
  bool goesInChunks(StoreOp store, LoopAttr loop);
  LoopAttr getChunkedLoop(StoreOp store);
  bool liesTogether(StoreOp store, LoopAttr loop);
  LoopAttr findRingInside(LoopAttr loop);
  Type getLinkType(LoopAttr loop, Type type);
  LogicalResult checkLink(LoopAttr loop);
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
  LoopAttr getOnlyShift(StringRef axis, BufferType result);
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
  BufferType getWideType(StoreOp store, size_t result);
  bool isDelivered(Value buffer, LoopAttr loop);
  LoopAttr getOnlyRound(StoreOp store);
  bool travelsInside(StoreOp store, LoopAttr loop);
  StoreOp findStoreToMergeApart(KernelOp kernel);

  SmallVector<StringAttr> getRingLevels(LoopAttr loop);
  size_t getTerms(LoopAttr loop) {
    return loop.getShift() ? loop.getShift().getLevels().size() : 0;
  }
  bool isParallelOver(StringRef axis, StringRef level);
  bool isStriped(StringRef axis);
  bool followsLoops(CutAttr cut);

  int64_t countParts(ArrayRef<Attribute> factors);
  /// Whether it is a number that a loop would be in this cut of its axis.
  bool isNumberIn(LoopAttr loop, ArrayRef<Attribute> factors);
  /// Whether the numbers in a cut of an axis are those of loops around `loop`.
  bool isOpenAround(LoopAttr loop, StringRef axis, ArrayRef<Attribute> factors);

  /// A placement without the cuts of some axes.
  PlacementAttr dropCuts(PlacementAttr placement, ArrayRef<StringRef> axes);

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
  /// Into how many chunks each loop along which something moves cuts its work.
  llvm::StringMap<int64_t> chunkCounts;
  /// The stores whose launches write all of the memory that they merge in.
  DenseSet<Operation *> written;
  /// The stores whose results do not move along a loop, though the schedule has
  /// it so.
  DenseSet<std::pair<Operation *, StringRef>> keptBack;
  /// What R8 moves to where the loops use it, or from where they make it.
  DenseMap<int64_t, PlacementAttr> touched;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_EXPANSION_NESTSCHEDULE_H
