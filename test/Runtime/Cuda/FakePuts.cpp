//===- FakePuts.cpp - Puts and signals of an NCCL on the host -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As NCCL promises no more: a put is over for its stream when its source may be
// written; its bytes come to the peer later, and then its signal, in order for
// one peer and in none for several.
//
// And as NCCL does it: outside of graphs a wait is for a count that the host
// keeps; in a graph a signal is a flag, which the next one finds lowered. No
// abort ends a wait for a signal.
//
//===----------------------------------------------------------------------===//

#include "FakeDevice.h"
#include "FakeNccl.h"
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

using namespace fake;

namespace {
/// What is on its way to a peer.
struct Parcel {
  std::vector<char> bytes;
  uint64_t offset; // in the window
  bool inGraph;
};
} // namespace

static std::atomic<int> windowsRefused{0}, hurried{0};

namespace fake {
/// The thread that carries the parcels of one member.
class Network {
public:
  explicit Network(Member &member)
      : member(member), random(member.rank), thread([this] { run(); }) {}
  ~Network() {
    {
      std::lock_guard lock(mutex);
      over = true;
      changed.notify_one();
    }
    thread.join();
  }

  void send(int peer, Parcel parcel) {
    std::lock_guard lock(mutex);
    parcels[peer].push_back(std::move(parcel));
    changed.notify_one();
  }

private:
  void run();
  void deliver(int peer, const Parcel &parcel);

  Member &member;
  std::mt19937 random;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Parcel> parcels[kMostRanks];
  bool over = false;
  std::thread thread;
};
} // namespace fake

void Network::deliver(int peer, const Parcel &parcel) {
  auto signal = [&] {
    Channel &channel = member.to(peer);
    if (parcel.inGraph)
      channel.signalled = true;
    else
      ++channel.signals;
  };
  auto pause = [&] {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  };
  if (hurried)
    signal();
  pause();
  if (!parcel.bytes.empty()) {
    const Posted &window = member.group->windows[peer];
    auto *mapped = static_cast<char *>(map(window.memory));
    if (!mapped) // the peer's process has ended
      return;
    std::memcpy(mapped + (window.address - window.memory.address) +
                    parcel.offset,
                parcel.bytes.data(), parcel.bytes.size());
    unmap(mapped, window.memory);
  }
  if (!hurried)
    signal();
}

void Network::run() {
  std::unique_lock lock(mutex);
  while (true) {
    std::vector<int> waiting;
    for (int peer = 0; peer < kMostRanks; ++peer)
      if (!parcels[peer].empty())
        waiting.push_back(peer);
    if (waiting.empty()) {
      if (over)
        return;
      changed.wait(lock);
      continue;
    }
    int peer = waiting[random() % waiting.size()];
    Parcel parcel = std::move(parcels[peer].front());
    parcels[peer].pop_front();
    lock.unlock();
    deliver(peer, parcel);
    lock.lock();
  }
}

/// Puts what is sent to a peer, and its signal, into a stream.
static NcclResult send(const char *src, size_t bytes, int peer, size_t offset,
                       Communicator communicator, Stream stream) {
  std::shared_ptr<Member> member = communicator->member;
  bool inGraph = stream->graph;
  return enqueue(stream, [=]() -> Work {
    return [=] {
      if (broken) {
        member->group->error = broken.load();
        return false;
      }
      if (inGraph && member->to(peer).raised.exchange(true))
        return false;
      member->network->send(peer, {{src, src + bytes}, offset, inGraph});
      return true;
    };
  });
}

extern "C" {

void fake_nccl_refuse_windows(int refused) { windowsRefused = refused; }
void fake_nccl_hurry_signals(int early) { hurried = early; }

NcclResult ncclMemAlloc(void **memory, size_t bytes) {
  if (NcclResult result = failPoint(__func__))
    return result;
  return fake_cuda_allocate(memory, bytes);
}
NcclResult ncclMemFree(void *memory) {
  fake_cuda_free(memory);
  return 0;
}
/// All members come to it. The fake has one window a communicator.
NcclResult ncclCommWindowRegister(Communicator communicator, void *memory,
                                  size_t bytes, Window *window, int flags) {
  std::shared_ptr<Member> member = communicator->member;
  Posted &own = member->group->windows[member->rank];
  auto address = reinterpret_cast<uint64_t>(memory);
  uint64_t number;
  *window = nullptr;
  if (flags != kWindowSymmetric || !find(address, own.memory, number))
    return 4; // an invalid argument
  if (windowsRefused)
    return 0;
  own.address = address;
  own.bytes = bytes;
  ++member->group->registered;
  while (member->group->registered < member->ranks)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  member->network = std::make_shared<Network>(*member);
  *window = &member->window;
  return 0;
}
NcclResult ncclCommWindowDeregister(Communicator communicator, Window window) {
  return window == &communicator->member->window ? 0 : 4;
}
NcclResult ncclPutSignal(const void *src, size_t count, int, int peer,
                         Window window, size_t offset, int signal, int context,
                         unsigned flags, Communicator communicator,
                         Stream stream) {
  if (NcclResult result = failPoint(__func__))
    return result;
  // The source lies in a window too, and other numbers are for later versions.
  const Member &member = *communicator->member;
  const Posted &own = member.group->windows[member.rank];
  uint64_t at = reinterpret_cast<uint64_t>(src) - own.address;
  if (window != &member.window || at > own.bytes || count > own.bytes - at ||
      offset > own.bytes || count > own.bytes - offset || signal || context ||
      flags)
    return 4;
  return send(static_cast<const char *>(src), count, peer, offset, communicator,
              stream);
}
NcclResult ncclSignal(int peer, int signal, int context, unsigned flags,
                      Communicator communicator, Stream stream) {
  if (NcclResult result = failPoint(__func__))
    return result;
  if (signal || context || flags)
    return 4;
  return send(nullptr, 0, peer, 0, communicator, stream);
}
NcclResult ncclWaitSignal(int count, SignalWait *waits,
                          Communicator communicator, Stream stream) {
  if (NcclResult result = failPoint(__func__))
    return result;
  if (count != 1 || waits->count != 1 || waits->signal || waits->context)
    return 4;
  std::shared_ptr<Member> member = communicator->member;
  int peer = waits->peer;
  if (stream->graph)
    return enqueue(stream, [=]() -> Work {
      return [=] {
        Channel &channel = member->from(peer);
        if (!channel.signalled.exchange(false))
          return false;
        channel.raised = false;
        return true;
      };
    });
  uint64_t number = ++member->awaited[peer];
  return enqueue(stream, [=]() -> Work {
    return [=] { return member->from(peer).signals >= number; };
  });
}

} // extern "C"
