//===- order.cpp - What comes after what, on the fake driver --------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake devices do unordered work in random order, so that each order that
// is missing shows in a few hundred tries.
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Schedules.h"

static constexpr int64_t kBytes = 1024;

/// Runs are in one order, from whichever stream they are asked for.
static void testCallers() {
  CudaJob job({{"gpu", 2}});
  job.description.local_bytes = kBytes;
  job.makeCommunicators();
  job.run([](mercury_rt_context *context, int64_t rank) {
    schedule_sizes sizes = {};
    sizes.m = kBytes;
    Bytes src(kBytes), dst(kBytes), slots(2 * kBytes), seen(kBytes);
    void *buffers[] = {&sizes, src.data, dst.data, slots.data};
    void *streams[] = {nullptr, fake_cuda_stream(static_cast<int>(rank))};
    mercury_rt_cuda_graph *graph = nullptr;
    CHECK(mercury_rt_cuda_capture(context, schedule_messages, buffers, &graph));
    for (int round = 0; round < 50; ++round) {
      void *stream = streams[round % 3 % 2];
      // Work of the caller, before and after, changes and keeps the bytes.
      fake_cuda_call(stream, [&, round] {
        std::memset(src.data, round, kBytes);
        std::memset(dst.data, -1, kBytes);
      });
      CHECK(round % 4 == 0 ? mercury_rt_cuda_run(context, schedule_messages,
                                                 buffers, stream)
                           : mercury_rt_cuda_replay(context, graph, stream));
      fake_cuda_call(stream, [&, round] {
        if (dst.isAll(0, kBytes, round))
          ++static_cast<char *>(seen.data)[round];
      });
      fake_cuda_drain(stream); // the bytes are the caller's
    }
    EXPECT(seen.isAll(0, 50, 1));
    mercury_rt_cuda_graph_free(context, graph);
    return 0;
  });
  job.expectSuccess();
}

/// Launches a kernel that copies one number, and adds to it.
static int32_t copyAndAdd(mercury_rt_context *context, void *from, void *to,
                          int64_t add) {
  void *arguments[] = {&from, &to, &add};
  mercury_rt_device_kernel kernel = {"fake",    5, "copy_and_add", {1, 1, 1},
                                     {1, 1, 1}, 0, arguments};
  return mercury_rt_device_launch(context, &kernel);
}

static void copyAndAddOnDevice(void **arguments) {
  **static_cast<int64_t **>(arguments[1]) =
      **static_cast<int64_t **>(arguments[0]) +
      *static_cast<int64_t *>(arguments[2]);
}

/// buffers: a number, and room for one. Adds 1 in two steps.
static int32_t addOne(mercury_rt_context *context, void *const *buffers) {
  CHECK(copyAndAdd(context, buffers[0], buffers[1], 1));
  return copyAndAdd(context, buffers[1], buffers[0], 0);
}

/// Runs are in one order, also where the callers' streams are not.
static void testRuns() {
  CudaJob job({{"gpu", 1}});
  job.run([](mercury_rt_context *context, int64_t) {
    Bytes number(8), room(8);
    void *buffers[] = {number.data, room.data};
    mercury_rt_cuda_graph *graph = nullptr;
    CHECK(mercury_rt_cuda_capture(context, addOne, buffers, &graph));
    void *streams[] = {fake_cuda_stream(0), fake_cuda_stream(0)};
    for (int round = 0; round < 200; ++round)
      CHECK(round % 5 == 4
                ? mercury_rt_cuda_run(context, addOne, buffers,
                                      streams[round % 2])
                : mercury_rt_cuda_replay(context, graph, streams[round % 2]));
    CHECK(mercury_rt_cuda_synchronize(context));
    EXPECT(*static_cast<int64_t *>(number.data) == 200);
    mercury_rt_cuda_graph_free(context, graph);
    return 0;
  });
  job.expectSuccess();
}

/// buffers: three numbers. Lane 1 begins after lane 0, then they are apart
/// until a token joins them; the last lane is joined by the end of the run.
static int32_t useLanes(mercury_rt_context *context, void *const *buffers) {
  int64_t token;
  CHECK(copyAndAdd(context, buffers[0], buffers[1], 1));
  CHECK(mercury_rt_lane_use(context, 1));
  CHECK(copyAndAdd(context, buffers[1], buffers[2], 1));
  CHECK(mercury_rt_lane_mark(context, &token));
  CHECK(mercury_rt_lane_use(context, 0));
  CHECK(mercury_rt_wait(context, token));
  CHECK(copyAndAdd(context, buffers[2], buffers[1], 1));
  CHECK(mercury_rt_lane_use(context, 7));
  return copyAndAdd(context, buffers[1], buffers[0], 1);
}

