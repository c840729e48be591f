//===- all_gather.cpp - Parts that meet on every rank ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Uneven and empty parts, in place and not, several levels in flight at once.
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <cstdint>
#include <cstring>

static constexpr int64_t kSlot = 24;

/// The part of a global rank, 0 to 24 bytes.
static int64_t bytesOf(int64_t rank) { return rank * 5 % 7 * 4; }

/// buffers: the number of levels, this rank's global rank, a source, then for
/// each level room for one slot a member. Gathers on all levels at once.
static int32_t gatherAll(mercury_rt_context *context, void *const *buffers) {
  int64_t levels = reinterpret_cast<intptr_t>(buffers[0]);
  int64_t rank = reinterpret_cast<intptr_t>(buffers[1]);
  std::vector<int64_t> tokens;
  int64_t stride = 1;
  for (int64_t level = levels - 1; level >= 0; --level) {
    int64_t self = mercury_rt_group_rank(context, level);
    int64_t size = mercury_rt_group_size(context, level);
    // Gone when the call returns, as the ABI allows.
    std::vector<int64_t> bytes;
    for (int64_t member = 0; member < size; ++member)
      bytes.push_back(bytesOf(rank + (member - self) * stride));
    stride *= size;

    char *slots = static_cast<char *>(buffers[3 + level]);
    const void *src = buffers[2];
    if (level == 0 && bytesOf(rank)) { // in place
      std::memcpy(slots + self * kSlot, src, bytesOf(rank));
      src = slots + self * kSlot;
    }
    tokens.push_back(0);
    CHECK(mercury_rt_all_gather_start(context, level, src, bytesOf(rank), slots,
                                      kSlot, bytes.data(), &tokens.back()));
  }
  for (int64_t token : tokens)
    CHECK(mercury_rt_wait(context, token));
  return 0;
}

static void testAllGather(const std::vector<Level> &levels, uint64_t seed) {
  SimJob job(levels, gatherAll);
  job.description.seed = seed;
  job.description.max_delay_us = 300;
  std::vector<std::string> own, seen;
  for (int64_t rank = 0; rank < job.ranks; ++rank) {
    own.push_back(std::string(bytesOf(rank), 'A' + rank));
    for (const Level &level : levels)
      seen.push_back(std::string(level.size * kSlot, '.'));
  }
  for (int64_t rank = 0; rank < job.ranks; ++rank) {
    job.buffers[rank] = {reinterpret_cast<void *>(levels.size()),
                         reinterpret_cast<void *>(intptr_t(rank)),
                         own[rank].data()};
    for (size_t level = 0; level < levels.size(); ++level)
      job.buffers[rank].push_back(seen[rank * levels.size() + level].data());
  }
  EXPECT(job.run() == 0);

  int64_t stride = job.ranks;
  for (size_t level = 0; level < levels.size(); ++level) {
    stride /= levels[level].size;
    int64_t bytesSent = 0;
    for (int64_t rank = 0; rank < job.ranks; ++rank) {
      std::string expected;
      for (int64_t member = 0; member < levels[level].size; ++member) {
        int64_t owner =
            rank + (member - rank / stride % levels[level].size) * stride;
        // What lies between the parts is left alone.
        expected += own[owner] + std::string(kSlot - bytesOf(owner), '.');
      }
      EXPECT(seen[rank * levels.size() + level] == expected);
      bytesSent += bytesOf(rank) * (levels[level].size - 1);
    }
    EXPECT(job.sent[level] == bytesSent);
  }
}

int main() {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t ranks : {1, 2, 3, 8, 17})
      testAllGather({{"gpu", ranks}}, seed);
    testAllGather({{"node", 2}, {"gpu", 3}}, seed);
    testAllGather({{"rack", 2}, {"node", 3}, {"gpu", 2}}, seed);
  }
  testAllGather({{"gpu", 64}}, 1);
}
