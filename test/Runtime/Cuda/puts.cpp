//===- puts.cpp - Messages by puts, on the fake driver --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "CudaJob.h"
#include "Schedules.h"
#include <deque>

static constexpr int64_t kBytes = 1024;
static constexpr int64_t kDeadlineMs = 400;
static constexpr int kFailed = 2; // an NCCL error

namespace {
/// Every level puts, by an NCCL of a version; a library is asked for it when
/// its path is new.
struct PutJob : CudaJob {
  explicit PutJob(int64_t ranks, int version = 23000)
      : CudaJob({{"gpu", ranks}}), library(FAKE_CUDA_LIBRARY) {
    static int opened;
    library.insert(library.rfind('/'), "/.");
    for (int i = 0; i < opened; ++i)
      library.insert(library.rfind('/'), "/.");
    ++opened;
    fake_nccl_set_version(version);
    description.nccl_library = library.c_str();
    description.symmetric_bytes = 2 * kBytes;
    groups[0].puts = 1;
  }
  std::string library;
};
} // namespace

namespace {
/// What a rank sends, and gets. It lives longer than contexts, which may leave
/// work behind that uses it.
struct Shards {
  Bytes src{kBytes}, slots{3 * kBytes};
  void *caller = nullptr; // a stream
};
} // namespace

/// Puts around the ring; says whether every part came as it was sent.
static int32_t runRing(mercury_rt_context *context, int64_t rank, int64_t ranks,
                       bool replays, Shards &shards, bool &right) {
  schedule_sizes sizes = {};
  sizes.m = kBytes;
  auto &[src, slots, caller] = shards;
  void *buffers[] = {&sizes, src.data, slots.data};
  mercury_rt_cuda_graph *graph = nullptr;
  right = true;
  for (int round = 0; round < 30; ++round) {
    std::memset(src.data, round + 3 * static_cast<int>(rank), kBytes);
    std::memset(slots.data, -1, slots.size);
    if (round == 1 && replays)
      CHECK(mercury_rt_cuda_capture(context, schedule_puts, buffers, &graph));
    CHECK(graph ? mercury_rt_cuda_replay(context, graph, caller)
                : mercury_rt_cuda_run(context, schedule_puts, buffers, caller));
    CHECK(mercury_rt_cuda_synchronize(context));
    for (int64_t hop = 0; hop < ranks; ++hop)
      right &= slots.isAll(
          hop * kBytes, (hop + 1) * kBytes,
          round + 3 * static_cast<int>((rank + ranks - hop) % ranks));
  }
  mercury_rt_cuda_graph_free(context, graph);
  return 0;
}

/// Run and replayed, with one slow device.
static void testRing(int64_t ranks, bool replays) {
  for (int device = 0; device < ranks; ++device)
    fake_cuda_set_delay(device, device == 1 ? 300 : 20);
  PutJob job(ranks, replays ? 23000 : 22902);
  std::deque<Shards> shards(ranks);
  job.run([&](mercury_rt_context *context, int64_t rank) {
    bool right = false;
    CHECK(runRing(context, rank, ranks, replays, shards[rank], right));
    EXPECT(right);
    return 0;
  });
  job.expectSuccess();
  for (int device = 0; device < ranks; ++device)
    fake_cuda_set_delay(device, 0);
}

/// That bytes come before their signal is what the runtime builds on, and the
/// ring would show it if they did not.
static void testEarlySignals() {
  std::atomic<int> wrong{0};
  PutJob job(3);
  std::deque<Shards> shards(3);
  fake_nccl_hurry_signals(1);
  job.run([&](mercury_rt_context *context, int64_t rank) {
    bool right = false;
    CHECK(runRing(context, rank, 3, /*replays=*/false, shards[rank], right));
    wrong += !right;
    return 0;
  });
  fake_nccl_hurry_signals(0);
  job.expectSuccess();
  EXPECT(wrong > 0);
}

