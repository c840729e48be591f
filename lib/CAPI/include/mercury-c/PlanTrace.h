//===- PlanTrace.h - C API of the trace of a plan -----------------*- C -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MERCURY_C_PLANTRACE_H
#define MERCURY_C_PLANTRACE_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Integers that live until the callback returns.
typedef struct MercuryIntegers {
  intptr_t count;
  const int64_t *values;
} MercuryIntegers;

/// A box of elements in memory; offset and strides count bytes.
typedef struct MercuryMemoryBox {
  /// "local arena", "symmetric arena", "argument" or "leased".
  MlirStringRef memory;
  /// Of an argument its number, of leased memory the number of the lease.
  int64_t number;
  /// The rank of the mesh whose memory it is.
  int64_t owner;
  int64_t offset;
  /// "bf16", "f32", or "i8" for bytes.
  MlirStringRef elementType;
  int64_t bytes;
  MercuryIntegers sizes;
  MercuryIntegers strides;
} MercuryMemoryBox;

/// Where the indices of a kernel's dimension begin.
typedef struct MercuryPosition {
  /// As the kernel's signature names it: "sq", "h/g".
  MlirStringRef dimension;
  int64_t begin;
} MercuryPosition;

/// One thing that a rank does.
typedef struct MercuryPlanEvent {
  /// "launch", "exchange", "all_gather", "reduce_scatter", "all_reduce",
  /// "all_to_all", "broadcast", "pull", "wait", "fill", "copy", "accumulate",
  /// "lease_open" or "lease_close".
  MlirStringRef kind;
  MlirOperation operation;
  /// The indices of the loops around it, outermost first.
  MercuryIntegers steps;
  /// Where its op is in the text, one number a loop and one for the innermost
  /// body: 2n + 1 after loop n of the function, 2n in it, -1 before any. Put
  /// between the steps they order the events of all ranks.
  MercuryIntegers sections;

  /// Launches only: the kernel, who has it (empty for the compiler), and the
  /// shapes of its operands by letter (empty when it is not known).
  MlirStringRef kernel;
  MlirStringRef implementation;
  MlirStringRef signature;
  intptr_t numPositions;
  const MercuryPosition *positions;

  intptr_t numInputs;
  const MercuryMemoryBox *inputs;
  intptr_t numOutputs;
  const MercuryMemoryBox *outputs;
  /// Launches only: for each output 1 where it is written whatever was there, 0
  /// where it is merged into.
  MercuryIntegers overwrites;

  /// Communication and leases: the levels of the group and its members in
  /// order, as ranks of the mesh.
  intptr_t numLevels;
  const MlirStringRef *levels;
  MercuryIntegers members;
  /// Ranks of the mesh, -1 where there is none; equal to the own rank where a
  /// rank keeps what it sends.
  int64_t to;
  int64_t from;
  /// Whether a communication happens at all on this rank.
  bool happens;
  /// For each member the bytes that it contributes to an all_gather, or that
  /// this rank has for it in a reduce_scatter or an all_to_all.
  MercuryIntegers lengths;
  /// What a start gives and a wait takes, from 1; 0 for none.
  int64_t token;
  /// In the order of opening, from 1; 0 for none.
  int64_t lease;
} MercuryPlanEvent;

/// The ranks of a plan's mesh; -1, with a diagnostic, when it cannot be traced.
MLIR_CAPI_EXPORTED int64_t mercuryPlanGetNumRanks(MlirOperation plan);

/// Follows one rank through a plan and calls back at each event. Returns false,
/// with a diagnostic, when the plan does something that is not known.
MLIR_CAPI_EXPORTED bool mercuryTracePlan(
    MlirOperation plan, int64_t rank,
    void (*callback)(const MercuryPlanEvent *event, void *userData),
    void *userData);

#ifdef __cplusplus
}
#endif

#endif // MERCURY_C_PLANTRACE_H
