//===- FakeNccl.cpp - An NCCL on the host ---------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between two ranks match in the order in which their streams come to
// them; the calls of one group are done together. Ranks may be processes.
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"
#include "lib/Runtime/Elements.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace fake;
using namespace mercury::rt;

namespace {
struct Message {
  bool sends;
  char *data;
  size_t bytes;
  int peer;
  std::shared_ptr<Member> member;
  Stream stream;
};

/// The calls between a group's start and its end, and what is done when all of
/// them are.
struct Batch {
  Batch(std::vector<Message> messages,
        std::vector<std::function<void()>> finishers)
      : messages(std::move(messages)), finishers(std::move(finishers)),
        numbers(this->messages.size()), done(this->messages.size()) {}
  bool attempt();
  bool send(size_t index);
  bool receive(size_t index);

  std::vector<Message> messages;
  std::vector<std::function<void()>> finishers;
  std::vector<uint64_t> numbers; // what was posted, from 1 on
  std::vector<bool> done;
};
} // namespace

static thread_local std::vector<Message> pending;
static thread_local std::vector<std::function<void()>> pendingFinishers;
static thread_local int depth;
static int version = 22809;
std::atomic<NcclResult> fake::broken{0};
static std::atomic<int> abortsHeld{0};
static std::atomic<int64_t> communicators{0};

/// True once the peer has taken it.
bool Batch::send(size_t index) {
  const Message &message = messages[index];
  Channel &channel =
      message.member->group->channels[message.member->rank][message.peer];
  if (numbers[index])
    return channel.taken >= numbers[index];
  uint64_t posted = channel.posted;
  if (posted - channel.taken == kMostPosted)
    return false;
  Posted &place = channel.messages[posted % kMostPosted];
  uint64_t number;
  auto address = reinterpret_cast<uint64_t>(message.data);
  if (!find(address, place.memory, number)) // the host's own, for threads
    place.memory = {0, 0, getpid(), -1};
  place.address = address;
  place.bytes = message.bytes;
  channel.posted = numbers[index] = posted + 1;
  return false;
}

bool Batch::receive(size_t index) {
  const Message &message = messages[index];
  Group &group = *message.member->group;
  Channel &channel = group.channels[message.peer][message.member->rank];
  if (done[index])
    return true;
  if (channel.posted == channel.taken)
    return false;
  Posted posted = channel.messages[channel.taken % kMostPosted];
  uint64_t bytes = std::min<uint64_t>(posted.bytes, message.bytes);
  auto *from = reinterpret_cast<char *>(posted.address);
  void *mapped = nullptr;
  if (posted.memory.process != getpid()) {
    mapped = map(posted.memory);
    from =
        static_cast<char *>(mapped) + (posted.address - posted.memory.address);
  }
  if (posted.bytes != message.bytes ||
      (!mapped && posted.memory.process != getpid()))
    group.error = 5; // invalid usage
  else
    std::memmove(message.data, from, bytes);
  unmap(mapped, posted.memory);
  channel.taken = channel.taken + 1;
  done[index] = true;
  return true;
}

bool Batch::attempt() {
  bool complete = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].member->aborted)
      return true;
    if (broken) {
      messages[i].member->group->error = broken.load();
      return false;
    }
    complete &= messages[i].sends ? send(i) : receive(i);
  }
  if (complete)
    for (const auto &finish : finishers)
      finish();
  return complete;
}

static NcclResult flush() {
  if (depth > 0 || pending.empty())
    return 0;
  std::vector<Message> messages = std::move(pending);
  auto finishers = std::move(pendingFinishers);
  pending.clear();
  pendingFinishers.clear();
  return enqueue(messages.front().stream, [messages, finishers]() -> Work {
    auto batch = std::make_shared<Batch>(messages, finishers);
    return [batch] { return batch->attempt(); };
  });
}

extern "C" {
NcclResult ncclGroupStart();
NcclResult ncclGroupEnd();
NcclResult ncclSend(const void *src, size_t count, int type, int peer,
                    Communicator communicator, Stream stream);
NcclResult ncclRecv(void *dst, size_t count, int type, int peer,
                    Communicator communicator, Stream stream);
}

/// The runtime's name of an element type that NCCL numbers.
static int32_t findType(int type) {
  switch (type) {
  case 6:
    return MERCURY_RT_F16;
  case 7:
    return MERCURY_RT_F32;
  case 8:
    return MERCURY_RT_F64;
  default: // 9
    return MERCURY_RT_BF16;
  }
}

/// Every member sends every other a part, and merges what came to it.
static NcclResult reduceParts(const char *src, size_t stride, void *dst,
                              size_t count, int type, int reduction,
                              Communicator communicator, Stream stream) {
  int ranks = communicator->member->ranks;
  size_t bytes = count * elementBytes(findType(type));
  auto parts = std::make_shared<std::vector<char>>(bytes * ranks);
  ncclGroupStart();
  for (int peer = 0; peer < ranks; ++peer) {
    ncclSend(src + peer * stride, bytes, 0, peer, communicator, stream);
    ncclRecv(parts->data() + peer * bytes, bytes, 0, peer, communicator,
             stream);
  }
  pendingFinishers.push_back([=] {
    std::vector<const char *> ofRank;
    for (int peer = 0; peer < ranks; ++peer)
      ofRank.push_back(parts->data() + peer * bytes);
    reduce(ofRank, static_cast<char *>(dst), bytes, findType(type),
           reduction == 0 ? MERCURY_RT_SUM : MERCURY_RT_MAX);
  });
  return ncclGroupEnd();
}

