//===- Tiles.cpp - Memory as values and pointers --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"
#include "lib/Conversion/Passes.h"

using namespace mlir;
using namespace mlir::commir;

Value FunctionConverter::getPointer(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, tile);
  Value start =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, tile);
  Value offset =
      arith::MulIOp::create(builder, loc, metadata.getOffset(),
                            constant(type.getElementTypeBitWidth() / 8));
  start = arith::AddIOp::create(builder, loc, start, offset);
  return LLVM::IntToPtrOp::create(builder, loc, pointer, toI64(start));
}

Value FunctionConverter::getBytes(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value size = memref::DimOp::create(builder, loc, tile, dim);
    bytes = arith::MulIOp::create(builder, loc, bytes, size);
  }
  return toI64(bytes);
}

/// A contiguous tile as a row of elements.
Value FunctionConverter::getFlat(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  Value elements = constant(1);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value size = memref::DimOp::create(builder, loc, tile, dim);
    elements = arith::MulIOp::create(builder, loc, elements, size);
  }
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, tile);
  auto layout =
      StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1});
  auto flat =
      MemRefType::get({ShapedType::kDynamic}, type.getElementType(), layout);
  return memref::ReinterpretCastOp::create(
      builder, loc, flat, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), ArrayRef<OpFoldResult>(elements),
      ArrayRef<OpFoldResult>(builder.getIndexAttr(1)));
}

/// A memref of bytes from a pointer; the views of it state their own sizes.
Value FunctionConverter::makeMemory(Value start) {
  auto array = LLVM::LLVMArrayType::get(i64, 1);
  auto descriptor = LLVM::LLVMStructType::getLiteral(
      builder.getContext(), {pointer, pointer, i64, array, array});
  Value value = LLVM::PoisonOp::create(builder, loc, descriptor);
  auto insert = [&](Value element, ArrayRef<int64_t> at) {
    value = LLVM::InsertValueOp::create(builder, loc, value, element, at);
  };
  insert(start, {0});
  insert(start, {1});
  insert(constant64(0), {2});
  insert(constant64(std::numeric_limits<int64_t>::max()), {3, 0});
  insert(constant64(1), {4, 0});
  auto type = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
  return UnrealizedConversionCastOp::create(builder, loc, type, value)
      .getResult(0);
}

/// Opens a loop over each of the first `dims` dimensions of a tile; the
/// insertion point is inside.
SmallVector<Value> FunctionConverter::loopOver(Value tile, int64_t dims) {
  SmallVector<Value> indices;
  Value zero = constant(0), one = constant(1);
  for (int64_t dim = 0; dim < dims; ++dim) {
    Value size = memref::DimOp::create(builder, loc, tile, dim);
    auto loop = scf::ForOp::create(builder, loc, zero, size, one);
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  return indices;
}

/// The same memory as integers. A copy need not know what it copies, and LLVM's
/// back ends do not know all vectors of bf16.
Value FunctionConverter::getBits(Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  auto bits = MemRefType::get(
      type.getShape(), builder.getIntegerType(type.getElementTypeBitWidth()),
      type.getLayout(), type.getMemorySpace());
  return UnrealizedConversionCastOp::create(builder, loc, bits, tile)
      .getResult(0);
}

/// The four inner dimensions of a tile, of size 1 where it has fewer, at
/// `outer` of those before them; the first `stacked` ones, whole, stay before
/// all.
Value FunctionConverter::getInnermost(Value tile, ValueRange outer,
                                      int64_t stacked) {
  auto type = cast<MemRefType>(tile.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, tile);
  SmallVector<OpFoldResult> sizes, strides;
  // Sizes and strides that are known are values here: the kernel takes any.
  auto keep = [&](Value size, Value stride) {
    sizes.push_back(size);
    strides.push_back(stride);
  };
  for (int64_t dim = 0; dim < stacked; ++dim)
    keep(metadata.getSizes()[dim], metadata.getStrides()[dim]);
  for (int64_t dim = type.getRank() - stacked; dim < 4; ++dim)
    keep(constant(1), constant(1));
  Value offset = metadata.getOffset();
  for (int64_t dim = stacked; dim < type.getRank(); ++dim) {
    Value stride = metadata.getStrides()[dim];
    if (dim - stacked < static_cast<int64_t>(outer.size())) {
      Value skipped =
          arith::MulIOp::create(builder, loc, outer[dim - stacked], stride);
      offset = arith::AddIOp::create(builder, loc, offset, skipped);
      continue;
    }
    keep(metadata.getSizes()[dim], stride);
  }
  SmallVector<int64_t> dynamic(stacked + 4, ShapedType::kDynamic);
  auto layout = StridedLayoutAttr::get(builder.getContext(),
                                       ShapedType::kDynamic, dynamic);
  auto inner = MemRefType::get(dynamic, type.getElementType(), layout);
  return memref::ReinterpretCastOp::create(
      builder, loc, inner, metadata.getBaseBuffer(), OpFoldResult(offset),
      sizes, strides);
}

/// Whether both tiles, of one shape, lie in memory as one row.
Value FunctionConverter::isDense(Value source, Value target) {
  auto from = memref::ExtractStridedMetadataOp::create(builder, loc, source);
  auto to = memref::ExtractStridedMetadataOp::create(builder, loc, target);
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  };
  Value dense = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value one = constant(1), length = one;
  for (int64_t dim = from.getSizes().size(); dim-- > 0;) {
    Value size = from.getSizes()[dim];
    Value follow = arith::AndIOp::create(
        builder, loc, isEqual(from.getStrides()[dim], length),
        isEqual(to.getStrides()[dim], length));
    Value fits = arith::OrIOp::create(builder, loc, isEqual(size, one), follow);
    dense = arith::AndIOp::create(builder, loc, dense, fits);
    length = arith::MulIOp::create(builder, loc, length, size);
  }
  return dense;
}
