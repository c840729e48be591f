//===- LaunchBuilder.cpp - The host's side of a device kernel -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What mercury_rt_device_launch takes, as lane.h lays it out. A kernel takes a
// memref as its descriptor's fields, one argument each.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/KernelsToNVVM/LaunchBuilder.h"
#include "lib/Conversion/KernelsToNVVM/DeviceLibrary.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::commir;

namespace {
class LaunchBuilder {
public:
  LaunchBuilder(func::FuncOp launcher, Location loc)
      : builder(OpBuilder::atBlockBegin(launcher.addEntryBlock())), loc(loc),
        launcher(launcher), module(launcher->getParentOfType<ModuleOp>()),
        pointer(LLVM::LLVMPointerType::get(launcher.getContext())),
        i32(builder.getI32Type()), i64(builder.getI64Type()) {}

  void build(gpu::GPUFuncOp kernel, func::FuncOp blocks, int64_t lanes);

private:
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(builder, loc, i64, index);
  }
  Value allocate(Type type, int64_t count) {
    return LLVM::AllocaOp::create(builder, loc, pointer, type, constant(count));
  }
  Value at(Value table, int64_t index) {
    return LLVM::GEPOp::create(
        builder, loc, pointer, i64, table,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
  }
  void store(Value value, Value to) {
    LLVM::StoreOp::create(builder, loc, value, to);
  }
  Value getName(StringRef name);
  SmallVector<Value> getFields(Value memref);

  OpBuilder builder;
  Location loc;
  func::FuncOp launcher;
  ModuleOp module;
  Type pointer, i32, i64;
};
} // namespace

Value LaunchBuilder::getName(StringRef name) {
  std::string symbol = "mercury_text_" + name.str();
  auto global = module.lookupSymbol<LLVM::GlobalOp>(symbol);
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    std::string ended = name.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), ended.size());
    global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, symbol,
                                    builder.getStringAttr(ended));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

SmallVector<Value> LaunchBuilder::getFields(Value memref) {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  Value start = toI64(
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref));
  SmallVector<Value> fields = {start, start, toI64(metadata.getOffset())};
  for (Value size : metadata.getSizes())
    fields.push_back(toI64(size));
  for (Value stride : metadata.getStrides())
    fields.push_back(toI64(stride));
  return fields;
}

void LaunchBuilder::build(gpu::GPUFuncOp kernel, func::FuncOp blocks,
                          int64_t lanes) {
  ValueRange given = ValueRange(launcher.getArguments()).drop_front();
  SmallVector<Value> counted(given);
  counted.push_back(arith::ConstantIndexOp::create(builder, loc, lanes));
  Value grid =
      toI64(func::CallOp::create(builder, loc, blocks, counted).getResult(0));
  // A kernel walks on behind its last block, however many there are.
  grid = arith::MinUIOp::create(builder, loc, grid, constant(INT32_MAX));

  SmallVector<Value> values;
  for (Value argument : given) {
    if (isa<MemRefType>(argument.getType()))
      llvm::append_range(values, getFields(argument));
    else if (argument.getType().isIndex())
      values.push_back(toI64(argument));
    else
      values.push_back(argument);
  }
  // Each in 8 bytes of its own.
  Value slots = allocate(i64, values.size());
  Value table = allocate(pointer, values.size());
  for (auto [i, value] : llvm::enumerate(values)) {
    Value slot = at(slots, i);
    store(value, slot);
    store(slot, at(table, i));
  }

  // const void *image; int64_t image_bytes; const char *name;
  // int64_t grid[3], block[3], shared_bytes; void *const *arguments;
  Value record = allocate(i64, 11);
  store(LLVM::AddressOfOp::create(builder, loc, pointer, kDeviceImage),
        at(record, 0));
  Value bytes =
      LLVM::AddressOfOp::create(builder, loc, pointer, kDeviceImageBytes);
  store(LLVM::LoadOp::create(builder, loc, i64, bytes), at(record, 1));
  store(getName(kernel.getName()), at(record, 2));
  ArrayRef<int32_t> block = *kernel.getKnownBlockSize();
  for (int64_t dim = 0; dim < 3; ++dim) {
    store(dim == 0 ? grid : constant(1), at(record, 3 + dim));
    store(constant(block[dim]), at(record, 6 + dim));
  }
  store(constant(0), at(record, 9)); // what is shared is declared in the kernel
  store(table, at(record, 10));

  StringRef launch = "mercury_rt_device_launch";
  if (!module.lookupSymbol(launch)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    auto type = builder.getFunctionType({pointer, pointer}, {i32});
    func::FuncOp::create(builder, loc, launch, type).setPrivate();
  }
  Value status =
      func::CallOp::create(builder, loc, launch, i32,
                           ValueRange{launcher.getArgument(0), record})
          .getResult(0);
  func::ReturnOp::create(builder, loc, status);
}

func::FuncOp mlir::commir::createLauncher(ModuleOp module, StringRef name,
                                          gpu::GPUFuncOp kernel,
                                          func::FuncOp blocks, int64_t lanes,
                                          Location loc) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> types = {LLVM::LLVMPointerType::get(module.getContext())};
  llvm::append_range(types, kernel.getArgumentTypes());
  auto launcher = func::FuncOp::create(
      builder, loc, name,
      builder.getFunctionType(types, {builder.getI32Type()}));
  launcher.setPrivate();
  // Once for all launches of this kernel.
  launcher.setNoInline(true);
  LaunchBuilder(launcher, loc).build(kernel, blocks, lanes);
  return launcher;
}
