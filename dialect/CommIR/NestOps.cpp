//===- NestOps.cpp - A nest of loops and its body -------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "dialect/CommIR/LoopRules.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::commir;

//===----------------------------------------------------------------------===//
// ForOp
//===----------------------------------------------------------------------===//

LogicalResult ForOp::verify() {
  if (getLoops().empty())
    return emitOpError() << "a nest must have at least one loop";
  for (Operation &op : getBody().getOps())
    if (!isa<LoadOp, KernelOp, StoreOp>(op))
      return emitOpError() << "the body of a nest must hold loads, kernels and "
                              "stores only, got '"
                           << op.getName() << "'";
  return success();
}

LoopAttr ForOp::getLoop(StringRef name) {
  for (auto loop : getLoops().getAsRange<LoopAttr>())
    if (loop.getName() == name)
      return loop;
  return {};
}

int64_t ForOp::getParts(StringRef axis) {
  auto program = (*this)->getParentOfType<ProgramOp>();
  int64_t total = 1;
  for (auto loop : getLoops().getAsRange<LoopAttr>()) {
    SmallVector<int64_t> parts = *getPartsOfAxes(program, loop);
    for (auto [name, count] : llvm::zip_equal(loop.getAxes(), parts))
      if (name == axis)
        total *= count;
  }
  return total;
}

/// Whether some loop of the nest runs over `axis`.
static bool hasLoopOver(ForOp nest, StringRef axis) {
  return llvm::any_of(nest.getLoops().getAsRange<LoopAttr>(),
                      [&](LoopAttr loop) { return loop.isOver(axis); });
}

/// A nest walks every axis of the buffers that its body touches.
static LogicalResult verifyLooped(Operation *op, Value buffer) {
  auto nest = cast<ForOp>(op->getParentOp());
  for (DimAttr dim : cast<BufferType>(buffer.getType()).getDims())
    if (!dim.isConstant() && !hasLoopOver(nest, dim.getAxis()))
      return op->emitOpError() << "each axis of a loaded or stored buffer must "
                                  "have a loop in the "
                                  "nest, '"
                               << dim.getAxis() << "' has none";
  return success();
}

/// Whether `buffer` is an argument of the program, in the given role.
static bool isProgramBuffer(Operation *op, Value buffer, bool input) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  auto program = op->getParentOfType<ProgramOp>();
  return argument && program &&
         argument.getOwner() == &program.getBody().front() &&
         program.isInput(argument.getArgNumber()) == input;
}

//===----------------------------------------------------------------------===//
// LoadOp, KernelOp, StoreOp
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &, OperationState &state, Value buffer) {
  state.addOperands(buffer);
  state.addTypes(cast<BufferType>(buffer.getType()).getTileType());
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand buffer;
  BufferType type;
  if (parser.parseOperand(buffer) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(type) ||
      parser.resolveOperand(buffer, type, result.operands))
    return failure();
  result.addTypes(type.getTileType());
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << " " << getBuffer();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getBuffer().getType();
}

LogicalResult LoadOp::verify() {
  auto buffer = getBuffer().getType();
  if (getTile().getType() != buffer.getTileType())
    return emitOpError() << "must give the tile of its buffer, "
                         << buffer.getTileType() << ", got "
                         << getTile().getType();
  if (!isProgramBuffer(*this, getBuffer(), /*input=*/true))
    return emitOpError() << "must read an input; outputs are only stored to";
  return verifyLooped(*this, getBuffer());
}

LogicalResult KernelOp::verify() { return verifySignature(*this); }

Value StoreOp::getBufferOf(OpOperand &tile) {
  unsigned number = tile.getOperandNumber(), count = getTiles().size();
  // Tiles come first, then as many buffers, then what enters once.
  return getBuffers()[number < count ? number : number - 2 * count];
}

/// A kernel that takes `h` and gives `h/4` reduces the heads of each group.
static DimAttr getGroupedDim(Value tile, StringRef axis) {
  int64_t finest = getFinestDivisor(tile.getDefiningOp<KernelOp>(), axis);
  for (DimAttr dim : cast<TileType>(tile.getType()).getDims())
    if (!dim.isConstant() && dim.getAxis() == axis && finest != 0 &&
        finest < dim.getDivisor())
      return dim;
  return {};
}

