//===- Passes.td - From a plan to code ---------------------*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CONVERSION_PASSES
#define LIB_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertCommIRToRuntime
    : Pass<"convert-commir-to-runtime", "::mlir::ModuleOp"> {
  let summary = "turn transfers and memory into calls of the runtime";
  let description = [{
    Before: functions on memrefs with commir ops. After: calls of `mercury_rt_*`
    and of kernel functions, no commir op left. A failed call makes the rest of
    the plan do nothing and its status is returned.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // LIB_CONVERSION_PASSES
