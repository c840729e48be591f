//===- MergeTransforms.cpp - When a schedule merges -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transform/CommIRTransformOps.h"
#include "dialect/CommIR/Transform/Step.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::commir;
using llvm::formatv;

/// The store of a program that writes an output, if there is one.
static StoreOp findStore(ProgramOp program, StringRef buffer) {
  StoreOp found;
  program.walk([&](StoreOp store) {
    for (Value stored : store.getBuffers())
      if (program.getBinding(cast<BlockArgument>(stored).getArgNumber())
              .getName() == buffer)
        found = store;
  });
  return found;
}

DiagnosedSilenceableFailure
transform::DeferTransform::apply(TransformRewriter &, TransformResults &,
                                 TransformState &state) {
  SmallVector<StoreOp> stores;
  auto edit = [&](Draft &draft) -> std::string {
    std::string why;
    if (!draft.findBinding(getBuffer(), why))
      return why;
    StoreOp store = findStore(draft.getProgram(), getBuffer());
    if (!store || !store.getMerge())
      return formatv("a buffer to defer must be an output that is merged, "
                     "'{0}' is {1}",
                     getBuffer(), store ? "written once" : "an input");
    if (store.getDeferred())
      return formatv("a buffer to defer must not be deferred already, '{0}' is",
                     getBuffer());
    if (std::optional<Type> partial = getPartial();
        partial && !isa<FloatType>(*partial)) {
      std::string type;
      llvm::raw_string_ostream(type) << *partial;
      return "partial results must wait in a float type, got " + type;
    }
    stores.push_back(store);
    return "";
  };
  DiagnosedSilenceableFailure result =
      applyStep(*this, state, getTarget(),
                "defer the merge of buffer '" + getBuffer() + "'", edit);
  if (!result.succeeded())
    return result;
  for (StoreOp store : stores) {
    store.setDeferred(true);
    store.setPartialAttr(getPartialAttr());
  }
  return result;
}
