//===- Fill.cpp - Give tiles one value
//----------------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/Fill.h"
#include "dialect/CommIR/KernelSignature.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::commir;

/// A function that stores an integer to all of a tile, one for each type of
/// tile: in line, code would grow with every use.
static func::FuncOp getFunction(ModuleOp module, MemRefType type,
                                Location loc) {
  Type element = type.getElementType();
  std::string name;
  llvm::raw_string_ostream(name)
      << "mercury_fill_" << type.getRank() << "_" << element;
  if (auto made = module.lookupSymbol<func::FuncOp>(name))
    return made;
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(
      builder, loc, name, builder.getFunctionType({type, element}, {}));
  function.setPrivate();
  function->setAttr("no_inline", builder.getUnitAttr());
  builder.setInsertionPointToStart(function.addEntryBlock());
  Value tile = function.getArgument(0), value = function.getArgument(1);
  // Elements of the innermost dimension follow one another in every tile.
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(builder.getContext(),
                                       ShapedType::kDynamic, strides);
  tile = memref::CastOp::create(
      builder, loc, MemRefType::get(type.getShape(), element, layout), tile);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  func::ReturnOp end = func::ReturnOp::create(builder, loc);
  builder.setInsertionPoint(end);
  SmallVector<Value> indices;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value size = memref::DimOp::create(builder, loc, tile, dim);
    auto loop = scf::ForOp::create(builder, loc, zero, size, one);
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  memref::StoreOp::create(builder, loc, value, tile, indices);
  return function;
}

void mlir::commir::fillTile(OpBuilder &builder, Location loc, Value tile,
                            double value) {
  auto type = cast<MemRefType>(tile.getType());
  auto element = cast<FloatType>(type.getElementType());
  llvm::APFloat number(value);
  bool lossy;
  number.convert(element.getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &lossy);
  // LLVM's back ends do not know all vectors of bf16.
  Type integer = builder.getIntegerType(element.getWidth());
  SmallVector<int64_t> dynamic(type.getRank(), ShapedType::kDynamic);
  auto bits =
      MemRefType::get(dynamic, integer,
                      StridedLayoutAttr::get(builder.getContext(),
                                             ShapedType::kDynamic, dynamic));
  auto any = MemRefType::get(dynamic, element, bits.getLayout());
  if (type != any)
    tile = memref::CastOp::create(builder, loc, any, tile);
  tile =
      UnrealizedConversionCastOp::create(builder, loc, bits, tile).getResult(0);
  auto module =
      builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  Value stored = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(integer, number.bitcastToAPInt()));
  func::CallOp::create(builder, loc, getFunction(module, bits, loc),
                       ValueRange{tile, stored});
}

void mlir::commir::fillOverwritten(OpBuilder &builder, LaunchOp op) {
  for (auto [i, tile] : llvm::enumerate(op.getOutputs()))
    if (op.overwrites(i))
      fillTile(builder, op.getLoc(), tile,
               KernelSignature::getIdentity(op.getKernel(), i));
}
