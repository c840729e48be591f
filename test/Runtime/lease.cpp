//===- lease.cpp - Reading what other ranks lent --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On each level in turn, every rank pulls a column out of every other member's
// matrix, uneven and empty ones included, while they pull out of its own; then
// all change their matrices and do it again.
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <cstdint>
#include <cstring>
#include <thread>

static constexpr int64_t kRounds = 3, kPitch = 40, kColumn = 8, kMaxRows = 4;

/// A global rank's rows, 0 to 4.
static int64_t rowsOf(int64_t rank) { return (rank * 7 + 3) % 5; }

/// A byte that names the rank, round, level and row.
static char byteOf(int64_t rank, int64_t round, int64_t level, int64_t row) {
  return static_cast<char>(1 +
                           (rank * 31 + round * 67 + level * 101 + row) % 251);
}

static bool pullsAll(mercury_rt_context *context, int64_t rank, int64_t stride,
                     int64_t level, int64_t round, int32_t *status) {
  int64_t self = mercury_rt_group_rank(context, level);
  int64_t size = mercury_rt_group_size(context, level);
  char *matrix = static_cast<char *>(mercury_rt_symmetric_arena(context));
  char *seen = matrix + kMaxRows * kPitch;
  for (int64_t row = 0; row < rowsOf(rank); ++row)
    std::memset(matrix + row * kPitch, byteOf(rank, round, level, row), kPitch);

  int64_t lease = 0;
  std::vector<int64_t> tokens(size);
  auto ok = [&](int32_t code) { return (*status = code) == 0; };
  if (!ok(mercury_rt_lease_open(context, level, matrix, rowsOf(rank) * kPitch,
                                &lease)))
    return false;
  for (int64_t step = 1; step < size; ++step) {
    int64_t peer = (self + step) % size;
    const void *base = nullptr;
    if (!ok(mercury_rt_lease_address(context, lease, peer, &base)))
      return false;
    if (!ok(mercury_rt_pull_start(
            context, lease, peer, static_cast<const char *>(base) + kColumn,
            kPitch, seen + peer * kMaxRows * kColumn, kColumn, kColumn,
            rowsOf(rank + (peer - self) * stride), &tokens[peer])))
      return false;
  }
  for (int64_t token : tokens)
    if (!ok(mercury_rt_wait(context, token)))
      return false;
  if (!ok(mercury_rt_lease_close(context, lease)))
    return false;
  // The matrix is ours again, and still read by nobody.
  std::memset(matrix, 0, kMaxRows * kPitch);
  for (int64_t peer = 0; peer < size; ++peer) {
    int64_t owner = rank + (peer - self) * stride;
    EXPECT(peer == self || (tokens[peer] != 0) == (rowsOf(owner) != 0));
    for (int64_t row = 0; peer != self && row < rowsOf(owner); ++row)
      for (int64_t i = 0; i < kColumn; ++i)
        EXPECT(seen[(peer * kMaxRows + row) * kColumn + i] ==
               byteOf(owner, round, level, row));
  }
  return true;
}

/// buffers: the number of levels and this rank's global rank.
static int32_t pullRounds(mercury_rt_context *context, void *const *buffers) {
  int64_t levels = reinterpret_cast<intptr_t>(buffers[0]);
  int64_t rank = reinterpret_cast<intptr_t>(buffers[1]);
  int32_t status = 0;
  for (int64_t round = 0; round < kRounds; ++round) {
    int64_t stride = 1;
    for (int64_t level = levels - 1; level >= 0; --level) {
      if (!pullsAll(context, rank, stride, level, round, &status))
        return status;
      stride *= mercury_rt_group_size(context, level);
    }
  }
  return 0;
}

static void testPulls(const std::vector<Level> &levels, uint64_t seed) {
  SimJob job(levels, pullRounds);
  job.symmetricBytes = kMaxRows * (kPitch + kColumn * job.ranks);
  job.description.seed = seed;
  job.description.max_delay_us = 300;
  for (int64_t rank = 0; rank < job.ranks; ++rank)
    job.buffers[rank] = {reinterpret_cast<void *>(levels.size()),
                         reinterpret_cast<void *>(intptr_t(rank))};
  EXPECT(job.run() == 0);
  for (size_t level = 0; level < levels.size(); ++level) {
    int64_t bytes = 0, messages = 0;
    for (int64_t rank = 0; rank < job.ranks; ++rank) {
      int64_t readers = kRounds * (levels[level].size - 1);
      bytes += readers * rowsOf(rank) * kColumn;
      messages += rowsOf(rank) ? readers : 0;
    }
    EXPECT(job.sent[level] == bytes);
    EXPECT(job.messages[level] == messages);
  }
}

/// Two leases at once, closed in the order of their opening; a member that
/// opens late, and one that lends nothing. What was lent holds the rank.
static int32_t overlapping(mercury_rt_context *context, void *const *) {
  int64_t self = mercury_rt_group_rank(context, 0), first = 0, second = 0;
  int64_t size = mercury_rt_group_size(context, 0), tokens[3] = {};
  auto *arena = static_cast<int64_t *>(mercury_rt_symmetric_arena(context));
  arena[0] = self;
  arena[1] = 100 + self;
  if (self == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  bool lends = self != 0;
  CHECK(mercury_rt_lease_open(context, 0, arena, 8, &first));
  CHECK(mercury_rt_lease_open(context, 0, lends ? arena + 1 : nullptr,
                              lends ? 8 : 0, &second));
  const void *own = nullptr;
  CHECK(mercury_rt_lease_address(context, first, self, &own));
  EXPECT(own == arena);
  int64_t peer = self + 1 == size ? 1 : self + 1;
  const void *from[2] = {};
  CHECK(mercury_rt_lease_address(context, second, peer, &from[1]));
  CHECK(mercury_rt_lease_address(context, first, peer, &from[0]));
  if (peer != self) {
    CHECK(mercury_rt_pull_start(context, second, peer, from[1], 8, arena + 3, 8,
                                8, 1, &tokens[1]));
    CHECK(mercury_rt_pull_start(context, first, peer, from[0], 8, arena + 2, 8,
                                8, 1, &tokens[0]));
  }
  // What is its own is copied, from no lease of a peer.
  CHECK(mercury_rt_pull_start(context, first, self, own, 8, arena + 4, 8, 8, 1,
                              &tokens[2]));
  CHECK(mercury_rt_wait(context, tokens[2]));
  EXPECT(arena[4] == self);
  CHECK(mercury_rt_wait(context, tokens[0]));
  CHECK(mercury_rt_lease_close(context, first));
  arena[0] = -1;
  CHECK(mercury_rt_wait(context, tokens[1]));
  CHECK(mercury_rt_lease_close(context, second));
  arena[1] = -1;
  EXPECT(peer == self || (arena[2] == peer && arena[3] == 100 + peer));
  return 0;
}

int main() {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t ranks : {1, 2, 3, 8, 17})
      testPulls({{"gpu", ranks}}, seed);
    testPulls({{"node", 2}, {"gpu", 3}}, seed);
    testPulls({{"rack", 2}, {"node", 3}, {"gpu", 2}}, seed);
    for (int64_t ranks : {2, 3, 5}) {
      SimJob job({{"gpu", ranks}}, overlapping);
      job.symmetricBytes = 64;
      job.description.seed = seed;
      EXPECT(job.run() == 0);
    }
  }
}
