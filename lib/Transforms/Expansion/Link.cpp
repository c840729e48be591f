//===- Link.cpp - Narrower elements on the wire ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shift's link type is the widest that moves along its loop; what is no wider
// moves as it is. What is read is rounded once, by its owner, and so is the
// same on every rank, its owner included: where a part is worked on changes no
// result. Partial results are rounded when they leave and summed in the
// accumulator's type; a log-sum-exp, which weighs all of its row, never is.
//
// What leaves in chunks is written rounded, where one launch makes all of it.
// And where one partial result is all that a rank receives, the launch that
// makes the own part adds it in the accumulator's type before it rounds: then
// the result is in its own type from the start.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

BufferType mlir::commir::withElementType(BufferType type, Type element) {
  return BufferType::get(type.getContext(), type.getDims(), element);
}

bool NestSchedule::isLogSumExp(StoreOp store, size_t result) {
  auto made = cast<OpResult>(store.getTiles()[result]);
  auto kernel = cast<KernelOp>(made.getOwner());
  return KernelSignature::makesSoftmax(kernel.getKernel()) &&
         made.getResultNumber() == 1;
}

/// The type in which elements of `type` move along a shifted loop.
Type NestSchedule::getLinkType(LoopAttr loop, Type type) {
  Type link = loop.getShift().getLink();
  bool narrows =
      link && link.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth();
  return narrows ? link : type;
}

/// Whether a link rounds the partial results of an output as they leave.
bool NestSchedule::narrows(StoreOp store, size_t result, LoopAttr loop) {
  Type type = getWideType(store, result).getElementType();
  if (store.getDeferred())
    type = store.getPartial().value_or(type);
  return !isLogSumExp(store, result) && getLinkType(loop, type) != type;
}

/// Whether what leaves in chunks is rounded by the launch that makes it.
bool NestSchedule::leavesRounded(StoreOp store, size_t result, LoopAttr loop) {
  Value buffer = store.getBuffers()[result];
  return goesInChunks(store, loop) && narrows(store, result, loop) &&
         getWideType(store, result).getElementType().isF32() &&
         writesStep(store, loop) && canRound(store, result) &&
         countPartials(buffer) == 1 && !comesInPieces(store, result);
}

/// Whether the own part of a result is added to the only other one, as it came,
/// in the result's own type.
bool NestSchedule::addsRounded(StoreOp store, size_t result, LoopAttr loop) {
  auto kernel = store.getTiles()[result].getDefiningOp<KernelOp>();
  return KernelSignature::addsBeforeRounding(kernel.getKernel()) &&
         loop.getParts() == 2 && loop.getShift().getChunks() > 1 &&
         leavesRounded(store, result, loop) &&
         loop.getShift().getLink() ==
             getElementType(store.getBuffers()[result]);
}

LogicalResult NestSchedule::checkLink(LoopAttr loop) {
  Type link = loop.getShift().getLink();
  if (!link || link.isF16() || link.isBF16() || link.isF32() || link.isF64())
    return success();
  std::string name;
  llvm::raw_string_ostream(name) << link;
  return needsRule("R3 and R6 with link '" + name + "'",
                   "elements move in f64, f32, bf16 or f16; give one of them");
}

/// Rounds this rank's shard once for all that will read it, to the narrowest of
/// the links that it moves over.
LogicalResult NestExpander::narrowRing(ArrayRef<Move> moves,
                                       PlacementAttr inside, Ring &ring) {
  auto type = cast<BufferType>(ring.own.getType());
  Type link = type.getElementType();
  for (const Move &move : moves) {
    if (failed(checkLink(move.loop)))
      return failure();
    link = getLinkType(move.loop, link);
  }
  if (link == type.getElementType())
    return success();
  Value narrow = makeMemory(withElementType(type, link), 1, inside);
  Value source = getTileAt(ring.own, {}), target = getTileAt(narrow, {});
  CopyOp::create(builder, nest.getLoc(), source, target);
  ring.own = narrow;
  return success();
}