/// Three ranks put in turn to one or two others, and so each hears from another
/// now that it is free and now that bytes have come, of starts which it has not
/// come to itself. Rank r puts r + 1 in start 0, and 10 more in each next one.
static int32_t putInTurn(mercury_rt_context *context, void *const *buffers) {
  static const int64_t to[][3] = {{1, 0, -1}, {2, -1, 0}, {1, 2, 0},
                                  {-1, 2, 1}, {2, 0, 1},  {1, 0, -1}};
  constexpr int64_t part = kBytes / 16;
  int64_t self = mercury_rt_group_rank(context, 0), token;
  char *arena = static_cast<char *>(mercury_rt_symmetric_arena(context));
  char *sent = static_cast<char *>(buffers[0]);
  char *came = static_cast<char *>(buffers[1]);
  for (int64_t start = 0; start < 6; ++start) {
    int64_t from = -1;
    for (int64_t peer = 0; peer < 3; ++peer)
      if (to[start][peer] == self)
        from = peer;
    bool sends = to[start][self] >= 0, receives = from >= 0;
    CHECK(mercury_rt_copy(context, sent + start * part, part, arena, part, part,
                          1));
    CHECK(mercury_rt_put_start(context, 0, to[start][self], arena,
                               sends ? part : 0, from, arena + kBytes,
                               receives ? part : 0, &token));
    CHECK(mercury_rt_wait(context, token));
    if (receives)
      CHECK(mercury_rt_copy(context, arena + kBytes, part, came + start * part,
                            part, part, 1));
  }
  return 0;
}

static void testTurns() {
  constexpr int64_t part = kBytes / 16;
  static const int from[6][3] = {{1, 0, -1}, {2, -1, 0}, {2, 0, 1},
                                 {-1, 2, 1}, {1, 2, 0},  {1, 0, -1}};
  for (int slow = 0; slow < 3; ++slow) {
    fake_cuda_set_delay(slow, 500);
    PutJob job(3);
    job.run([](mercury_rt_context *context, int64_t rank) {
      Bytes sent(6 * part), came(6 * part, -1);
      for (int start = 0; start < 6; ++start)
        std::memset(static_cast<char *>(sent.data) + start * part,
                    static_cast<int>(rank) + 1 + 10 * start, part);
      void *buffers[] = {sent.data, came.data};
      for (int round = 0; round < 10; ++round)
        CHECK(mercury_rt_cuda_run(context, putInTurn, buffers, nullptr));
      CHECK(mercury_rt_cuda_synchronize(context));
      for (int start = 0; start < 6; ++start) {
        int peer = from[start][rank];
        EXPECT(came.isAll(start * part, (start + 1) * part,
                          peer < 0 ? -1 : peer + 1 + 10 * start));
      }
      return 0;
    });
    job.expectSuccess();
    fake_cuda_set_delay(slow, 0);
  }
}

//===----------------------------------------------------------------------===//
// What cannot be
//===----------------------------------------------------------------------===//

static void expectRefusal(PutJob &job, const std::string &text) {
  job.run([](mercury_rt_context *, int64_t) { return 0; });
  job.expectFailure(MERCURY_RT_UNSUPPORTED, text);
}

static void testVersions() {
  PutJob old(2, 22809);
  expectRefusal(old, "it puts into the memory of peers, and NCCL is 2.28.9; "
                     "install NCCL 2.29.0 or later, or use a plan without the "
                     "transport rma");

  PutJob oldDriver(2);
  fake_cuda_set_version(12040);
  oldDriver.description.cuda_library = oldDriver.library.c_str();
  expectRefusal(oldDriver, "the driver is of CUDA 12.4; install CUDA 12.5");
  fake_cuda_set_version(13000);

  PutJob apart(2);
  fake_nccl_refuse_windows(1);
  expectRefusal(apart, "NCCL registers no memory that these GPUs could put");
  fake_nccl_refuse_windows(0);

  PutJob counted(2, 22902);
  std::deque<Shards> shards(2);
  counted.run([&](mercury_rt_context *context, int64_t rank) {
    bool right;
    return runRing(context, rank, 2, /*replays=*/true, shards[rank], right);
  });
  counted.expectFailure(
      MERCURY_RT_UNSUPPORTED,
      "NCCL 2.29.2 counts signals on the host, so that a graph cannot hold "
      "them; install NCCL 2.30.0 or later, or run without a graph");
}

