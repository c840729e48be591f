//===- Pipelines.h - Pass pipelines that a context keeps --------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CAPI_PIPELINES_H
#define LIB_CAPI_PIPELINES_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::commir {

/// Lets contexts of the registry keep the pipelines that they ran.
void registerPipelineCache(DialectRegistry &registry);

} // namespace mlir::commir

#endif // LIB_CAPI_PIPELINES_H
