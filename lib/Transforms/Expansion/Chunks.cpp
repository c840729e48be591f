//===- Chunks.cpp - What a chunk of a part is -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shifted loop in chunks works on its part chunk by chunk. Loops inside may
// be over its axis, too. What ranks share out there has its place in a shard,
// so a chunk is cut within that; but loops in sequence inside that walk it.
// Here are the chunks of 12 rows, that loop 'i' has in 2 chunks:
//
//   i alone                             0 0 0 0 0 0 1 1 1 1 1 1
//   and in sequence in 3 parts: the same, in tiles of 2 rows
//   and parallel in 3 parts: of rank 1          0 0 1 1
//   and shifted in 3 parts              0 0 1 1 0 0 1 1 0 0 1 1
//
// In the last case, a result that does not move along the inner loop has a tile
// in each of its parts: they leave and come tile by tile. What is read by pull
// all comes before it is worked on, so that it is cut as if no loop were
// inside.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The most tiles of a chunk whose transfers are under way at once: each is an
/// op of its own, and the plan's text shall not grow with the ranks.
static constexpr int64_t kTilesAtOnce = 4;

/// Finds along which loops something moves: work on them is cut as that is.
void NestSchedule::findChunks() {
  llvm::SmallDenseSet<LoopAttr> moving;
  for (LoadOp load : nest.getBody().getOps<LoadOp>()) {
    int64_t buffer = cast<BlockArgument>(load.getBuffer()).getArgNumber();
    if (getPlacementBesideResult(buffer))
      continue;
    for (const Move &move : findMoves(buffer, findMovement(buffer)))
      if (move.hasRing)
        moving.insert(move.loop);
  }
  for (LoopAttr loop : loops)
    if (moving.contains(loop) || !getStoresAlong(loop).empty())
      chunkCounts[loop.getName()] = loop.getShift().getChunks();
}

/// Into how many chunks the loops around one cut its axis, or another.
int64_t NestSchedule::countChunksAround(LoopAttr loop, StringRef axis) {
  int64_t count = 1;
  for (LoopAttr outer : loops) {
    if (outer == loop)
      break;
    if (outer.isOver(axis))
      count *= getChunks(outer);
  }
  return count;
}

/// Whether ranks share out no more of an axis inside of a loop.
bool NestSchedule::isLastShared(LoopAttr loop, StringRef axis) {
  auto inside =
      llvm::drop_begin(loops, llvm::find(loops, loop) - loops.begin() + 1);
  return llvm::none_of(inside, [&](LoopAttr inner) {
    return inner.isOver(axis) && inner.getParts() != 1 &&
           (inner.isParallel() || inner.getShift());
  });
}

/// Behind the last loop over an axis that ranks share out: what is left of it
/// is cut in chunks.
void TileBuilder::cutInChunks(LoopAttr loop, StringRef axis) {
  Part chunk = chunksOf.lookup(axis);
  if (chunk.index && isLastShared(loop, axis))
    parts[axis] = cutPart(axis, parts.lookup(axis), chunk);
}

/// The loops inside of `loop` in each of whose parts a chunk has a tile, of
/// what is cut by `factors` along its axis.
SmallVector<LoopAttr> NestSchedule::getTiles(LoopAttr loop,
                                             ArrayRef<Attribute> factors) {
  SmallVector<LoopAttr> tiles;
  if (loop.getShift().getChunks() == 1)
    return tiles;
  StringRef axis = loop.getAxes().front();
  for (auto inner = std::next(llvm::find(loops, loop)); inner != loops.end();
       ++inner)
    if (inner->isOver(axis) && isNumberIn(*inner, factors) &&
        (inner->getShift() || !isLastShared(*inner, axis)))
      tiles.push_back(*inner);
  return tiles;
}

/// The part that a loop is at, while its body is emitted.
Value TileBuilder::getVisited(LoopAttr loop) {
  for (const Visit &visit : visited[loop.getAxes().front()])
    if (visit.loop == loop)
      return visit.part;
  llvm_unreachable("the loop is not around");
}

/// The slot of the tile that the loops are at, where each tile has one in place
/// of `slot`.
Value TileBuilder::getTileSlot(ArrayRef<LoopAttr> tiles, Value slot) {
  for (LoopAttr loop : tiles) {
    Value part = getVisited(loop);
    slot = slot ? add(mul(slot, loop.getParts()), part) : part;
  }
  return slot;
}

