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
  for (std::thread &thread : threads)
    thread.join();
  Lock lock(mutex);
  return failed() ? firstFailure(lock) : MERCURY_RT_OK;
}

void Job::runRank(Rank &rank) {
  int32_t result = description.entry(
      &rank, description.buffers ? description.buffers[rank.number] : nullptr);

  Lock lock(mutex);
  if (failed())
    return;
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
  const int64_t *arenas = description.arena_bytes;
  report.peak_arena_bytes =
      arenas ? *std::max_element(arenas, arenas + mesh.size()) : 0;
  report.failing_rank = failingRank;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Job::post(Lock &lock, int64_t sender, int64_t receiver, bool sends,
               const Post &post) {
  Channel &channel = channels[{post.operation->group, sender, receiver}];
  (sends ? channel.sends : channel.receives).push_back(post);
  ++post.operation->openMessages;
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
  else
    wire.send({from, to});
}

void Job::deliver(const Message &message) {
  progress();
  Rank *sender = message.from.operation->rank;
  Rank *receiver = message.to.operation->rank;
  if (sender != receiver && message.from.bytes) {
    int64_t level = mesh.crossedLevel(sender->number, receiver->number);
    bytesSent[level] += message.from.bytes;
    ++messages[level];
  }
  --message.from.operation->openMessages;
  --message.to.operation->openMessages;
  sender->wake.notify_all();
  receiver->wake.notify_all();
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
  // Of all the ends that look for their other one, the cause is best told by
  // one whose peer does not wait itself; where all do, any will do.
  const Post *blocked = nullptr;
  const Rank *peer = nullptr;
  bool sends = false;
  auto consider = [&](const std::deque<Post> &posts, int64_t other, bool side) {
    for (const Post &post : posts) {
      bool better =
          !blocked || (peer->isBlocked() && !ranks[other]->isBlocked());
      if (post.operation->rank->waitingFor != post.operation || !better)
        continue;
      blocked = &post;
      peer = ranks[other].get();
      sends = side;
    }
  };
  for (const auto &[key, channel] : channels) {
    consider(channel.sends, std::get<2>(key), true);
    consider(channel.receives, std::get<1>(key), false);
  }

  std::string state = " still computes, after its operation " +
                      std::to_string(peer->operations.size());
  if (peer->ended)
    state = " has ended its program";
  if (peer->isBlocked())
    state = " itself waits in " + describe(*peer->waitingFor);
  int64_t member = mesh.groupRank(peer->number, blocked->operation->group);
  return fail(lock, *blocked->operation, code,
              why + ": it waits to " + (sends ? "send " : "receive ") +
                  bytesText(blocked->bytes) + (sends ? " to" : " from") +
                  " group rank " + std::to_string(member) + ", which" + state +
                  "; start the same messages on both ends, in the same order");
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
