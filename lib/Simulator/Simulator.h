//===- Simulator.h - The time of a plan on a machine ------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Discrete events over the work of all ranks. As on a GPU the host runs ahead:
// each rank has a stream of kernels, one lane of messages and one lane for the
// pulls from each peer. A start puts its transfer into a lane once the stream
// has come so far, and a wait makes the stream wait for it.
//
// Messages and collectives are kernels of their own, which take some of the
// speed of those beside them from when their lane reaches them until they end,
// also while they wait for their peer. Pulls are done by copy engines and take
// none, but those of a rank's own memory, which are kernels in its stream.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SIMULATOR_SIMULATOR_H
#define LIB_SIMULATOR_SIMULATOR_H

#include "lib/Simulator/Machine.h"
#include "lib/Simulator/Workload.h"

namespace mlir::commir::simulator {

/// Something that a rank does for a while.
struct Span {
  enum class Kind : uint8_t { Kernel, Copy, Transfer, Wait };
  enum class Lane : uint8_t { Compute, Messages, Pulls };
  Kind kind = Kind::Kernel;
  Lane lane = Lane::Compute;
  int32_t rank = 0;
  /// Of a lane of messages its group, -1 when it has those of all; of a lane of
  /// pulls the peer.
  int32_t laneNumber = 0;
  int32_t site = 0;
  int32_t step = -1;
  double start = 0, end = 0;
  /// That are sent, pulled, or moved in the rank's own memory.
  int64_t bytes = 0;
};

struct Simulation {
  /// Until the last rank is done.
  double seconds = 0;
  /// For each rank, its kernels and copies with nothing beside them.
  std::vector<double> busy;
  /// For each link of the machine, how long its busiest wire was in use.
  std::vector<double> linkSeconds;
  std::vector<Span> spans;

  /// What is left when the busiest rank's own work is taken away.
  double getExposed() const;
};

/// Runs a plan's work on a machine. Fails when the machine lacks what the work
/// needs, naming it, or when the ranks wait for each other for ever.
llvm::Expected<Simulation> simulate(const Workload &workload,
                                    const Machine &machine, bool recordSpans);

} // namespace mlir::commir::simulator

#endif // LIB_SIMULATOR_SIMULATOR_H
