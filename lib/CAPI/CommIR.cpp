//===- CommIR.cpp - C API of the commir dialect ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mercury-c/CommIR.h"
#include "dialect/CommIR/CommIR.h"
#include "lib/Analysis/PlanCheck/PlanCheck.h"
#include "lib/CAPI/Pipelines.h"
#include "lib/Register/Register.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/Dialect/Transform/Transforms/TransformInterpreterUtils.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace mlir;
using namespace mlir::commir;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(CommIR, commir, CommIRDialect)

void mercuryRegisterDialects(MlirDialectRegistry registry) {
  registerDialects(*unwrap(registry));
  registerPipelineCache(*unwrap(registry));
}

void mercuryRegisterPasses(void) { registerPasses(); }

int mercuryOptMain(int argc, char **argv) {
  DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "Mercury pass driver\n", registry));
}

int mercuryLspServerMain(int argc, char **argv) {
  DialectRegistry registry;
  registerDialects(registry);
  return asMainReturnCode(MlirLspServerMain(argc, argv, registry));
}

MlirModule mercuryApplySchedule(MlirModule payload, MlirModule script) {
  OwningOpRef<ModuleOp> clone = unwrap(payload).clone();
  auto entry = transform::detail::findTransformEntryPoint(
      unwrap(script), /*module=*/{}, "__transform_main");
  if (!entry ||
      failed(transform::applyTransformNamedSequence(
          clone.get(), entry, /*transformModule=*/{},
          transform::TransformOptions().enableExpensiveChecks(false))) ||
      failed(mlir::verify(clone.get())))
    return MlirModule{nullptr};
  return wrap(clone.release());
}

bool mercuryOperationIsAPlan(MlirOperation operation) {
  auto function = dyn_cast<func::FuncOp>(unwrap(operation));
  return function && function->hasAttr("commir.mesh");
}

bool mercuryCheckPlan(MlirOperation plan, MercuryPlanProof *proof) {
  FailureOr<PlanProof> found = checkPlan(cast<func::FuncOp>(unwrap(plan)));
  if (failed(found))
    return false;
  *proof = {found->ranks, found->launches, found->messages, found->bytes};
  return true;
}

bool mercuryAttributeIsALayout(MlirAttribute attribute) {
  return isa<LayoutAttr>(unwrap(attribute));
}

intptr_t mercuryLayoutShard(MlirAttribute attribute, int64_t extent,
                            int64_t shards, int64_t index, int64_t *bounds,
                            intptr_t capacity) {
  Layout layout = cast<LayoutAttr>(unwrap(attribute)).getLayout();
  if (!layout.whyNot(extent, shards).empty() || index < 0 || index >= shards)
    return -1;
  SmallVector<Interval> intervals = layout.shard(extent, shards, index);
  for (auto [i, interval] : llvm::enumerate(intervals)) {
    if (static_cast<intptr_t>(i) >= capacity)
      break;
    bounds[2 * i] = interval.begin;
    bounds[2 * i + 1] = interval.end;
  }
  return intervals.size();
}

int64_t mercuryLayoutOwner(MlirAttribute attribute, int64_t extent,
                           int64_t shards, int64_t position) {
  Layout layout = cast<LayoutAttr>(unwrap(attribute)).getLayout();
  if (!layout.whyNot(extent, shards).empty() || position < 0 ||
      position >= extent)
    return -1;
  return layout.owner(extent, shards, position);
}

//===----------------------------------------------------------------------===//
// Levels, bindings and cuts
//===----------------------------------------------------------------------===//

bool mercuryAttributeIsALevel(MlirAttribute attribute) {
  return isa<LevelAttr>(unwrap(attribute));
}

MlirStringRef mercuryLevelGetName(MlirAttribute level) {
  return wrap(cast<LevelAttr>(unwrap(level)).getName());
}

int64_t mercuryLevelGetSize(MlirAttribute level) {
  return cast<LevelAttr>(unwrap(level)).getSize();
}

bool mercuryAttributeIsABinding(MlirAttribute attribute) {
  return isa<BindingAttr>(unwrap(attribute));
}

static ArrayRef<CutAttr> getBoundaryCuts(MlirAttribute binding) {
  PlacementAttr boundary = cast<BindingAttr>(unwrap(binding)).getBoundary();
  return boundary ? boundary.getCuts() : ArrayRef<CutAttr>();
}

intptr_t mercuryBindingGetNumBoundaryCuts(MlirAttribute binding) {
  return getBoundaryCuts(binding).size();
}

MlirAttribute mercuryBindingGetBoundaryCut(MlirAttribute binding,
                                           intptr_t cut) {
  return wrap(getBoundaryCuts(binding)[cut]);
}

MlirStringRef mercuryCutGetAxis(MlirAttribute cut) {
  return wrap(cast<CutAttr>(unwrap(cut)).getAxis());
}

intptr_t mercuryCutGetNumFactors(MlirAttribute cut) {
  return cast<CutAttr>(unwrap(cut)).getFactors().size();
}

MlirAttribute mercuryCutGetFactor(MlirAttribute cut, intptr_t factor) {
  return wrap(cast<CutAttr>(unwrap(cut)).getFactors()[factor]);
}

MlirAttribute mercuryCutGetLayout(MlirAttribute cut) {
  LayoutAttr layout = cast<CutAttr>(unwrap(cut)).getLayout();
  return layout ? wrap(Attribute(layout)) : MlirAttribute{nullptr};
}
