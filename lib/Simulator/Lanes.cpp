//===- Lanes.cpp - Messages, collectives and pulls ------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Engine.h"

using namespace mlir::commir;
using namespace mlir::commir::simulator;

int32_t Engine::getMessageLane(int32_t rank, int64_t group) const {
  return rank * messageLanes + (machine.laneForEachGroup ? group : 0);
}

int32_t Engine::getPullLane(int32_t rank, int32_t peer) {
  auto [found, fresh] =
      pullLanes.try_emplace(rank * workload.getNumRanks() + peer, lanes.size());
  if (fresh) {
    Lane &lane = lanes.emplace_back();
    lane.rank = rank;
    lane.kind = Span::Lane::Pulls;
    lane.number = peer;
  }
  return found->second;
}

/// Puts every start into its lane, but for those that have nothing to do.
void Engine::queueStarts() {
  for (auto [number, rank] : llvm::enumerate(ranks)) {
    for (const Task &task : workload.ranks[number]) {
      if (!task.isStart())
        continue;
      Place place;
      bool isGather = task.kind == Task::Kind::Gather;
      bool isIdle = isGather ? workload.gathers[task.index].members == 1 ||
                                   workload.gathers[task.index].largest == 0
                             : task.to < 0 && task.from < 0;
      if (!isIdle) {
        place.lane = task.kind == Task::Kind::Pull
                         ? getPullLane(number, task.from)
                         : getMessageLane(number, getSite(task).group);
        place.at = lanes[place.lane].queue.size();
        lanes[place.lane].queue.push_back({&task});
      }
      rank.starts.push_back(place);
    }
    rank.done.resize(rank.starts.size());
  }
}

/// A stream has come to a start: it begins once it is in front of its lane.
void Engine::setDue(int32_t rank, const Task &task) {
  Place place = ranks[rank].starts[task.token];
  if (place.lane < 0)
    return setDone(rank, task.token);
  Lane &lane = lanes[place.lane];
  lane.queue[place.at].isDue = true;
  if (!lane.runs && lane.front == place.at) {
    startNext(place.lane);
    updateSpeed(rank);
  }
}

/// Begins with what is in front of a lane; the caller updates the speed.
void Engine::startNext(int32_t number) {
  Lane &lane = lanes[number];
  lane.slowdown = 0;
  lane.runs = lane.front < lane.queue.size() && lane.queue[lane.front].isDue;
  if (!lane.runs)
    return;
  Operation &operation = lane.queue[lane.front];
  operation.begin = clock.now;
  switch (operation.task->kind) {
  case Task::Kind::Exchange:
    return startExchange(number);
  case Task::Kind::Gather:
    return startGather(number);
  default:
    return startPull(number);
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Engine::startExchange(int32_t number) {
  Lane &lane = lanes[number];
  Operation &operation = lane.queue[lane.front];
  const Task &task = *operation.task;
  if (task.to == lane.rank || task.from == lane.rank) {
    // A rank that keeps what it sends copies it.
    clock.set(clock.now + machine.getMoveSeconds("copy", 2.0 * task.bytes),
              Alarm::Kind::LaneEnds, number);
    return;
  }
  int64_t group = getSite(task).group;
  for (int32_t peer : {task.to, task.from})
    if (peer >= 0)
      lane.slowdown = std::max(lane.slowdown, network.getLink(lane.rank, peer)
                                                  .getCurve(task.getTransport())
                                                  .slowdown);
  if (task.to >= 0)
    match(number, getMessageLane(task.to, group));
  if (task.from >= 0)
    match(getMessageLane(task.from, group), number);
}

/// A message starts once both of its ends have come to it.
void Engine::match(int32_t sender, int32_t receiver) {
  Lane &from = lanes[sender], &to = lanes[receiver];
  if (!from.runs || !to.runs)
    return;
  Operation &sent = from.queue[from.front], &received = to.queue[to.front];
  const Task &send = *sent.task, &receive = *received.task;
  if (send.kind != Task::Kind::Exchange ||
      receive.kind != Task::Kind::Exchange || send.to != to.rank ||
      receive.from != from.rank || sent.sends || received.receives ||
      getSite(send).group != getSite(receive).group)
    return;
  sent.sends = received.receives = true;
  ++sent.open;
  ++received.open;
  network.start(send.getTransport(), from.rank, to.rank, send.bytes,
                {sender, receiver, /*gather=*/-1});
}

void Engine::endMessage(int32_t number) {
  Lane &lane = lanes[number];
  Operation &operation = lane.queue[lane.front];
  const Task &task = *operation.task;
  bool isWhole = operation.sends == (task.to >= 0) &&
                 operation.receives == (task.from >= 0);
  if (--operation.open == 0 && isWhole)
    endOperation(number);
}

//===----------------------------------------------------------------------===//
// Collectives and pulls
//===----------------------------------------------------------------------===//

void Engine::startGather(int32_t number) {
  Lane &lane = lanes[number];
  int32_t index = lane.queue[lane.front].task->index;
  const Gather &gather = workload.gathers[index];
  lane.slowdown =
      network.getLink(gather).getCurve(Transport::Collective).slowdown;
  gathered[index].push_back(number);
  if (static_cast<int32_t>(gathered[index].size()) < gather.members)
    return;
  SmallVector<int32_t> members;
  for (int32_t member : gathered[index])
    members.push_back(lanes[member].rank);
  network.start(gather, members, {-1, -1, index});
}

void Engine::startPull(int32_t number) {
  Lane &lane = lanes[number];
  const Task &task = *lane.queue[lane.front].task;
  LeaseState &state = leases[task.index];
  double opened = state.opened[task.to];
  if (opened < 0) {
    state.waiting.push_back({number, task.to});
    return;
  }
  double ready = opened + network.getLink(lane.rank, task.from).signal;
  if (ready > clock.now) {
    clock.set(ready, Alarm::Kind::LaneStarts, number);
    return;
  }
  lane.queue[lane.front].begin = clock.now;
  network.start(Transport::Pull, task.from, lane.rank, task.bytes,
                {-1, number, /*gather=*/-1});
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void Engine::endTransfer(const Network::Owner &owner) {
  if (owner.gather >= 0) {
    std::vector<int32_t> members = std::move(gathered[owner.gather]);
    for (int32_t member : members)
      endOperation(member);
    return;
  }
  if (owner.sender < 0)
    return endOperation(owner.receiver);
  endMessage(owner.sender);
  endMessage(owner.receiver);
}

void Engine::endOperation(int32_t number) {
  Lane &lane = lanes[number];
  int32_t rank = lane.rank;
  Operation operation = lane.queue[lane.front++];
  const Task &task = *operation.task;
  int64_t bytes = task.bytes;
  if (task.kind == Task::Kind::Gather)
    bytes *= workload.gathers[task.index].members - 1;
  bool isCopy = task.kind != Task::Kind::Gather && task.from == rank;
  record({isCopy ? Span::Kind::Copy : Span::Kind::Transfer, lane.kind, rank,
          lane.number, task.site, task.step, operation.begin, clock.now,
          bytes});
  if (task.kind == Task::Kind::Pull)
    endPull(lane, task);
  startNext(number);
  setDone(rank, task.token);
  updateSpeed(rank);
}
