//===- Step.h - One step of a schedule --------------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_TRANSFORM_STEP_H
#define DIALECT_COMMIR_TRANSFORM_STEP_H

#include "dialect/CommIR/Transform/Draft.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"

namespace mlir::commir {

/// Edits every program of the handle on a draft, then writes all drafts back.
/// `edit` returns why it cannot; `step` says what was asked for.
DiagnosedSilenceableFailure applyStep(transform::TransformOpInterface op,
                                      transform::TransformState &state,
                                      Value target, const Twine &step,
                                      function_ref<std::string(Draft &)> edit);

/// The names in an array of strings.
SmallVector<StringAttr> getNames(ArrayAttr names);

/// The names for a message: 'a', 'b'.
std::string quote(ArrayAttr names);

LoopAttr makeLoop(MLIRContext *context, StringRef name,
                  ArrayRef<StringAttr> axes, int64_t parts = 1,
                  ArrayRef<StringAttr> levels = {}, ShiftAttr shift = {});

/// Builds an attribute through its verifier; null when it is not legal, and
/// `why` says so.
template <typename AttrTy, typename... Args>
AttrTy makeLegal(MLIRContext *context, std::string &why, Args &&...args) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    why = diagnostic.str();
    return success();
  });
  return AttrTy::getChecked([&] { return emitError(UnknownLoc::get(context)); },
                            context, std::forward<Args>(args)...);
}

/// Whether a loop is not cut: its extent reaches the kernel.
bool isWhole(LoopAttr loop);

} // namespace mlir::commir

#endif // DIALECT_COMMIR_TRANSFORM_STEP_H
