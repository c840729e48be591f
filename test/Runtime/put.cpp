//===- put.cpp - Messages to a place in the symmetric arena ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <cstring>

static constexpr int64_t kBytes = 64;

/// Around the ring, by two slots that change their turns; the last rank sends
/// nothing on.
static int32_t rotate(mercury_rt_context *context, void *const *buffers) {
  int64_t ranks = mercury_rt_group_size(context, 0), token;
  int64_t self = mercury_rt_group_rank(context, 0);
  char *arena = static_cast<char *>(mercury_rt_symmetric_arena(context));
  std::memset(arena, 1 + static_cast<int>(self), kBytes);
  for (int64_t hop = 0; hop + 1 < ranks; ++hop) {
    char *held = arena + hop % 2 * kBytes;
    char *coming = arena + (hop + 1) % 2 * kBytes;
    CHECK(mercury_rt_put_start(
        context, 0, (self + 1) % ranks, held, self + 1 < ranks ? kBytes : 0,
        (self + ranks - 1) % ranks, coming, self > 0 ? kBytes : 0, &token));
    CHECK(mercury_rt_wait(context, token));
    static_cast<char *>(buffers[0])[hop] = coming[kBytes - 1];
  }
  return 0;
}

static void testRing() {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimJob job({{"gpu", 3}}, rotate);
    char came[3][2] = {};
    job.symmetricBytes = 2 * kBytes;
    job.description.seed = seed;
    job.description.max_delay_us = 200;
    for (int rank = 0; rank < 3; ++rank)
      job.buffers[rank] = {came[rank]};
    EXPECT(job.run() == 0);
    EXPECT(came[1][0] == 1 && came[2][0] == 2 && came[2][1] == 1);
    EXPECT(job.sent[0] == 4 * kBytes && job.messages[0] == 4);
  }
}

/// buffers: how far into its arena each rank sends from and receives at, in
/// bytes, and whether it puts.
static int32_t putOnce(mercury_rt_context *context, void *const *buffers) {
  const auto *given = static_cast<const int64_t *>(buffers[0]);
  int64_t self = mercury_rt_group_rank(context, 0), token;
  char *arena = static_cast<char *>(mercury_rt_symmetric_arena(context));
  auto start = given[2] ? mercury_rt_put_start : mercury_rt_exchange_start;
  CHECK(start(context, 0, 1 - self, arena + given[0], 8, 1 - self,
              arena + given[1], 8, &token));
  return mercury_rt_wait(context, token);
}

static void expectFailure(int64_t (*given)[3], int32_t status,
                          const std::string &text) {
  SimJob job({{"gpu", 2}}, putOnce);
  job.symmetricBytes = kBytes;
  job.buffers = {{given[0]}, {given[1]}};
  int32_t actual = job.run();
  std::string message = mercury_rt_last_error();
  EXPECT(actual == status);
  if (message.find(text) == std::string::npos)
    std::fprintf(stderr, "expected '%s', got '%s'\n", text.c_str(),
                 message.c_str());
  EXPECT(message.find(text) != std::string::npos);
}

int main() {
  testRing();
  int64_t apart[][3] = {{0, 16, 1}, {0, 24, 1}};
  expectFailure(apart, MERCURY_RT_MISMATCH,
                "receive at the same offset on every rank");
  int64_t outside[][3] = {{0, kBytes - 7, 1}, {0, kBytes - 7, 1}};
  expectFailure(outside, MERCURY_RT_INVALID, "outside of the symmetric arena");
  int64_t before[][3] = {{-8, 16, 1}, {-8, 16, 1}};
  expectFailure(before, MERCURY_RT_INVALID, "outside of the symmetric arena");
  int64_t mixed[][3] = {{0, 16, 1}, {0, 16, 0}};
  expectFailure(mixed, MERCURY_RT_MISMATCH, "started another one in its place");
}
