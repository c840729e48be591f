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

    For the target `cuda` a kernel function launches a kernel of the
    `gpu.module` that is made beside the plan, and nothing on the host reads or
    writes memory of the plan.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"",
                        "Where kernels run: 'cpu' or 'cuda'">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def EmbedDeviceImage : Pass<"commir-embed-device-image", "::mlir::ModuleOp"> {
  let summary = "make the compiled kernels a constant of the program";
  let description = [{
    Before: a `gpu.binary` of PTX, made from the `gpu.module` of
    `convert-commir-to-runtime`. After: the constant that launches name.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // LIB_CONVERSION_PASSES
