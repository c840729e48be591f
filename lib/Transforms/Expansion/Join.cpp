//===- Join.cpp - Launches that take pieces together ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which kernels of a nest take the pieces of their parts in one launch a step:
// those whose mask sees the same in runs of pieces, whatever parts meet, and
// whose operands hold such parts whole. Localization makes the runs.
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
bool NestExpander::holdsWholeParts(Value buffer, StringRef axis) {
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

bool NestExpander::joinsPieces(KernelOp kernel) {
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
