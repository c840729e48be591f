//===- faults.cpp - What a device or a peer does wrong, on the fake -------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank ends in time with one error that names rank, step and operation;
// communicators are ended and memory is given back, and the process runs the
// next program.
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "CudaJob.h"
#include "lib/Runtime/Cuda/DriverTypes.h"
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>

static constexpr int64_t kBytes = 1024;
static constexpr int64_t kDeadlineMs = 400;

/// Sends around the ring twice: the second message is operation 2.
static int32_t sendTwice(mercury_rt_context *context, void *const *buffers) {
  int64_t rank = mercury_rt_group_rank(context, 0), token;
  int64_t ranks = mercury_rt_group_size(context, 0);
  for (int hop = 0; hop < 2; ++hop) {
    CHECK(mercury_rt_exchange_start(
        context, 0, (rank + 1) % ranks, buffers[hop], kBytes,
        (rank + ranks - 1) % ranks, buffers[hop + 1], kBytes, &token));
    CHECK(mercury_rt_wait(context, token));
  }
  return 0;
}

/// Reads from the next rank, and the next one's next: operation 4 is the first
/// read.
static int32_t readTwice(mercury_rt_context *context, void *const *buffers) {
  int64_t rank = mercury_rt_group_rank(context, 0), lease, token;
  int64_t ranks = mercury_rt_group_size(context, 0);
  const void *there[3];
  CHECK(mercury_rt_lease_open(context, 0, buffers[0], kBytes, &lease));
  for (int64_t hop : {1, 2})
    CHECK(mercury_rt_lease_address(context, lease, (rank + hop) % ranks,
                                   &there[hop]));
  for (int64_t hop : {1, 2}) {
    CHECK(mercury_rt_pull_start(context, lease, (rank + hop) % ranks,
                                there[hop], kBytes, buffers[hop], kBytes,
                                kBytes, 1, &token));
    CHECK(mercury_rt_wait(context, token));
  }
  return mercury_rt_lease_close(context, lease);
}

namespace {
/// What a rank lends, and gets from one and from two hops away. It lives longer
/// than contexts, whose peers may read it until they are closed.
struct Shards {
  explicit Shards(int value) : own(kBytes, value) {}
  void *const *buffers() {
    places = {own.data, one.data, two.data};
    return places.data();
  }
  Bytes own, one{kBytes, -1}, two{kBytes, -1};
  std::array<void *, 3> places;
};
} // namespace

static std::deque<Shards> makeShards() {
  std::deque<Shards> shards;
  for (int rank = 0; rank < 3; ++rank)
    shards.emplace_back(rank);
  return shards;
}

static void testRight(mercury_rt_entry entry, int hops) {
  CudaJob job({{"gpu", 3}});
  job.makeCommunicators();
  std::deque<Shards> shards = makeShards();
  job.run([&](mercury_rt_context *context, int64_t rank) {
    Shards &own = shards[rank];
    CHECK(mercury_rt_cuda_run(context, entry, own.buffers(), nullptr));
    CHECK(mercury_rt_cuda_synchronize(context));
    EXPECT(own.one.isAll(0, kBytes, int(rank + hops + 3) % 3));
    EXPECT(own.two.isAll(0, kBytes, int(rank + 2 * hops + 3) % 3));
    return 0;
  });
  job.expectSuccess();
}

/// Runs, then breaks something, then runs again: from the host, or as a graph.
static void expectFault(mercury_rt_entry entry, bool replays, int32_t status,
                        const std::string &text,
                        const std::function<bool(int64_t rank)> &goesOn) {
  int64_t before = fake_cuda_count_objects();
  CudaJob job({{"gpu", 3}});
  job.makeCommunicators();
  job.description.deadline_ms = kDeadlineMs;
  std::atomic<int> ready{0};
  auto shards = std::make_unique<std::deque<Shards>>(makeShards());
  job.run([&](mercury_rt_context *context, int64_t rank) {
    void *const *buffers = (*shards)[rank].buffers();
    mercury_rt_cuda_graph *graph = nullptr;
    CHECK(mercury_rt_cuda_run(context, entry, buffers, nullptr));
    CHECK(mercury_rt_cuda_synchronize(context));
    if (replays) {
      CHECK(mercury_rt_cuda_capture(context, entry, buffers, &graph));
      CHECK(mercury_rt_cuda_replay(context, graph, nullptr));
      CHECK(mercury_rt_cuda_synchronize(context));
    }
    ++ready;
    while (ready < job.ranks)
      std::this_thread::yield();
    auto begin = std::chrono::steady_clock::now();
    int32_t ended = 0;
    if (goesOn(rank))
      ended = replays ? mercury_rt_cuda_replay(context, graph, nullptr)
                      : mercury_rt_cuda_run(context, entry, buffers, nullptr);
    while (ended == 0)
      ended = mercury_rt_cuda_synchronize(context);
    std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - begin;
    EXPECT(took.count() < 10 * kDeadlineMs);
    std::string said = mercury_rt_last_error();
    mercury_rt_cuda_graph_free(context, graph);
    EXPECT(mercury_rt_cuda_run(context, entry, buffers, nullptr) == ended);
    EXPECT(mercury_rt_last_error() == said);
    return ended;
  });
  job.expectFailure(status, text);
  for (const std::string &message : job.messages)
    EXPECT(message == job.messages[0]);
  fake_nccl_break(0);
  shards.reset();
  EXPECT(fake_nccl_count_communicators() == 0);
  EXPECT(fake_cuda_count_objects() == before);
  testRight(sendTwice, -1);
  testRight(readTwice, 1);
}

