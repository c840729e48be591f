//===- Network.h - Transfers that share links -------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each link has wires: of a rank or of a unit, one for each direction, or one
// for all. The transfers on a wire have equal parts of it, and a transfer is as
// fast as its fullest wire lets it be.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SIMULATOR_NETWORK_H
#define LIB_SIMULATOR_NETWORK_H

#include "lib/Simulator/Clock.h"
#include "lib/Simulator/Workload.h"

namespace mlir::commir::simulator {

class Network {
public:
  /// What tells its owner a transfer from others when it ends.
  struct Owner {
    /// The lanes at both ends, the same for a pull; none for a collective.
    int32_t sender = -1, receiver = -1;
    int32_t gather = -1;
  };

  Network(const Machine &machine, const Workload &workload, Clock &clock);

  const Link &getLink(int64_t one, int64_t other) const;
  /// The slowest link that a group uses.
  const Link &getLink(const Gather &gather) const;

  /// Starts a message from one rank to another.
  void start(Transport transport, int64_t from, int64_t to, int64_t bytes,
             Owner owner);
  /// Starts a collective, whose members relay: a byte goes once into each unit.
  void start(const Gather &gather, ArrayRef<int32_t> members, Owner owner);

  /// Ends the transfer of an alarm; null when the alarm was of a former speed.
  const Owner *end(const Alarm &alarm);

  /// The time that the busiest wire of each link was in use.
  std::vector<double> getBusySeconds() const;

private:
  struct Wire {
    std::vector<int32_t> transfers;
    double since = 0, busy = 0;
  };
  struct Transfer {
    Owner owner;
    SmallVector<int32_t, 2> wires;
    /// When its bytes begin to flow, and the time that they take alone.
    double flows = 0, left = 0;
    double updated = 0, speed = 0;
    uint32_t version = 0, mark = 0;
  };

  int32_t getWire(int64_t link, int64_t rank, bool sends) const;
  void start(double latency, double seconds, ArrayRef<int32_t> wires,
             Owner owner);
  /// Gives the transfers on some wires their part.
  void share(ArrayRef<int32_t> wires);

  const Machine &machine;
  const Workload &workload;
  Clock &clock;
  /// The first wire of each link.
  std::vector<int32_t> firstWires;
  std::vector<Wire> wires;
  std::vector<Transfer> transfers;
  std::vector<int32_t> spare;
  uint32_t marks = 0;
  Owner ended;
};

} // namespace mlir::commir::simulator

#endif // LIB_SIMULATOR_NETWORK_H
