//===- Join.cpp - Launches that take pieces together ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which kernels of a nest take the pieces of their parts in one launch a step:
// those whose mask sees the same in runs of pieces, whatever parts meet, or
// sees a band of positions that are dealt one by one, and whose operands hold
// such parts whole. Localization makes the runs.
//
// Partial results that wait may leave out the pieces that see nothing, where
// some step of a ring makes all of the result, and the steps that make a piece
// of it follow one another: the merge is then made piece by piece, of as many.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/Runs.h"

using namespace mlir;
using namespace mlir::commir;

/// Whether memory for parts of a buffer holds one part of an axis at a time, of
/// as many as the loops make.
bool NestSchedule::holdsWholeParts(Value buffer, StringRef axis) {
  auto type = cast<BufferType>(buffer.getType());
  if (!type.hasAxis(axis))
    return true;
  CutAttr cut =
      getInside(cast<BlockArgument>(buffer).getArgNumber()).getCut(axis);
  SmallVector<Attribute> factors =
      cut ? getFactors(mesh, cut) : SmallVector<Attribute>();
  return llvm::all_of(factors, llvm::IsaPred<StringAttr>) &&
         countParts(factors) == nest.getParts(axis);
}

bool NestSchedule::joinsPieces(KernelOp kernel) {
  MaskAttr mask = kernel.getMask().value_or(MaskAttr());
  DimAttr queries = getBoundDim(kernel, {"sq"});
  DimAttr keys = getBoundDim(kernel, {"sk"});
  if (!mask || mask.isFull() || !queries || !keys || queries.isConstant() ||
      keys.isConstant() || queries.getAxis() == keys.getAxis())
    return false;
  bool inPieces = false;
  for (DimAttr dim : {queries, keys}) {
    StringRef axis = dim.getAxis();
    inPieces |= getPieces(program.getAxis(axis), nest.getParts(axis)) > 1;
    if (dim.getDivisor() != 1)
      return false;
    for (LoopAttr loop : loops)
      if (loop.isOver(axis) && loop.getParts() > 1 &&
          (loop.getAxes().size() > 1 ||
           (!loop.isParallel() && !loop.getShift()) ||
           (loop.getShift() && loop.getShift().getChunks() > 1)))
        return false;
    for (Value input : kernel.getInputs())
      if (auto load = input.getDefiningOp<LoadOp>();
          load && !holdsWholeParts(load.getBuffer(), axis))
        return false;
    for (Value output : kernel.getOutputs())
      for (OpOperand &use : output.getUses())
        if (auto store = dyn_cast<StoreOp>(use.getOwner());
            store && !holdsWholeParts(store.getBufferOf(use), axis))
          return false;
  }
  return inPieces && canJoinPieces(mask, program.getAxis(queries.getAxis()),
                                   nest.getParts(queries.getAxis()),
                                   program.getAxis(keys.getAxis()),
                                   nest.getParts(keys.getAxis()));
}

/// The loop over an axis where that is shifted, and no other loop runs in
/// sequence but for slices of the result; null otherwise.
LoopAttr NestSchedule::getOnlyShift(StringRef axis, BufferType result) {
  LoopAttr found;
  for (LoopAttr loop : loops) {
    if (loop.getParts() == 1 || (loop.isParallel() && !loop.getShift()) ||
        (!loop.getShift() && result.hasAxis(loop.getAxes().front())))
      continue;
    if (found || !loop.getShift() || !loop.isOver(axis) ||
        loop.getParts() != nest.getParts(axis))
      return {};
    found = loop;
  }
  return found;
}

