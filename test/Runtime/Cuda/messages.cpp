//===- messages.cpp - Messages and levels, on the fake driver -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "CudaJob.h"
#include "Schedules.h"

static constexpr int64_t kBytes = 1024;

/// Around the ring and gathered, even and uneven, run and replayed.
static void testRing(int64_t ranks, bool uneven) {
  CudaJob job({{"gpu", ranks}});
  job.description.local_bytes = kBytes;
  job.makeCommunicators();
  job.run([&](mercury_rt_context *context, int64_t rank) {
    schedule_sizes sizes = {};
    sizes.m = kBytes;
    sizes.k = uneven;
    Bytes src(kBytes), dst(kBytes), slots(ranks * kBytes);
    void *buffers[] = {&sizes, src.data, dst.data, slots.data};
    mercury_rt_cuda_graph *graph = nullptr;
    for (int round = 0; round < 20; ++round) {
      std::memset(src.data, round + 3 * static_cast<int>(rank), kBytes);
      std::memset(dst.data, -1, kBytes);
      std::memset(slots.data, -1, slots.size);
      if (round == 1)
        CHECK(mercury_rt_cuda_capture(context, schedule_messages, buffers,
                                      &graph));
      CHECK(round == 0 ? mercury_rt_cuda_run(context, schedule_messages,
                                             buffers, nullptr)
                       : mercury_rt_cuda_replay(context, graph, nullptr));
      CHECK(mercury_rt_cuda_synchronize(context));
      EXPECT(dst.isAll(0, kBytes, round + 3 * static_cast<int>(rank)));
      for (int64_t from = 0; from < ranks; ++from) {
        int64_t begin = from * kBytes, given = kBytes - (uneven ? from : 0);
        EXPECT(slots.isAll(begin, begin + given, round + 3 * int(from)));
        EXPECT(slots.isAll(begin + given, begin + kBytes, -1));
      }
    }
    mercury_rt_cuda_graph_free(context, graph);
    return 0;
  });
  job.expectSuccess();
}

/// Of three members, with parts of 16, 16 and 12 bytes in slots of 16, of
/// floats: reduced and scattered, reduced for all, dealt out, and broadcast, to
/// other memory and in place.
static int32_t collectives(mercury_rt_context *context, void *const *buffers) {
  const int64_t parts[] = {16, 16, 12};
  int64_t self = mercury_rt_group_rank(context, 0), tokens[5];
  int64_t own[] = {parts[self], parts[self], parts[self]};
  CHECK(mercury_rt_all_reduce_start(context, 0, buffers[0], buffers[2], 48,
                                    MERCURY_RT_F32, MERCURY_RT_MAX,
                                    &tokens[1]));
  CHECK(mercury_rt_all_to_all_start(context, 0, buffers[0], 16, parts,
                                    buffers[3], 16, own, &tokens[2]));
  CHECK(mercury_rt_broadcast_start(context, 0, 2, buffers[0], buffers[4], 48,
                                   &tokens[3]));
  CHECK(mercury_rt_broadcast_start(context, 0, 1, buffers[5], buffers[5], 48,
                                   &tokens[4]));
  for (int i = 1; i < 5; ++i)
    CHECK(mercury_rt_wait(context, tokens[i]));
  // Last, as it leaves the own slot undefined.
  CHECK(mercury_rt_reduce_scatter_start(context, 0, buffers[0], 16, buffers[1],
                                        parts, MERCURY_RT_F32, MERCURY_RT_SUM,
                                        &tokens[0]));
  return mercury_rt_wait(context, tokens[0]);
}

static void testCollectives() {
  CudaJob job({{"gpu", 3}});
  job.makeCommunicators();
  job.run([](mercury_rt_context *context, int64_t rank) {
    Bytes src(48), sum(16, -1), most(48), dealt(48, -1), root(48), inPlace(48);
    void *buffers[] = {src.data,   sum.data,  most.data,
                       dealt.data, root.data, inPlace.data};
    auto at = [](const Bytes &bytes, int64_t i) {
      return static_cast<float *>(bytes.data)[i];
    };
    for (int round = 0; round < 10; ++round) {
      for (int64_t i = 0; i < 12; ++i)
        static_cast<float *>(src.data)[i] = round + 100 * rank + i;
      std::memcpy(inPlace.data, src.data, 48);
      CHECK(mercury_rt_cuda_run(context, collectives, buffers, nullptr));
      CHECK(mercury_rt_cuda_synchronize(context));
      for (int64_t i = 0; i < 12; ++i) {
        EXPECT(at(most, i) == round + 200 + i);
        EXPECT(at(root, i) == round + 200 + i);
        EXPECT(at(inPlace, i) == round + 100 + i);
        bool given = i % 4 < (rank == 2 ? 3 : 4);
        if (given)
          EXPECT(at(dealt, i) == round + 100 * (i / 4) + 4 * rank + i % 4);
      }
      for (int64_t i = 0; i < (rank == 2 ? 3 : 4); ++i)
        EXPECT(at(sum, i) == 3 * (round + 100 + 4 * rank + i));
      // A smaller part ends where it does.
      if (rank == 2)
        EXPECT(sum.isAll(12, 16, -1));
    }
    return 0;
  });
  job.expectSuccess();
}