//===----------------------------------------------------------------------===//
// What does not end in time
//===----------------------------------------------------------------------===//

/// Captures two messages; all ranks but the last replay them, and all wait for
/// the job's failure. Each is told `text`.
static void expectLeft(CudaJob &job, std::deque<Shards> &shards,
                       const std::string &text, const CudaJob::Body &after) {
  job.description.deadline_ms = kDeadlineMs;
  job.run([&](mercury_rt_context *context, int64_t rank) {
    mercury_rt_cuda_graph *graph = nullptr;
    CHECK(mercury_rt_cuda_capture(context, sendTwice, shards[rank].buffers(),
                                  &graph));
    int32_t ended = 0;
    if (rank != job.ranks - 1)
      ended = mercury_rt_cuda_replay(context, graph, nullptr);
    while (ended == 0)
      ended = mercury_rt_cuda_synchronize(context);
    mercury_rt_cuda_graph_free(context, graph);
    return after(context, rank) ? 1 : ended;
  });
  job.expectFailure(MERCURY_RT_DEADLINE, text);
}

/// An abort that never returns is named, and keeps nobody.
static void testHeldAborts() {
  CudaJob job({{"gpu", 3}});
  job.makeCommunicators();
  std::deque<Shards> shards = makeShards();
  fake_nccl_hold_aborts(1);
  expectLeft(job, shards,
             "; NCCL did not abort the communicator of level 'gpu' within 400 "
             "ms, and this rank's memory is left to it; end the process",
             [](mercury_rt_context *, int64_t) { return 0; });
  EXPECT(fake_nccl_count_communicators() == 3);
  fake_nccl_hold_aborts(0);
  while (fake_nccl_count_communicators() > 0)
    std::this_thread::yield();
}

extern "C" {
using mercury::rt::cuda::Communicator;
using mercury::rt::cuda::NcclResult;
using mercury::rt::cuda::NcclUniqueId;
NcclResult ncclGetUniqueId(NcclUniqueId *id);
NcclResult ncclCommInitRank(Communicator *communicator, int ranks,
                            NcclUniqueId id, int rank);
NcclResult ncclCommAbort(Communicator communicator);
}

/// The communicator is the caller's, who alone can end its messages.
static void testGivenCommunicators() {
  int64_t before = fake_cuda_count_objects();
  CudaJob job({{"gpu", 2}});
  NcclUniqueId id;
  EXPECT(ncclGetUniqueId(&id) == 0);
  std::array<Communicator, 2> given;
  std::vector<std::thread> threads;
  for (int rank : {0, 1})
    threads.emplace_back(
        [&, rank] { ncclCommInitRank(&given[rank], 2, id, rank); });
  for (std::thread &thread : threads)
    thread.join();
  threads.resize(2);
  std::atomic<int> told{0};
  auto shards = std::make_unique<std::deque<Shards>>(makeShards());
  job.findCommunicator = [&](int64_t, int64_t rank) { return given[rank]; };
  expectLeft(
      job, *shards,
      "; work that never ends is left on the GPU, and so are its memory, "
      "graphs and communicators; end what it waits for (a communicator "
      "that was given to the job: abort it)",
      [&](mercury_rt_context *, int64_t rank) {
        ++told;
        while (told < 2) // they close together
          std::this_thread::yield();
        threads[rank] = std::thread([&, rank] { ncclCommAbort(given[rank]); });
        return 0;
      });
  for (std::thread &thread : threads)
    thread.join();
  shards.reset();
  EXPECT(fake_nccl_count_communicators() == 0);
  EXPECT(fake_cuda_count_objects() == before);
}

int main() {
  auto broken = [](int64_t) {
    fake_nccl_break(6); // a remote error
    return true;
  };
  auto absent = [](int64_t rank) { return rank != 2; };
  testRight(sendTwice, -1);
  testRight(readTwice, 1);
  for (bool replays : {false, true}) {
    // A replay tells no operation: it is one launch.
    std::string step = replays ? "" : "; operation 1, exchange on level 'gpu'";
    expectFault(sendTwice, replays, MERCURY_RT_DEVICE,
                "synchronize: NCCL failed in a message on level 'gpu': an "
                "error of the fake NCCL" +
                    step,
                broken);
    expectFault(sendTwice, replays, MERCURY_RT_DEADLINE,
                "synchronize: no run ended within 400 ms" + step, absent);
  }
  expectFault(readTwice, true, MERCURY_RT_DEADLINE,
              "not heard from group rank 2 on level 'gpu' about its last lease",
              absent);
  expectFault(readTwice, false, MERCURY_RT_DEADLINE,
              "group rank 2 did not open the same lease within 400 ms", absent);
  testGivenCommunicators();
  testHeldAborts();
}
