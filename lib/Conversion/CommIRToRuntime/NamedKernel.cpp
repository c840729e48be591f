//===- NamedKernel.cpp - Launching a kernel by its name -------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/NamedKernel.h"
#include "dialect/CommIR/KernelSignature.h"
#include "lib/Conversion/Passes.h"

using namespace mlir;
using namespace mlir::commir;

NamedKernel::NamedKernel(OpBuilder &builder, LaunchOp op, func::FuncOp function,
                         bool onDevice)
    : builder(builder), op(op), function(function), onDevice(onDevice),
      loc(op.getLoc()), pointer(LLVM::LLVMPointerType::get(op.getContext())),
      i32(builder.getI32Type()), i64(builder.getI64Type()),
      f64(builder.getF64Type()) {}

Value NamedKernel::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

Value NamedKernel::toI64(Value index) {
  return arith::IndexCastOp::create(builder, loc, i64, index);
}

Value NamedKernel::allocate(Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(builder, loc, pointer, type, constant(count));
}

void NamedKernel::store(Value value, Value record, Type type, int64_t index,
                        int64_t field) {
  Value at =
      LLVM::GEPOp::create(builder, loc, pointer, type, record,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index),
                                                 static_cast<int32_t>(field)});
  LLVM::StoreOp::create(builder, loc, value, at);
}

Value NamedKernel::getText(StringRef text) {
  auto module = function->getParentOfType<ModuleOp>();
  std::string name = "mercury_text_" + text.str();
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    std::string ended = text.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), ended.size());
    global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, name,
                                    builder.getStringAttr(ended));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

int64_t mlir::commir::getElementTypeNumber(Type type) {
  return type.isF16()    ? 1
         : type.isBF16() ? 2
         : type.isF32()  ? 3
         : type.isF64()  ? 4
                         : 0;
}

LogicalResult NamedKernel::checkTypes(ValueRange tiles) {
  for (Value tile : tiles) {
    Type element = cast<MemRefType>(tile.getType()).getElementType();
    if (getElementTypeNumber(element) == 0)
      return op.emitOpError()
             << "hands a kernel of '" << *op.getImpl()
             << "' tiles of f16, bf16, f32 or f64, got " << element;
  }
  return success();
}

Value NamedKernel::makeTiles(ValueRange tiles) {
  auto type = LLVM::LLVMStructType::getLiteral(
      op.getContext(), {pointer, i32, i64, pointer, pointer});
  Value table = allocate(type, tiles.size());
  for (auto [i, tile] : llvm::enumerate(tiles)) {
    auto memref = cast<MemRefType>(tile.getType());
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, tile);
    Value start =
        memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, tile);
    Value bytes = arith::ConstantIndexOp::create(
        builder, loc, memref.getElementTypeBitWidth() / 8);
    Value offset =
        arith::MulIOp::create(builder, loc, metadata.getOffset(), bytes);
    start = arith::AddIOp::create(builder, loc, start, offset);
    Value data = LLVM::IntToPtrOp::create(builder, loc, pointer, toI64(start));

    auto makeTable = [&](ValueRange numbers) {
      Value array = allocate(i64, numbers.size());
      for (auto [dim, number] : llvm::enumerate(numbers)) {
        Value at = LLVM::GEPOp::create(
            builder, loc, pointer, i64, array,
            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(dim)});
        LLVM::StoreOp::create(builder, loc, toI64(number), at);
      }
      return array;
    };
    Value element = arith::ConstantIntOp::create(
        builder, loc, getElementTypeNumber(memref.getElementType()), 32);
    store(data, table, type, i, 0);
    store(element, table, type, i, 1);
    store(constant(memref.getRank()), table, type, i, 2);
    store(makeTable(metadata.getSizes()), table, type, i, 3);
    store(makeTable(metadata.getStrides()), table, type, i, 4);
  }
  return table;
}

/// Where the tiles begin, for attention how it scales and what it masks, and
/// which results are written, not merged into.
Value NamedKernel::makeParameters() {
  SmallVector<std::pair<std::string, Value>> integers;
  auto dims = KernelSignature::positions(op.getKernel());
  for (auto [dim, position] : llvm::zip_equal(dims, op.getPositions()))
    integers.emplace_back("at_" + dim.letter.str() + (dim.divided ? "/g" : ""),
                          toI64(position));
  bool scaled = KernelSignature::isAttention(op.getKernel());
  if (scaled) {
    MaskAttr mask = op.getMask().value_or(MaskAttr());
    int64_t far = MaskAttr::kUnbounded;
    integers.emplace_back("group", constant(op.getGroup().value_or(1)));
    integers.emplace_back("left", constant(mask ? mask.getLeft() : far));
    integers.emplace_back("right", constant(mask ? mask.getRight() : far));
  }
  int64_t overwritten = 0;
  for (unsigned i = 0; i < op.getOutputs().size(); ++i)
    overwritten |= int64_t(op.overwrites(i)) << i;
  if (overwritten && onDevice)
    integers.emplace_back("overwrite", constant(overwritten));
  auto type =
      LLVM::LLVMStructType::getLiteral(op.getContext(), {pointer, i64, f64});
  Value table = allocate(type, integers.size() + scaled);
  for (auto [i, parameter] : llvm::enumerate(integers)) {
    auto &[name, integer] = parameter;
    store(getText(name), table, type, i, 0);
    store(integer, table, type, i, 1);
    Value number = arith::SIToFPOp::create(builder, loc, f64, integer);
    store(number, table, type, i, 2);
  }
  if (scaled) {
    double scale = op.getScale() ? op.getScale()->convertToDouble() : 1.0;
    Value number =
        arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(scale));
    store(getText("scale"), table, type, integers.size(), 0);
    store(constant(0), table, type, integers.size(), 1);
    store(number, table, type, integers.size(), 2);
  }
  count = integers.size() + scaled;
  return table;
}

FailureOr<SmallVector<Value>> NamedKernel::makeArguments() {
  if (failed(checkTypes(op.getInputs())) || failed(checkTypes(op.getOutputs())))
    return failure();
  auto type = LLVM::LLVMStructType::getLiteral(
      op.getContext(), {i64, pointer, i64, pointer, i64, pointer});
  Value arguments = allocate(type, 1);
  auto setTable = [&](int64_t field, int64_t entries, Value table) {
    store(constant(entries), arguments, type, 0, field);
    store(table, arguments, type, 0, field + 1);
  };
  setTable(0, op.getInputs().size(), makeTiles(op.getInputs()));
  setTable(2, op.getOutputs().size(), makeTiles(op.getOutputs()));
  Value parameters = makeParameters();
  setTable(4, count, parameters);
  Value name = getText((*op.getImpl() + "." + op.getKernel()).str());
  return SmallVector<Value>{name, arguments};
}
