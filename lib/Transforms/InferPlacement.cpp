//===- InferPlacement.cpp - Find where every buffer lives -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::commir {
#define GEN_PASS_DEF_INFERPLACEMENT
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

static bool usesBuffer(ForOp nest, Value buffer) {
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    return user->getParentOp() == nest;
  });
}

/// The placement that the first nest which uses a buffer has it at. For others
/// it is moved (R8), and a remark says so.
static PlacementAttr inferFromUsers(ProgramOp program, int64_t buffer) {
  PlacementAttr found;
  ForOp first;
  for (ForOp nest : program.getBody().getOps<ForOp>()) {
    if (!usesBuffer(nest, program.getBody().getArgument(buffer)))
      continue;
    PlacementAttr here = inferPlacement(program, nest, buffer);
    if (!found) {
      first = nest;
      found = here;
    } else if (!isSamePlacement(program, here, found)) {
      InFlightDiagnostic remark =
          nest.emitRemark() << "'" << program.getBinding(buffer).getName()
                            << "' lives where an earlier nest has it, " << found
                            << ", not " << here
                            << " as here: what differs is moved (R8); shard or "
                               "replicate it explicitly to have it elsewhere";
      remark.attachNote(first.getLoc()) << "the earlier nest is here";
    }
  }
  return found ? found : PlacementAttr::get(program.getContext(), {});
}

//===----------------------------------------------------------------------===//
// Nests that a schedule leaves alone
//===----------------------------------------------------------------------===//

static bool isScheduled(ForOp nest) {
  return llvm::any_of(nest.getLoops().getAsRange<LoopAttr>(),
                      [](LoopAttr loop) {
                        return loop.getAxes().size() > 1 || loop.isParallel() ||
                               loop.getShift() || loop.getParts() != 1;
                      });
}

/// How the nests that are scheduled make the inputs of another lie along an
/// axis: the cut of the first input that has one.
static CutAttr findCutOfInputs(ProgramOp program, ForOp nest,
                               ArrayRef<ForOp> scheduled, StringRef axis) {
  for (LoadOp load : nest.getBody().getOps<LoadOp>())
    for (ForOp other : scheduled) {
      int64_t buffer = cast<BlockArgument>(load.getBuffer()).getArgNumber();
      if (!usesBuffer(other, load.getBuffer()))
        continue;
      if (CutAttr cut = inferPlacement(program, other, buffer).getCut(axis))
        return cut;
    }
  return {};
}

/// Has a nest that no step of a schedule speaks of run where its inputs lie, so
/// that none of them moves for it: the owner of a part computes on it.
static void followInputs(ProgramOp program, ForOp nest,
                         ArrayRef<ForOp> scheduled, llvm::StringSet<> &names) {
  MLIRContext *context = program.getContext();
  MeshOp mesh = program.getMeshOp();
  SmallVector<Attribute> loops;
  llvm::SmallDenseSet<Attribute> taken;
  for (auto whole : nest.getLoops().getAsRange<LoopAttr>()) {
    CutAttr cut = findCutOfInputs(program, nest, scheduled,
                                  whole.getAxes().front().getValue());
    ArrayRef<Attribute> left = cut ? cut.getFactors() : ArrayRef<Attribute>();
    if (left.empty() || llvm::any_of(left, [&](Attribute factor) {
          return taken.contains(factor);
        })) {
      loops.push_back(whole);
      continue;
    }
    // A loop for each number, and for each run of levels.
    std::string name = whole.getName().str();
    while (!left.empty()) {
      SmallVector<StringAttr> levels;
      int64_t parts = 1;
      if (auto number = dyn_cast<IntegerAttr>(left.front())) {
        parts = number.getInt();
        left = left.drop_front();
      }
      for (; parts == 1 && !left.empty() && isa<StringAttr>(left.front());
           left = left.drop_front()) {
        levels.push_back(cast<StringAttr>(left.front()));
        taken.insert(left.front());
      }
      for (StringAttr level : levels)
        parts *= mesh.getLevelSize(level);
      loops.push_back(LoopAttr::get(context, name, whole.getAxes(), parts,
                                    levels, ShiftAttr()));
      while (!names.insert(name).second)
        name += "_";
    }
  }
  nest.setLoopsAttr(ArrayAttr::get(context, loops));
}

static void followInputs(ProgramOp program) {
  SmallVector<ForOp> scheduled, others;
  llvm::StringSet<> names;
  for (ForOp nest : program.getBody().getOps<ForOp>()) {
    (isScheduled(nest) ? scheduled : others).push_back(nest);
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
      names.insert(loop.getName());
  }
  for (ForOp nest : others)
    followInputs(program, nest, scheduled, names);
}

namespace {
struct InferPlacement
    : public commir::impl::InferPlacementBase<InferPlacement> {
  void runOnOperation() override {
    getOperation().walk([&](ProgramOp program) {
      // What is lowered already has nothing left to infer from.
      if (!llvm::all_of(program.getBody().getOps(), llvm::IsaPred<ForOp>))
        return;
      followInputs(program);
      SmallVector<Attribute> bindings;
      for (int64_t i = 0, e = program.getBindings().size(); i < e; ++i) {
        PlacementAttr inside = inferFromUsers(program, i);
        BindingAttr old = program.getBinding(i);
        bindings.push_back(BindingAttr::get(
            &getContext(), old.getName(),
            old.getBoundary() ? old.getBoundary() : inside, old.getShard(),
            old.getReplicate(), old.getBroadcast(), inside));
        ++numBuffers;
      }
      program.setBindingsAttr(ArrayAttr::get(&getContext(), bindings));
    });
  }
};
} // namespace
