//===- Slice.cpp - Rings that move a slice --------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Around a ring there may be loops over axes of the buffer that moves. Then a
// rank needs but the slice that these are at, and no more goes around. A slice
// need not lie together in the rank's shard. Where it is pulled it is read out
// of that all the same; where it is sent, the rank puts its own aside each time
// that the ring opens.
//
// So it is for one part of a strided placement, and for what an outer ring
// brought to a rank that others pull it from: that is lent when it is aside.
//
// Of results, too, but the slice moves that the loops around the ring are at.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/LayoutBuilder.h"

using namespace mlir;
using namespace mlir::commir;

/// Finds which other axes of the buffer the loops around the ring run over. All
/// its ranks are at the same part of these.
void NestSchedule::findSlice(LoopAttr loop, Ring &ring) {
  StringAttr axis = loop.getAxes().front();
  assert(isOpenAround(loop, axis, ring.factors) && "a part is in pieces");
  auto around =
      ArrayRef(loops).take_while([&](LoopAttr outer) { return outer != loop; });
  ArrayRef<LoopAttr> inside = ArrayRef(loops).drop_front(around.size());
  for (DimAttr dim : cast<BufferType>(ring.buffer.getType()).getDims()) {
    if (dim.isConstant() || dim.getAxis() == axis)
      continue;
    // No part of a striped axis is made of finer ones: all of it moves.
    bool isCutInside = llvm::any_of(inside, [&](LoopAttr inner) {
      return inner.isOver(dim.getAxis()) && inner.getParts() != 1;
    });
    if (isStriped(dim.getAxis()) && isCutInside)
      continue;
    int64_t count = 1;
    bool moves = false;
    for (LoopAttr outer : around) {
      auto at = llvm::find_if(outer.getAxes(), [&](StringAttr name) {
        return name == dim.getAxis();
      });
      if (at == outer.getAxes().end() || outer.getParts() == 1)
        continue;
      count *= (*getPartsOfAxes(program, outer))[at - outer.getAxes().begin()];
      // The chunks of loops around are cut, unless ranks share out more inside.
      if (isLastShared(loop, dim.getAxis()))
        count *= getChunks(outer);
      moves |= !outer.isParallel();
    }
    if (moves)
      ring.slice.emplace_back(StringAttr::get(nest.getContext(), dim.getAxis()),
                              count);
  }
}

/// Whether the results of a store that move along `loop` are but of the part
/// that loop `outer`, around it, is at.
bool NestSchedule::movesInSlices(StoreOp store, LoopAttr outer, LoopAttr loop) {
  StringAttr axis = outer.getAxes().front();
  if (outer.isParallel() || outer.getParts() == 1 || loop.isOver(axis))
    return false;
  // All that cuts the axis is around the ring.
  auto end = llvm::find(loops, loop);
  for (auto it = loops.begin(); it != loops.end(); ++it)
    if (it->isOver(axis) && it->getParts() != 1 &&
        (it >= end || it->getShift()))
      return false;
  return llvm::all_of(store.getBuffers(), [&](Value buffer) {
    return llvm::any_of(
        cast<BufferType>(buffer.getType()).getDims(), [&](DimAttr dim) {
          return !dim.isConstant() && dim.getAxis() == axis.getValue() &&
                 !cutsGroups(program, nest, dim);
        });
  });
}

/// Memory for what moves along a ring: one of so many parts of its axis.
Value NestExpander::makeRingMemory(const Ring &ring, StringAttr axis,
                                   BufferType type, int64_t slots,
                                   int64_t parts) {
  int64_t number = cast<BlockArgument>(ring.buffer).getArgNumber();
  SmallVector<StringRef> cut{axis.getValue()};
  SmallVector<NamedAttribute> all{{axis, builder.getI64IntegerAttr(parts)}};
  for (auto [other, count] : ring.slice) {
    cut.push_back(other.getValue());
    all.emplace_back(other, builder.getI64IntegerAttr(count));
  }
  return makeMemory(type, slots, dropCuts(getInside(number), cut), all);
}

