//===- Runs.cpp - Launches on runs of pieces ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch that was found to see the same takes runs of pieces; see Runs.h.
// What it overwrites and leaves out becomes the merge's identity.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Runs.h"
#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Localization/ProgramLocalizer.h"

using namespace mlir;
using namespace mlir::commir;

static ArrayRef<DimAttr> getDims(Value tile) {
  return cast<TileType>(tile.getType()).getDims();
}

ProgramLocalizer::Range ProgramLocalizer::findAsked(ArrayRef<Value> operands,
                                                    StringRef axis) {
  for (Value tile : operands)
    for (auto [dim, extent] :
         llvm::zip_equal(getDims(tile), tiles.lookup(tile).extents))
      if (!dim.isConstant() && dim.getAxis() == axis)
        return extent.asked;
  return {};
}

Value ProgramLocalizer::takeRun(
    Value operand,
    ArrayRef<std::pair<StringRef, std::pair<Value, Value>>> runs) {
  const Tile &tile = tiles[operand];
  if (tile.isEmpty)
    return mapping.lookup(operand);
  SmallVector<Value> offsets, sizes;
  for (auto [dim, extent] : llvm::zip_equal(getDims(operand), tile.extents)) {
    Value offset = extent.offset, size = extent.size;
    for (const auto &[axis, run] : runs)
      if (!dim.isConstant() && dim.getAxis() == axis) {
        offset = add(offset, run.first);
        size = run.second;
      }
    offsets.push_back(offset);
    sizes.push_back(size);
  }
  return makeSubview(tile.frame, offsets, sizes);
}

void ProgramLocalizer::fillRest(Value output, StringRef axis, Value begin,
                                Value end, FloatAttr identity) {
  Location loc = program.getLoc();
  Value size = sub(end, begin);
  Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                     size, constant(0));
  auto branch = scf::IfOp::create(builder, loc, some, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value tile = takeRun(output, {{axis, {begin, size}}});
  FillOp::create(builder, loc, tile, identity);
}

LogicalResult ProgramLocalizer::convertJoined(LaunchOp op, StringRef queryAxis,
                                              StringRef keyAxis) {
  MaskAttr mask = *op.getMask();
  SmallVector<Value> operands(op.getInputs());
  llvm::append_range(operands, op.getOutputs());
  for (Value operand : operands)
    if (llvm::any_of(tiles.lookup(operand).extents,
                     [](const Extent &extent) { return extent.inPieces; }))
      return op.emitOpError() << "takes its pieces together, which do not lie "
                                 "together in memory";
  struct Side {
    StringRef axis;
    Value whole;
    SmallVector<Piece> pieces;
    SmallVector<Value> needed;
    RunBuilder::Run run = {};
  } sides[2] = {{queryAxis, {}, {}, {}}, {keyAxis, {}, {}, {}}};
  RunBuilder runs{builder, op.getLoc()};
  for (Side &side : sides) {
    AxisAttr axis = program.getAxis(side.axis);
    Range asked = findAsked(operands, side.axis);
    side.whole = layouts.size(axis, asked);
    for (int64_t i = 0, e = getPieces(axis, asked); i < e; ++i)
      side.pieces.push_back(layouts.piece(axis, asked, constant(i)));
    side.needed.resize(side.pieces.size());
  }
  auto orElse = [&](Value &held, Value value) {
    held =
        held ? arith::OrIOp::create(builder, op.getLoc(), held, value) : value;
  };
  for (auto [i, queries] : llvm::enumerate(sides[0].pieces)) {
    for (auto [j, keys] : llvm::enumerate(sides[1].pieces)) {
      Value seen = runs.sees(mask, queries, keys);
      orElse(sides[0].needed[i], seen);
      orElse(sides[1].needed[j], seen);
    }
  }
  SmallVector<std::pair<StringRef, std::pair<Value, Value>>> taken;
  for (Side &side : sides) {
    side.run = runs.getRun(side.pieces, side.needed);
    taken.push_back({side.axis, {side.run.local, side.run.size}});
  }
  SmallVector<Value> tilesOfRun, at;
  for (Value operand : operands)
    tilesOfRun.push_back(takeRun(operand, taken));
  for (auto [letter, position] : llvm::zip(
           KernelSignature::positions(op.getKernel()), op.getPositions())) {
    if (letter.letter == "sq" || letter.letter == "sk") {
      at.push_back(sides[letter.letter == "sq" ? 0 : 1].run.begin);
      continue;
    }
    auto found = positions.find(position);
    at.push_back(found == positions.end()
                     ? mapping.lookup(position)
                     : layouts.begin(found->second.axis, found->second.range,
                                     found->second.divisor));
  }
  ValueRange all(tilesOfRun);
  Value scratch = op.getScratch() ? mapping.lookup(op.getScratch()) : Value();
  LaunchOp::create(builder, op.getLoc(), op.getKernelAttr(),
                   all.take_front(op.getInputs().size()),
                   all.drop_front(op.getInputs().size()), at, mask,
                   op.getScaleAttr(), op.getGroupAttr(), op.getImplAttr(),
                   scratch, op.getOverwriteAttr());
  for (auto [i, output] : llvm::enumerate(op.getOutputs())) {
    if (!op.overwrites(i) || tiles[output].isEmpty)
      continue;
    FloatAttr identity = builder.getF64FloatAttr(
        KernelSignature::getIdentity(op.getKernel(), i));
    for (const Side &side : sides) {
      if (llvm::none_of(getDims(output), [&](DimAttr dim) {
            return !dim.isConstant() && dim.getAxis() == side.axis;
          }))
        continue;
      Value end = add(side.run.local, side.run.size);
      fillRest(output, side.axis, constant(0), side.run.local, identity);
      fillRest(output, side.axis, end, side.whole, identity);
    }
  }
  return success();
}
