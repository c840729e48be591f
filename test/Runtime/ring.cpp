//===- ring.cpp - Parts that rotate, uneven and empty ones included -------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On each level in turn, every rank sees every part of its group through two
// slots, sending one on while it reads the other.
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>

using Bytes = std::vector<unsigned char>;

/// What every rank knows: the size of each global rank's shard.
struct Shards {
  std::vector<int64_t> bytes, levels; // levels: the mesh's sizes
  int64_t slot() const { return *std::max_element(bytes.begin(), bytes.end()); }
};

/// buffers: the Shards, this rank's global rank, its shard, and for each level
/// room for one slot a member.
static int32_t rotate(mercury_rt_context *context, void *const *buffers) {
  const Shards &shards = *static_cast<const Shards *>(buffers[0]);
  int64_t rank = reinterpret_cast<intptr_t>(buffers[1]);
  int64_t slot = shards.slot();
  char *arena = static_cast<char *>(mercury_rt_local_arena(context));

  int64_t stride = shards.bytes.size();
  for (size_t level = 0; level < shards.levels.size(); ++level) {
    int64_t self = mercury_rt_group_rank(context, level);
    int64_t size = mercury_rt_group_size(context, level);
    stride /= size;
    auto bytesOf = [&](int64_t member) {
      return shards.bytes[rank + (member % size - self) * stride];
    };
    char *seen = static_cast<char *>(buffers[3 + level]);
    char *current = arena, *next = arena + slot;
    if (bytesOf(self))
      std::memcpy(current, buffers[2], bytesOf(self));
    for (int64_t step = 0; step < size; ++step) {
      int64_t part = (self + step) % size, token = 0;
      if (step + 1 < size)
        CHECK(mercury_rt_exchange_start(
            context, level, (self + size - 1) % size, current, bytesOf(part),
            (self + 1) % size, next, bytesOf(part + 1), &token));
      if (bytesOf(part))
        std::memcpy(seen + part * slot, current, bytesOf(part));
      CHECK(mercury_rt_wait(context, token));
      std::swap(current, next);
    }
  }
  return 0;
}

/// Runs it, checks every byte, and returns what all ranks have seen.
static std::vector<Bytes> runRing(const std::vector<Level> &levels,
                                  std::vector<int64_t> bytes,
                                  uint64_t seed = 0) {
  SimJob job(levels, rotate);
  Shards shards{std::move(bytes), {}};
  int64_t slot = shards.slot();
  job.localBytes = 2 * slot;
  job.symmetricBytes = 64;
  job.description.seed = seed;
  job.description.max_delay_us = 300;

  std::vector<Bytes> own, seen;
  for (int64_t rank = 0; rank < job.ranks; ++rank)
    own.push_back(Bytes(shards.bytes[rank], 1 + rank));
  for (const Level &level : levels)
    shards.levels.push_back(level.size);
  for (int64_t rank = 0; rank < job.ranks; ++rank)
    for (int64_t size : shards.levels)
      seen.push_back(Bytes(size * slot));
  for (int64_t rank = 0; rank < job.ranks; ++rank) {
    job.buffers[rank] = {&shards, reinterpret_cast<void *>(intptr_t(rank)),
                         own[rank].data()};
    for (size_t level = 0; level < levels.size(); ++level)
      job.buffers[rank].push_back(seen[rank * levels.size() + level].data());
  }
  EXPECT(job.run() == 0);
  EXPECT(job.report.failing_rank == -1);
  EXPECT(job.report.peak_arena_bytes == 2 * slot + job.symmetricBytes);

  int64_t stride = job.ranks;
  for (size_t level = 0; level < levels.size(); ++level) {
    int64_t size = levels[level].size, bytesSent = 0, messages = 0;
    stride /= size;
    for (int64_t rank = 0; rank < job.ranks; ++rank) {
      bytesSent += shards.bytes[rank] * (size - 1);
      messages += shards.bytes[rank] ? size - 1 : 0;
      for (int64_t member = 0; member < size; ++member) {
        int64_t owner = rank + (member - rank / stride % size) * stride;
        const Bytes &all = seen[rank * levels.size() + level];
        EXPECT(std::equal(own[owner].begin(), own[owner].end(),
                          all.begin() + member * slot));
      }
    }
    EXPECT(job.sent[level] == bytesSent);
    EXPECT(job.messages[level] == messages);
  }
  return seen;
}

/// Sizes 0 to 4 units in no order, some of them empty.
static std::vector<int64_t> uneven(int64_t ranks, int64_t unit) {
  std::vector<int64_t> bytes;
  for (int64_t rank = 0; rank < ranks; ++rank)
    bytes.push_back((rank * 7 + 3) % 5 * unit);
  return bytes;
}

int main() {
  for (int64_t ranks : {1, 2, 3, 5, 8, 17, 64}) {
    runRing({{"gpu", ranks}}, uneven(ranks, 96));
    runRing({{"gpu", ranks}}, std::vector<int64_t>(ranks, 0));
    std::vector<int64_t> one(ranks, 0);
    one[ranks / 2] = 1;
    runRing({{"gpu", ranks}}, one);
  }
  runRing({}, {5});
  runRing({{"node", 1}, {"gpu", 4}}, uneven(4, 8));
  runRing({{"rack", 2}, {"node", 2}, {"gpu", 3}}, uneven(12, 8));

  const std::vector<Level> mesh = {{"node", 2}, {"gpu", 3}};
  std::vector<Bytes> plain = runRing(mesh, uneven(6, 1000));
  for (uint64_t seed = 1; seed <= 50; ++seed)
    EXPECT(runRing(mesh, uneven(6, 1000), seed) == plain);

  // Jobs know nothing of each other.
  std::vector<std::thread> jobs;
  for (int64_t ranks = 2; ranks < 6; ++ranks)
    jobs.emplace_back([ranks] {
      for (uint64_t seed = 0; seed < 5; ++seed)
        runRing({{"gpu", ranks}}, uneven(ranks, 64), seed);
    });
  for (std::thread &job : jobs)
    job.join();
}
