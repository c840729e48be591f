//===- Pipelines.cpp - The pipelines that users run -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::commir;

/// From a scheduled program to what every rank does, in sizes of its own.
static void buildToSPMD(OpPassManager &passes) {
  passes.addPass(createInferPlacement());
  passes.addPass(createMaterializeCommunication());
  passes.addPass(createLocalize());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createPlanMemory());
  passes.addPass(createCheckPlan());
}

/// On to the LLVM dialect: transfers become runtime calls, kernels become code.
static void buildSPMDToLLVM(OpPassManager &passes) {
  passes.addPass(createConvertCommIRToRuntime());
  // Upstream from here; lib/Kernels/README.md says why in this order.
  if (failed(parsePassPipeline(
          "inline,symbol-dce,func.func(arith-expand{include-bf16=true}),"
          "expand-strided-metadata,lower-affine,convert-scf-to-cf,"
          "convert-vector-to-llvm,finalize-memref-to-llvm,"
          "convert-math-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,"
          "convert-cf-to-llvm,reconcile-unrealized-casts",
          passes)))
    llvm::report_fatal_error("upstream passes are not registered");
}

static void buildToLLVM(OpPassManager &passes) {
  buildToSPMD(passes);
  buildSPMDToLLVM(passes);
}

void mlir::commir::registerCommIRPipelines() {
  PassPipelineRegistration<>(
      "commir-to-spmd", "lower scheduled programs to one SPMD function each",
      buildToSPMD);
  PassPipelineRegistration<>("commir-spmd-to-llvm",
                             "lower SPMD functions to the LLVM dialect",
                             buildSPMDToLLVM);
  PassPipelineRegistration<>("commir-to-llvm",
                             "lower scheduled programs to the LLVM dialect",
                             buildToLLVM);
}
