//===- KernelLibrary.h - Generated kernels by name and type -----*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_KERNELSTOLLVM_KERNELLIBRARY_H
#define LIB_CONVERSION_KERNELSTOLLVM_KERNELLIBRARY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::commir {

/// What a kernel is instantiated for: its element types, and whether it
/// overwrites its results instead of merging into them.
struct KernelTypes {
  Type input;
  Type accumulator;
  Type output;
  bool overwrites = false;
};

/// The text of lib/Kernels, compiled in.
struct KernelText {
  StringRef name;
  StringRef text;
};

/// Whether a kernel has instances that overwrite their results; what the others
/// are to overwrite is filled first.
bool canOverwrite(StringRef kernel);

/// The name of an instance.
std::string getInstanceName(StringRef kernel, KernelTypes types);

/// Whether a kernel can be made for the types; if not, says why at `loc`.
LogicalResult checkKernelTypes(StringRef kernel, KernelTypes types,
                               Location loc);

/// Prints a function `name` that converts its argument, a number or a vector.
void printConversion(raw_ostream &stream, StringRef name, Type from, Type to);

/// Prints the function `overwrites`.
void printOverwrites(raw_ostream &stream, bool overwrites);

/// The instance of a kernel of lib/Kernels in `module`, made when it is not
/// there. Fails, with an error at `loc`, when there is no such kernel or the
/// types do not fit.
FailureOr<func::FuncOp> getOrCreateKernel(ModuleOp module, StringRef kernel,
                                          KernelTypes types, Location loc);

} // namespace mlir::commir

#endif // LIB_CONVERSION_KERNELSTOLLVM_KERNELLIBRARY_H
