//===- Rank.cpp - The context of one simulated rank -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every argument a program can get wrong is refused here, by a message that
// says what was expected; two ranks that disagree are the job's matter.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Sim/Rank.h"
#include "lib/Runtime/Sim/Job.h"
#include <algorithm>
#include <cstring>
#include <new>

using namespace mercury::rt;
using namespace mercury::rt::sim;

/// Both the alignment the ABI promises and a multiple of every cache line.
static constexpr size_t kArenaAlignment = 64;

static bool overlap(const void *a, int64_t aBytes, const void *b,
                    int64_t bBytes) {
  auto aBegin = reinterpret_cast<uintptr_t>(a);
  auto bBegin = reinterpret_cast<uintptr_t>(b);
  return aBegin < bBegin + bBytes && bBegin < aBegin + aBytes;
}

Rank::Rank(Job &job, int64_t number)
    : job(job), number(number),
      localBytes(job.description.local_bytes
                     ? job.description.local_bytes[number]
                     : 0),
      local(makeArena(localBytes)),
      symmetric(makeArena(job.description.symmetric_bytes)) {}

Rank::Arena Rank::makeArena(int64_t bytes) {
  if (bytes == 0)
    return {nullptr, &std::free};
  size_t rounded = (bytes + kArenaAlignment - 1) & ~(kArenaAlignment - 1);
  Arena arena(std::aligned_alloc(kArenaAlignment, rounded), &std::free);
  if (!arena)
    throw std::bad_alloc();
  // All ones is NaN in every float type: what was never written shows.
  std::memset(arena.get(), 0xFF, rounded);
  return arena;
}

bool Rank::liesInLocalArena(const void *base) const {
  return overlap(local.get(), localBytes, base, 1);
}

int64_t Rank::groupRank(int64_t group) {
  if (job.mesh.hasGroup(group))
    return job.mesh.groupRank(number, group);
  Lock lock(job.mutex);
  job.fail(lock, number, MERCURY_RT_INVALID,
           job.mesh.rankName(number) + ": the mesh has no " +
               job.mesh.groupName(group) + "; levels are numbered from 0 to " +
               std::to_string(job.mesh.levels() - 1));
  return -1;
}

int64_t Rank::groupSize(int64_t group) {
  return groupRank(group) < 0 ? -1 : job.mesh.groupSize(group);
}

int32_t Rank::fail(int32_t code, const char *message) {
  Lock lock(job.mutex);
  std::string at = job.mesh.rankName(number) + ", after operation " +
                   std::to_string(operations.size()) + ": ";
  if (code == MERCURY_RT_OK)
    return job.fail(lock, number, MERCURY_RT_INVALID,
                    at + "failed with status 0; fail with another one");
  return job.fail(lock, number, code, at + (message ? message : "no message"));
}

int32_t Rank::launch(const char *name,
                     const mercury_rt_launch_arguments *arguments) {
  const mercury_rt_sim_job &given = job.description;
  const mercury_rt_kernel *kernel = given.kernels;
  const mercury_rt_kernel *end = kernel + given.number_of_kernels;
  while (kernel != end && std::strcmp(kernel->name, name))
    ++kernel;

  Lock lock(job.mutex);
  if (job.failed())
    return job.firstFailure(lock);
  std::string at = job.mesh.rankName(number) + ", after operation " +
                   std::to_string(operations.size()) + ", kernel '" + name +
                   "'";
  if (kernel == end) {
    std::string known;
    for (const mercury_rt_kernel *it = given.kernels; it != end; ++it)
      known += (known.empty() ? "'" : ", '") + std::string(it->name) + "'";
    return job.fail(
        lock, number, MERCURY_RT_KERNEL,
        at + ": there is no kernel of this name; the run came with " +
            (known.empty() ? "none" : known) + ", register it before the run");
  }
  lock.unlock(); // ranks compute at the same time
  char message[1024] = "";
  int32_t status =
      kernel->function(kernel->user_data, arguments, message, sizeof(message));
  if (status == MERCURY_RT_OK)
    return status;
  message[sizeof(message) - 1] = 0;
  lock.lock();
  return job.fail(lock, number, status,
                  at + " failed with status " + std::to_string(status) + ": " +
                      (message[0] ? message : "it gave no cause"));
}

