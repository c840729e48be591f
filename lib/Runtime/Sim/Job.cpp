//===- Job.cpp - One run on the embedded backend --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How messages find their other end, and how a job that cannot go on ends with
// one message that names the first cause.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Sim/Job.h"
#include <algorithm>
#include <system_error>

using namespace mercury::rt;
using namespace mercury::rt::sim;

static std::string bytesText(int64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

static Mesh makeMesh(const mercury_rt_sim_job &job) {
  Mesh mesh;
  mesh.names.assign(job.level_names, job.level_names + job.number_of_levels);
  mesh.sizes.assign(job.level_sizes, job.level_sizes + job.number_of_levels);
  return mesh;
}

Job::Job(const mercury_rt_sim_job &description)
    : description(description), mesh(makeMesh(description)),
      bytesSent(mesh.levels()), messages(mesh.levels()),
      wire(mutex, description.seed, description.max_delay_us,
           [this](const Message &message) { deliver(message); }) {
  for (int64_t number = 0; number < mesh.size(); ++number)
    ranks.push_back(std::make_unique<Rank>(*this, number));
}

int32_t Job::run() {
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (const std::unique_ptr<Rank> &rank : ranks) {
    try {
      threads.emplace_back([this, &rank] { runRank(*rank); });
    } catch (const std::system_error &error) {
      Lock lock(mutex);
      fail(lock, rank->number, MERCURY_RT_RESOURCE,
           mesh.rankName(rank->number) + ": cannot start its thread: " +
               error.what() + "; use a smaller mesh");
      break;
    }
  }
  Lock lock(mutex);
  awaitRanks(lock, threads.size());
  lock.unlock();
  for (std::thread &thread : threads)
    thread.join();
  lock.lock();
  return failed() ? firstFailure(lock) : MERCURY_RT_OK;
}

void Job::awaitRanks(Lock &lock, int64_t started) {
  // Who sets the flag may be a signal handler, which cannot notify.
  constexpr std::chrono::milliseconds kLook(20);
  auto ended = [&] { return returned == started; };
  if (!description.cancel)
    return allReturned.wait(lock, ended);
  while (!allReturned.wait_for(lock, kLook, ended))
    if (__atomic_load_n(description.cancel, __ATOMIC_RELAXED) && !failed())
      fail(lock, -1, MERCURY_RT_CANCELLED, "the run was cancelled");
}

void Job::runRank(Rank &rank) {
  int32_t result = description.entry(
      &rank, description.buffers ? description.buffers[rank.number] : nullptr);

  Lock lock(mutex);
  ++returned;
  allReturned.notify_one();
  if (!failed())
    endRank(lock, rank, result);
}

void Job::endRank(Lock &lock, Rank &rank, int32_t result) {
  if (result != MERCURY_RT_OK) {
    fail(lock, rank.number, result,
         mesh.rankName(rank.number) + ": the program returned status " +
             std::to_string(result) +
             " and no cause; give one with mercury_rt_fail");
    return;
  }
  for (const Operation &operation : rank.operations)
    if (!operation.waited) {
      fail(lock, operation, MERCURY_RT_TOKEN,
           "its token was never waited for; wait for every token before the "
           "program returns");
      return;
    }
  if (const Operation *open = rank.findOpenLease()) {
    fail(lock, *open, MERCURY_RT_LEASE,
         "its lease was never closed; close every lease before the program "
         "returns");
    return;
  }
  rank.ended = true;
  progress();
  if (isStuck())
    failBlocked(lock, MERCURY_RT_DEADLOCK, "no rank can go on");
}

void Job::fill(mercury_rt_sim_report &report) const {
  if (report.bytes_sent)
    std::copy(bytesSent.begin(), bytesSent.end(), report.bytes_sent);
  if (report.messages)
    std::copy(messages.begin(), messages.end(), report.messages);
  const int64_t *local = description.local_bytes;
  report.peak_arena_bytes =
      description.symmetric_bytes +
      (local ? *std::max_element(local, local + mesh.size()) : 0);
  report.failing_rank = failingRank;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Job::post(Lock &lock, int64_t sender, int64_t receiver, bool sends,
               const Post &post) {
  Channel &channel = channels[{post.operation->group, sender, receiver}];
  (sends ? channel.sends : channel.receives).push_back(post);
  ++post.operation->outstanding;
  if (channel.sends.empty() || channel.receives.empty())
    return;

  Post from = channel.sends.front(), to = channel.receives.front();
  channel.sends.pop_front();
  channel.receives.pop_front();
  const Operation &sent = *from.operation, &expected = *to.operation;
  std::string peer =
      "group rank " + std::to_string(mesh.groupRank(sender, sent.group));
  std::string there = " (its operation " + std::to_string(sent.number) + ")";
  if (sent.kind != expected.kind)
    fail(lock, expected, MERCURY_RT_MISMATCH,
         peer + " started another one in its place, " + std::string(sent.kind) +
             there + "; start the operations of both in the same order");
  else if (from.bytes != to.bytes)
    fail(lock, expected, MERCURY_RT_MISMATCH,
         "expected " + bytesText(to.bytes) + " from " + peer + " but " +
             std::to_string(from.bytes) + " were sent" + there +
             "; size both ends from the same layout");
  else if (from.place != to.place)
    fail(lock, expected, MERCURY_RT_MISMATCH,
         "expected a put to byte " + std::to_string(to.place) +
             " of the symmetric arena, and " + peer + " put to byte " +
             std::to_string(from.place) + there +
             "; receive at the same offset on every rank");
  else
    wire.send({from, to});
}

void Job::deliver(const Message &message) {
  progress();
  Operation &sent = *message.from.operation;
  if (message.from.rank != message.to.rank && message.bytes()) {
    int64_t level = mesh.crossedLevel(message.from.rank, message.to.rank);
    bytesSent[level] += message.bytes();
    ++messages[level];
  }
  finishOne(sent);
  finishOne(*message.to.operation);
}

void Job::finishOne(Operation &operation) {
  --operation.outstanding;
  operation.rank->wake.notify_all();
}

void Job::pull(const Message &message) {
  message.to.operation->outstanding += 2;
  wire.send(message);
}

Lease &Job::getLease(int64_t rank, int64_t group, int64_t number) {
  int64_t first = mesh.memberOfGroup(rank, group, 0);
  Lease &lease = leases[{group, first, number}];
  lease.group = group;
  lease.number = number;
  lease.members.resize(mesh.groupSize(group));
  return lease;
}

//===----------------------------------------------------------------------===//
// Waiting and failing
//===----------------------------------------------------------------------===//

int32_t Job::wait(Lock &lock, Operation &operation) {
  Rank &rank = *operation.rank;
  std::chrono::milliseconds deadline(description.deadline_ms
                                         ? description.deadline_ms
                                         : MERCURY_RT_SIM_DEFAULT_DEADLINE_MS);
  progress();
  operation.waited = true;
  rank.waitingFor = &operation;
  wire.hasten(operation);
  while (!operation.complete() && !failed()) {
    if (isStuck())
      return failBlocked(lock, MERCURY_RT_DEADLOCK, "no rank can go on");
    rank.wake.wait_until(lock, lastProgress + deadline);
    if (operation.complete() || Clock::now() < lastProgress + deadline)
      continue;
    if (!wire.busy())
      return failBlocked(lock, MERCURY_RT_DEADLINE,
                         "no rank made progress for " +
                             std::to_string(deadline.count()) + " ms");
    progress(); // a message still on its way, however slow, is not a late peer
  }
  rank.waitingFor = nullptr;
  return failed() ? firstFailure(lock) : MERCURY_RT_OK;
}

bool Job::isStuck() const {
  auto goesOn = [](const std::unique_ptr<Rank> &rank) {
    return !rank->ended && !rank->isBlocked();
  };
  auto isBlocked = [](const std::unique_ptr<Rank> &rank) {
    return rank->isBlocked();
  };
  return !wire.busy() && std::none_of(ranks.begin(), ranks.end(), goesOn) &&
         std::any_of(ranks.begin(), ranks.end(), isBlocked);
}

int32_t Job::failBlocked(Lock &lock, int32_t code, const std::string &why) {
  // Of all that ranks wait for, the cause is best told by one whose peer does
  // not wait itself; where all do, any will do.
  const Operation *blocked = nullptr;
  const Rank *peer = nullptr;
  std::string purpose, remedy;
  auto consider = [&](const Operation *operation, int64_t other, auto explain) {
    bool better = !blocked || (peer->isBlocked() && !ranks[other]->isBlocked());
    if (operation->rank->waitingFor != operation || !better)
      return;
    blocked = operation;
    peer = ranks[other].get();
    std::string member =
        "group rank " + std::to_string(mesh.groupRank(other, operation->group));
    std::tie(purpose, remedy) = explain(member);
  };
  using Explanation = std::pair<std::string, std::string>;
  for (const auto &[key, channel] : channels) {
    const auto &[group, sender, receiver] = key;
    std::string match = "start the same messages on both ends, in the same "
                        "order";
    for (const Post &post : channel.sends)
      consider(post.operation, receiver, [&](const std::string &member) {
        return Explanation("send " + bytesText(post.bytes) + " to " + member,
                           match);
      });
    for (const Post &post : channel.receives)
      consider(post.operation, sender, [&](const std::string &member) {
        return Explanation(
            "receive " + bytesText(post.bytes) + " from " + member, match);
      });
  }
  // Who never opened a lease cannot close it, so openings come first.
  for (bool opens : {true, false})
    for (const std::unique_ptr<Rank> &rank : ranks) {
      const Operation *operation = rank->waitingFor;
      if (!rank->isBlocked() || !operation->lease || operation->pulls)
        continue;
      const Lease &lease = *operation->lease;
      auto explain = [&](const std::string &member) {
        return Explanation(
            "see " + member + (opens ? " open" : " close") + " its lease " +
                std::to_string(lease.number) + " on this level",
            "every member of a group opens and closes the same leases, in the "
            "same order");
      };
      for (size_t i = 0; i < lease.members.size(); ++i) {
        bool awaited = operation->awaits == static_cast<int64_t>(i);
        bool unclosed = operation->awaits < 0 && !lease.members[i].closing;
        if (opens ? awaited : unclosed)
          consider(operation, mesh.memberOfGroup(rank->number, lease.group, i),
                   explain);
      }
    }

  std::string state = " still computes, after its operation " +
                      std::to_string(peer->operations.size());
  if (peer->ended)
    state = " has ended its program";
  if (peer->isBlocked())
    state = " itself waits in " + describe(*peer->waitingFor);
  return fail(lock, *blocked, code,
              why + ": it waits to " + purpose + ", which" + state + "; " +
                  remedy);
}

std::string Job::describe(const Operation &operation) const {
  return mesh.rankName(operation.rank->number) + ", operation " +
         std::to_string(operation.number) + ", " + std::string(operation.kind) +
         " on " + mesh.groupName(operation.group);
}

int32_t Job::fail(Lock &lock, const Operation &operation, int32_t code,
                  const std::string &text) {
  return fail(lock, operation.rank->number, code,
              describe(operation) + ": " + text);
}

int32_t Job::fail(Lock &lock, int64_t rank, int32_t code, std::string text) {
  if (!failed()) {
    status = code;
    failingRank = rank;
    message = std::move(text);
    for (const std::unique_ptr<Rank> &waiting : ranks)
      waiting->wake.notify_all();
  }
  return firstFailure(lock);
}

int32_t Job::firstFailure(Lock &lock) {
  wire.stop(lock);
  setLastError(message);
  return status;
}