/// buffers: own bytes, bytes of the node's other rank, of the other node's.
/// Leases are read on the inner level, in rows, while the outer one exchanges.
static int32_t crossLevels(mercury_rt_context *context, void *const *buffers) {
  int64_t lease, read, sent;
  int64_t node = mercury_rt_group_rank(context, 0);
  int64_t gpu = mercury_rt_group_rank(context, 1);
  const void *there;
  CHECK(mercury_rt_lease_open(context, 1, buffers[0], kBytes, &lease));
  CHECK(mercury_rt_exchange_start(context, 0, 1 - node, buffers[0], kBytes,
                                  1 - node, buffers[2], kBytes, &sent));
  CHECK(mercury_rt_lease_address(context, lease, 1 - gpu, &there));
  CHECK(mercury_rt_pull_start(context, lease, 1 - gpu, there, 64, buffers[1],
                              32, 32, kBytes / 64, &read));
  CHECK(mercury_rt_wait(context, read));
  CHECK(mercury_rt_lease_close(context, lease));
  return mercury_rt_wait(context, sent);
}

static void testLevels() {
  CudaJob job({{"node", 2}, {"gpu", 2}});
  job.makeCommunicators();
  job.run([](mercury_rt_context *context, int64_t rank) {
    int value = 10 + static_cast<int>(rank);
    Bytes own(kBytes, value), read(kBytes, -1), sent(kBytes, -1);
    void *buffers[] = {own.data, read.data, sent.data};
    for (int round = 0; round < 3 * MERCURY_RT_CUDA_MAX_LEASES; ++round)
      CHECK(mercury_rt_cuda_run(context, crossLevels, buffers, nullptr));
    CHECK(mercury_rt_cuda_synchronize(context));
    EXPECT(read.isAll(0, kBytes / 2, 10 + (rank ^ 1)));
    EXPECT(read.isAll(kBytes / 2, kBytes, -1));
    EXPECT(sent.isAll(0, kBytes, 10 + (rank ^ 2)));
    return 0;
  });
  job.expectSuccess();
}

/// Levels of several hosts have no leases, and their ranks are not waited for.
static void testHosts() {
  int32_t isLocal[] = {0, 1};
  CudaJob job({{"node", 2}, {"gpu", 1}});
  job.description.level_is_local = isLocal;
  job.run([](mercury_rt_context *context, int64_t) {
    return mercury_rt_cuda_run(
        context,
        [](mercury_rt_context *context, void *const *) {
          int64_t lease;
          return mercury_rt_lease_open(context, 0, nullptr, 0, &lease);
        },
        nullptr, nullptr);
  });
  job.expectFailure(MERCURY_RT_UNSUPPORTED, "are on several hosts");
}

/// Two ranks that disagree about a message.
static void testMismatch() {
  CudaJob job({{"gpu", 2}});
  job.description.local_bytes = 2 * kBytes;
  job.makeCommunicators();
  job.run([](mercury_rt_context *context, int64_t) {
    auto entry = [](mercury_rt_context *context, void *const *) -> int32_t {
      int64_t rank = mercury_rt_group_rank(context, 0), token;
      char *arena = static_cast<char *>(mercury_rt_local_arena(context));
      CHECK(mercury_rt_exchange_start(context, 0, 1 - rank, arena, 8 + rank,
                                      1 - rank, arena + kBytes, 8, &token));
      return mercury_rt_wait(context, token);
    };
    CHECK(mercury_rt_cuda_run(context, entry, nullptr, nullptr));
    int32_t status = 0;
    while (status == 0)
      status = mercury_rt_cuda_synchronize(context);
    return status;
  });
  job.expectFailure(MERCURY_RT_DEVICE, "NCCL failed in a message");
}

int main() {
  int64_t before = fake_cuda_count_objects();
  testRing(2, false);
  testRing(3, true);
  testCollectives();
  testLevels();
  testMismatch();
  testHosts();
  EXPECT(fake_cuda_count_objects() == before);
}