Operation *Rank::begin(Lock &lock, std::string_view kind, int64_t group,
                       const void *result) {
  if (job.failed())
    return nullptr;
  job.progress();
  int64_t count = static_cast<int64_t>(operations.size());
  Operation &begun = operations.emplace_back();
  begun.rank = this;
  begun.number = count + 1;
  begun.kind = kind;
  begun.group = group;
  Operation &operation = operations.back();

  if (!job.mesh.hasGroup(group))
    job.fail(lock, operation, MERCURY_RT_INVALID,
             "the mesh has no such group; levels are numbered from 0 to " +
                 std::to_string(job.mesh.levels() - 1));
  else if (!result)
    job.fail(lock, operation, MERCURY_RT_INVALID,
             "no place for its result; pass a pointer to one");
  else if (number == job.description.fail_rank &&
           count == job.description.fail_after_ops)
    job.fail(lock, operation, MERCURY_RT_INJECTED,
             "failed as the job asked (fail_rank = " + std::to_string(number) +
                 ", fail_after_ops = " + std::to_string(count) + ")");
  return job.failed() ? nullptr : &operation;
}

int32_t Rank::finishStart(Lock &lock, Operation &operation, int64_t *token) {
  if (job.failed())
    return job.firstFailure(lock);
  operation.waited = operation.empty;
  *token = operation.empty ? 0 : operation.number;
  return MERCURY_RT_OK;
}

void Rank::send(Lock &lock, Operation &operation, int64_t member,
                const void *src, int64_t bytes, int64_t place) {
  if (job.failed())
    return;
  char *data = const_cast<char *>(static_cast<const char *>(src));
  int64_t to = job.mesh.memberOfGroup(number, operation.group, member);
  job.post(lock, number, to, /*sends=*/true,
           {&operation, number, data, bytes, /*pitch=*/0, place});
}

void Rank::receive(Lock &lock, Operation &operation, int64_t member, void *dst,
                   int64_t bytes, int64_t place) {
  if (job.failed())
    return;
  int64_t from = job.mesh.memberOfGroup(number, operation.group, member);
  job.post(lock, from, number, /*sends=*/false,
           {&operation, number, static_cast<char *>(dst), bytes, /*pitch=*/0,
            place});
}

int64_t Rank::findPlace(const void *memory, int64_t bytes) const {
  int64_t offset = reinterpret_cast<intptr_t>(memory) -
                   reinterpret_cast<intptr_t>(symmetric.get());
  int64_t end = job.description.symmetric_bytes;
  return offset >= 0 && offset < end && bytes <= end - offset ? offset : -1;
}

int32_t Rank::exchangeStart(int64_t group, int64_t sendTo, const void *src,
                            int64_t sendBytes, int64_t recvFrom, void *dst,
                            int64_t recvBytes, int64_t *token) {
  return startExchange("exchange", group, sendTo, src, sendBytes, recvFrom, dst,
                       recvBytes, token);
}

int32_t Rank::putStart(int64_t group, int64_t sendTo, const void *src,
                       int64_t sendBytes, int64_t recvFrom, void *dst,
                       int64_t recvBytes, int64_t *token) {
  return startExchange("put", group, sendTo, src, sendBytes, recvFrom, dst,
                       recvBytes, token);
}

int32_t Rank::startExchange(std::string_view kind, int64_t group,
                            int64_t sendTo, const void *src, int64_t sendBytes,
                            int64_t recvFrom, void *dst, int64_t recvBytes,
                            int64_t *token) {
  Lock lock(job.mutex);
  Operation *operation = begin(lock, kind, group, token);
  if (!operation)
    return job.firstFailure(lock);
  auto invalid = [&](const std::string &text) {
    return job.fail(lock, *operation, MERCURY_RT_INVALID, text);
  };

  int64_t self = groupRank(group);
  bool sends = sendBytes != 0, receives = recvBytes != 0;
  if (sendBytes < 0 || recvBytes < 0)
    return invalid("cannot send " + std::to_string(sendBytes) +
                   " bytes and receive " + std::to_string(recvBytes) +
                   "; sizes start at 0");
  for (auto [used, peer] : {std::pair(sends, sendTo), {receives, recvFrom}})
    if (used && !checkPeer(lock, *operation, peer))
      return job.firstFailure(lock);
  if ((sends && !src) || (receives && !dst))
    return invalid("a side that is not empty has no memory; pass its address");
  if ((sends && sendTo == self) != (receives && recvFrom == self))
    return invalid("names this rank on one side only; a local copy names it on "
                   "both");
  if (sends && receives && overlap(src, sendBytes, dst, recvBytes))
    return invalid("the destination overlaps the source, which is read at the "
                   "same time; give them memory of their own");

  operation->empty = !sends && !receives;
  int64_t place = -1;
  if (kind == "put" && !operation->empty) {
    place = findPlace(dst, std::max(sendBytes, recvBytes));
    if (place < 0 || (sends && findPlace(src, sendBytes) < 0))
      return invalid("puts from or to memory outside of the symmetric arena; "
                     "take both ends from there");
  }
  if (sends)
    send(lock, *operation, sendTo, src, sendBytes, place);
  if (receives)
    receive(lock, *operation, recvFrom, dst, recvBytes, place);
  return finishStart(lock, *operation, token);
}

