//===- collectives.cpp - What a whole group does together -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Uneven and empty parts, in random order, several levels in flight at once.
// Sums of elements that are not associative are the same in every order of
// arrival, on every rank.
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <cmath>
#include <cstring>

static constexpr int64_t kMost = 6; // elements of a slot

/// The elements of the part of a member of a group, from none to kMost.
static int64_t countOf(int64_t member) { return member * 5 % 7; }

/// What rank `rank` adds to element `i` of the part of `member`.
static float valueOf(int64_t rank, int64_t member, int64_t i) {
  return std::ldexp(1.0f + 0.1f * rank, 3 * (rank % 5)) + member + 0.01f * i;
}

struct Work {
  int64_t levels, rank;
  // For each level: what it sends, its own part, all reduced, dealt, of a root,
  // and of a root in place.
  std::vector<std::vector<float>> slots, own, all, dealt, root, rooted;
};

static int32_t work(mercury_rt_context *context, void *const *buffers) {
  Work &mine = *static_cast<Work *>(buffers[0]);
  std::vector<int64_t> tokens;
  for (int64_t level = 0; level < mine.levels; ++level) {
    int64_t self = mercury_rt_group_rank(context, level);
    int64_t size = mercury_rt_group_size(context, level);
    constexpr int64_t kSlot = kMost * sizeof(float);
    std::vector<float> &slots = mine.slots[level];
    slots.resize(size * kMost, -1);
    std::vector<int64_t> parts, received;
    for (int64_t member = 0; member < size; ++member) {
      parts.push_back(countOf(member) * sizeof(float));
      received.push_back(countOf(self) * sizeof(float));
      for (int64_t i = 0; i < countOf(member); ++i)
        slots[member * kMost + i] = valueOf(mine.rank, member, i);
    }
    mine.own[level].assign(kMost, -1);
    mine.all[level] = slots; // in place
    mine.dealt[level].assign(slots.size(), -1);
    mine.root[level].assign(slots.size(), -1);
    mine.rooted[level] = slots;
    tokens.resize(tokens.size() + 5);
    int64_t *token = &tokens[tokens.size() - 5];
    CHECK(mercury_rt_reduce_scatter_start(
        context, level, slots.data(), kSlot, mine.own[level].data(),
        parts.data(), MERCURY_RT_F32, MERCURY_RT_SUM, token));
    CHECK(mercury_rt_all_reduce_start(
        context, level, mine.all[level].data(), mine.all[level].data(),
        slots.size() * sizeof(float), MERCURY_RT_F32, MERCURY_RT_MAX,
        token + 1));
    CHECK(mercury_rt_all_to_all_start(context, level, slots.data(), kSlot,
                                      parts.data(), mine.dealt[level].data(),
                                      kSlot, received.data(), token + 2));
    CHECK(mercury_rt_broadcast_start(context, level, size - 1, slots.data(),
                                     mine.root[level].data(),
                                     slots.size() * sizeof(float), token + 3));
    float *inPlace = mine.rooted[level].data();
    CHECK(mercury_rt_broadcast_start(context, level, size - 1, inPlace, inPlace,
                                     slots.size() * sizeof(float), token + 4));
  }
  for (int64_t token : tokens)
    CHECK(mercury_rt_wait(context, token));
  return 0;
}

static void testCollectives(const std::vector<Level> &levels, uint64_t seed) {
  SimJob job(levels, work);
  job.description.seed = seed;
  job.description.max_delay_us = 300;
  int64_t count = levels.size();
  std::vector<Work> works;
  for (int64_t rank = 0; rank < job.ranks; ++rank)
    works.push_back({count, rank, std::vector<std::vector<float>>(count),
                     std::vector<std::vector<float>>(count),
                     std::vector<std::vector<float>>(count),
                     std::vector<std::vector<float>>(count),
                     std::vector<std::vector<float>>(count),
                     std::vector<std::vector<float>>(count)});
  for (int64_t rank = 0; rank < job.ranks; ++rank)
    job.buffers[rank] = {&works[rank]};
  EXPECT(job.run() == 0);

  int64_t stride = job.ranks;
  for (int64_t level = 0; level < count; ++level) {
    int64_t size = levels[level].size;
    stride /= size;
    for (int64_t rank = 0; rank < job.ranks; ++rank) {
      int64_t self = rank / stride % size;
      auto rankOf = [&](int64_t member) {
        return rank + (member - self) * stride;
      };
      const Work &mine = works[rank];
      for (int64_t i = 0; i < kMost; ++i) {
        float sum = i < countOf(self) ? valueOf(rankOf(0), self, i) : -1;
        for (int64_t member = 1; i < countOf(self) && member < size; ++member)
          sum += valueOf(rankOf(member), self, i);
        EXPECT(mine.own[level][i] == sum);
        for (int64_t member = 0; member < size; ++member) {
          int64_t at = member * kMost + i;
          float most = -1;
          for (int64_t other = 0; other < size; ++other)
            if (i < countOf(member))
              most = std::max(most, valueOf(rankOf(other), member, i));
          EXPECT(mine.all[level][at] == most);
          EXPECT(mine.dealt[level][at] ==
                 (i < countOf(self) ? valueOf(rankOf(member), self, i) : -1));
          EXPECT(mine.root[level][at] ==
                 (i < countOf(member) ? valueOf(rankOf(size - 1), member, i)
                                      : -1));
          EXPECT(mine.rooted[level][at] == mine.root[level][at]);
        }
      }
    }
  }
}

