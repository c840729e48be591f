//===- ExecutionEngine.h - C API of compiling to machine code -----*- C -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MERCURY_C_EXECUTIONENGINE_H
#define MERCURY_C_EXECUTIONENGINE_H

#include "mlir-c/ExecutionEngine.h"

#ifdef __cplusplus
extern "C" {
#endif

/// As mlirExecutionEngineCreate, but a function that is `optnone` is left as it
/// is. Returns a null engine when the module cannot be compiled; diagnostics go
/// to the context's handlers.
MLIR_CAPI_EXPORTED MlirExecutionEngine
mercuryExecutionEngineCreate(MlirModule module, int level, intptr_t numPaths,
                             const MlirStringRef *sharedLibraryPaths);

#ifdef __cplusplus
}
#endif

#endif // MERCURY_C_EXECUTIONENGINE_H
