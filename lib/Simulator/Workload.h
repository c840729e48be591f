//===- Workload.h - What each rank of a plan asks of a machine --*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The events of all ranks, freed of the IR: no memory, only work and messages.
// It is made once for a plan and can be simulated on any number of machines.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SIMULATOR_WORKLOAD_H
#define LIB_SIMULATOR_WORKLOAD_H

#include "lib/Analysis/PlanTrace.h"
#include "lib/Simulator/Machine.h"
#include <vector>

namespace mlir::commir::simulator {

/// One thing that a rank puts into a stream of kernels.
struct Task {
  enum class Kind : uint8_t {
    Compute,  // `index` is its work
    Exchange, // `to` and `from` are ranks of the mesh, or none
    Gather,   // `index` is the gather
    Pull,     // of `from`, whose group rank is `to`, under lease `index`
    Wait,     // for start `token` of its rank
    Open,     // of lease `index`; the own group rank is `to`
    Close,    // likewise
    Mark,     // number `index` of its rank: all that its stream holds by now
    After     // waits for mark `index`
  };
  Kind kind = Kind::Compute;
  /// The index of the innermost loop around it, or none.
  int32_t step = -1;
  /// Its op, by the order in the text.
  int32_t site = 0;
  int32_t index = 0;
  int32_t to = -1, from = -1;
  /// A start's number on its rank, from 0 on, and of the one waited for.
  int32_t token = -1;
  /// Which of its rank's streams it is in.
  int32_t stream = 0;
  /// Of a message: that this rank sends, or pulls.
  int64_t bytes = 0;
  /// Of an exchange: whether it goes by puts.
  bool puts = false;

  Transport getTransport() const {
    return puts ? Transport::RMA : Transport::P2P;
  }

  bool isStart() const {
    return kind == Kind::Exchange || kind == Kind::Gather || kind == Kind::Pull;
  }
};

/// What every kind of launch, fill and copy of a plan asks, each once.
struct Work {
  int32_t site = 0;
  KernelWork kernel;
  /// Fills, copies and packing: `kernel.bytes` are all that it does.
  bool isCopy = false;
};

/// One collective of a group.
struct Gather {
  int64_t group = 0;
  int32_t members = 0;
  /// The largest number of bytes that a member contributes.
  int64_t largest = 0;
  /// Whether one member contributes all.
  bool isBroadcast = false;
};

/// The memory that the members of a group opened to each other.
struct Lease {
  int64_t group = 0;
  int32_t members = 0;
  /// How often each member is pulled from, by its group rank.
  std::vector<int32_t> pulls;
};

/// An op of the plan.
struct Site {
  /// "attention_fwd", "fill", "copy", "exchange", ...
  std::string name;
  /// The number of the program's buffer that it reads or writes, or none.
  int64_t buffer = -1;
  int64_t group = -1;
};

/// A transport that some op needs on a level.
struct Need {
  Transport transport = Transport::P2P;
  int64_t level = 0;
  int32_t rank = 0, site = 0;
};

struct Workload {
  /// Of each rank, in the order of the text.
  std::vector<std::vector<Task>> ranks;
  /// That a rank has at most; one but where a plan uses lanes.
  int32_t streams = 1;
  std::vector<Work> works;
  std::vector<Gather> gathers;
  std::vector<Lease> leases;
  std::vector<Site> sites;
  /// The levels of each group, outermost first.
  std::vector<SmallVector<int64_t>> groups;
  /// "node", or "node, gpu".
  std::vector<std::string> groupNames;
  SmallVector<int64_t> levelSizes;
  std::vector<std::string> levelNames;
  /// What all ranks send over each level; a message counts for the outermost
  /// level on which its ends differ.
  SmallVector<int64_t> bytes;
  /// Each transport and level once.
  std::vector<Need> needs;
  int64_t arenaBytes = 0; // of both arenas of a rank

  int64_t getNumRanks() const { return ranks.size(); }
  /// The outermost level on which two different ranks differ.
  int64_t getCrossedLevel(int64_t one, int64_t other) const;

  /// Traces every rank. Fails, with an error at the op, as `PlanTrace` does.
  static FailureOr<Workload> create(func::FuncOp plan);
};

/// The arithmetic and the bytes of a launch.
KernelWork getWork(LaunchOp launch, const PlanEvent &event);

} // namespace mlir::commir::simulator

#endif // LIB_SIMULATOR_WORKLOAD_H
