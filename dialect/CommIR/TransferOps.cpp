//===- TransferOps.cpp - The lowered plan ---------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/CommIR.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::commir;

static bool isCount(int64_t number) {
  return number >= 1 && number <= kMaxShards;
}

LogicalResult PositionOp::verify() {
  if (int64_t parts = getPartsAttr().getInt(); !isCount(parts))
    return emitOpError() << "the parts of axis '" << getAxis()
                         << "' must be from 1 to 2^20, got " << parts;
  if (int64_t divisor = getDivisorAttr().getInt(); divisor < 1)
    return emitOpError() << "the divisor of a position must be at least 1, got "
                         << divisor;
  return success();
}

/// The only part of an axis begins where the axis does.
OpFoldResult PositionOp::fold(FoldAdaptor) {
  if (getParts() != 1)
    return {};
  return IntegerAttr::get(IndexType::get(getContext()), 0);
}

LogicalResult AllocOp::verify() {
  if (int64_t slots = getSlotsAttr().getInt(); !isCount(slots))
    return emitOpError() << "the slots of local memory must be from 1 to 2^20, "
                            "got "
                         << slots;
  BufferType type = getBuffer().getType();
  for (NamedAttribute entry : getParts()) {
    StringRef axis = entry.getName();
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    if (!number || !number.getType().isSignlessInteger(64) ||
        !isCount(number.getInt()))
      return emitOpError() << "parts must give each axis a number from 1 to "
                              "2^20, got "
                           << entry.getValue() << " for '" << axis << "'";
    if (!type.hasAxis(axis))
      return emitOpError() << "local memory must be cut along axes of its "
                              "buffer, '"
                           << axis << "' is none";
  }
  for (CutAttr cut : getPlacement().getCuts())
    if (!type.hasAxis(cut.getAxis()))
      return emitOpError() << "local memory must be cut along axes of its "
                              "buffer, '"
                           << cut.getAxis() << "' is none";
  return success();
}

LogicalResult PartOp::verify() {
  if (getIndices().size() != getAxes().size() ||
      getIndices().size() != getCounts().size())
    return emitOpError()
           << "must have an axis and a number of parts for each index, got "
           << getAxes().size() << " axes and " << getCounts().size()
           << " numbers for " << getIndices().size() << " indices";
  for (int64_t count : getCounts())
    if (!isCount(count))
      return emitOpError() << "the number of parts must be from 1 to 2^20, got "
                           << count;
  BufferType type = getBuffer().getType();
  llvm::StringSet<> seen;
  for (auto axis : getAxes().getAsRange<StringAttr>())
    if (!type.hasAxis(axis) || !seen.insert(axis.getValue()).second)
      return emitOpError()
             << "a part must be of axes of its buffer, each once, got '"
             << axis.getValue() << "' of " << type;
  std::optional<int64_t> stack = getStack();
  if (stack && (!isCount(*stack) || getSlot()))
    return emitOpError() << "a stack must be of 1 to 2^20 slots, and of no "
                            "single one, got "
                         << *stack << (getSlot() ? " and a slot" : "");
  TileType expected = type.getTileType();
  if (stack) {
    SmallVector<DimAttr> dims{DimAttr::get(getContext(), "", *stack)};
    llvm::append_range(dims, type.getDims());
    expected = TileType::get(getContext(), dims, type.getElementType());
  }
  if (getTile().getType() != expected)
    return emitOpError() << "must give the tile of its buffer, " << expected
                         << ", got " << getTile().getType();
  return success();
}

LogicalResult LaunchOp::verify() {
  if (auto overwrite = getOverwrite();
      overwrite && overwrite->size() != getOutputs().size())
    return emitOpError() << "overwrite must have an entry for each result, got "
                         << overwrite->size() << " for " << getOutputs().size();
  return success();
}

/// Lanes are changed for all that follows in the text.
static LogicalResult verifyLanes(Operation *op, ArrayRef<int64_t> lanes) {
  for (int64_t lane : lanes)
    if (lane < 0 || lane >= kMaxLanes)
      return op->emitOpError() << "the number of a lane must be from 0 to "
                               << kMaxLanes - 1 << ", got " << lane;
  if (!isa_and_nonnull<FunctionOpInterface>(op->getParentOp()))
    return op->emitOpError() << "must be in the body of a function, outside of "
                                "loops and branches";
  return success();
}

LogicalResult LaneUseOp::verify() {
  return verifyLanes(*this, {static_cast<int64_t>(getLane())});
}

LogicalResult LaneOrderOp::verify() {
  return verifyLanes(*this, {static_cast<int64_t>(getEarlier()),
                             static_cast<int64_t>(getLater())});
}

LogicalResult MemoryOp::verify() {
  IntegerAttr argument = getArgumentAttr();
  if (!argument == !getArenaAttr())
    return emitOpError() << "must be of an argument or of an arena, got "
                         << (argument ? "both" : "neither");
  if (argument && argument.getInt() < 0)
    return emitOpError() << "the number of an argument must not be negative, "
                            "got "
                         << argument.getInt();
  return success();
}

/// The type of a tile with elements of another type.
static Type withElementType(Type tile, Type element) {
  if (auto type = dyn_cast<TileType>(tile))
    return TileType::get(tile.getContext(), type.getDims(), element);
  return MemRefType::Builder(cast<MemRefType>(tile)).setElementType(element);
}

static Type getTileElement(Type tile) {
  return isa<TileType>(tile) ? cast<TileType>(tile).getElementType()
                             : cast<MemRefType>(tile).getElementType();
}

LogicalResult AccumulateOp::verify() {
  Type source = getSource().getType(), target = getTarget().getType();
  if (source == target)
    return success();
  Type narrow = getTileElement(source), wide = getTileElement(target);
  if (isa<MemRefType>(source) == isa<MemRefType>(target) &&
      isa<FloatType>(narrow) && isa<FloatType>(wide) &&
      narrow.getIntOrFloatBitWidth() < wide.getIntOrFloatBitWidth() &&
      withElementType(source, wide) == target)
    return success();
  return emitOpError() << "a tile to add must have the shape of the sum and no "
                          "wider elements, "
                       << target << ", got " << source;
}

/// A copy of a tile to itself changes nothing.
LogicalResult CopyOp::canonicalize(CopyOp copy, PatternRewriter &rewriter) {
  if (copy.getSource() != copy.getTarget())
    return failure();
  rewriter.eraseOp(copy);
  return success();
}

LogicalResult RedistributeOp::verify() {
  if (getSource().getType() != getTarget().getType())
    return emitOpError() << "a buffer to redistribute must keep its type, got "
                         << getSource().getType() << " and "
                         << getTarget().getType();
  return success();
}