/// Finds the partial result that waits where the result is, and whether the
/// others leave out what sees nothing.
void NestExpander::findHome(StoreOp store, size_t result, Waiting &held) {
  auto kernel = store.getTiles()[result].getDefiningOp<KernelOp>();
  held.home = 0;
  if (!joinsPieces(kernel))
    return;
  auto type = cast<BufferType>(store.getBuffers()[result].getType());
  StringRef queries = getBoundDim(kernel, {"sq"}).getAxis();
  StringRef keys = getBoundDim(kernel, {"sk"}).getAxis();
  bool isOfQueries = type.hasAxis(queries);
  AxisAttr stays = program.getAxis(isOfQueries ? queries : keys);
  AxisAttr moves = program.getAxis(isOfQueries ? keys : queries);
  LoopAttr loop = getOnlyShift(moves.getName(), type);
  // Of the many pieces that are dealt one by one, next to none is left out.
  if (isOfQueries == type.hasAxis(keys) || !loop || isDealtOneByOne(stays))
    return;
  ShiftedLoop shifted = describeShift(loop);
  int64_t parts = nest.getParts(stays.getName()), ranks = 1;
  for (auto level : mesh.getLevels().getAsRange<LevelAttr>())
    ranks *= level.getSize();
  // For each rank and piece, whether a step makes it.
  SmallVector<SmallVector<bool>> made;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    llvm::StringMap<int64_t> coordinates;
    int64_t left = rank;
    for (auto level : llvm::reverse(
             llvm::to_vector(mesh.getLevels().getAsRange<LevelAttr>()))) {
      coordinates[level.getName()] = left % level.getSize();
      left /= level.getSize();
    }
    int64_t own = 0, phase = shifted.offset;
    for (StringAttr level : getParallelLevels(stays.getName()))
      own = own * mesh.getLevelSize(level) + coordinates[level.getValue()];
    for (StringAttr level : getRingLevels(loop))
      phase += shifted.parts / mesh.getLevelSize(level) *
               coordinates[level.getValue()];
    auto pieces = getPieceIntervals(stays, parts, own);
    size_t first = made.size();
    made.append(pieces.size(), SmallVector<bool>());
    for (int64_t step = 0; step < shifted.steps; ++step) {
      int64_t part = (shifted.direction * step + phase) % shifted.parts;
      auto others = getPieceIntervals(moves, shifted.parts,
                                      part < 0 ? part + shifted.parts : part);
      PieceRun run = isOfQueries
                         ? getRuns(*kernel.getMask(), pieces, others).first
                         : getRuns(*kernel.getMask(), others, pieces).second;
      for (auto [i, piece] : llvm::enumerate(pieces))
        made[first + i].push_back(
            piece.size() == 0 ||
            (int64_t(i) >= run.first && int64_t(i) < run.last));
    }
  }
  for (int64_t step = 0; step < shifted.steps && !held.leavesOut; ++step) {
    if (!llvm::all_of(made, [&](ArrayRef<bool> steps) { return steps[step]; }))
      continue;
    held.home = step;
    held.leavesOut = llvm::all_of(made, [&](ArrayRef<bool> steps) {
      int64_t starts = 0;
      bool before = false;
      for (auto [other, isMade] : llvm::enumerate(steps)) {
        if (int64_t(other) == step)
          continue;
        starts += isMade && !before;
        before = isMade;
      }
      return starts <= 1;
    });
  }
}

/// Tells a merge, by piece, of which slots it is.
void NestExpander::leaveOut(StoreOp store, const Waiting &held,
                            LaunchOp merge) {
  auto kernel = store.getTiles()[0].getDefiningOp<KernelOp>();
  DimAttr queries = getBoundDim(kernel, {"sq"});
  DimAttr keys = getBoundDim(kernel, {"sk"});
  auto type = cast<BufferType>(store.getBuffers()[0].getType());
  bool isOfQueries = type.hasAxis(queries.getAxis());
  DimAttr stays = isOfQueries ? queries : keys;
  DimAttr moves = isOfQueries ? keys : queries;
  ShiftedLoop shifted = describeShift(getOnlyShift(moves.getAxis(), type));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(merge);
  merge.getPositionsMutable().assign(getPhase(shifted));
  merge->setAttr(
      "commir.made_by",
      builder.getDictionaryAttr({
          builder.getNamedAttr("direction",
                               builder.getI64IntegerAttr(shifted.direction)),
          builder.getNamedAttr("home", builder.getI64IntegerAttr(held.home)),
          builder.getNamedAttr("mask", *kernel.getMask()),
          builder.getNamedAttr("moves", builder.getStringAttr(moves.getAxis())),
          builder.getNamedAttr("parts",
                               builder.getI64IntegerAttr(shifted.parts)),
          builder.getNamedAttr("queries", builder.getBoolAttr(isOfQueries)),
          builder.getNamedAttr("stays", builder.getStringAttr(stays.getAxis())),
      }));
}