/// Emits something as if the loops were at tile `number` of a chunk.
void TileBuilder::atTile(ArrayRef<LoopAttr> tiles, Value number,
                         function_ref<void()> body) {
  Location loc = nest.getLoc();
  auto &visits = visited[tiles.front().getAxes().front()];
  size_t before = visits.size();
  for (LoopAttr loop : llvm::reverse(tiles)) {
    Value count = constant(loop.getParts());
    visits.push_back(
        {loop, arith::RemUIOp::create(builder, loc, number, count)});
    number = arith::DivUIOp::create(builder, loc, number, count);
  }
  body();
  visits.truncate(before);
}

static int64_t countTiles(ArrayRef<LoopAttr> tiles) {
  int64_t count = 1;
  for (LoopAttr loop : tiles)
    count *= loop.getParts();
  return count;
}

/// Does something with each tile of a chunk of a store's results, in turn.
void NestExpander::forEachTile(const TravellingStore &moved,
                               function_ref<void()> body) {
  ArrayRef<LoopAttr> tiles = moved.results.front().tiles;
  if (tiles.empty())
    return body();
  auto each = scf::ForOp::create(builder, nest.getLoc(), constant(0),
                                 constant(countTiles(tiles)), constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(each.getBody());
  atTile(tiles, each.getInductionVar(), body);
}

/// Starts the transfers of each tile of a chunk. Few are under way at once,
/// with their tokens and the leases that are opened for them; many come one
/// after the other.
void NestExpander::startEachTile(
    const TravellingStore &moved, SmallVectorImpl<Value> &tokens,
    SmallVectorImpl<Value> &opened,
    function_ref<void(SmallVectorImpl<Value> &, SmallVectorImpl<Value> &)>
        start) {
  ArrayRef<LoopAttr> tiles = moved.results.front().tiles;
  if (tiles.empty())
    return start(tokens, opened);
  if (countTiles(tiles) > kTilesAtOnce)
    return forEachTile(moved, [&] {
      SmallVector<Value> own, lent;
      start(own, lent);
      waitForAll(own);
      closeAll(lent);
    });
  for (int64_t number = 0; number < countTiles(tiles); ++number)
    atTile(tiles, constant(number), [&] { start(tokens, opened); });
}

/// Where `part` of the ring is, or a chunk of it, within the parts and chunks
/// that the loops around are at.
SmallVector<std::pair<StringRef, NestSchedule::Part>>
NestExpander::getPlace(const ShiftedLoop &shifted, const Traveller &traveller,
                       Value part, Part chunk) {
  Part own = getPart(traveller.factors, shifted.level, part, shifted.axis);
  for (LoopAttr inner : traveller.tiles)
    addPart(shifted.axis, own, getVisited(inner), inner.getParts());
  own = cutPart(shifted.axis, own, chunksOf.lookup(shifted.axis));
  SmallVector<std::pair<StringRef, Part>> at{
      {shifted.axis.getValue(), cutPart(shifted.axis, own, chunk)}};
  for (const auto &[axis, factors] : traveller.outer)
    at.emplace_back(axis.getValue(),
                    cutPart(axis, getPart(factors, StringAttr(), Value(), axis),
                            chunksOf.lookup(axis)));
  for (StringAttr axis : traveller.slice)
    at.emplace_back(axis.getValue(), parts.lookup(axis));
  return at;
}

/// The tile of a traveller's memory for `part` of the ring.
Value NestExpander::getTravelTile(const ShiftedLoop &shifted,
                                  const Traveller &traveller, Value memory,
                                  Value part, Value slot, int64_t stack) {
  return getTileAt(memory, getPlace(shifted, traveller, part, {}), slot, stack);
}

/// One chunk of a part, in memory that holds it or its part: the tile of it
/// that the loops are at, where it has several.
Value NestExpander::getChunkTile(const ShiftedLoop &shifted,
                                 const Traveller &traveller, Value memory,
                                 Value part, Value chunk, Value slot) {
  return getTileAt(
      memory,
      getPlace(shifted, traveller, part, {chunk, getChunks(shifted.loop)}),
      getTileSlot(traveller.tiles, slot));
}

/// Where the sum of a ring goes: to the step of an outer one, or to where the
/// result is merged.
Departure NestExpander::getTotal(const Traveller &traveller) {
  auto outer = departing.find(traveller.buffer);
  if (outer == departing.end() || outer->second.empty())
    return {memory[traveller.buffer], Value(), 0, false};
  return outer->second.back();
}

/// This rank's own part of it, or one chunk.
Value NestExpander::getTotalTile(const ShiftedLoop &shifted,
                                 const Traveller &traveller, Value chunk) {
  Departure total = getTotal(traveller);
  Part of = chunk ? Part{chunk, getChunks(shifted.loop)} : Part();
  return getTileAt(total.partial,
                   getPlace(shifted, traveller, getRank(shifted.level), of),
                   total.slot);
}