/// Makes the memory of one ring, and lends what others read of it. Kernels take
/// parts of type `wide` where it is not null.
void NestExpander::addRing(LoopAttr loop, bool arrives, Ring ring,
                           BufferType wide) {
  findSlice(loop, ring);
  bool pulled = !ring.group.empty();
  auto local = cast<BufferType>(ring.own.getType());
  StringAttr axis = loop.getAxes().front();
  int64_t shards = countParts(ring.factors);
  int64_t each = loop.getParts() / mesh.getLevelSize(ring.level);
  if (!pulled)
    ring.chunks = loop.getShift().getChunks();
  bool keepsOwn =
      !isOneInterval(program.getAxis(axis)) && each * ring.chunks > 1;
  bool isStrided = llvm::any_of(ring.factors, llvm::IsaPred<IntegerAttr>);
  if (pulled ? isStrided || arrives
             : !keepsOwn && (isStrided || !ring.slice.empty())) {
    ring.packed = makeRingMemory(ring, axis, local, 1, shards);
  } else if (pulled) {
    ring.lease = lend(ring.own, ring.group);
    leases.push_back(ring.lease);
  }
  int64_t count = shards / mesh.getLevelSize(ring.level) * loop.getParts();
  int64_t moved = count * ring.chunks;
  int64_t lanes = runsInLanes(loop) ? 2 : 1;
  ring.numSlots = (pulled ? 1 : each) + lanes;
  if (!pulled) {
    // A part of a shard lies together where nothing comes before its axis.
    if (each * ring.chunks > 1 && !keepsOwn && !isOutermost(local, axis))
      ring.outgoing = makeRingMemory(ring, axis, local, 1, moved);
  }
  int64_t slots = ring.numSlots * ring.chunks;
  if (keepsOwn)
    ring.firstOwnSlot = slots;
  ring.slots = makeRingMemory(
      ring, axis, local, keepsOwn ? slots + each * ring.chunks : slots, moved);
  if (wide)
    for (int64_t lane = 0; lane < lanes; ++lane)
      ring.wide.push_back(makeRingMemory(ring, axis, wide, 1, count));
  rings[loop.getName()].push_back(ring);
}

/// What moves along a ring: this part of the shifted axis, and of the others
/// the part that the loops around are at.
SmallVector<std::pair<StringRef, NestSchedule::Part>>
NestExpander::getMoved(const Ring &member, StringAttr axis, Part part) {
  SmallVector<std::pair<StringRef, Part>> at{{axis.getValue(), part}};
  for (auto [other, count] : member.slice) {
    assert(parts.lookup(other.getValue()).count == count && "another slice");
    at.emplace_back(other.getValue(), parts.lookup(other.getValue()));
  }
  return at;
}

/// Puts this rank's own of what moves aside, where that is a slice, and lends
/// it where it is pulled. Inside the ring it stands for what the rank holds.
SmallVector<Held, 0> NestExpander::packSlices(const ShiftedLoop &shifted) {
  SmallVector<Held, 0> before;
  for (Ring &member : rings[shifted.loop.getName()]) {
    before.push_back({member.buffer, memory[member.buffer],
                      packed.lookup(member.buffer), arrived[member.buffer]});
    if (!member.packed)
      continue;
    // Of the rank's own along this ring, at what outer rings brought.
    auto outer = visiting;
    for (StringAttr level : member.group)
      visiting.erase({shifted.axis, level});
    Part own = getPart(member.factors, member.level, getRank(member.level),
                       shifted.axis);
    visiting = std::move(outer);
    auto at = getMoved(member, shifted.axis, own);
    Value source = getHeldTile(member, at);
    CopyOp::create(builder, nest.getLoc(), source,
                   getTileAt(member.packed, at));
    memory[member.buffer] = packed[member.buffer] = member.packed;
    arrived[member.buffer].clear();
    if (!member.group.empty())
      member.lease = lend(member.packed, member.group);
  }
  return before;
}

void NestExpander::returnSlices(const ShiftedLoop &shifted,
                                MutableArrayRef<Held> before) {
  for (auto [member, held] :
       llvm::zip_equal(rings[shifted.loop.getName()], before)) {
    if (member.packed && member.lease)
      LeaseCloseOp::create(builder, nest.getLoc(), member.lease);
    memory[held.buffer] = held.memory;
    packed[held.buffer] = held.packed;
    arrived[held.buffer] = std::move(held.arrived);
  }
}
