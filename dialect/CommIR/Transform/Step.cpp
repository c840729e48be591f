//===- Step.cpp - One step of a schedule ----------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transform/Step.h"

using namespace mlir;
using namespace mlir::commir;

DiagnosedSilenceableFailure mlir::commir::applyStep(
    transform::TransformOpInterface op, transform::TransformState &state,
    Value target, const Twine &step, function_ref<std::string(Draft &)> edit) {
  SmallVector<Draft> drafts;
  std::string asked = step.str();
  for (Operation *payload : state.getPayloadOps(target)) {
    auto program = dyn_cast<ProgramOp>(payload);
    if (!program)
      return emitDefiniteFailure(op)
             << "cannot " << asked
             << ": the handle of a step must hold commir.program ops, got '"
             << payload->getName() << "'";
    Draft &draft = drafts.emplace_back(program);
    std::string why = edit(draft);
    if (why.empty())
      why = draft.whyNot();
    if (why.empty())
      continue;
    DiagnosedSilenceableFailure failure = emitSilenceableFailure(op)
                                          << "cannot " << asked << ": " << why;
    failure.attachNote(program.getLoc()) << "the program is here";
    return failure;
  }
  for (Draft &draft : drafts)
    draft.commit();
  return DiagnosedSilenceableFailure::success();
}

SmallVector<StringAttr> mlir::commir::getNames(ArrayAttr names) {
  return SmallVector<StringAttr>(names.getAsRange<StringAttr>());
}

std::string mlir::commir::quote(ArrayAttr names) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(
      names.getAsRange<StringAttr>(), stream,
      [&](StringAttr n) { stream << "'" << n.getValue() << "'"; });
  return text;
}

LoopAttr mlir::commir::makeLoop(MLIRContext *context, StringRef name,
                                ArrayRef<StringAttr> axes, int64_t parts,
                                ArrayRef<StringAttr> levels, ShiftAttr shift) {
  return LoopAttr::get(context, name, axes, parts, levels, shift);
}

bool mlir::commir::isWhole(LoopAttr loop) {
  return loop.getParts() == 1 && !loop.isParallel() && !loop.getShift();
}