/// Kernels take a part in the buffer's own type.
void NestExpander::widenArrival(const ShiftedLoop &shifted, const Ring &member,
                                const RingStep &step,
                                std::optional<Part> chunk) {
  if (member.wide.empty())
    return;
  Location loc = nest.getLoc();
  // The work on a chunk may take rows of all that has come.
  bool isApart = !getTiles(shifted.loop, member.factors).empty();
  auto at = getMoved(
      member, shifted.axis,
      getPartOf(shifted, member, step.part, isApart ? std::nullopt : chunk));
  Value current =
      getTileAt(member.slots, at, getHeldSlot(shifted, member, step, chunk));
  if (!member.firstOwnSlot)
    current = arith::SelectOp::create(builder, loc,
                                      isOwnPart(shifted, member, step.part),
                                      getHeldTile(member, at), current);
  Value wide = widened[member.buffer] = member.wide[step.lane];
  CopyOp::create(builder, loc, current, getTileAt(wide, at));
}

/// Memory for what a traveller makes, sends and receives; for what its link
/// makes narrower, on its way out and, for a merge that takes no narrow tiles,
/// on its way in.
void NestExpander::makeTravelMemory(StoreOp store, LoopAttr loop,
                                    BufferType type, PlacementAttr others,
                                    ArrayRef<NamedAttribute> parts,
                                    Traveller &traveller) {
  size_t result = llvm::find(store.getBuffers(), traveller.buffer) -
                  store.getBuffers().begin();
  bool narrow = narrows(store, result, loop);
  int64_t chunks = loop.getShift().getChunks();
  bool isDelivered = goesInChunks(store, loop);
  bool inChunks = isDelivered || chunks > 1;
  BufferType moving =
      narrow ? withElementType(type, loop.getShift().getLink()) : type;
  bool copies = narrow && !leavesRounded(store, result, loop);
  int64_t slots = isDelivered ? countChunkSlots(loop) : 2;
  int64_t tiles = 1; // of a chunk, each in a slot
  for (LoopAttr inner : traveller.tiles)
    tiles *= inner.getParts();
  // In chunks, what was rounded is out of the way of the next one.
  traveller.partial =
      makeMemory(copies ? type : moving,
                 (copies && inChunks ? 1 : slots) * tiles, others, parts);
  if (!arrivesInPlace(store, loop) || loop.getParts() != 2) {
    // What travels arrives a step before the chunk that it is merged with.
    int64_t arrivals = !isDelivered ? chunks : loop.getParts() == 2 ? slots : 1;
    if (store.getDeferred())
      traveller.waiting =
          makeMemory(type, describeShift(loop).steps * tiles, others, parts);
    traveller.incoming =
        store.getDeferred() && !narrow
            ? traveller.waiting
            : makeMemory(moving, arrivals * tiles, others, parts);
  }
  if (copies)
    traveller.outgoing =
        makeMemory(moving, (inChunks ? slots : 1) * tiles, others, parts);
  if (!narrow || store.getDeferred())
    return;
  auto kind = cast<MergeKindAttr>(*store.getMerge());
  if (kind.getValue() != MergeKind::Sum)
    traveller.widened = makeMemory(type, tiles, others, parts);
}

/// What leaves, as it moves: rounded where the link says so.
Value NestExpander::narrowTile(const ShiftedLoop &shifted,
                               const Traveller &traveller, Value tile,
                               Value part) {
  if (!traveller.outgoing)
    return tile;
  Value narrow = getTravelTile(shifted, traveller, traveller.outgoing, part);
  CopyOp::create(builder, nest.getLoc(), tile, narrow);
  return narrow;
}

/// What came, as it is merged.
Value NestExpander::widenTile(const ShiftedLoop &shifted,
                              const Traveller &traveller, Value tile,
                              Value part) {
  if (!traveller.widened)
    return tile;
  Value wide = getTravelTile(shifted, traveller, traveller.widened, part);
  CopyOp::create(builder, nest.getLoc(), tile, wide);
  return wide;
}
