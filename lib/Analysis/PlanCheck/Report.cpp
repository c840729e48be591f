//===- Report.cpp - Counterexamples in words ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

std::string Checker::describeSteps(const Moment &moment) {
  std::string text = trace.describeRank(moment.rank);
  for (auto [i, step] : llvm::enumerate(moment.steps))
    text += (i == 0 ? ", step " : ".") + std::to_string(step);
  return text;
}

InFlightDiagnostic Checker::report(const Moment &moment) {
  return moment.op->emitOpError()
         << "breaks the plan on " << describeSteps(moment) << ": ";
}

void Checker::note(InFlightDiagnostic &error, const Moment &moment,
                   const Twine &text) {
  error.attachNote(moment.op->getLoc())
      << text << ", on " << describeSteps(moment);
}

std::string Checker::describe(const MemoryBox &region) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  MemorySpace space = region.space;
  if (space.kind == MemorySpace::Kind::Argument &&
      space.number < meaning.getNumBuffers())
    stream << "'" << meaning.getName(space.number) << "'";
  else if (space.kind == MemorySpace::Kind::Argument)
    stream << "argument " << space.number;
  else if (space.kind == MemorySpace::Kind::Leased)
    stream << "memory leased by group rank " << space.peer;
  else
    stream << (space.kind == MemorySpace::Kind::Local ? "the local arena"
                                                      : "the symmetric arena");
  if (region.isEmpty())
    stream << " (no elements)";
  else if (region.sizes.front() != std::numeric_limits<int64_t>::max())
    stream << " at bytes [" << region.offset << ", " << region.getEnd() << ")";
  return text;
}

std::string Checker::describe(const Content &content) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (content.isFilled()) {
    stream << "the value " << content.value;
    return text;
  }
  stream << "'" << meaning.getName(content.buffer) << "' ("
         << meaning.describe(content.buffer, content.box) << ")";
  return text;
}