static void testRefusals() {
  CudaJob two({{"node", 1}, {"gpu", 1}});
  two.description.symmetric_bytes = kBytes;
  two.groups[0].puts = two.groups[1].puts = 1;
  two.run([](mercury_rt_context *, int64_t) { return 0; });
  two.expectFailure(MERCURY_RT_INVALID, "let the members of one group put");

  PutJob nowhere(1);
  nowhere.description.symmetric_bytes = 0;
  nowhere.run([](mercury_rt_context *, int64_t) { return 0; });
  nowhere.expectFailure(MERCURY_RT_INVALID, "has no symmetric arena");

  CudaJob sending({{"gpu", 2}});
  sending.description.symmetric_bytes = kBytes;
  sending.makeCommunicators();
  auto put = [](mercury_rt_context *context, void *const *buffers) -> int32_t {
    int64_t self = mercury_rt_group_rank(context, 0), token;
    return mercury_rt_put_start(context, 0, 1 - self, buffers[0], 8, 1 - self,
                                buffers[1], 8, &token);
  };
  auto runPut = [put](int64_t from, int64_t to) {
    return [put, from, to](mercury_rt_context *context, int64_t) {
      char *arena = static_cast<char *>(mercury_rt_symmetric_arena(context));
      void *buffers[] = {arena + from, arena + to};
      return mercury_rt_cuda_run(context, put, buffers, nullptr);
    };
  };
  sending.run(runPut(0, 8));
  sending.expectFailure(MERCURY_RT_UNSUPPORTED, "opened without puts of this");

  for (auto [from, to] : {std::pair<int64_t, int64_t>(0, 2 * kBytes - 7),
                          {-1, 0},
                          {2 * kBytes - 7, 0}}) {
    PutJob outside(2);
    outside.run(runPut(from, to));
    outside.expectFailure(MERCURY_RT_INVALID,
                          "puts from or to memory outside of the symmetric");
  }

  PutJob lending(2);
  lending.run([](mercury_rt_context *context, int64_t) {
    auto lend = [](mercury_rt_context *context, void *const *) -> int32_t {
      int64_t lease;
      return mercury_rt_lease_open(
          context, 0, mercury_rt_symmetric_arena(context), 8, &lease);
    };
    return mercury_rt_cuda_run(context, lend, nullptr, nullptr);
  });
  lending.expectFailure(MERCURY_RT_INVALID, "lends memory that peers put into");
}

/// What NCCL fails with while a program runs, in each of its calls. As no wait
/// for a signal is ended, the streams of a job are lost; others work on.
static void testErrors(std::deque<Shards> &left) {
  for (std::string call : {"Signal", "WaitSignal", "PutSignal"}) {
    PutJob job(2);
    left.resize(left.size() + 2);
    Shards *shards = &left.end()[-2];
    for (int device : {0, 1})
      shards[device].caller = fake_cuda_stream(device);
    job.description.deadline_ms = 10 * kDeadlineMs;
    job.run([&](mercury_rt_context *context, int64_t rank) {
      bool right;
      if (rank == 0)
        fake_cuda_fail(("nccl" + call).c_str(), 3, kFailed);
      return runRing(context, rank, 2, /*replays=*/false, shards[rank], right);
    });
    call[0] = static_cast<char>(std::tolower(call[0]));
    job.expectFailure(MERCURY_RT_DEVICE, "NCCL failed in " + call);
  }
  testRing(2, /*replays=*/true);
}

/// A rank that never comes to its put. NCCL ends no wait for a signal: the
/// other one ends in time all the same, and says what is left.
static void testAbsent(std::deque<Shards> &left) {
  PutJob job(2);
  Shards &shards = left.emplace_back();
  shards.caller = fake_cuda_stream(0);
  job.description.deadline_ms = kDeadlineMs;
  job.run([&](mercury_rt_context *context, int64_t rank) {
    bool right;
    if (rank == 1) {
      int32_t status = 0;
      while (status == 0)
        status = mercury_rt_cuda_synchronize(context);
      return status;
    }
    return runRing(context, rank, 2, /*replays=*/false, shards, right);
  });
  job.expectFailure(MERCURY_RT_DEADLINE,
                    "operation 1, put on level 'gpu', is not over");
  job.expectFailure(MERCURY_RT_DEADLINE, "work that never ends is left");
}

int main() {
  int64_t before = fake_cuda_count_objects();
  testRing(1, true);
  testRing(2, false);
  testRing(2, true);
  testRing(3, true);
  testTurns();
  testEarlySignals();
  testVersions();
  testRefusals();
  EXPECT(fake_cuda_count_objects() == before);
  // Never freed: devices have work on it that never ends.
  auto &left = *new std::deque<Shards>;
  testErrors(left);
  testAbsent(left);
}
