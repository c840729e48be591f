//===- Pipelines.cpp - Running pass pipelines, many times -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tuner runs one pipeline on thousands of small modules of one context. To
// make its passes ready, above all the patterns of every operation that there
// is for canonicalization, takes as long as to run some of them; so they are
// kept, where they end with their context.
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/Pipelines.h"
#include "dialect/CommIR/CommIR.h"
#include "mercury-c/CommIR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include <map>
#include <mutex>

using namespace mlir;
using namespace mlir::commir;

namespace {
/// The pass managers of a context that nobody runs now.
class IdlePipelines : public DialectInterface::Base<IdlePipelines> {
public:
  explicit IdlePipelines(Dialect *dialect) : Base(dialect) {}
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IdlePipelines)

  using Key = std::pair<std::string, bool>;

  std::unique_ptr<PassManager> take(const Key &key) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = idle.find(key);
    return found == idle.end() ? nullptr
                               : std::move(idle.extract(found).mapped());
  }
  void giveBack(const Key &key, std::unique_ptr<PassManager> passes) {
    std::lock_guard<std::mutex> lock(mutex);
    idle.emplace(key, std::move(passes));
  }

private:
  std::mutex mutex;
  std::multimap<Key, std::unique_ptr<PassManager>> idle;
};
} // namespace

void mlir::commir::registerPipelineCache(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, CommIRDialect *dialect) {
    dialect->addInterfaces<IdlePipelines>();
  });
}

/// Null where the text is no pipeline, which is reported.
static std::unique_ptr<PassManager>
makePipeline(MLIRContext *context, StringRef pipeline, bool verify) {
  auto passes = std::make_unique<PassManager>(context);
  passes->enableVerifier(verify);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  FailureOr<OpPassManager> parsed = parsePassPipeline(pipeline, stream);
  if (failed(parsed)) {
    emitError(UnknownLoc::get(context)) << StringRef(problem).rtrim();
    return nullptr;
  }
  static_cast<OpPassManager &>(*passes) = std::move(*parsed);
  return passes;
}

bool mercuryRunPipeline(MlirModule module, MlirStringRef pipeline,
                        bool verify) {
  MLIRContext *context = unwrap(module).getContext();
  auto &idle = *context->getOrLoadDialect<CommIRDialect>()
                    ->getRegisteredInterface<IdlePipelines>();
  IdlePipelines::Key key{unwrap(pipeline).str(), verify};
  std::unique_ptr<PassManager> passes = idle.take(key);
  if (!passes)
    passes = makePipeline(context, unwrap(pipeline), verify);
  if (!passes)
    return false;
  bool succeededAll = succeeded(passes->run(unwrap(module)));
  idle.giveBack(key, std::move(passes));
  return succeededAll;
}
