//===- race.cpp - Programs that touch memory before the wait --------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `race source` writes a source, and `race destination` reads a destination,
// between start and wait; `race lent` writes what it lent before it closes the
// lease. Some seeds must show it in the result and some not, as messages are
// early and late; thread sanitizer reports it. `race none` waits first, and
// `race closed` closes first.
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <cstring>
#include <thread>

static constexpr int64_t kBytes = 64;
enum Touch : int64_t { kNone, kSource, kDestination, kLent, kClosed };

/// What a program computes before a start, and between start and wait.
static void compute() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Rank 0 sends ones. buffers: what to touch, and where to put the first byte
/// of what arrived.
static int32_t sendOnes(mercury_rt_context *context, void *const *buffers) {
  int64_t touch = *static_cast<const int64_t *>(buffers[0]);
  char *received = static_cast<char *>(buffers[1]);
  char *arena = static_cast<char *>(mercury_rt_local_arena(context));
  int64_t self = mercury_rt_group_rank(context, 0), token = 0;
  // Who touches starts last: an early message is then there before the touch.
  if (self == (touch == kSource ? 0 : 1))
    compute();
  if (self == 0) {
    std::memset(arena, 1, kBytes);
    CHECK(mercury_rt_exchange_start(context, 0, 1, arena, kBytes, 0, nullptr, 0,
                                    &token));
    if (touch == kSource)
      arena[0] = 2;
    compute();
    return mercury_rt_wait(context, token);
  }
  CHECK(mercury_rt_exchange_start(context, 0, 0, nullptr, 0, 0, arena, kBytes,
                                  &token));
  if (touch == kDestination)
    *received = arena[0];
  compute();
  CHECK(mercury_rt_wait(context, token));
  if (touch != kDestination)
    *received = arena[0];
  return 0;
}

/// Rank 1 pulls ones out of rank 0, which puts something else there before or
/// after the lease is closed. buffers as above.
static int32_t lendOnes(mercury_rt_context *context, void *const *buffers) {
  int64_t touch = *static_cast<const int64_t *>(buffers[0]);
  char *received = static_cast<char *>(buffers[1]);
  char *arena = static_cast<char *>(mercury_rt_symmetric_arena(context));
  int64_t self = mercury_rt_group_rank(context, 0), lease = 0, token = 0;
  const void *lent = nullptr;
  if (self == 0)
    std::memset(arena, 1, kBytes);
  CHECK(mercury_rt_lease_open(context, 0, arena, kBytes, &lease));
  if (self == 0) {
    if (touch == kLent) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      arena[0] = 2;
    }
    CHECK(mercury_rt_lease_close(context, lease));
    arena[0] = 3;
    return 0;
  }
  CHECK(mercury_rt_lease_address(context, lease, 0, &lent));
  CHECK(mercury_rt_pull_start(context, lease, 0, lent, kBytes, arena, kBytes,
                              kBytes, 1, &token));
  std::this_thread::sleep_for(std::chrono::milliseconds(6));
  CHECK(mercury_rt_wait(context, token));
  CHECK(mercury_rt_lease_close(context, lease));
  *received = arena[0];
  return 0;
}

int main(int argc, char **argv) {
  const std::string name = argc == 2 ? argv[1] : "none";
  const char *names[] = {"none", "source", "destination", "lent", "closed"};
  int64_t touch = kNone;
  while (touch < kClosed && name != names[touch])
    ++touch;
  bool lends = touch >= kLent;
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimJob job({{"gpu", 2}}, lends ? lendOnes : sendOnes);
    char received = 0;
    job.localBytes = job.symmetricBytes = kBytes;
    job.description.seed = seed;
    job.description.max_delay_us = 500;
    for (std::vector<void *> &buffers : job.buffers)
      buffers = {&touch, &received};
    EXPECT(job.run() == 0);
    wrong += received != 1;
  }
  bool right = touch == kNone || touch == kClosed;
  EXPECT(right ? wrong == 0 : wrong > 0 && wrong < 50);
}
