//===- NamedKernel.h - Launching a kernel by its name -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What mercury_rt_launch takes, as runtime.h lays it out.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_COMMIRTORUNTIME_NAMEDKERNEL_H
#define LIB_CONVERSION_COMMIRTORUNTIME_NAMEDKERNEL_H

#include "dialect/CommIR/CommIR.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::commir {

/// The number of mercury_rt_element_type, 0 if there is none.
int64_t getElementTypeNumber(Type type);

/// Writes the arguments of one launch to the stack, at the builder's insertion
/// point. On a device the kernel is told what to overwrite; elsewhere the
/// identity is there already, and it merges.
class NamedKernel {
public:
  NamedKernel(OpBuilder &builder, LaunchOp op, func::FuncOp function,
              bool onDevice);

  /// Pointers to the kernel's name and to its arguments.
  FailureOr<SmallVector<Value>> makeArguments();

private:
  Value makeTiles(ValueRange tiles);
  Value makeParameters();
  LogicalResult checkTypes(ValueRange tiles);

  Value constant(int64_t value);
  Value toI64(Value index);
  Value getText(StringRef text);
  /// Room on the stack of the function, so that a loop does not grow it.
  Value allocate(Type type, int64_t count);
  void store(Value value, Value record, Type type, int64_t index,
             int64_t field);

  OpBuilder &builder;
  LaunchOp op;
  func::FuncOp function;
  bool onDevice;
  Location loc;
  Type pointer, i32, i64, f64;
  int64_t count = 0; // of parameters
};

} // namespace mlir::commir

#endif // LIB_CONVERSION_COMMIRTORUNTIME_NAMEDKERNEL_H
