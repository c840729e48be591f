//===- CompileMemory.cpp - Views and tables of a plan ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanTrace/Compiler.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::trace;

/// The sizes of a type, static ones as constants.
static SmallVector<OpFoldResult> getMixedSizes(MemRefType type,
                                               ValueRange dynamic) {
  Builder builder(type.getContext());
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : type.getShape()) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(builder.getIndexAttr(size));
      continue;
    }
    sizes.push_back(dynamic.front());
    dynamic = dynamic.drop_front();
  }
  return sizes;
}

LogicalResult Compiler::compileMemRef(Operation &op) {
  // Operands first: reading one may add to what `add` refers to.
  auto emit = [&](Opcode opcode, Value result, int32_t a = -1, int32_t b = -1,
                  ArrayRef<int32_t> list = {}) {
    int32_t slot = result ? get(result) : -1;
    Instruction &added = add(opcode, &op);
    added.result = slot;
    added.a = a;
    added.b = b;
    added.list.append(list.begin(), list.end());
    return success();
  };
  if (auto view = dyn_cast<memref::ViewOp>(op))
    return emit(Opcode::View, view, get(view.getSource()),
                get(view.getByteShift()),
                getAll(getMixedSizes(view.getType(), view.getSizes())));
  if (auto view = dyn_cast<memref::SubViewOp>(op)) {
    SmallVector<int32_t> list = getAll(view.getMixedOffsets());
    list.append(getAll(view.getMixedSizes()));
    list.append(getAll(view.getMixedStrides()));
    llvm::SmallBitVector dropped = view.getDroppedDims();
    for (unsigned dim = 0; dim < dropped.size(); ++dim)
      list.push_back(!dropped[dim]);
    return emit(Opcode::SubView, view, get(view.getSource()), -1, list);
  }
  if (auto stack = dyn_cast<memref::ReinterpretCastOp>(op)) {
    // It counts from where a view begins, but not from where a subview does.
    if (!stack.getSource().getDefiningOp<memref::ViewOp>())
      return op.emitOpError() << "is not known to the trace of plans";
    SmallVector<int32_t> list = getAll(stack.getMixedOffsets());
    list.append(getAll(stack.getMixedSizes()));
    list.append(getAll(stack.getMixedStrides()));
    return emit(Opcode::Reinterpret, stack, get(stack.getSource()), -1, list);
  }
  if (auto cast = dyn_cast<memref::CastOp>(op)) {
    if (!isa<MemRefType>(cast.getType()))
      return op.emitOpError() << "is not known to the trace of plans";
    alias(cast.getSource(), cast);
    return success();
  }
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return emit(Opcode::Dim, dim, get(dim.getSource()), get(dim.getIndex()));
  if (auto table = dyn_cast<memref::AllocaOp>(op)) {
    auto sizes =
        getAll(getMixedSizes(table.getType(), table.getDynamicSizes()));
    emit(Opcode::Table, table, -1, -1, sizes).succeeded();
    code.instructions.back().immediate = code.tables.size();
    code.tables.emplace_back();
    return success();
  }
  if (auto get = dyn_cast<memref::GetGlobalOp>(op)) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
        get, get.getNameAttr());
    auto values = global && global.getConstant()
                      ? dyn_cast_or_null<DenseIntElementsAttr>(
                            global.getInitialValueAttr())
                      : DenseIntElementsAttr();
    if (!values)
      return op.emitOpError() << "is no constant table of integers, which is "
                                 "all that a plan may share";
    emit(Opcode::KnownTable, get, -1, -1,
         getAll(getMixedSizes(get.getType(), {})))
        .succeeded();
    code.instructions.back().immediate = code.tables.size();
    std::vector<int64_t> &table = code.tables.emplace_back();
    for (const APInt &value : values)
      table.push_back(value.getSExtValue());
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return emit(Opcode::StoreTable, {}, get(store.getValueToStore()),
                get(store.getMemRef()), getAll(store.getIndices()));
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return emit(Opcode::LoadTable, load, -1, get(load.getMemRef()),
                getAll(load.getIndices()));
  if (isa<memref::AllocOp>(op))
    return op.emitOpError() << "has no place in an arena yet; run "
                               "commir-plan-memory first";
  return op.emitOpError() << "is not known to the trace of plans";
}
