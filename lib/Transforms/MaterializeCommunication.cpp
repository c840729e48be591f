//===- MaterializeCommunication.cpp - Loops to one SPMD text --------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"
#include "lib/Transforms/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_MATERIALIZECOMMUNICATION
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

/// The element types that generated kernels are written for.
static LogicalResult checkElementTypes(ProgramOp program) {
  for (int64_t i = 0, e = program.getBindings().size(); i < e; ++i) {
    Type type = program.getBufferType(i).getElementType();
    if (!type.isBF16() && !type.isF16() && !type.isF32() && !type.isF64())
      return program.emitOpError()
             << "has elements of " << type << " in buffer '"
             << program.getBinding(i).getName()
             << "', which this version does not lower yet; bf16, f16, f32 and "
                "f64 it does";
  }
  return success();
}

/// Keeps what a program means beside what it becomes, for the plan checker.
static void keepSource(ProgramOp program) {
  Operation *module = SymbolTable::getNearestSymbolTable(program);
  OpBuilder builder(program);
  auto source = cast<ProgramOp>(builder.clone(*program));
  source.setSymName((program.getSymName() + ".source").str());
  // The table inserts under another name when this one is taken.
  source->remove();
  SymbolTable(module).insert(source, program->getIterator());
  source->setAttr("commir.is_source", builder.getUnitAttr());
  program->setAttr("commir.source",
                   FlatSymbolRefAttr::get(source.getSymNameAttr()));
}

namespace {
struct MaterializeCommunication
    : public commir::impl::MaterializeCommunicationBase<
          MaterializeCommunication> {
  void runOnOperation() override {
    SmallVector<std::pair<ProgramOp, ForOp>> nests;
    getOperation().walk([&](ProgramOp program) {
      if (program->hasAttr("commir.is_source"))
        return;
      for (ForOp nest : program.getBody().getOps<ForOp>())
        nests.emplace_back(program, nest);
    });
    MovedInputs movedInputs;
    for (auto [program, nest] : nests) {
      for (int64_t i = 0, e = program.getBindings().size(); i < e; ++i)
        if (!program.getBinding(i).getInside()) {
          program.emitOpError() << "has no placement for buffer '"
                                << program.getBinding(i).getName()
                                << "'; run commir-infer-placement first";
          return signalPassFailure();
        }
      if (!program->hasAttr("commir.source"))
        keepSource(program);
      if (failed(checkElementTypes(program)) ||
          failed(
              NestExpander(program, nest, movedInputs, numTransfers).expand()))
        return signalPassFailure();
    }
  }
};
} // namespace
