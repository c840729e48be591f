//===- FakeNccl.cpp - An NCCL on the host ---------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between two ranks match in the order in which their streams come to
// them; the calls of one group are done together.
//
//===----------------------------------------------------------------------===//

#define FAKE_CUDA_IMPLEMENTATION
#include "Fake.h"
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

using namespace fake;

namespace {
/// What a sender's stream has put out and nobody took yet.
struct Posted {
  const void *data;
  size_t bytes;
  std::shared_ptr<std::atomic<bool>> taken;
};

struct Group {
  std::mutex mutex;
  std::condition_variable joined;
  int ranks = 0, members = 0;
  std::map<std::pair<int, int>, std::deque<Posted>> channels;
  std::atomic<NcclResult> error{0};
};

struct Groups {
  std::mutex mutex;
  std::map<int64_t, std::shared_ptr<Group>> byId;
  int64_t last = 0;
};
} // namespace

static Groups &groups() {
  static Groups *groups = new Groups;
  return *groups;
}

namespace {
/// One rank's end; its messages keep it.
struct Member {
  std::shared_ptr<Group> group;
  int rank;
  std::atomic<bool> aborted{false};
};
} // namespace

struct mercury::rt::cuda::OpaqueCommunicator {
  std::shared_ptr<Member> member;
};

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
      : messages(std::move(messages)), finishers(std::move(finishers)) {
    done.resize(this->messages.size());
  }
  bool attempt();

  std::vector<Message> messages;
  std::vector<std::function<void()>> finishers;
  std::vector<bool> done;
  std::vector<std::shared_ptr<std::atomic<bool>>> sent;
};
} // namespace

static thread_local std::vector<Message> pending;
static thread_local std::vector<std::function<void()>> pendingFinishers;
static thread_local int depth;
static int version = 22809;

bool Batch::attempt() {
  bool complete = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message &message = messages[i];
    if (message.member->aborted)
      return true;
    Group &group = *message.member->group;
    int self = message.member->rank;
    std::lock_guard lock(group.mutex);
    if (message.sends && !done[i]) {
      sent.push_back(std::make_shared<std::atomic<bool>>(false));
      group.channels[{self, message.peer}].push_back(
          {message.data, message.bytes, sent.back()});
      done[i] = true;
    }
    if (message.sends || done[i])
      continue;
    std::deque<Posted> &channel = group.channels[{message.peer, self}];
    if (channel.empty()) {
      complete = false;
      continue;
    }
    if (channel.front().bytes != message.bytes)
      group.error = 5; // invalid usage
    std::memmove(message.data, channel.front().data,
                 std::min(channel.front().bytes, message.bytes));
    *channel.front().taken = true;
    channel.pop_front();
    done[i] = true;
  }
  for (const auto &taken : sent)
    complete &= taken->load();
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

/// Elements as NCCL numbers them: float32 is 7 and bfloat16 9.
static size_t elementBytes(int type) { return type == 7 ? 4 : 2; }

static float load(const char *at, int type) {
  uint32_t bits = 0;
  std::memcpy(reinterpret_cast<char *>(&bits) + 4 - elementBytes(type), at,
              elementBytes(type));
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

static void store(char *at, int type, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (type != 7)
    bits += 0x7fff + (bits >> 16 & 1);
  std::memcpy(at, reinterpret_cast<char *>(&bits) + 4 - elementBytes(type),
              elementBytes(type));
}

/// Every member sends every other a part, and merges what came to it.
static NcclResult reduceParts(const char *src, size_t stride, void *dst,
                              size_t count, int type, int reduction,
                              Communicator communicator, Stream stream) {
  int ranks = communicator->member->group->ranks;
  size_t bytes = count * elementBytes(type);
  auto parts = std::make_shared<std::vector<char>>(bytes * ranks);
  ncclGroupStart();
  for (int peer = 0; peer < ranks; ++peer) {
    ncclSend(src + peer * stride, bytes, 0, peer, communicator, stream);
    ncclRecv(parts->data() + peer * bytes, bytes, 0, peer, communicator,
             stream);
  }
  pendingFinishers.push_back([=] {
    for (size_t at = 0; at < bytes; at += elementBytes(type)) {
      float merged = load(parts->data() + at, type);
      for (int peer = 1; peer < ranks; ++peer) {
        float more = load(parts->data() + peer * bytes + at, type);
        merged = reduction == 0 ? merged + more : std::max(merged, more);
      }
      store(static_cast<char *>(dst) + at, type, merged);
    }
  });
  return ncclGroupEnd();
}

extern "C" {

void fake_nccl_set_version(int given) { version = given; }

NcclResult ncclGetVersion(int *given) {
  *given = version;
  return 0;
}
const char *ncclGetErrorString(NcclResult) {
  return "an error of the fake NCCL";
}
NcclResult ncclGetUniqueId(NcclUniqueId *id) {
  std::lock_guard lock(groups().mutex);
  int64_t number = ++groups().last;
  std::memcpy(id->internal, &number, sizeof(number));
  return 0;
}
NcclResult ncclCommInitRank(Communicator *communicator, int ranks,
                            NcclUniqueId id, int rank) {
  if (NcclResult result = failPoint(__func__))
    return result;
  int64_t number;
  std::memcpy(&number, id.internal, sizeof(number));
  std::shared_ptr<Group> group;
  {
    std::lock_guard lock(groups().mutex);
    std::shared_ptr<Group> &found = groups().byId[number];
    if (!found)
      found = std::make_shared<Group>();
    group = found;
  }
  std::unique_lock lock(group->mutex);
  group->ranks = ranks;
  ++group->members;
  group->joined.notify_all();
  group->joined.wait(lock, [&] { return group->members == ranks; });
  *communicator = new OpaqueCommunicator{std::make_shared<Member>()};
  (*communicator)->member->group = group;
  (*communicator)->member->rank = rank;
  return 0;
}
NcclResult ncclCommDestroy(Communicator communicator) {
  delete communicator;
  return 0;
}
NcclResult ncclCommAbort(Communicator communicator) {
  communicator->member->aborted = true;
  delete communicator;
  return 0;
}
NcclResult ncclCommCount(Communicator communicator, int *count) {
  *count = communicator->member->group->ranks;
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
  for (int peer = 0; peer < communicator->member->group->ranks; ++peer) {
    ncclSend(src, count, type, peer, communicator, stream);
    ncclRecv(static_cast<char *>(dst) + peer * count, count, type, peer,
             communicator, stream);
  }
  return ncclGroupEnd();
}
NcclResult ncclReduceScatter(const void *src, void *dst, size_t count, int type,
                             int reduction, Communicator communicator,
                             Stream stream) {
  return reduceParts(static_cast<const char *>(src), count * elementBytes(type),
                     dst, count, type, reduction, communicator, stream);
}
NcclResult ncclAllReduce(const void *src, void *dst, size_t count, int type,
                         int reduction, Communicator communicator,
                         Stream stream) {
  return reduceParts(static_cast<const char *>(src), 0, dst, count, type,
                     reduction, communicator, stream);
}
NcclResult ncclBroadcast(const void *src, void *dst, size_t count, int type,
                         int root, Communicator communicator, Stream stream) {
  ncclGroupStart();
  if (communicator->member->rank == root)
    for (int peer = 0; peer < communicator->member->group->ranks; ++peer)
      ncclSend(src, count, type, peer, communicator, stream);
  ncclRecv(dst, count, type, root, communicator, stream);
  return ncclGroupEnd();
}

} // extern "C"
