//===- FakeNccl.h - What the calls of the fake NCCL share -------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TEST_RUNTIME_CUDA_FAKENCCL_H
#define TEST_RUNTIME_CUDA_FAKENCCL_H

#define FAKE_CUDA_IMPLEMENTATION
#include "Fake.h"
#include "FakeMemory.h"
#include <atomic>
#include <memory>

/// All there is to one: its memory is the group's matter.
struct mercury::rt::cuda::OpaqueWindow {};

namespace fake {

constexpr int kMostRanks = 8;
constexpr uint64_t kMostPosted = 64;

/// What a sender's stream has put out: memory of its process.
struct Posted {
  Shared memory;
  uint64_t address, bytes;
};

/// From one rank to another. One device posts and one takes, in order, so
/// counting is all the agreement they need.
struct Channel {
  std::atomic<uint64_t> posted, taken;
  Posted messages[kMostPosted];

  /// The signals that came; and of a graph's, whether one is under way or
  /// there, and whether it is there.
  std::atomic<uint64_t> signals;
  std::atomic<bool> raised, signalled;
};

/// Memory that all members map; it begins as zeros.
struct Group {
  std::atomic<int> members;
  std::atomic<NcclResult> error;
  Channel channels[kMostRanks][kMostRanks];

  std::atomic<int> registered;
  Posted windows[kMostRanks];
};

class Network;

/// One rank's end; its messages keep it.
struct Member {
  Group *group; // stays mapped
  int rank, ranks;
  std::atomic<bool> aborted{false};
  uint64_t awaited[kMostRanks] = {}; // signals, by the host
  OpaqueWindow window;
  std::shared_ptr<Network> network; // of its puts

  Channel &to(int peer) { return group->channels[rank][peer]; }
  Channel &from(int peer) { return group->channels[peer][rank]; }
};

/// What fake_nccl_break() asked for.
extern std::atomic<NcclResult> broken;

} // namespace fake

struct mercury::rt::cuda::OpaqueCommunicator {
  std::shared_ptr<fake::Member> member;
};

#endif // TEST_RUNTIME_CUDA_FAKENCCL_H
