//===- Network.cpp - Transfers that share links ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Network.h"

using namespace mlir::commir;
using namespace mlir::commir::simulator;

Network::Network(const Machine &machine, const Workload &workload, Clock &clock)
    : machine(machine), workload(workload), clock(clock) {
  int32_t count = 0;
  for (const Link &link : machine.links) {
    firstWires.push_back(count);
    int64_t ranks = workload.getNumRanks();
    int64_t own = link.domain == Link::Domain::Port     ? 1
                  : link.domain == Link::Domain::Uplink ? link.unit
                                                        : link.reach;
    count += 2 * llvm::divideCeil(ranks, own);
  }
  firstWires.push_back(count);
  wires.resize(count);
}

int32_t Network::getWire(int64_t number, int64_t rank, bool sends) const {
  const Link &link = machine.links[number];
  int32_t first = firstWires[number];
  if (link.domain == Link::Domain::Bus)
    return first + 2 * (rank / link.reach);
  int64_t end = link.domain == Link::Domain::Port ? rank : rank / link.unit;
  return first + 2 * end + (link.duplex && !sends);
}

const Link &Network::getLink(int64_t one, int64_t other) const {
  return machine.links[machine.levels[workload.getCrossedLevel(one, other)]];
}

const Link &Network::getLink(const Gather &gather) const {
  return machine.links[machine.levels[workload.groups[gather.group].front()]];
}

void Network::start(Transport transport, int64_t from, int64_t to,
                    int64_t bytes, Owner owner) {
  int64_t link = machine.levels[workload.getCrossedLevel(from, to)];
  const LinkCurve &curve = machine.links[link].getCurve(transport);
  int32_t out = getWire(link, from, /*sends=*/true);
  int32_t in = getWire(link, to, /*sends=*/false);
  int32_t both[] = {out, in};
  start(curve.latency, curve.getSeconds(bytes),
        ArrayRef<int32_t>(both, out == in ? 1 : 2), owner);
}

void Network::start(const Gather &gather, ArrayRef<int32_t> members,
                    Owner owner) {
  ArrayRef<int64_t> levels = workload.groups[gather.group];
  SmallVector<int32_t> used;
  double latency = 0, seconds = 0;
  // The members of a unit: those that are reached over faster links.
  int64_t unit = 1;
  for (size_t end = levels.size(); end > 0;) {
    int64_t link = machine.levels[levels[end - 1]];
    int64_t units = 1;
    for (; end > 0 && machine.levels[levels[end - 1]] == link; --end)
      units *= workload.levelSizes[levels[end - 1]];
    // What comes into a unit: what one contributes, or all that others do.
    double bytes = gather.largest;
    if (!gather.isBroadcast)
      bytes *= members.size() - unit;
    if (machine.links[link].domain == Link::Domain::Port)
      bytes /= unit; // its members share what comes in
    if (machine.links[link].domain == Link::Domain::Bus)
      bytes *= gather.isBroadcast ? units - 1 : units;
    const LinkCurve &curve =
        machine.links[link].getCurve(Transport::Collective);
    latency = std::max(latency, curve.latency);
    seconds = std::max(seconds, curve.getSeconds(bytes));
    for (int32_t member : members)
      for (bool sends : {true, false})
        used.push_back(getWire(link, member, sends));
    unit *= units;
  }
  llvm::sort(used);
  used.erase(llvm::unique(used), used.end());
  start(latency, seconds, used, owner);
}

void Network::start(double latency, double seconds, ArrayRef<int32_t> wiresOf,
                    Owner owner) {
  int32_t number;
  if (spare.empty()) {
    number = transfers.size();
    transfers.emplace_back();
  } else {
    number = spare.back();
    spare.pop_back();
  }
  Transfer &transfer = transfers[number];
  transfer.owner = owner;
  transfer.wires.assign(wiresOf.begin(), wiresOf.end());
  transfer.flows = clock.now + latency;
  transfer.left = std::max(0.0, seconds - latency);
  transfer.updated = clock.now;
  transfer.speed = 0;
  for (int32_t wire : transfer.wires) {
    if (wires[wire].transfers.empty())
      wires[wire].since = clock.now;
    wires[wire].transfers.push_back(number);
  }
  share(wiresOf);
}

void Network::share(ArrayRef<int32_t> changed) {
  ++marks;
  for (int32_t wire : changed)
    for (int32_t number : wires[wire].transfers) {
      Transfer &transfer = transfers[number];
      if (transfer.mark == marks)
        continue;
      transfer.mark = marks;
      size_t most = 1;
      for (int32_t own : transfer.wires)
        most = std::max(most, wires[own].transfers.size());
      double speed = 1.0 / most;
      if (speed == transfer.speed)
        continue;
      double from = std::max(transfer.updated, transfer.flows);
      if (clock.now > from)
        transfer.left -= (clock.now - from) * transfer.speed;
      transfer.updated = clock.now;
      transfer.speed = speed;
      double end = std::max(clock.now, transfer.flows) +
                   std::max(0.0, transfer.left) / speed;
      clock.set(end, Alarm::Kind::TransferEnds, number, ++transfer.version);
    }
}

const Network::Owner *Network::end(const Alarm &alarm) {
  Transfer &transfer = transfers[alarm.id];
  if (transfer.version != alarm.version)
    return nullptr;
  ++transfer.version;
  ended = transfer.owner;
  SmallVector<int32_t, 2> freed = transfer.wires;
  for (int32_t number : freed) {
    Wire &wire = wires[number];
    llvm::erase(wire.transfers, alarm.id);
    if (wire.transfers.empty())
      wire.busy += clock.now - wire.since;
  }
  spare.push_back(alarm.id);
  share(freed);
  return &ended;
}

std::vector<double> Network::getBusySeconds() const {
  std::vector<double> busiest(machine.links.size(), 0);
  for (size_t link = 0; link < busiest.size(); ++link)
    for (int32_t wire = firstWires[link]; wire < firstWires[link + 1]; ++wire)
      busiest[link] = std::max(busiest[link], wires[wire].busy);
  return busiest;
}