/// Halves round to the nearest, to even where two are, and keep what is not a
/// number.
static int32_t halves(mercury_rt_context *context, void *const *buffers) {
  int64_t token;
  int32_t type = static_cast<int32_t>(reinterpret_cast<intptr_t>(buffers[1]));
  CHECK(mercury_rt_all_reduce_start(context, 0, buffers[0], buffers[0], 10,
                                    type, MERCURY_RT_SUM, &token));
  return mercury_rt_wait(context, token);
}

static void testHalves() {
  struct Case {
    intptr_t type;
    uint16_t one[5], other[5], sum[5];
  };
  const Case cases[] = {
      // 1 + 2^-8 is a tie, 1 + 2^-8 + 2^-9 is not; infinity; the smallest; 0.
      {MERCURY_RT_BF16,
       {0x3f80, 0x3f81, 0x7f7f, 0x0001, 0x0000},
       {0x3b80, 0x3b80, 0x7f7f, 0x0001, 0x8000},
       {0x3f80, 0x3f82, 0x7f80, 0x0002, 0x0000}},
      {MERCURY_RT_F16,
       {0x3c00, 0x3c01, 0x7bff, 0x0001, 0x7e00},
       {0x1000, 0x1000, 0x7bff, 0x03ff, 0x3c00},
       {0x3c00, 0x3c02, 0x7c00, 0x0400, 0x7e00}},
  };
  for (Case given : cases) {
    SimJob job({{"gpu", 2}}, halves);
    job.buffers[0] = {given.one, reinterpret_cast<void *>(given.type)};
    job.buffers[1] = {given.other, reinterpret_cast<void *>(given.type)};
    EXPECT(job.run() == 0);
    for (int i = 0; i < 5; ++i) {
      EXPECT(given.one[i] == given.sum[i]);
      EXPECT(given.other[i] == given.sum[i]);
    }
  }
}

/// Two ranks that start two collectives in other orders.
static int32_t swapped(mercury_rt_context *context, void *const *) {
  float values[2] = {1, 2};
  int64_t tokens[2];
  bool first = mercury_rt_group_rank(context, 0) == 0;
  for (int i = 0; i < 2; ++i)
    CHECK((i == 0) == first
              ? mercury_rt_all_reduce_start(context, 0, values, values, 4,
                                            MERCURY_RT_F32, MERCURY_RT_SUM,
                                            &tokens[i])
              : mercury_rt_broadcast_start(context, 0, 0, values, values + 1, 4,
                                           &tokens[i]));
  for (int64_t token : tokens)
    CHECK(mercury_rt_wait(context, token));
  return 0;
}

static int32_t oddBytes(mercury_rt_context *context, void *const *) {
  float value = 1;
  int64_t token;
  return mercury_rt_all_reduce_start(context, 0, &value, &value, 3,
                                     MERCURY_RT_F32, MERCURY_RT_SUM, &token);
}

int main() {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t ranks : {1, 2, 3, 8, 17})
      testCollectives({{"gpu", ranks}}, seed);
    testCollectives({{"rack", 2}, {"node", 3}, {"gpu", 2}}, seed);
  }
  testHalves();
  SimJob order({{"gpu", 2}}, swapped);
  EXPECT(order.run() == MERCURY_RT_MISMATCH);
  EXPECT(std::strstr(mercury_rt_last_error(), "started another one"));
  SimJob odd({{"gpu", 1}}, oddBytes);
  odd.expectFailure(MERCURY_RT_INVALID, 0, "a whole number of elements of 4");
}
