//===- Engine.h - The streams and lanes of all ranks ------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between Streams.cpp, where ranks go through their tasks, Device.cpp, where
// their kernels run, and Lanes.cpp, where what they started goes on by itself.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SIMULATOR_ENGINE_H
#define LIB_SIMULATOR_ENGINE_H

#include "lib/Simulator/Network.h"
#include "lib/Simulator/Simulator.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::commir::simulator {

class Engine {
public:
  Engine(const Workload &workload, const Machine &machine, bool recordSpans);

  llvm::Expected<Simulation> run();

private:
  /// A transfer in a lane.
  struct Operation {
    const Task *task = nullptr;
    /// Whether its rank's stream has come to it.
    bool isDue = false;
    /// Its messages that have not ended, and those not yet begun.
    int8_t open = 0;
    bool sends = false, receives = false;
    double begin = 0;
  };

  /// A stream that is none of kernels; one operation at a time, in the order of
  /// the text.
  struct Lane {
    int32_t rank = 0;
    Span::Lane kind = Span::Lane::Messages;
    int32_t number = 0;
    bool runs = false;
    /// What the operation that runs takes from kernels.
    double slowdown = 0;
    size_t front = 0;
    std::vector<Operation> queue;
  };

  /// A lane and the place of a start in it; no lane where it has nothing to do.
  struct Place {
    int32_t lane = -1;
    size_t at = 0;
  };

  /// The kernels of a rank, or those of one of its lanes.
  struct Stream {
    int32_t rank = 0;
    /// Among the tasks of the rank; those of other streams are passed over.
    size_t next = 0;
    /// Of the kernel that runs: how much of its time is left, how fast that
    /// goes by, and what will be left when the alarm rings.
    const Work *work = nullptr;
    Occupancy occupancy;
    double begin = 0, left = 0, updated = 0, speed = 0, until = 0;
    bool sharesDevice = false;
    uint32_t version = 0;
    /// What it waits for: the number of a start, a lease, or a mark.
    int32_t token = -1, lease = -1, mark = -1;
    double waitsSince = 0;
  };

  /// What the streams of a rank have in common.
  struct Rank {
    /// Those with a kernel that runs, in the order in which they began.
    std::vector<int32_t> running;
    /// The speed that transfers leave to kernels.
    double speed = 1;
    std::vector<Place> starts;
    std::vector<bool> done, marked;
  };

  struct LeaseState {
    /// When each member opened it; less than 0 before.
    std::vector<double> opened;
    /// Pulls from each member that have not ended, and when the last did.
    std::vector<int32_t> pulls;
    std::vector<double> lastPull;
    /// Lanes in front of which a pull waits for a member to open.
    std::vector<std::pair<int32_t, int32_t>> waiting;
    /// The streams that wait to close it, by group rank; less than 0 for none.
    std::vector<int32_t> closing;
  };

  // Streams.cpp
  void advance(int32_t stream);
  bool perform(int32_t stream, const Task &task);
  bool wait(int32_t stream, const Task &task);
  void mark(int32_t stream, const Task &task);
  bool waitForMark(int32_t stream, const Task &task);
  void open(const Task &task);
  bool close(int32_t stream, const Task &task);
  void goOn(int32_t stream, double time);
  void setDone(int32_t rank, int32_t token);
  const Task &getTask(const Stream &stream) const {
    return workload.ranks[stream.rank][stream.next - 1];
  }
  llvm::Error getStuck() const;

  // Device.cpp
  void compute(int32_t stream, const Task &task);
  void turn(int32_t stream);
  void endCompute(int32_t stream);
  void shareDevice(int32_t rank);
  void updateSpeed(int32_t rank);

  // Lanes.cpp
  void queueStarts();
  void setDue(int32_t rank, const Task &task);
  int32_t getMessageLane(int32_t rank, int64_t group) const;
  int32_t getPullLane(int32_t rank, int32_t peer);
  void startNext(int32_t lane);
  void startExchange(int32_t lane);
  void match(int32_t sender, int32_t receiver);
  void startGather(int32_t lane);
  void startPull(int32_t lane);
  void endTransfer(const Network::Owner &owner);
  void endMessage(int32_t lane);
  void endOperation(int32_t lane);
  void endPull(const Lane &lane, const Task &task);

  void record(Span span) {
    if (recordSpans && span.end > span.start)
      result.spans.push_back(span);
  }
  const Site &getSite(const Task &task) const {
    return workload.sites[task.site];
  }

  const Workload &workload;
  const Machine &machine;
  const bool recordSpans;
  Clock clock;
  Network network;
  Simulation result;
  /// The time of each work on this machine.
  std::vector<double> workSeconds;
  std::vector<Occupancy> workOccupancy;
  std::vector<Rank> ranks;
  /// Those of each rank, side by side.
  std::vector<Stream> streams;
  /// The lanes of messages of each rank, then those of pulls.
  int64_t messageLanes = 1;
  std::vector<Lane> lanes;
  llvm::DenseMap<int64_t, int32_t> pullLanes;
  /// The lanes of the members that have come to each collective.
  std::vector<std::vector<int32_t>> gathered;
  std::vector<LeaseState> leases;
};

} // namespace mlir::commir::simulator

#endif // LIB_SIMULATOR_ENGINE_H
