//===- ExecutionEngine.cpp - C API of compiling to machine code -----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mercury-c/ExecutionEngine.h"
#include "mlir/CAPI/ExecutionEngine.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;

/// Optimizes a module, but no function that is `optnone`: MLIR's own
/// transformer passes over that attribute, which the code generator then keeps
/// to. It would select instructions one by one for a function that has become
/// vectors, a way on which LLVM 22 gives a blend an immediate that it does not
/// expect itself (X86FixupInstTuning fails on a VPBLENDW of more than 127).
static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     llvm::OptimizationLevel level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation optNone(/*DebugLogging=*/false);
  optNone.registerCallbacks(callbacks);
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(),
                            std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

static llvm::Expected<std::unique_ptr<ExecutionEngine>>
create(Operation *module, int level, ArrayRef<StringRef> libraries) {
  auto host = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!host)
    return host.takeError();
  auto machine = host->createTargetMachine();
  if (!machine)
    return machine.takeError();
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  auto transformer = [&](llvm::Module *translated) {
    optimize(*translated, **machine, levels[level]);
    return llvm::Error::success();
  };
  ExecutionEngineOptions options;
  options.transformer = transformer;
  options.jitCodeGenOptLevel = static_cast<llvm::CodeGenOptLevel>(level);
  options.sharedLibPaths = libraries;
  return ExecutionEngine::create(module, options);
}

MlirExecutionEngine
mercuryExecutionEngineCreate(MlirModule module, int level, intptr_t numPaths,
                             const MlirStringRef *sharedLibraryPaths) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::InitializeNativeTargetAsmParser(); // for inline assembly
  ModuleOp op = unwrap(module);
  registerBuiltinDialectTranslation(*op.getContext());
  registerLLVMDialectTranslation(*op.getContext());
  SmallVector<StringRef> libraries;
  for (const MlirStringRef &path :
       ArrayRef(sharedLibraryPaths, static_cast<size_t>(numPaths)))
    libraries.push_back(unwrap(path));
  auto engine = create(op, level, libraries);
  if (!engine) {
    op.emitError() << llvm::toString(engine.takeError());
    return wrap(static_cast<ExecutionEngine *>(nullptr));
  }
  return wrap(engine->release());
}