extern "C" {

void fake_nccl_set_version(int given) { version = given; }
void fake_nccl_break(int result) { broken = result; }
void fake_nccl_hold_aborts(int held) { abortsHeld = held; }
int64_t fake_nccl_count_communicators(void) { return communicators; }

NcclResult ncclGetVersion(int *given) {
  *given = version;
  return 0;
}
const char *ncclGetErrorString(NcclResult) {
  return "an error of the fake NCCL";
}
NcclResult ncclGetUniqueId(NcclUniqueId *id) {
  Shared shared;
  if (!share(sizeof(Group), shared))
    return 2; // a system error
  std::memcpy(id->internal, &shared, sizeof(shared));
  // Takes the lock that ncclCommInitRank takes: a sanitizer does not see that
  // the id, and so this memory, is handed on through a file.
  return failPoint(__func__);
}
NcclResult ncclCommInitRank(Communicator *communicator, int ranks,
                            NcclUniqueId id, int rank) {
  if (NcclResult result = failPoint(__func__))
    return result;
  Shared shared;
  std::memcpy(&shared, id.internal, sizeof(shared));
  auto *group = static_cast<Group *>(map(shared));
  if (!group || ranks > kMostRanks)
    return 2;
  ++group->members;
  while (group->members < ranks)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  *communicator = new OpaqueCommunicator{std::make_shared<Member>()};
  ++communicators;
  (*communicator)->member->group = group;
  (*communicator)->member->rank = rank;
  (*communicator)->member->ranks = ranks;
  return 0;
}
/// As NCCL does, it waits for every message, and for graphs that have some.
NcclResult ncclCommDestroy(Communicator communicator) {
  while (communicator->member.use_count() > 1)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  --communicators;
  delete communicator;
  return 0;
}
/// Its messages end first; then it waits, too.
NcclResult ncclCommAbort(Communicator communicator) {
  communicator->member->aborted = true;
  while (abortsHeld)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return ncclCommDestroy(communicator);
}
NcclResult ncclCommCount(Communicator communicator, int *count) {
  *count = communicator->member->ranks;
  return 0;
}
NcclResult ncclCommUserRank(Communicator communicator, int *rank) {
  *rank = communicator->member->rank;
  return 0;
}
NcclResult ncclCommGetAsyncError(Communicator communicator,
                                 NcclResult *result) {
  *result = communicator->member->group->error;
  return 0;
}
NcclResult ncclGroupStart() {
  ++depth;
  return 0;
}
NcclResult ncclGroupEnd() {
  --depth;
  return flush();
}
NcclResult ncclSend(const void *src, size_t count, int, int peer,
                    Communicator communicator, Stream stream) {
  if (NcclResult result = failPoint(__func__))
    return result;
  char *data = const_cast<char *>(static_cast<const char *>(src));
  pending.push_back({true, data, count, peer, communicator->member, stream});
  return flush();
}
NcclResult ncclRecv(void *dst, size_t count, int, int peer,
                    Communicator communicator, Stream stream) {
  pending.push_back({false, static_cast<char *>(dst), count, peer,
                     communicator->member, stream});
  return flush();
}
NcclResult ncclAllGather(const void *src, void *dst, size_t count, int type,
                         Communicator communicator, Stream stream) {
  ncclGroupStart();
  for (int peer = 0; peer < communicator->member->ranks; ++peer) {
    ncclSend(src, count, type, peer, communicator, stream);
    ncclRecv(static_cast<char *>(dst) + peer * count, count, type, peer,
             communicator, stream);
  }
  return ncclGroupEnd();
}
NcclResult ncclReduceScatter(const void *src, void *dst, size_t count, int type,
                             int reduction, Communicator communicator,
                             Stream stream) {
  return reduceParts(static_cast<const char *>(src),
                     count * elementBytes(findType(type)), dst, count, type,
                     reduction, communicator, stream);
}
NcclResult ncclAllReduce(const void *src, void *dst, size_t count, int type,
                         int reduction, Communicator communicator,
                         Stream stream) {
  return reduceParts(static_cast<const char *>(src), 0, dst, count, type,
                     reduction, communicator, stream);
}
NcclResult ncclBroadcast(const void *src, void *dst, size_t count, int type,
                         int root, Communicator communicator, Stream stream) {
  int self = communicator->member->rank;
  bool inPlace = self == root && src == dst;
  ncclGroupStart();
  for (int peer = 0; self == root && peer < communicator->member->ranks; ++peer)
    if (peer != self || !inPlace)
      ncclSend(src, count, type, peer, communicator, stream);
  if (!inPlace)
    ncclRecv(dst, count, type, root, communicator, stream);
  return ncclGroupEnd();
}

} // extern "C"
