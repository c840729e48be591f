//===- Pieces.cpp - Tiles of several intervals ----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A part of a zigzag or striped axis is several intervals of positions, and so
// is one that packed documents cut. What asks for positions, and what works on
// a tile that does not lie together in its memory, runs once for each piece.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Localization/ProgramLocalizer.h"

using namespace mlir;
using namespace mlir::commir;

Value ProgramLocalizer::openLoop(Value begin, Value end) {
  auto loop =
      scf::ForOp::create(builder, program.getLoc(), begin, end, constant(1));
  builder.setInsertionPointToStart(loop.getBody());
  return loop.getInductionVar();
}

Value ProgramLocalizer::getLocalOffset(AxisAttr axis, const Extent &extent,
                                       const Piece &piece, Value number) {
  if (extent.first)
    return builder.fold<arith::SelectOp>(
        program.getLoc(), extent.isFirst,
        getLocalOffset(axis, *extent.first, piece, number),
        getLocalOffset(axis, *extent.second, piece, number));
  if (!extent.held.index)
    return piece.begin;
  if (extent.whole)
    return piece.local;
  Piece held =
      layouts.piece(axis, extent.held,
                    layouts.findPiece(axis, extent.held, extent.asked.index,
                                      extent.asked.count, number));
  return add(sub(piece.begin, held.begin), held.local);
}

/// Documents as a table: where each begins, then the end of the last.
static Value getDocumentTable(ProgramOp program, OpBuilder &builder,
                              ArrayRef<int64_t> bounds) {
  auto type = MemRefType::get({int64_t(bounds.size())}, builder.getI64Type());
  auto values = DenseElementsAttr::get(
      RankedTensorType::get(type.getShape(), type.getElementType()), bounds);
  auto module = program->getParentOfType<ModuleOp>();
  std::string name = (program.getSymName() + ".documents").str();
  for (unsigned i = 0;; ++i) {
    std::string tried = i ? name + std::to_string(i) : name;
    Operation *found = module.lookupSymbol(tried);
    if (!found) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(module.getBody());
      memref::GlobalOp::create(builder, program.getLoc(), tried,
                               builder.getStringAttr("private"), type, values,
                               /*constant=*/true, IntegerAttr());
    } else if (auto global = dyn_cast<memref::GlobalOp>(found);
               !global || global.getInitialValue() != Attribute(values)) {
      continue;
    }
    return memref::GetGlobalOp::create(builder, program.getLoc(), type, tried);
  }
}

std::pair<Value, Value>
ProgramLocalizer::openDocuments(ArrayRef<int64_t> documents) {
  Location loc = program.getLoc();
  Value table = getDocumentTable(program, builder, documents);
  Value number = openLoop(constant(documents.size() - 1));
  auto load = [&](Value at) -> Value {
    Value bound = memref::LoadOp::create(builder, loc, table, at);
    return builder.fold<arith::IndexCastOp>(loc, builder.getIndexType(), bound);
  };
  return {load(number), load(add(number, constant(1)))};
}

static ArrayRef<DimAttr> getDims(Value tile) {
  return cast<TileType>(tile.getType()).getDims();
}

FailureOr<SmallVector<std::pair<AxisAttr, ProgramLocalizer::Range>>>
ProgramLocalizer::getAxesInPieces(Operation *op, ArrayRef<Value> operands,
                                  const llvm::StringSet<> &always,
                                  bool isDocuments) {
  // In the order of their appearance.
  SmallVector<std::pair<AxisAttr, Range>> axes;
  for (Value tile : operands)
    for (auto [dim, extent] :
         llvm::zip_equal(getDims(tile), tiles.lookup(tile).extents)) {
      if (dim.isConstant())
        continue;
      StringRef name = dim.getAxis();
      bool forced =
          always.contains(name) &&
          (isDocuments || getPieces(program.getAxis(name), extent.asked) > 1);
      if (!extent.inPieces && !forced)
        continue;
      if (dim.getDivisor() != 1)
        return op->emitOpError()
               << "works on pieces of axis '" << name << "', of which '" << name
               << "/" << dim.getDivisor() << "' is a dimension; this version "
               << "does not lower that";
      if (llvm::none_of(
              axes, [&](auto &axis) { return axis.first.getName() == name; }))
        axes.emplace_back(program.getAxis(name), extent.asked);
    }
  return axes;
}

