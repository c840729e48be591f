//===- DeviceLibrary.h - Generated kernels of a device ----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_KERNELSTONVVM_DEVICELIBRARY_H
#define LIB_CONVERSION_KERNELSTONVVM_DEVICELIBRARY_H

#include "lib/Conversion/KernelsToLLVM/KernelLibrary.h"

namespace mlir::commir {

/// The module of the kernels that a plan launches, and the constants that hold
/// its compiled form and how long that is.
inline constexpr StringLiteral kDeviceModule = "mercury_device";
inline constexpr StringLiteral kDeviceImage = "mercury_device_image";
inline constexpr StringLiteral kDeviceImageBytes = "mercury_device_image_bytes";

/// A host function that launches the instance of a kernel of lib/Kernels/Gpu:
/// it takes the context and the arguments of the kernel, and returns a status.
/// Made, with the kernel itself in the device module, when it is not there.
/// Fails, with an error at `loc`, when there is no such kernel or the types do
/// not fit.
FailureOr<func::FuncOp> getOrCreateLauncher(ModuleOp module, StringRef kernel,
                                            KernelTypes types, Location loc);

} // namespace mlir::commir

#endif // LIB_CONVERSION_KERNELSTONVVM_DEVICELIBRARY_H
