//===- Workload.cpp - What each rank of a plan asks of a machine ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Workload.h"
#include "dialect/CommIR/Transport.h"
#include "llvm/ADT/Hashing.h"
#include <bitset>
#include <unordered_map>

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::simulator;

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

int64_t Workload::getCrossedLevel(int64_t one, int64_t other) const {
  int64_t level = levelSizes.size();
  while (one != other) {
    --level;
    one /= levelSizes[level];
    other /= levelSizes[level];
  }
  return level;
}

//===----------------------------------------------------------------------===//
// From events to tasks
//===----------------------------------------------------------------------===//

namespace {
struct HashWork {
  size_t operator()(const Work &work) const {
    const KernelWork &kernel = work.kernel;
    size_t hash = work.site;
    for (double field : {kernel.flops, kernel.rows, kernel.columns,
                         kernel.batch, kernel.bytes, kernel.widened})
      hash = llvm::hash_combine(hash, std::hash<double>()(field));
    return hash;
  }
};
struct SameWork {
  bool operator()(const Work &a, const Work &b) const {
    return a.site == b.site && a.kernel == b.kernel;
  }
};

class WorkloadBuilder {
public:
  WorkloadBuilder(const PlanTrace &trace, Workload &workload)
      : trace(trace), workload(workload),
        needed(workload.levelSizes.size(), 0) {}

  LogicalResult addRank(int64_t rank);

private:
  void add(const PlanEvent &event);
  void push(Task task);
  void useStream(int32_t stream);
  void order(int32_t earlier, int32_t later);
  int32_t getSite(const PlanEvent &event, int64_t group);
  void addCompute(Task task, const PlanEvent &event);
  void addExchange(Task task, const PlanEvent &event);
  void addGather(Task task, const PlanEvent &event);
  void addPull(Task task, const PlanEvent &event);
  void addOpen(Task task, const PlanEvent &event);
  void move(Transport transport, int64_t peer, const Task &task);
  void need(Transport transport, int64_t level, const Task &task);
  int64_t getMember(int64_t group, int64_t member) const {
    return trace.getMember(rank, group, member);
  }
  /// The rank that stands for the group of this one.
  int64_t getFirst(int64_t group) const { return getMember(group, 0); }
  /// The number of this rank's next collective, or lease, of a group: all its
  /// members count alike.
  int64_t getInstance(DenseMap<int64_t, int64_t> &counts, int64_t group) {
    return counts[group]++;
  }

  const PlanTrace &trace;
  Workload &workload;
  int64_t rank = 0;
  DenseMap<Operation *, int32_t> sites;
  std::unordered_map<Work, int32_t, HashWork, SameWork> works;
  /// The work that each site asked for last.
  std::vector<int32_t> lastWork;
  /// For each level the transports needed, as bits.
  SmallVector<int> needed;
  using Instance = std::tuple<int64_t, int64_t, int64_t>;
  DenseMap<Instance, int32_t> gathers, leases;
  /// Of this rank: collectives and leases so far by group, and its leases in
  /// the order of opening.
  DenseMap<int64_t, int64_t> gathersOf, leasesOf;
  std::vector<int32_t> opened;
  /// Of this rank: the stream in use, those that have begun, and its marks.
  int32_t stream = 0, marks = 0;
  std::bitset<kMaxLanes> begun;
};
} // namespace

/// Launches go by their kernel.
static StringRef getName(const PlanEvent &event) {
  if (auto launch = dyn_cast<LaunchOp>(event.op))
    return launch.getKernel();
  return commir::getName(event.kind);
}

int32_t WorkloadBuilder::getSite(const PlanEvent &event, int64_t group) {
  auto [found, fresh] = sites.try_emplace(event.op, workload.sites.size());
  if (fresh) {
    workload.sites.push_back({getName(event).str(), /*buffer=*/-1, group});
    lastWork.push_back(-1);
  }
  // A ring's first message is of the buffer, its later ones of a slot.
  Site &site = workload.sites[found->second];
  if (site.buffer < 0)
    for (ArrayRef<MemoryBox> boxes : {ArrayRef<MemoryBox>(event.inputs),
                                      ArrayRef<MemoryBox>(event.outputs)})
      for (const MemoryBox &box : boxes)
        if (site.buffer < 0 && box.space.kind == MemorySpace::Kind::Argument)
          site.buffer = box.space.number;
  return found->second;
}