LogicalResult ProgramLocalizer::forEachPiece(
    Operation *op, ArrayRef<Value> operands, const llvm::StringSet<> &always,
    ArrayRef<int64_t> documents,
    function_ref<void(ArrayRef<Value>, const llvm::StringMap<Value> &)> body,
    ArrayRef<int64_t> only) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op->getLoc();
  auto axes = getAxesInPieces(op, operands, always, !documents.empty());
  if (failed(axes))
    return failure();

  Value documentBegin, documentEnd;
  if (!documents.empty())
    std::tie(documentBegin, documentEnd) = openDocuments(documents);
  // The pieces at hand, and how much of them is in the document.
  llvm::StringMap<Piece> pieces;
  llvm::StringMap<Value> numbers, begins, sizes;
  for (auto [i, found] : llvm::enumerate(*axes)) {
    auto &[axis, range] = found;
    int64_t count = getPieces(axis, range);
    Value number = !only.empty() ? constant(only[i])
                   : count == 1  ? constant(0)
                                 : openLoop(constant(count));
    Piece piece = layouts.piece(axis, range, number);
    Value begin = piece.begin, end = piece.end;
    if (documentBegin) {
      begin = builder.fold<arith::MaxSIOp>(loc, begin, documentBegin);
      end = builder.fold<arith::MinSIOp>(loc, end, documentEnd);
      end = builder.fold<arith::MaxSIOp>(loc, begin, end);
    }
    numbers[axis.getName()] = number;
    pieces[axis.getName()] = piece;
    begins[axis.getName()] = begin;
    sizes[axis.getName()] = sub(end, begin);
  }
  SmallVector<Value> found;
  for (Value operand : operands) {
    const Tile &tile = tiles[operand];
    if (llvm::none_of(getDims(operand), [&](DimAttr dim) {
          return !dim.isConstant() && pieces.contains(dim.getAxis());
        })) {
      found.push_back(mapping.lookup(operand));
      continue;
    }
    SmallVector<Value> offsets, lengths;
    for (auto [dim, extent] : llvm::zip_equal(getDims(operand), tile.extents)) {
      auto at = dim.isConstant() ? pieces.end() : pieces.find(dim.getAxis());
      if (at == pieces.end()) {
        offsets.push_back(extent.offset);
        lengths.push_back(extent.size);
        continue;
      }
      AxisAttr axis = program.getAxis(dim.getAxis());
      const Piece &piece = at->second;
      Value offset =
          tile.empty ||
                  (getPieces(axis, extent.asked) == 1 && isOneInterval(axis))
              ? extent.offset
              : getLocalOffset(axis, extent, piece, numbers[axis.getName()]);
      if (documentBegin)
        offset = add(offset, sub(begins[axis.getName()], piece.begin));
      offsets.push_back(offset);
      lengths.push_back(sizes[axis.getName()]);
    }
    found.push_back(takeSlab(tile, offsets, lengths));
  }
  body(found, begins);
  return success();
}

/// An op that works on its tiles element by element.
LogicalResult ProgramLocalizer::convertInPieces(Operation &op) {
  SmallVector<Value> operands(op.getOperands());
  return forEachPiece(&op, operands, {}, {},
                      [&](ArrayRef<Value> pieces, auto &) {
                        IRMapping map;
                        map.map(operands, pieces);
                        builder.clone(op, map);
                      });
}

/// The axis that a letter of the kernel's signature stands for.
static StringRef getAxisOf(LaunchOp op, StringRef letter) {
  auto signature =
      KernelSignature::parse(KernelSignature::known(op.getKernel()));
  if (!signature)
    return {};
  for (auto [shape, input] : llvm::zip(signature->operands, op.getInputs()))
    for (auto [found, dim] :
         llvm::zip(shape, cast<TileType>(input.getType()).getDims()))
      if (found == KernelSignature::Dim{letter} && !dim.isConstant())
        return dim.getAxis();
  return {};
}

