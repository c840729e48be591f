//===- Draft.cpp - A program's schedule while it is edited ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transform/Draft.h"
#include "dialect/CommIR/LoopRules.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlir::commir;

Draft::Draft(ProgramOp program)
    : program(program), mesh(program.getMeshOp()),
      axes(program.getAxes().getAsRange<AxisAttr>()),
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

/// Whether anything cuts an axis, or lays it out in another way than in blocks.
static bool isCut(AxisAttr axis, ArrayRef<Draft::Nest> nests,
                  ArrayRef<BindingAttr> bindings) {
  auto cuts = [&](PlacementAttr placement) {
    return placement && placement.getCut(axis.getName());
  };
  return axis.getLayout().getKind() != Layout::Kind::Block ||
         llvm::any_of(bindings,
                      [&](BindingAttr binding) {
                        return cuts(binding.getBoundary()) ||
                               cuts(binding.getShard());
                      }) ||
         llvm::any_of(nests, [&](const Draft::Nest &nest) {
           return llvm::any_of(nest.loops, [&](LoopAttr loop) {
             return loop.isOver(axis.getName()) && loop.getParts() > 1;
           });
         });
}

std::string Draft::setSizes(StringRef name, ArrayRef<int64_t> sizes) {
  AxisAttr &axis = *llvm::find_if(
      axes, [&](AxisAttr each) { return each.getName() == name; });
  SmallVector<int64_t> bounds{0};
  for (int64_t size : sizes)
    if (size >= 0 && size <= axis.getExtent() - bounds.back())
      bounds.push_back(bounds.back() + size);
  bool addUp = bounds.size() == sizes.size() + 1 && !sizes.empty() &&
               bounds.back() == axis.getExtent();
  if (bool cut = isCut(axis, nests, bindings); cut || !addUp) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << "the sizes of parts must add up to the extent of an axis in "
              "blocks that nothing else cuts, got [";
    llvm::interleaveComma(sizes, stream);
    stream << "] for '" << name << "' of " << axis.getExtent()
           << (cut ? ", which is cut already" : "");
    return text;
  }
  auto layout = LayoutAttr::get(getContext(), Layout::Kind::Bounds,
                                /*chunk=*/0, bounds);
  axis = AxisAttr::get(getContext(), name, axis.getExtent(), layout);
  return "";
}

std::string Draft::whyNot() {
  // Rules read the axes off the program.
  auto before = program.getAxes();
  program.setAxesAttr(makeAxes());
  llvm::scope_exit restore([&] { program.setAxesAttr(before); });
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

ArrayAttr Draft::makeAxes() {
  return ArrayAttr::get(getContext(),
                        SmallVector<Attribute>(axes.begin(), axes.end()));
}

void Draft::commit() {
  Builder builder(program->getContext());
  program.setAxesAttr(makeAxes());
  for (Nest &nest : nests)
    nest.op.setLoopsAttr(builder.getArrayAttr(
        SmallVector<Attribute>(nest.loops.begin(), nest.loops.end())));
  program.setBindingsAttr(builder.getArrayAttr(
      SmallVector<Attribute>(bindings.begin(), bindings.end())));
}
