//===- Passes.h - Mercury's passes and pipelines ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_PASSES_H
#define LIB_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::commir {

#define GEN_PASS_DECL
#include "lib/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Passes.h.inc"

/// Registers `commir-to-spmd` and `commir-to-llvm`.
void registerCommIRPipelines();

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_PASSES_H
