//===- Simulator.h - C API of the simulator ----------------------*- C -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MERCURY_C_SIMULATOR_H
#define MERCURY_C_SIMULATOR_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What all ranks of a plan ask of a machine; free of the plan's IR.
typedef struct MercuryWorkload {
  void *ptr;
} MercuryWorkload;

/// What became of it on one machine; must not outlive its workload.
typedef struct MercurySimulation {
  void *ptr;
} MercurySimulation;

typedef struct MercurySpan {
  int64_t rank;
  /// "kernel", "copy", "transfer" or "wait".
  MlirStringRef kind;
  /// "compute", "messages" or "pulls".
  MlirStringRef lane;
  /// Of a lane of messages its group, empty when it has those of all.
  MlirStringRef group;
  /// Of a lane of pulls; else -1.
  int64_t peer;
  /// The kernel, or what kind of op it is.
  MlirStringRef name;
  /// The number of the program's buffer that the op touches, -1 for none.
  int64_t buffer;
  double start;
  double end;
  int64_t bytes;
  /// The index of the innermost loop, -1 for none.
  int64_t step;
} MercurySpan;

/// Follows all ranks through a plan. Null, with a diagnostic, when it does
/// something that is not known.
MLIR_CAPI_EXPORTED MercuryWorkload mercuryWorkloadCreate(MlirOperation plan);
MLIR_CAPI_EXPORTED void mercuryWorkloadDestroy(MercuryWorkload workload);
MLIR_CAPI_EXPORTED int64_t mercuryWorkloadGetNumRanks(MercuryWorkload workload);
/// Of both arenas of a rank.
MLIR_CAPI_EXPORTED int64_t
mercuryWorkloadGetArenaBytes(MercuryWorkload workload);
MLIR_CAPI_EXPORTED intptr_t
mercuryWorkloadGetNumLevels(MercuryWorkload workload);
MLIR_CAPI_EXPORTED MlirStringRef
mercuryWorkloadGetLevelName(MercuryWorkload workload, intptr_t level);
/// What all ranks send over a level.
MLIR_CAPI_EXPORTED int64_t
mercuryWorkloadGetLevelBytes(MercuryWorkload workload, intptr_t level);

/// Runs it on a machine, given as JSON. Null when it cannot be: then `error` is
/// called with the reason.
MLIR_CAPI_EXPORTED MercurySimulation mercurySimulate(MercuryWorkload workload,
                                                     MlirStringRef machine,
                                                     bool recordSpans,
                                                     MlirStringCallback error,
                                                     void *userData);
MLIR_CAPI_EXPORTED void mercurySimulationDestroy(MercurySimulation simulation);
MLIR_CAPI_EXPORTED double
mercurySimulationGetSeconds(MercurySimulation simulation);
MLIR_CAPI_EXPORTED double
mercurySimulationGetExposed(MercurySimulation simulation);
/// The time of a rank's own kernels and copies, undisturbed.
MLIR_CAPI_EXPORTED double mercurySimulationGetBusy(MercurySimulation simulation,
                                                   int64_t rank);
/// How long the busiest wire of a link of the machine was in use.
MLIR_CAPI_EXPORTED intptr_t
mercurySimulationGetNumLinks(MercurySimulation simulation);
MLIR_CAPI_EXPORTED double
mercurySimulationGetLinkSeconds(MercurySimulation simulation, intptr_t link);
MLIR_CAPI_EXPORTED intptr_t
mercurySimulationGetNumSpans(MercurySimulation simulation);
MLIR_CAPI_EXPORTED MercurySpan mercurySimulationGetSpan(
    MercuryWorkload workload, MercurySimulation simulation, intptr_t number);

#ifdef __cplusplus
}
#endif

#endif // MERCURY_C_SIMULATOR_H