void WorkloadBuilder::addCompute(Task task, const PlanEvent &event) {
  Work work;
  work.site = task.site;
  if (auto launch = dyn_cast<LaunchOp>(event.op)) {
    work.kernel = getWork(launch, event);
  } else {
    work.isCopy = true;
    double in = event.inputs.empty() ? 0 : event.inputs[0].getBytes();
    double out = event.outputs[0].getBytes();
    bool adds = event.kind == PlanEvent::Kind::Accumulate;
    work.kernel.bytes = in + (adds ? 2 * out : out);
  }
  // An empty tile launches nothing.
  if (work.kernel.flops <= 0 && work.kernel.bytes <= 0)
    return;
  int32_t &last = lastWork[task.site];
  if (last < 0 || !(workload.works[last].kernel == work.kernel)) {
    auto [found, fresh] = works.try_emplace(work, workload.works.size());
    if (fresh)
      workload.works.push_back(work);
    last = found->second;
  }
  task.index = last;
  push(task);
}

void WorkloadBuilder::need(Transport transport, int64_t level,
                           const Task &task) {
  int bit = 1 << static_cast<int>(transport);
  if (needed[level] & bit)
    return;
  needed[level] |= bit;
  workload.needs.push_back(
      {transport, level, static_cast<int32_t>(rank), task.site});
}

/// Counts the bytes that go from this rank to a peer, or are pulled from it.
void WorkloadBuilder::move(Transport transport, int64_t peer,
                           const Task &task) {
  if (peer == rank || task.bytes == 0)
    return;
  int64_t level = workload.getCrossedLevel(rank, peer);
  workload.bytes[level] += task.bytes;
  need(transport, level, task);
}

void WorkloadBuilder::addExchange(Task task, const PlanEvent &event) {
  task.kind = Task::Kind::Exchange;
  if (event.happens) {
    task.bytes = event.inputs[0].getBytes();
    if (task.bytes > 0)
      task.to = getMember(event.group, event.to);
    if (!event.outputs[0].isEmpty())
      task.from = getMember(event.group, event.from);
  }
  task.puts = isPut(cast<ExchangeStartOp>(event.op));
  if (task.to >= 0)
    move(task.getTransport(), task.to, task);
  push(task);
}

/// The bytes that a member of the group gets of this rank.
static int64_t getBytesFor(const PlanEvent &event, int64_t member) {
  using Kind = PlanEvent::Kind;
  bool deals =
      event.kind == Kind::ReduceScatter || event.kind == Kind::AllToAll;
  return deals ? event.lengths[member] : event.inputs[0].getBytes();
}

/// The largest part that passes a link of the ring that a library sends around.
static int64_t getLargestPart(const PlanEvent &event, int64_t members) {
  using Kind = PlanEvent::Kind;
  int64_t bytes = event.outputs[0].getBytes();
  if (event.kind == Kind::AllReduce)
    return llvm::divideCeil(2 * bytes, members);
  if (event.kind == Kind::Broadcast)
    return bytes;
  int64_t largest = 0;
  for (int64_t length : event.lengths)
    largest = std::max(largest, length);
  for (int64_t length : event.arrivals)
    largest = std::max(largest, length);
  return largest;
}

void WorkloadBuilder::addGather(Task task, const PlanEvent &event) {
  task.kind = Task::Kind::Gather;
  Instance key{event.group, getFirst(event.group),
               getInstance(gathersOf, event.group)};
  auto [found, fresh] = gathers.try_emplace(key, workload.gathers.size());
  if (fresh) {
    Gather &gather = workload.gathers.emplace_back();
    gather.group = event.group;
    gather.members = trace.getGroupSize(event.group);
    gather.isBroadcast = event.kind == PlanEvent::Kind::Broadcast;
  }
  int64_t members = trace.getGroupSize(event.group);
  int64_t own = trace.getGroupRank(rank, event.group);
  Gather &gather = workload.gathers[found->second];
  if (event.happens)
    gather.largest = std::max(gather.largest, getLargestPart(event, members));
  task.index = found->second;
  bool sends = event.happens &&
               (event.kind != PlanEvent::Kind::Broadcast || event.from == own);
  int64_t sent = 0;
  for (int64_t member = 0; sends && member < members; ++member) {
    Task part = task;
    part.bytes = getBytesFor(event, member);
    sent += member == own ? 0 : part.bytes;
    move(Transport::Collective, getMember(event.group, member), part);
  }
  task.bytes = sent / std::max<int64_t>(members - 1, 1);
  push(task);
}

void WorkloadBuilder::addOpen(Task task, const PlanEvent &event) {
  task.kind = Task::Kind::Open;
  Instance key{event.group, getFirst(event.group),
               getInstance(leasesOf, event.group)};
  auto [found, fresh] = leases.try_emplace(key, workload.leases.size());
  if (fresh) {
    Lease &lease = workload.leases.emplace_back();
    lease.group = event.group;
    lease.members = trace.getGroupSize(event.group);
    lease.pulls.assign(lease.members, 0);
  }
  task.index = found->second;
  task.to = trace.getGroupRank(rank, event.group);
  opened.push_back(task.index);
  push(task);
}

