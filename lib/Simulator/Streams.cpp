//===- Streams.cpp - Ranks on their way through their tasks ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Engine.h"

using namespace mlir::commir;
using namespace mlir::commir::simulator;

double Simulation::getExposed() const {
  double most = 0;
  for (double seconds : busy)
    most = std::max(most, seconds);
  return std::max(0.0, seconds - most);
}

/// The flops of each kernel on the rank that has most of it.
static llvm::StringMap<double> getMostFlops(const Workload &workload) {
  llvm::StringMap<double> most;
  std::vector<double> ofSites(workload.sites.size());
  for (const std::vector<Task> &tasks : workload.ranks) {
    std::fill(ofSites.begin(), ofSites.end(), 0);
    for (const Task &task : tasks)
      if (task.kind == Task::Kind::Compute)
        ofSites[task.site] += workload.works[task.index].kernel.flops;
    llvm::StringMap<double> own;
    for (auto [site, flops] : llvm::zip(workload.sites, ofSites))
      own[site.name] += flops;
    for (const auto &entry : own)
      most[entry.first()] = std::max(most[entry.first()], entry.second);
  }
  return most;
}

Engine::Engine(const Workload &workload, const Machine &machine,
               bool recordSpans)
    : workload(workload), machine(machine), recordSpans(recordSpans),
      network(machine, workload, clock) {
  int64_t numRanks = workload.getNumRanks();
  llvm::StringMap<double> flops = getMostFlops(workload);
  for (const Work &work : workload.works) {
    const std::string &kernel = workload.sites[work.site].name;
    double seconds =
        work.isCopy
            ? machine.getMoveSeconds(kernel, work.kernel.bytes)
            : machine.getSeconds(kernel, work.kernel, flops.lookup(kernel));
    workSeconds.push_back(machine.launch + seconds);
    workOccupancy.push_back(
        machine.getOccupancy(work.isCopy ? "*" : kernel, work.kernel, seconds));
  }
  result.busy.assign(numRanks, 0);
  ranks.resize(numRanks);
  streams.resize(numRanks * workload.streams);
  for (auto [i, stream] : llvm::enumerate(streams))
    stream.rank = i / workload.streams;
  if (machine.laneForEachGroup)
    messageLanes = workload.groups.size();
  lanes.resize(numRanks * messageLanes);
  for (auto [i, lane] : llvm::enumerate(lanes)) {
    lane.rank = i / messageLanes;
    lane.number = machine.laneForEachGroup ? i % messageLanes : -1;
  }
  gathered.resize(workload.gathers.size());
  for (const Lease &lease : workload.leases) {
    LeaseState &state = leases.emplace_back();
    state.opened.assign(lease.members, -1);
    state.pulls = lease.pulls;
    state.lastPull.assign(lease.members, 0);
    state.closing.assign(lease.members, -1);
  }
  queueStarts();
}

llvm::Expected<Simulation> Engine::run() {
  for (size_t stream = 0; stream < streams.size(); ++stream)
    advance(stream);
  while (!clock.isEmpty()) {
    Alarm alarm = clock.next();
    // An alarm that was set again says nothing any more.
    const Network::Owner *owner = nullptr;
    if (alarm.kind == Alarm::Kind::ComputeTurns &&
        streams[alarm.id].version != alarm.version)
      continue;
    if (alarm.kind == Alarm::Kind::TransferEnds &&
        !(owner = network.end(alarm)))
      continue;
    result.seconds = clock.now;
    switch (alarm.kind) {
    case Alarm::Kind::Resume:
      advance(alarm.id);
      break;
    case Alarm::Kind::ComputeTurns:
      turn(alarm.id);
      break;
    case Alarm::Kind::TransferEnds:
      endTransfer(*owner);
      break;
    case Alarm::Kind::LaneEnds:
      endOperation(alarm.id);
      break;
    case Alarm::Kind::LaneStarts:
      startPull(alarm.id);
      break;
    }
  }
  if (llvm::Error stuck = getStuck())
    return std::move(stuck);
  result.linkSeconds = network.getBusySeconds();
  return std::move(result);
}