int32_t Rank::allGatherStart(int64_t group, const void *src, int64_t sendBytes,
                             void *dst, int64_t slotBytes,
                             const int64_t *bytesOfMember, int64_t *token) {
  Lock lock(job.mutex);
  Operation *operation = begin(lock, "all_gather", group, token);
  if (!operation)
    return job.firstFailure(lock);
  auto invalid = [&](const std::string &text) {
    return job.fail(lock, *operation, MERCURY_RT_INVALID, text);
  };

  int64_t self = groupRank(group);
  int64_t members = job.mesh.groupSize(group);
  char *slots = static_cast<char *>(dst);
  if (!bytesOfMember)
    return invalid("no table of the members' bytes; pass one entry a member");
  if (bytesOfMember[self] != sendBytes)
    return invalid("sends " + std::to_string(sendBytes) +
                   " bytes but the table says " +
                   std::to_string(bytesOfMember[self]) + " for this rank");
  if (sendBytes && !src)
    return invalid("a part that is not empty has no memory; pass its address");
  for (int64_t member = 0; member < members; ++member) {
    int64_t bytes = bytesOfMember[member];
    if (bytes < 0 || bytes > slotBytes)
      return invalid("the part of group rank " + std::to_string(member) +
                     " is of " + std::to_string(bytes) +
                     " bytes; sizes go from 0 to those of a slot, " +
                     std::to_string(slotBytes));
    if (bytes && !slots)
      return invalid("no memory for the parts; pass the first slot's address");
    const char *slot = slots + member * slotBytes;
    bool inPlace = member == self && slot == src;
    if (bytes && sendBytes && !inPlace && overlap(src, sendBytes, slot, bytes))
      return invalid("the source overlaps the slot of group rank " +
                     std::to_string(member) +
                     "; it may only be this rank's own slot");
  }

  // Empty parts are posted too: they keep the members together, as a collective
  // does, and so every disagreement about a size or an order is found.
  for (int64_t member = 0; member < members; ++member) {
    send(lock, *operation, member, src, sendBytes);
    receive(lock, *operation, member, slots + member * slotBytes,
            bytesOfMember[member]);
  }
  return finishStart(lock, *operation, token);
}

int32_t Rank::wait(int64_t token) {
  Lock lock(job.mutex);
  if (job.failed())
    return job.firstFailure(lock);
  if (token == 0)
    return MERCURY_RT_OK;
  int64_t count = static_cast<int64_t>(operations.size());
  if (token < 0 || token > count)
    return job.fail(
        lock, number, MERCURY_RT_TOKEN,
        job.mesh.rankName(number) + ", wait: no operation has token " +
            std::to_string(token) + ", only " + std::to_string(count) +
            " were started; pass what a start call has set");
  Operation &operation = operations[token - 1];
  if (operation.lease && !operation.pulls)
    return job.fail(lock, operation, MERCURY_RT_TOKEN,
                    "it has no token to wait for; pass what a start call has "
                    "set");
  if (operation.waited)
    return job.fail(lock, operation, MERCURY_RT_TOKEN,
                    "its token was waited for before; wait once for each");
  if (operation.pulls)
    --operation.lease->members[groupRank(operation.group)].pulls;
  int32_t status = job.wait(lock, operation);
  if (status == MERCURY_RT_OK && operation.finish) {
    lock.unlock(); // ranks compute at the same time
    operation.finish();
    operation.scratch = {};
  }
  return status;
}