/// What enters a merge once is made of nothing that the merge goes over.
static LogicalResult verifyOnce(StoreOp store, ArrayRef<StringRef> over) {
  if (store.getOnce().empty())
    return success();
  if (store.getOnce().size() != store.getBuffers().size())
    return store.emitOpError()
           << "what enters once must be one tile for each buffer, got "
           << store.getOnce().size() << " tiles and "
           << store.getBuffers().size() << " buffers";
  if (!store.getMerge())
    return store.emitOpError()
           << "what enters once must have a merge to enter, as in merge(sum)";
  for (auto [tile, buffer] :
       llvm::zip_equal(store.getOnce(), store.getBuffers())) {
    auto type = cast<BufferType>(buffer.getType());
    if (cast<TileType>(tile.getType()).getDims() != type.getDims())
      return store.emitOpError() << "a tile that enters once must have the "
                                    "dimensions of its buffer, "
                                 << type << ", got " << tile.getType();
    auto kernel = tile.getDefiningOp<KernelOp>();
    for (StringRef axis : over)
      if (!type.hasAxis(axis) && getFinestDivisor(kernel, axis) != 0)
        return store.emitOpError() << "what enters once must not depend on a "
                                      "reduced axis, its kernel takes '"
                                   << axis << "'";
  }
  return success();
}

LogicalResult StoreOp::verify() {
  if (getTiles().size() != getBuffers().size() || getTiles().empty())
    return emitOpError() << "must have one buffer for each tile, got "
                         << getTiles().size() << " tiles and "
                         << getBuffers().size() << " buffers";
  auto nest = cast<ForOp>((*this)->getParentOp());
  SmallVector<StringRef> over;
  if (std::optional<ArrayAttr> axes = getOver())
    for (auto axis : axes->getAsRange<StringAttr>())
      over.push_back(axis.getValue());
  for (auto [tile, buffer] : llvm::zip_equal(getTiles(), getBuffers())) {
    auto type = cast<BufferType>(buffer.getType());
    if (cast<TileType>(tile.getType()).getDims() != type.getDims())
      return emitOpError() << "a stored tile must have the dimensions of its "
                              "buffer, "
                           << type << ", got " << tile.getType();
    if (!isProgramBuffer(*this, buffer, /*input=*/false))
      return emitOpError() << "must write an output; inputs are only loaded";
    if (!buffer.hasOneUse())
      return emitOpError() << "a buffer must be stored to once";
    if (failed(verifyLooped(*this, buffer)))
      return failure();
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
      for (StringAttr axis : loop.getAxes()) {
        bool has = type.hasAxis(axis);
        bool named = llvm::is_contained(over, axis.getValue());
        if (DimAttr grouped = getGroupedDim(tile, axis)) {
          if (!named)
            return emitOpError()
                   << "over must name the loop axes that the buffer lacks: the "
                      "kernel takes '"
                   << axis.getValue() << "', the buffer has '"
                   << axis.getValue() << "/" << grouped.getDivisor()
                   << "' of it";
          continue;
        }
        if (has == named)
          return emitOpError()
                 << "over must name the loop axes that the buffer lacks: '"
                 << axis.getValue() << "' is " << (has ? "" : "not ")
                 << "a dimension of " << type;
      }
  }
  for (StringRef axis : over) {
    if (!hasLoopOver(nest, axis))
      return emitOpError() << "over must name the loop axes that the buffer "
                              "lacks: no loop runs over '"
                           << axis << "'";
    if (llvm::none_of(nest.getBody().getOps<LoadOp>(), [&](LoadOp load) {
          return load.getBuffer().getType().hasAxis(axis);
        }))
      return emitOpError() << "a reduced axis must be a dimension of a loaded "
                              "buffer, '"
                           << axis << "' is none";
    if (llvm::count(over, axis) != 1)
      return emitOpError() << "over must not name an axis twice, got '" << axis
                           << "' again";
  }
  if (getOver() && over.empty())
    return emitOpError() << "over must name the loop axes that the buffer "
                            "lacks, got none";
  if (!over.empty() && !getMerge())
    return emitOpError()
           << "a reduced result must name its merge, as in merge(sum)";
  if (over.empty() && getMerge())
    return emitOpError()
           << "a result that is not reduced must not name a merge";
  auto kind = dyn_cast_or_null<MergeKindAttr>(getMerge().value_or(Attribute()));
  if (kind && kind.getValue() == MergeKind::Softmax && getTiles().size() != 2)
    return emitOpError() << "a softmax merge must store a pair, (o, lse), got "
                         << getTiles().size();
  if (getDeferred() && !getMerge())
    return emitOpError() << "a merge to defer must be that of a reduced result";
  if (std::optional<Type> partial = getPartial();
      partial && (!getDeferred() || !isa<FloatType>(*partial)))
    return emitOpError()
           << "partial must be the float type of deferred partial "
              "results, got "
           << *partial << (getDeferred() ? "" : ", not deferred");
  return verifyOnce(*this, over);
}

//===----------------------------------------------------------------------===//
// Canonical forms
//===----------------------------------------------------------------------===//

/// A mask that lets every pair through says nothing.
LogicalResult KernelOp::canonicalize(KernelOp kernel,
                                     PatternRewriter &rewriter) {
  if (!kernel.getMask() || !kernel.getMask()->isFull())
    return failure();
  rewriter.modifyOpInPlace(kernel, [&] { kernel.removeMaskAttr(); });
  return success();
}
