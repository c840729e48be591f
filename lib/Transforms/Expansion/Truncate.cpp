//===- Truncate.cpp - Steps that no rank needs ----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Behind a window, all queries of all ranks see nothing of the parts that come
// last: the loop ends before them, and they are not moved. How many are left
// depends on the direction: a window of one shard takes 2 steps against 8 on 8
// ranks.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Whether some query sees some key.
static bool sees(MaskAttr mask, Interval queries, Interval keys) {
  if (queries.size() <= 0 || keys.size() <= 0)
    return false;
  // Key minus query goes from the first to the last of these.
  int64_t least = keys.begin - (queries.end - 1);
  int64_t most = keys.end - 1 - queries.begin;
  if (most < -mask.getLeft() || least > mask.getRight())
    return false;
  ArrayRef<int64_t> documents = mask.getDocuments();
  if (documents.empty())
    return true;
  for (auto [begin, end] :
       llvm::zip(documents.drop_back(), documents.drop_front())) {
    auto clip = [&](Interval all) {
      return Interval{std::max(all.begin, begin), std::min(all.end, end)};
    };
    MaskAttr within =
        MaskAttr::get(mask.getContext(), mask.getLeft(), mask.getRight(), {});
    if (sees(within, clip(queries), clip(keys)))
      return true;
  }
  return false;
}

/// What a rank's iterations touch of an axis, whatever the sequential loops
/// over it are at.
SmallVector<Interval> NestSchedule::getTouched(AxisAttr axis,
                                               ArrayRef<int64_t> coordinates) {
  int64_t index = 0, count = 1;
  for (StringAttr level : getParallelLevels(axis.getName())) {
    int64_t size = mesh.getLevelSize(level);
    index = index * size + coordinates[mesh.getLevelNumber(level)];
    count *= size;
  }
  return axis.getLayout().getLayout().shard(axis.getExtent(), count, index);
}

/// Which part of its axis part `part` of a shifted loop is, as addPart() has
/// it.
int64_t NestSchedule::getNumberInLayout(const ShiftedLoop &shifted,
                                        int64_t part) {
  int64_t each = getPartsARank(shifted);
  if (each == 1 || !isStriped(shifted.axis))
    return part;
  return part % each * (shifted.parts / each) + part / each;
}

/// How many steps of a shifted loop some rank needs, at least one.
int64_t NestSchedule::countSteps(const ShiftedLoop &shifted) {
  StringRef name = shifted.axis.getValue();
  // Parts within parts that another loop visits are not known here.
  for (LoopAttr loop : loops)
    if (loop != shifted.loop && loop.isOver(name) && loop.getParts() > 1)
      return shifted.parts;
  MaskAttr mask;
  AxisAttr other;
  bool moves = false; // whether the keys, rather than the queries, are shifted
  for (KernelOp kernel : nest.getBody().getOps<KernelOp>()) {
    if (entersOnce(kernel))
      continue;
    DimAttr queries = getBoundDim(kernel, {"sq"});
    DimAttr keys = getBoundDim(kernel, {"sk"});
    if (!kernel.getMask() || kernel.getMask()->isFull() || mask || !queries ||
        !keys || queries.isConstant() || keys.isConstant() ||
        (queries.getAxis() == name) == (keys.getAxis() == name))
      return shifted.parts;
    mask = *kernel.getMask();
    moves = keys.getAxis() == name;
    other = program.getAxis(moves ? queries.getAxis() : keys.getAxis());
  }
  if (!mask)
    return shifted.parts;

  AxisAttr axis = program.getAxis(name);
  Layout layout = axis.getLayout().getLayout();
  SmallVector<int64_t> sizes, coordinates;
  int64_t ranks = 1;
  for (auto level : mesh.getLevels().getAsRange<LevelAttr>()) {
    sizes.push_back(level.getSize());
    ranks *= level.getSize();
  }
  coordinates.resize(sizes.size());
  int64_t needed = 1;
  for (int64_t rank = 0; rank < ranks && needed < shifted.parts; ++rank) {
    for (int64_t level = sizes.size(), left = rank; level-- > 0;) {
      coordinates[level] = left % sizes[level];
      left /= sizes[level];
    }
    int64_t phase = shifted.offset;
    for (StringAttr level : getRingLevels(shifted.loop))
      phase += shifted.parts / mesh.getLevelSize(level) *
               coordinates[mesh.getLevelNumber(level)];
    SmallVector<Interval> held = getTouched(other, coordinates);
    for (int64_t step = shifted.parts; step-- > needed;) {
      int64_t part = shifted.direction * step + phase;
      part = ((part % shifted.parts) + shifted.parts) % shifted.parts;
      auto visited = layout.shard(axis.getExtent(), shifted.parts,
                                  getNumberInLayout(shifted, part));
      bool seen = llvm::any_of(visited, [&](Interval moved) {
        return llvm::any_of(held, [&](Interval stays) {
          return moves ? sees(mask, stays, moved) : sees(mask, moved, stays);
        });
      });
      if (!seen)
        continue;
      needed = step + 1;
      break;
    }
  }
  return needed;
}
