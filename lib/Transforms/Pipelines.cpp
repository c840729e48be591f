//===- Pipelines.cpp - The pipelines that users run -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::commir;

namespace {
/// What a target can do, and how far communication may run ahead.
struct PlanOptions : public PassPipelineOptions<PlanOptions> {
  ListOption<std::string> transports{
      *this, "transports",
      llvm::cl::desc("what the target has: p2p, collective, symm, rma, sim; no "
                     "transport is chosen if none is given")};
  ListOption<std::string> localLevels{
      *this, "local-levels",
      llvm::cl::desc("the levels whose ranks read each other's memory")};
  ListOption<std::string> rmaLevels{
      *this, "rma-levels",
      llvm::cl::desc("the levels of the one group whose ranks put into each "
                     "other's memory")};
  Option<int64_t> depth{
      *this, "depth",
      llvm::cl::desc("how many transfers may be under way at a time"),
      llvm::cl::init(1)};
};
} // namespace

/// From a scheduled program to what every rank does, in sizes of its own.
static void buildToSPMD(OpPassManager &passes, const PlanOptions &options) {
  passes.addPass(createInferPlacement());
  passes.addPass(createMaterializeCommunication());
  if (!options.transports.empty()) {
    SelectTransportOptions target;
    llvm::append_range(target.transports, options.transports);
    llvm::append_range(target.localLevels, options.localLevels);
    llvm::append_range(target.rmaLevels, options.rmaLevels);
    passes.addPass(createSelectTransport(target));
  }
  passes.addPass(createLocalize());
  // A plan has no branches between blocks, which are what takes time to look
  // at.
  passes.addPass(createCanonicalizerPass(
      GreedyRewriteConfig().setRegionSimplificationLevel(
          GreedySimplifyRegionLevel::Disabled)));
  passes.addPass(createCSEPass());
  passes.addPass(createPipelineCommunication({options.depth}));
  passes.addPass(createAssignLanes());
  passes.addPass(createPlanMemory());
  passes.addPass(createCheckPlan());
}

static void parse(StringRef pipeline, OpPassManager &passes) {
  if (failed(parsePassPipeline(pipeline, passes)))
    llvm::report_fatal_error("upstream passes are not registered");
}

/// Upstream, once the runtime is called; lib/Kernels/README.md says why in this
/// order.
static void buildHostToLLVM(OpPassManager &passes) {
  parse("inline,symbol-dce,func.func(arith-expand{include-bf16=true}),"
        "expand-strided-metadata,lower-affine,convert-scf-to-cf,"
        "convert-vector-to-llvm,finalize-memref-to-llvm,"
        "convert-math-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,"
        "convert-cf-to-llvm,reconcile-unrealized-casts",
        passes);
}

/// On to the LLVM dialect: transfers become runtime calls, kernels become code.
static void buildSPMDToLLVM(OpPassManager &passes) {
  passes.addPass(createConvertCommIRToRuntime());
  buildHostToLLVM(passes);
}

static void buildToLLVM(OpPassManager &passes, const PlanOptions &options) {
  buildToSPMD(passes, options);
  buildSPMDToLLVM(passes);
}

namespace {
/// The device that PTX is written for.
struct CudaOptions : public PassPipelineOptions<CudaOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("as in sm_90a"),
                           llvm::cl::init("sm_90a")};
  Option<std::string> features{*this, "features",
                               llvm::cl::desc("of PTX, as in +ptx80"),
                               llvm::cl::init("+ptx80")};
};
} // namespace

/// To the LLVM dialect for devices: kernels become PTX that the host carries.
static void buildSPMDToCuda(OpPassManager &passes, const CudaOptions &options) {
  passes.addPass(createConvertCommIRToRuntime({/*target=*/"cuda"}));
  parse("gpu.module(strip-debuginfo,expand-strided-metadata,lower-affine,"
        "canonicalize,cse,convert-scf-to-cf,convert-gpu-to-nvvm,"
        "canonicalize,cse,reconcile-unrealized-casts),"
        "nvvm-attach-target{O=3 chip=" +
            options.chip + " features=" + options.features +
            "},gpu-module-to-binary{format=isa}",
        passes);
  passes.addPass(createEmbedDeviceImage());
  buildHostToLLVM(passes);
}

static void buildToCuda(OpPassManager &passes, const CudaOptions &options) {
  buildToSPMD(passes, PlanOptions());
  buildSPMDToCuda(passes, options);
}

void mlir::commir::registerCommIRPipelines() {
  PassPipelineRegistration<PlanOptions>(
      "commir-to-spmd", "lower scheduled programs to one SPMD function each",
      buildToSPMD);
  PassPipelineRegistration<>("commir-spmd-to-llvm",
                             "lower SPMD functions to the LLVM dialect",
                             buildSPMDToLLVM);
  PassPipelineRegistration<PlanOptions>(
      "commir-to-llvm", "lower scheduled programs to the LLVM dialect",
      buildToLLVM);
  PassPipelineRegistration<CudaOptions>(
      "commir-spmd-to-cuda",
      "lower SPMD functions to the LLVM dialect, their kernels to PTX",
      buildSPMDToCuda);
  PassPipelineRegistration<CudaOptions>(
      "commir-to-cuda",
      "lower scheduled programs to the LLVM dialect, their kernels to PTX",
      buildToCuda);
}