static void testLanes() {
  CudaJob job({{"gpu", 1}});
  job.run([](mercury_rt_context *context, int64_t) {
    Bytes a(8), b(8), c(8);
    void *buffers[] = {a.data, b.data, c.data};
    mercury_rt_cuda_graph *graph = nullptr;
    CHECK(mercury_rt_cuda_capture(context, useLanes, buffers, &graph));
    EXPECT(fake_cuda_count_nodes() == 4);
    for (int round = 0; round < 100; ++round)
      CHECK(round % 2 ? mercury_rt_cuda_run(context, useLanes, buffers, nullptr)
                      : mercury_rt_cuda_replay(context, graph, nullptr));
    CHECK(mercury_rt_cuda_synchronize(context));
    EXPECT(*static_cast<int64_t *>(a.data) == 400);
    mercury_rt_cuda_graph_free(context, graph);
    return 0;
  });
  job.expectSuccess();
}

/// buffers: two numbers. The last wait implies the other, which was for the
/// same lane before; waits for what is done in order anyway are none.
static int32_t waitTwice(mercury_rt_context *context, void *const *buffers) {
  int64_t tokens[3];
  CHECK(mercury_rt_lane_use(context, 1));
  for (int64_t *token : {&tokens[0], &tokens[1]}) {
    CHECK(copyAndAdd(context, buffers[0], buffers[0], 1));
    CHECK(mercury_rt_lane_mark(context, token));
  }
  CHECK(mercury_rt_lane_use(context, 0));
  CHECK(mercury_rt_wait(context, tokens[0]));
  CHECK(mercury_rt_wait(context, tokens[1]));
  CHECK(copyAndAdd(context, buffers[0], buffers[1], 0));
  CHECK(mercury_rt_lane_use(context, 2)); // for nothing
  CHECK(mercury_rt_lane_use(context, 0));
  CHECK(mercury_rt_lane_mark(context, &tokens[2]));
  return mercury_rt_wait(context, tokens[2]);
}

static void testImpliedWaits() {
  CudaJob job({{"gpu", 1}});
  job.run([](mercury_rt_context *context, int64_t) {
    Bytes a(8), b(8);
    void *buffers[] = {a.data, b.data};
    for (int round = 1; round <= 100; ++round) {
      int64_t records = fake_cuda_count_calls("cuEventRecord");
      int64_t waits = fake_cuda_count_calls("cuStreamWaitEvent");
      CHECK(mercury_rt_cuda_run(context, waitTwice, buffers, nullptr));
      // The caller's stream and the first lane, both ways, and lane 2; the fork
      // of lane 1, and the wait that joins it. Three marks.
      EXPECT(fake_cuda_count_calls("cuEventRecord") - records == 4 + 1 + 3);
      EXPECT(fake_cuda_count_calls("cuStreamWaitEvent") - waits == 4 + 2);
      CHECK(mercury_rt_cuda_synchronize(context));
      EXPECT(*static_cast<int64_t *>(b.data) == 2 * round);
    }
    return 0;
  });
  job.expectSuccess();
}

/// A long queue is not a late peer: the deadline is that of one run.
static void testQueue() {
  fake_cuda_define("sleep", 0, [](void **) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  CudaJob job({{"gpu", 1}});
  job.description.deadline_ms = 250;
  job.run([](mercury_rt_context *context, int64_t) {
    auto entry = [](mercury_rt_context *context, void *const *) {
      mercury_rt_device_kernel kernel = {"fake",    5, "sleep", {1, 1, 1},
                                         {1, 1, 1}, 0, nullptr};
      return mercury_rt_device_launch(context, &kernel);
    };
    for (int round = 0; round < 6; ++round)
      CHECK(mercury_rt_cuda_run(context, entry, nullptr, nullptr));
    return mercury_rt_cuda_synchronize(context);
  });
  job.expectSuccess();
}

int main() {
  fake_cuda_define("copy_and_add", 3, copyAndAddOnDevice);
  testCallers();
  testRuns();
  testLanes();
  testImpliedWaits();
  testQueue();
}
