//===- LaunchBuilder.h - The host's side of a device kernel -----*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_KERNELSTONVVM_LAUNCHBUILDER_H
#define LIB_CONVERSION_KERNELSTONVVM_LAUNCHBUILDER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::commir {

/// Makes the function `name` that launches `kernel` from the device module with
/// as many blocks as `blocks` says of the arguments and of `lanes`.
func::FuncOp createLauncher(ModuleOp module, StringRef name,
                            gpu::GPUFuncOp kernel, func::FuncOp blocks,
                            int64_t lanes, Location loc);

} // namespace mlir::commir

#endif // LIB_CONVERSION_KERNELSTONVVM_LAUNCHBUILDER_H