llvm::Error Engine::getStuck() const {
  for (const Stream &stream : streams) {
    bool waits = stream.token >= 0 || stream.lease >= 0 || stream.mark >= 0;
    if (stream.next == workload.ranks[stream.rank].size() && !waits)
      continue;
    // What is waited for was counted as begun.
    const Task &task = getTask(stream);
    std::string step =
        task.step < 0 ? "" : ", step " + std::to_string(task.step);
    return llvm::createStringError(
        "rank " + std::to_string(stream.rank) + " waits for ever at its '" +
        getSite(task).name + "'" + step +
        ": no peer does what it waits for; check the plan");
  }
  for (const Lane &lane : lanes)
    if (lane.runs)
      return llvm::createStringError(
          "the '" + getSite(*lane.queue[lane.front].task).name + "' of rank " +
          std::to_string(lane.rank) +
          " never ends: no peer has the other end; check the plan");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void Engine::advance(int32_t number) {
  Stream &stream = streams[number];
  const std::vector<Task> &tasks = workload.ranks[stream.rank];
  int32_t own = number % workload.streams;
  while (stream.next < tasks.size()) {
    const Task &task = tasks[stream.next++];
    if (task.stream == own && !perform(number, task))
      return;
  }
}

/// Does a task at this time; false when the stream has to stop for it.
bool Engine::perform(int32_t stream, const Task &task) {
  switch (task.kind) {
  case Task::Kind::Compute:
    compute(stream, task);
    return false;
  case Task::Kind::Exchange:
  case Task::Kind::Gather:
  case Task::Kind::Pull:
    setDue(streams[stream].rank, task);
    return true;
  case Task::Kind::Wait:
    return wait(stream, task);
  case Task::Kind::Open:
    open(task);
    return true;
  case Task::Kind::Close:
    return close(stream, task);
  case Task::Kind::Mark:
    mark(stream, task);
    return true;
  case Task::Kind::After:
    return waitForMark(stream, task);
  }
  llvm_unreachable("a kind of task");
}

/// The stream goes on at `time`, having waited.
void Engine::goOn(int32_t number, double time) {
  const Stream &stream = streams[number];
  const Task &task = getTask(stream);
  record({Span::Kind::Wait, Span::Lane::Compute, stream.rank, task.stream,
          task.site, task.step, stream.waitsSince, time, 0});
  clock.set(time, Alarm::Kind::Resume, number);
}

bool Engine::wait(int32_t number, const Task &task) {
  Stream &stream = streams[number];
  if (task.token < 0 || ranks[stream.rank].done[task.token])
    return true;
  stream.token = task.token;
  stream.waitsSince = clock.now;
  return false;
}

void Engine::setDone(int32_t rank, int32_t token) {
  ranks[rank].done[token] = true;
  int32_t first = rank * workload.streams;
  for (int32_t number = first; number < first + workload.streams; ++number) {
    Stream &stream = streams[number];
    if (stream.token != token)
      continue;
    stream.token = -1;
    goOn(number, clock.now + machine.join);
  }
}

/// All that is before in its stream is done.
void Engine::mark(int32_t number, const Task &task) {
  Rank &rank = ranks[streams[number].rank];
  if (rank.marked.size() <= static_cast<size_t>(task.index))
    rank.marked.resize(task.index + 1);
  rank.marked[task.index] = true;
  int32_t first = streams[number].rank * workload.streams;
  for (int32_t other = first; other < first + workload.streams; ++other) {
    Stream &stream = streams[other];
    if (stream.mark != task.index)
      continue;
    stream.mark = -1;
    goOn(other, clock.now);
  }
}

bool Engine::waitForMark(int32_t number, const Task &task) {
  Stream &stream = streams[number];
  const std::vector<bool> &marked = ranks[stream.rank].marked;
  if (static_cast<size_t>(task.index) < marked.size() && marked[task.index])
    return true;
  stream.mark = task.index;
  stream.waitsSince = clock.now;
  return false;
}

//===----------------------------------------------------------------------===//
// Leases
//===----------------------------------------------------------------------===//

static double getSignal(const Workload &workload, const Machine &machine,
                        const Lease &lease) {
  int64_t level = workload.groups[lease.group].front();
  return machine.links[machine.levels[level]].signal;
}

void Engine::open(const Task &task) {
  LeaseState &state = leases[task.index];
  state.opened[task.to] = clock.now;
  double signal = getSignal(workload, machine, workload.leases[task.index]);
  llvm::erase_if(state.waiting, [&](std::pair<int32_t, int32_t> waiting) {
    if (waiting.second != task.to)
      return false;
    clock.set(clock.now + signal, Alarm::Kind::LaneStarts, waiting.first);
    return true;
  });
}

/// An owner waits until all pulls from it have ended. Readers say so from the
/// lane of their pulls: their kernels are not waited for.
bool Engine::close(int32_t number, const Task &task) {
  LeaseState &state = leases[task.index];
  Stream &stream = streams[number];
  stream.waitsSince = clock.now;
  if (state.pulls[task.to] > 0) {
    stream.lease = task.index;
    state.closing[task.to] = number;
    return false;
  }
  if (workload.leases[task.index].pulls[task.to] == 0)
    return true;
  double heard = state.lastPull[task.to] +
                 getSignal(workload, machine, workload.leases[task.index]);
  if (heard <= clock.now)
    return true;
  goOn(number, heard);
  return false;
}

void Engine::endPull(const Lane &lane, const Task &task) {
  LeaseState &state = leases[task.index];
  state.lastPull[task.to] = clock.now;
  int32_t owner = state.closing[task.to];
  if (--state.pulls[task.to] > 0 || owner < 0)
    return;
  state.closing[task.to] = -1;
  streams[owner].lease = -1;
  goOn(owner,
       clock.now + getSignal(workload, machine, workload.leases[task.index]));
}

/// What a plan needs, the machine must have: nothing is guessed.
static llvm::Error check(const Workload &workload, const Machine &machine) {
  if (machine.levels.size() != workload.levelSizes.size())
    return llvm::createStringError("the plan's mesh has " +
                                   std::to_string(workload.levelSizes.size()) +
                                   " levels, links are given for " +
                                   std::to_string(machine.levels.size()));
  for (const Need &need : workload.needs) {
    const Link &link = machine.links[machine.levels[need.level]];
    if (link.getCurve(need.transport).exists())
      continue;
    std::string has;
    for (int i = 0; i < kTransports; ++i)
      if (link.curves[i].exists())
        has += (has.empty() ? "" : ", ") +
               getName(static_cast<Transport>(i)).str();
    return llvm::createStringError(
        "link '" + link.name + "' has no curve of transport '" +
        getName(need.transport).str() + "', which '" +
        workload.sites[need.site].name + "' on level '" +
        workload.levelNames[need.level] + "' needs; it has " + has +
        ": give the topology a curve, or take a schedule that needs less");
  }
  return llvm::Error::success();
}

llvm::Expected<Simulation>
mlir::commir::simulator::simulate(const Workload &workload,
                                  const Machine &machine, bool recordSpans) {
  if (llvm::Error lack = check(workload, machine))
    return std::move(lack);
  return Engine(workload, machine, recordSpans).run();
}