void WorkloadBuilder::addPull(Task task, const PlanEvent &event) {
  task.kind = Task::Kind::Pull;
  task.index = opened[event.lease - 1];
  Lease &lease = workload.leases[task.index];
  if (event.happens && !event.outputs[0].isEmpty()) {
    task.from = getMember(lease.group, event.from);
    // A device copies within its memory where kernels leave room: between them.
    if (task.from == rank) {
      Task copy = task;
      copy.kind = Task::Kind::Compute;
      addCompute(copy, event);
      task.from = -1;
      return push(task);
    }
    task.to = event.from;
    task.bytes = event.outputs[0].getBytes();
    move(Transport::Pull, task.from, task);
    ++lease.pulls[event.from];
  }
  push(task);
}

void WorkloadBuilder::add(const PlanEvent &event) {
  using Kind = PlanEvent::Kind;
  Task task;
  task.token = event.token - 1;
  task.step = event.steps.empty() ? -1 : event.steps.back();
  bool onLease = event.kind == Kind::Pull || event.kind == Kind::LeaseClose;
  task.site =
      getSite(event, onLease ? workload.leases[opened[event.lease - 1]].group
                             : event.group);
  switch (event.kind) {
  case Kind::Launch:
  case Kind::Fill:
  case Kind::Copy:
  case Kind::Accumulate:
    return addCompute(task, event);
  case Kind::Exchange:
    return addExchange(task, event);
  case Kind::AllGather:
  case Kind::ReduceScatter:
  case Kind::AllReduce:
  case Kind::AllToAll:
  case Kind::Broadcast:
    return addGather(task, event);
  case Kind::Pull:
    return addPull(task, event);
  case Kind::LeaseOpen:
    return addOpen(task, event);
  case Kind::Wait:
    task.kind = Task::Kind::Wait;
    break;
  case Kind::LeaseClose:
    task.kind = Task::Kind::Close;
    task.index = opened[event.lease - 1];
    task.to = trace.getGroupRank(rank, workload.leases[task.index].group);
    break;
  case Kind::LaneUse:
    return useStream(event.to);
  case Kind::LaneOrder:
    return order(event.from, event.to);
  }
  push(task);
}

void WorkloadBuilder::push(Task task) {
  task.stream = stream;
  workload.ranks[rank].push_back(task);
}

/// A lane begins after what lane 0 holds when it is first used.
void WorkloadBuilder::useStream(int32_t number) {
  if (!begun[number]) {
    begun.set(number);
    workload.streams = std::max(workload.streams, number + 1);
    order(0, number);
  }
  stream = number;
}

void WorkloadBuilder::order(int32_t earlier, int32_t later) {
  int32_t current = stream;
  Task mark;
  mark.index = marks++;
  useStream(earlier);
  mark.kind = Task::Kind::Mark;
  push(mark);
  useStream(later);
  mark.kind = Task::Kind::After;
  push(mark);
  stream = current;
}

LogicalResult WorkloadBuilder::addRank(int64_t number) {
  rank = number;
  gathersOf.clear();
  leasesOf.clear();
  opened.clear();
  stream = marks = 0;
  begun.reset();
  begun.set(0);
  PlanCursor cursor(trace, rank);
  while (const PlanEvent *event = cursor.next())
    add(*event);
  return failure(cursor.hasFailed());
}

FailureOr<Workload> Workload::create(func::FuncOp plan) {
  FailureOr<PlanTrace> trace = PlanTrace::create(plan);
  if (failed(trace))
    return failure();
  Workload workload;
  workload.ranks.resize(trace->getNumRanks());
  workload.arenaBytes = trace->getLocalBytes() + trace->getSymmetricBytes();
  workload.levelSizes.assign(trace->getLevelSizes());
  workload.bytes.assign(workload.levelSizes.size(), 0);
  for (size_t level = 0; level < workload.levelSizes.size(); ++level)
    workload.levelNames.push_back(trace->getLevelName(level).str());
  for (int64_t group = 0; group < trace->getNumGroups(); ++group) {
    workload.groups.emplace_back(trace->getGroupLevels(group));
    std::string &name = workload.groupNames.emplace_back();
    for (int64_t level : workload.groups.back())
      name += (name.empty() ? "" : ", ") + workload.levelNames[level];
  }
  WorkloadBuilder builder(*trace, workload);
  for (int64_t rank = 0; rank < trace->getNumRanks(); ++rank) {
    // Ranks run one text, so they have about as many events.
    workload.ranks[rank].reserve(workload.ranks[0].size());
    if (failed(builder.addRank(rank)))
      return failure();
  }
  return workload;
}
