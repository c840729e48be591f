//===- CommIR.h - C API of the commir dialect ---------------------*- C -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MERCURY_C_COMMIR_H
#define MERCURY_C_COMMIR_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(CommIR, commir);

/// Registers commir and every dialect that plans are made of.
MLIR_CAPI_EXPORTED void mercuryRegisterDialects(MlirDialectRegistry registry);

/// Registers Mercury's passes and pipelines, and the upstream passes they use.
MLIR_CAPI_EXPORTED void mercuryRegisterPasses(void);

/// The mains of mercury-opt and mercury-lsp-server.
MLIR_CAPI_EXPORTED int mercuryOptMain(int argc, char **argv);
MLIR_CAPI_EXPORTED int mercuryLspServerMain(int argc, char **argv);

/// Applies the named sequence `__transform_main` of `script` to a clone of
/// `payload`. Returns the clone, which the caller owns, or a null module when a
/// step is not legal; `payload` is never changed. Diagnostics go to the
/// context's handlers.
MLIR_CAPI_EXPORTED MlirModule mercuryApplySchedule(MlirModule payload,
                                                   MlirModule script);

/// Runs a pass pipeline on a module in place, of a context whose dialects
/// `mercuryRegisterDialects` registered. Returns false when a pass fails, or
/// the text is no pipeline. Diagnostics go to the context's handlers.
MLIR_CAPI_EXPORTED bool mercuryRunPipeline(MlirModule module,
                                           MlirStringRef pipeline, bool verify);

/// What was proved of a plan, counted over all ranks.
typedef struct MercuryPlanProof {
  int64_t ranks;
  int64_t launches;
  int64_t messages;
  int64_t bytes;
} MercuryPlanProof;

/// Whether an operation is a function that `commir-to-spmd` made.
MLIR_CAPI_EXPORTED bool mercuryOperationIsAPlan(MlirOperation operation);

/// Proves that a plan means the program it was lowered from. Returns false when
/// it does not; the counterexample goes to the context's handlers.
MLIR_CAPI_EXPORTED bool mercuryCheckPlan(MlirOperation plan,
                                         MercuryPlanProof *proof);

/// The layout of a `#commir.layout`: the number of intervals of shard `index`
/// of `shards`, written as begin, end pairs to `bounds` (room for `capacity`
/// pairs). Returns -1 when the layout cannot cut the axis so.
MLIR_CAPI_EXPORTED intptr_t mercuryLayoutShard(MlirAttribute layout,
                                               int64_t extent, int64_t shards,
                                               int64_t index, int64_t *bounds,
                                               intptr_t capacity);

/// The shard that owns `position`, or -1 when the layout cannot cut the axis
/// so.
MLIR_CAPI_EXPORTED int64_t mercuryLayoutOwner(MlirAttribute layout,
                                              int64_t extent, int64_t shards,
                                              int64_t position);

MLIR_CAPI_EXPORTED bool mercuryAttributeIsALayout(MlirAttribute attribute);

/// The parts of a `#commir.level`.
MLIR_CAPI_EXPORTED bool mercuryAttributeIsALevel(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirStringRef mercuryLevelGetName(MlirAttribute level);
MLIR_CAPI_EXPORTED int64_t mercuryLevelGetSize(MlirAttribute level);

/// The boundary placement of a `#commir.binding`: its cuts, each an axis,
/// factors (strings name levels, integers are cuts inside a rank) and a layout,
/// null for that of the axis. A binding without a boundary has no cuts.
MLIR_CAPI_EXPORTED bool mercuryAttributeIsABinding(MlirAttribute attribute);
MLIR_CAPI_EXPORTED intptr_t
mercuryBindingGetNumBoundaryCuts(MlirAttribute binding);
MLIR_CAPI_EXPORTED MlirAttribute
mercuryBindingGetBoundaryCut(MlirAttribute binding, intptr_t cut);
MLIR_CAPI_EXPORTED MlirStringRef mercuryCutGetAxis(MlirAttribute cut);
MLIR_CAPI_EXPORTED intptr_t mercuryCutGetNumFactors(MlirAttribute cut);
MLIR_CAPI_EXPORTED MlirAttribute mercuryCutGetFactor(MlirAttribute cut,
                                                     intptr_t factor);
MLIR_CAPI_EXPORTED MlirAttribute mercuryCutGetLayout(MlirAttribute cut);

#ifdef __cplusplus
}
#endif

#endif // MERCURY_C_COMMIR_H
