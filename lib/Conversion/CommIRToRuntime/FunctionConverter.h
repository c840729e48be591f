//===- FunctionConverter.h - One function to runtime calls ------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_COMMIRTORUNTIME_FUNCTIONCONVERTER_H
#define LIB_CONVERSION_COMMIRTORUNTIME_FUNCTIONCONVERTER_H

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Conversion/KernelsToLLVM/KernelLibrary.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::commir {

/// Converts the commir ops of one function, each where it stands.
class FunctionConverter {
public:
  FunctionConverter(func::FuncOp function, MeshOp mesh, bool onDevice)
      : function(function), mesh(mesh), onDevice(onDevice),
        module(function->getParentOfType<ModuleOp>()),
        builder(function.getContext()), loc(function.getLoc()),
        pointer(LLVM::LLVMPointerType::get(function.getContext())),
        i32(builder.getI32Type()), i64(builder.getI64Type()) {}

  LogicalResult convert();

private:
  LogicalResult convert(Operation &op);
  void convert(ExchangeStartOp op);
  void convert(AllGatherStartOp op);
  LogicalResult convertCollective(Operation &op);
  FailureOr<Value> getElementType(Operation &op, Value tile);
  void convert(LeaseOpenOp op);
  void convert(LeaseMemoryOp op);
  LogicalResult convert(PullStartOp op);
  SmallVector<Value> loopOver(Value tile, int64_t dims);
  Value getBits(Value tile);
  LogicalResult convert(CopyOp op);
  Value getInnermost(Value tile, ValueRange outer, int64_t stacked = 0);
  void sumAll(func::FuncOp kernel, Value stack, Value sum);
  Value isDense(Value source, Value target);
  LogicalResult convert(AccumulateOp op);
  LogicalResult fill(Operation *op, Value tile, APFloat value);
  LogicalResult fillOverwritten(LaunchOp op);
  /// Runs a kernel on the last four dimensions of tiles of one shape, for each
  /// index of those before them.
  LogicalResult convertTiles(Operation *op, StringRef kernel, KernelTypes types,
                             ValueRange tiles, ValueRange others = {});
  LogicalResult convert(LaunchOp op);
  FailureOr<func::FuncOp> getKernel(StringRef kernel, KernelTypes types);
  void callKernel(func::FuncOp kernel, ValueRange operands);
  Value makeMemory(Value start);
  void useLane(int64_t number);
  void convert(LaneOrderOp op);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value constant64(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(builder, loc, i64, index);
  }
  Value getLevel(StringRef level) {
    return constant64(mesh.getLevelNumber(level));
  }
  /// A group as the runtime names it: a level's number, or a set of them.
  Value getGroup(ArrayAttr group) {
    if (group.size() == 1)
      return getLevel(cast<StringAttr>(group[0]).getValue());
    int64_t code = int64_t(1) << 62;
    for (auto level : group.getAsRange<StringAttr>())
      code |= int64_t(1) << mesh.getLevelNumber(level);
    return constant64(code);
  }
  Value call(StringRef name, Type result, ValueRange operands);
  /// Calls a function that returns a status, and keeps the first failure.
  void callChecked(StringRef name, ValueRange operands);
  Value loadStatus() { return LLVM::LoadOp::create(builder, loc, i32, status); }
  /// Starts an insertion where nothing failed yet.
  scf::IfOp guard(Value also = {});
  Value getPointer(Value tile);
  Value getBytes(Value tile);
  Value getFlat(Value tile);

  func::FuncOp function;
  MeshOp mesh;
  bool onDevice; // where the memory is and the kernels run
  ModuleOp module;
  OpBuilder builder;
  Location loc;
  Type pointer, i32, i64;
  Value context, buffers, status, tokenSlot;
  DenseMap<Value, Value> tokens;
  int64_t lane = 0; // in use, as the text says
};

} // namespace mlir::commir

#endif // LIB_CONVERSION_COMMIRTORUNTIME_FUNCTIONCONVERTER_H