/// A result that is merged into once for each piece of an axis it lacks is
/// filled, and no launch overwrites it.
FailureOr<DenseBoolArrayAttr>
ProgramLocalizer::fillForPieces(LaunchOp op, ArrayRef<Value> operands,
                                const llvm::StringSet<> &masked,
                                bool isDocuments) {
  if (!op.getOverwrite())
    return DenseBoolArrayAttr();
  auto axes = getAxesInPieces(op, operands, masked, isDocuments);
  if (failed(axes))
    return failure();
  SmallVector<bool> overwrites(*op.getOverwrite());
  for (auto [i, output] : llvm::enumerate(op.getOutputs())) {
    bool several = llvm::any_of(*axes, [&](auto &found) {
      auto &[axis, range] = found;
      return getPieces(axis, range) > 1 &&
             llvm::none_of(getDims(output), [&](DimAttr dim) {
               return !dim.isConstant() && dim.getAxis() == axis.getName();
             });
    });
    if (!overwrites[i] || !several)
      continue;
    overwrites[i] = false;
    double identity = KernelSignature::getIdentity(op.getKernel(), i);
    if (failed(forEachPiece(op, output, {}, {},
                            [&](ArrayRef<Value> pieces, auto &) {
                              FillOp::create(builder, op.getLoc(), pieces[0],
                                             builder.getF64FloatAttr(identity));
                            })))
      return failure();
  }
  return llvm::is_contained(overwrites, true)
             ? builder.getDenseBoolArrayAttr(overwrites)
             : DenseBoolArrayAttr();
}

LogicalResult ProgramLocalizer::convert(LaunchOp op) {
  StringRef queries = getAxisOf(op, "sq"), keys = getAxisOf(op, "sk");
  if (op->hasAttr("commir.joined"))
    return convertJoined(op, queries, keys);
  if (auto madeBy = op->getAttrOfType<DictionaryAttr>("commir.made_by"))
    return convertMergeOfPieces(op, madeBy);
  MaskAttr mask = op.getMask().value_or(MaskAttr());
  if (mask && !mask.isFull() && takesStripes(op, queries, keys)) {
    convertStriped(op, queries, keys);
    return success();
  }
  // The axes whose positions the mask speaks of.
  llvm::StringSet<> masked;
  if (mask && !mask.isFull())
    for (StringRef letter : {"sq", "sk"}) {
      StringRef axis = getAxisOf(op, letter);
      if (!axis.empty())
        masked.insert(axis);
      else if (!mask.getDocuments().empty())
        return op.emitOpError() << "has a mask of documents, whose queries and "
                                   "keys must be axes of the program";
    }
  ArrayRef<int64_t> documents =
      mask ? mask.getDocuments() : ArrayRef<int64_t>();
  SmallVector<Value> operands(op.getInputs());
  llvm::append_range(operands, op.getOutputs());
  auto overwrite = fillForPieces(op, operands, masked, !documents.empty());
  if (failed(overwrite))
    return failure();
  LogicalResult result = success();
  LogicalResult split = forEachPiece(
      op, operands, masked, documents,
      [&](ArrayRef<Value> pieces, const llvm::StringMap<Value> &begins) {
        SmallVector<Value> at;
        for (auto [letter, position] :
             llvm::zip(KernelSignature::positions(op.getKernel()),
                       op.getPositions())) {
          // Of the whole axis, the position is known without its part.
          StringRef name = getAxisOf(op, letter.letter);
          if (auto begin = begins.find(name);
              !letter.divided && begin != begins.end()) {
            at.push_back(begin->second);
            continue;
          }
          auto found = positions.find(position);
          if (found == positions.end()) {
            at.push_back(mapping.lookup(position));
            continue;
          }
          auto &[axis, range, divisor] = found->second;
          if (getPieces(axis, range) == 1)
            at.push_back(layouts.begin(axis, range, divisor));
          else
            result = op.emitOpError()
                     << "asks for positions of axis '" << axis.getName()
                     << "', which none of its tiles has alone; this version "
                        "does not lower that";
        }
        if (failed(result))
          return;
        MaskAttr within =
            documents.empty()
                ? mask
                : MaskAttr::get(op.getContext(), mask.getLeft(),
                                mask.getRight(), ArrayRef<int64_t>());
        Value scratch =
            op.getScratch() ? mapping.lookup(op.getScratch()) : Value();
        LaunchOp::create(builder, op.getLoc(), op.getKernelAttr(),
                         pieces.take_front(op.getInputs().size()),
                         pieces.drop_front(op.getInputs().size()), at, within,
                         op.getScaleAttr(), op.getGroupAttr(), op.getImplAttr(),
                         scratch, *overwrite);
      });
  return success(succeeded(split) && succeeded(result));
}
