//===- Draft.cpp - A program's schedule while it is edited ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transform/Draft.h"
#include "dialect/CommIR/LoopRules.h"

using namespace mlir;
using namespace mlir::commir;

Draft::Draft(ProgramOp program)
    : program(program), mesh(program.getMeshOp()),
      bindings(program.getBindings().getAsRange<BindingAttr>()) {
  for (ForOp nest : program.getBody().getOps<ForOp>())
    nests.push_back(
        {nest, SmallVector<LoopAttr>(nest.getLoops().getAsRange<LoopAttr>())});
}

/// `a step must name a loop of the program, 'x' is none; the loops are 'a',
/// 'b'`.
static std::string describeMissing(StringRef kind, StringRef name,
                                   ArrayRef<StringRef> known) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "a step must name a " << kind << " of the program, '" << name
         << "' is none; the " << kind << "s are ";
  llvm::interleaveComma(
      known, stream, [&](StringRef other) { stream << "'" << other << "'"; });
  return text;
}

Draft::Found Draft::findLoop(StringRef name, std::string &why) {
  SmallVector<StringRef> known;
  for (Nest &nest : nests)
    for (auto [at, loop] : llvm::enumerate(nest.loops)) {
      if (loop.getName() == name)
        return {&nest, at};
      known.push_back(loop.getName());
    }
  why = describeMissing("loop", name, known);
  return {};
}

bool Draft::hasLoop(StringRef name) {
  std::string ignored;
  return findLoop(name, ignored).nest;
}

BindingAttr *Draft::findBinding(StringRef name, std::string &why) {
  SmallVector<StringRef> known;
  for (BindingAttr &binding : bindings) {
    if (binding.getName() == name)
      return &binding;
    known.push_back(binding.getName());
  }
  why = describeMissing("buffer", name, known);
  return nullptr;
}

std::string Draft::whyNot() {
  for (Nest &nest : nests)
    if (std::string why = whyNotLoops(program, mesh, nest.loops); !why.empty())
      return why;
  for (auto [i, binding] : llvm::enumerate(bindings))
    if (std::string why =
            whyNotBinding(program, mesh, binding, program.getBufferType(i));
        !why.empty())
      return why;
  for (Nest &nest : nests)
    if (std::string why = whyNotBroadcast(mesh, nest.op, nest.loops, bindings);
        !why.empty())
      return why;
  return "";
}

void Draft::commit() {
  Builder builder(program->getContext());
  for (Nest &nest : nests)
    nest.op.setLoopsAttr(builder.getArrayAttr(
        SmallVector<Attribute>(nest.loops.begin(), nest.loops.end())));
  program.setBindingsAttr(builder.getArrayAttr(
      SmallVector<Attribute>(bindings.begin(), bindings.end())));
}
