//===- SumAll.cpp - Calling the sum of a stack of tiles
//-----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/SumAll.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::commir;

static constexpr int64_t kInner = 4;

/// The inner dimensions of a tile, of size 1 where it has fewer, at `outer` of
/// those before them; the `stacked` first ones, whole, stay before all.
static Value getInner(OpBuilder &builder, Location loc, Value tile,
                      ValueRange outer, int64_t stacked) {
  auto type = cast<MemRefType>(tile.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, tile);
  int64_t rank = type.getRank() - stacked;
  SmallVector<OpFoldResult> sizes, strides;
  auto keep = [&](int64_t dim) {
    sizes.push_back(metadata.getSizes()[dim]);
    strides.push_back(metadata.getStrides()[dim]);
  };
  for (int64_t dim = 0; dim < stacked; ++dim)
    keep(dim);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  for (int64_t dim = rank; dim < kInner; ++dim) {
    sizes.push_back(one);
    strides.push_back(one);
  }
  Value offset = metadata.getOffset();
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim >= static_cast<int64_t>(outer.size())) {
      keep(stacked + dim);
      continue;
    }
    Value skipped = arith::MulIOp::create(builder, loc, outer[dim],
                                          metadata.getStrides()[stacked + dim]);
    offset = arith::AddIOp::create(builder, loc, offset, skipped);
  }
  SmallVector<int64_t> dynamic(stacked + kInner, ShapedType::kDynamic);
  auto layout = StridedLayoutAttr::get(builder.getContext(),
                                       ShapedType::kDynamic, dynamic);
  return memref::ReinterpretCastOp::create(
      builder, loc, MemRefType::get(dynamic, type.getElementType(), layout),
      metadata.getBaseBuffer(), OpFoldResult(offset), sizes, strides);
}

void mlir::commir::callSumAll(OpBuilder &builder, LaunchOp op,
                              func::FuncOp kernel) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op.getLoc();
  Value stack = op.getInputs()[0], sum = op.getOutputs()[0];
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> outer;
  for (int64_t dim = 0;
       dim < cast<MemRefType>(sum.getType()).getRank() - kInner; ++dim) {
    Value size = memref::DimOp::create(builder, loc, sum, dim);
    auto loop = scf::ForOp::create(builder, loc, zero, size, one);
    outer.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  func::CallOp::create(builder, loc, kernel,
                       ValueRange{getInner(builder, loc, stack, outer, 1),
                                  getInner(builder, loc, sum, outer, 0)});
}
