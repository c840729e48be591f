//===- failures.cpp - What ends a job on GPUs, on the fake driver ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each failure ends every rank with one status, in time, and says what to do.
//
//===----------------------------------------------------------------------===//

#include "CudaJob.h"
#include "Schedules.h"

static constexpr int64_t kBytes = 4096;

//===----------------------------------------------------------------------===//
// Before a job begins
//===----------------------------------------------------------------------===//

static void expectRefusal(const mercury_rt_cuda_job &job, int32_t status,
                          const std::string &text) {
  mercury_rt_context *context = nullptr;
  int32_t actual = mercury_rt_cuda_open(&job, &context);
  std::string message = mercury_rt_last_error();
  if (actual != status || message.find(text) == std::string::npos) {
    std::fprintf(stderr, "expected %d: %s\nactual   %d: %s\n", status,
                 text.c_str(), actual, message.c_str());
    std::exit(1);
  }
  EXPECT(!context);
}

/// First of all, as a library that was accepted is not asked again.
static void testLibraries() {
  CudaJob one({{"gpu", 1}});
  mercury_rt_cuda_job job = one.description;
  job.cuda_library = "/nowhere/libcuda.so";
  expectRefusal(job, MERCURY_RT_DEVICE, "set MERCURY_RT_CUDA_LIBRARY");
  job.cuda_library = "libm.so.6";
  expectRefusal(job, MERCURY_RT_DEVICE, "'libm.so.6' has no function cuInit");
  job.cuda_library = FAKE_CUDA_LIBRARY;
  fake_cuda_set_version(11080);
  expectRefusal(job, MERCURY_RT_DEVICE,
                "is of CUDA 11.8; install CUDA 12.0 or later");
  fake_cuda_set_version(12040);
  fake_cuda_fail("cuInit", 1, 100);
  expectRefusal(job, MERCURY_RT_DEVICE, "finds no usable GPU");

  one.makeCommunicators();
  job.nccl_library = "/nowhere/libnccl.so";
  expectRefusal(job, MERCURY_RT_DEVICE, "set MERCURY_RT_NCCL_LIBRARY");
  job.nccl_library = FAKE_CUDA_LIBRARY;
  fake_nccl_set_version(21703);
  expectRefusal(job, MERCURY_RT_DEVICE,
                "is NCCL 2.17.3; install NCCL 2.18.0 or later");
  fake_nccl_set_version(22809);
}

static void testRefusals() {
  CudaJob two({{"gpu", 2}});
  mercury_rt_cuda_job job = two.description;
  job.abi_version = MERCURY_RT_ABI_VERSION - 1;
  expectRefusal(job, MERCURY_RT_INVALID, "rebuild its caller");
  job = two.description;
  job.rank = 2;
  expectRefusal(job, MERCURY_RT_INVALID, "ranks go from 0 to 1");
  job = two.description;
  job.rendezvous = nullptr;
  expectRefusal(job, MERCURY_RT_INVALID, "names no rendezvous file");
  job.rendezvous = "/nowhere/file";
  expectRefusal(job, MERCURY_RT_INVALID, "name one in /dev/shm or /tmp");
  job = two.description;
  job.groups = nullptr;
  expectRefusal(job, MERCURY_RT_INVALID, "it has 1 groups and no table");
  job = two.description;
  mercury_rt_cuda_group groups[] = {{0, 0, 0, nullptr},
                                    {MERCURY_RT_LEVELS(1), 0, 0, nullptr}};
  job.groups = groups;
  job.number_of_groups = 2;
  expectRefusal(job, MERCURY_RT_INVALID, "it lists level 'gpu' twice");
  groups[1].group = 1;
  expectRefusal(job, MERCURY_RT_INVALID, "its mesh has no group 1; levels are");
  job = two.description;
  job.device = 8;
  expectRefusal(job, MERCURY_RT_INVALID, "this process sees 8");

  CudaJob alone({{"gpu", 2}});
  job = alone.description;
  job.deadline_ms = 50;
  expectRefusal(job, MERCURY_RT_DEADLINE, "rank 1 (gpu=1) did not come to");
  mercury_rt_cuda_job other = job;
  other.number_of_groups = 0;
  expectRefusal(other, MERCURY_RT_INVALID,
                "another mesh, other groups, another");
  int64_t sizes[] = {3};
  job.level_sizes = sizes;
  std::string another = "another mesh, other groups, another symmetric arena";
  expectRefusal(job, MERCURY_RT_INVALID, another);
  job.level_sizes = alone.description.level_sizes;
  job.symmetric_bytes = kBytes;
  expectRefusal(job, MERCURY_RT_INVALID, another);

  CudaJob poor({{"gpu", 2}});
  poor.description.local_bytes = kBytes;
  fake_cuda_fail("cuMemAlloc_v2", 1, 2);
  poor.run([](mercury_rt_context *, int64_t) { return 0; });
  poor.expectFailure(MERCURY_RT_RESOURCE,
                     "CUDA failed in memAlloc: CUDA_ERROR_OUT_OF_MEMORY");
}

//===----------------------------------------------------------------------===//
// While a program runs
//===----------------------------------------------------------------------===//

using Program =
    std::function<int32_t(mercury_rt_context *context, int64_t rank)>;

/// The program of this thread: an entry is a plain function.
static thread_local const Program *program;

static int32_t runProgram(mercury_rt_context *context, void *const *) {
  return (*program)(context, mercury_rt_group_rank(context, 0));
}

static int32_t failKernel(void *, const mercury_rt_launch_arguments *,
                          char *message, int64_t message_bytes) {
  std::snprintf(message, message_bytes, "it broke");
  return 123;
}

static void expectFailure(int32_t status, const std::string &text,
                          const Program &given, bool captures = false) {
  CudaJob job({{"gpu", 2}});
  job.description.local_bytes = job.description.symmetric_bytes = kBytes;
  job.description.deadline_ms = 300;
  job.kernels = {{"test.broken", failKernel, nullptr}};
  job.run([&](mercury_rt_context *context, int64_t) {
    program = &given;
    mercury_rt_cuda_graph *graph = nullptr;
    int32_t ended =
        captures ? mercury_rt_cuda_capture(context, runProgram, nullptr, &graph)
                 : mercury_rt_cuda_run(context, runProgram, nullptr, nullptr);
    EXPECT(!graph || ended == 0);
    // A rank that is done hears of it when it asks.
    while (ended == 0)
      ended = mercury_rt_cuda_synchronize(context);
    mercury_rt_cuda_graph_free(context, graph);
    // Every call that follows says the same.
    EXPECT(mercury_rt_wait(context, 0) == ended);
    EXPECT(mercury_rt_cuda_run(context, runProgram, nullptr, nullptr) == ended);
    return ended;
  });
  job.expectFailure(status, text);
}

/// Lends the symmetric arena, and reads that of the peer into the local one.
static int32_t open(mercury_rt_context *context, int64_t rank, int64_t *lease,
                    const void **there) {
  void *arena = mercury_rt_symmetric_arena(context);
  CHECK(mercury_rt_lease_open(context, 0, arena, kBytes, lease));
  return mercury_rt_lease_address(context, *lease, 1 - rank, there);
}

static int32_t pull(mercury_rt_context *context, int64_t rank, int64_t lease,
                    const void *there, int64_t bytes, int64_t *token) {
  return mercury_rt_pull_start(context, lease, 1 - rank, there, bytes,
                               mercury_rt_local_arena(context), bytes, bytes, 1,
                               token);
}

static int32_t readPeer(mercury_rt_context *context, int64_t rank) {
  int64_t lease, token;
  const void *there;
  CHECK(open(context, rank, &lease, &there));
  CHECK(pull(context, rank, lease, there, kBytes, &token));
  CHECK(mercury_rt_wait(context, token));
  return mercury_rt_lease_close(context, lease);
}

static void testDevice() {
  for (const char *function :
       {"cuMemcpyDtoDAsync_v2", "cuStreamBatchMemOp_v2",
        "cuIpcOpenMemHandle_v2", "cuStreamWaitEvent", "cuEventRecord"}) {
    // The first of each is in the program, or in coming together: either way it
    // is told by its name.
    fake_cuda_fail(function, 1, 700);
    expectFailure(MERCURY_RT_DEVICE, "CUDA_ERROR_FAKE", readPeer);
  }
  for (const char *function : {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                               "cuGraphInstantiateWithFlags"}) {
    fake_cuda_fail(function, 1, 700);
    expectFailure(MERCURY_RT_DEVICE, "CUDA_ERROR_FAKE", readPeer, true);
  }
  expectFailure(MERCURY_RT_DEVICE,
                "launch of 'missing': CUDA failed in "
                "moduleGetFunction",
                [](mercury_rt_context *context, int64_t) {
                  mercury_rt_device_kernel kernel = {
                      "fake", 5, "missing", {1, 1, 1}, {1, 1, 1}, 0, nullptr};
                  return mercury_rt_device_launch(context, &kernel);
                });
  expectFailure(MERCURY_RT_DEVICE, "CUDA failed in moduleLoadData",
                [](mercury_rt_context *context, int64_t) {
                  mercury_rt_device_kernel kernel = {
                      "wrong", 6, "any", {1, 1, 1}, {1, 1, 1}, 0, nullptr};
                  return mercury_rt_device_launch(context, &kernel);
                });
}

static void testPeers() {
  expectFailure(200, "rank 1 (gpu=1), start of a run: no more",
                [](mercury_rt_context *context, int64_t rank) {
                  if (rank == 1)
                    return mercury_rt_fail(context, 200, "no more");
                  return readPeer(context, rank);
                });
  expectFailure(MERCURY_RT_DEADLINE, "group rank 1 did not open the same lease",
                [](mercury_rt_context *context, int64_t rank) {
                  return rank == 1 ? 0 : readPeer(context, rank);
                });

  // A captured run needs no host of the peer: the device itself waits.
  CudaJob job({{"gpu", 2}});
  job.description.local_bytes = job.description.symmetric_bytes = kBytes;
  job.description.deadline_ms = 300;
  job.run([](mercury_rt_context *context, int64_t rank) {
    static const Program given = readPeer;
    program = &given;
    mercury_rt_cuda_graph *graph = nullptr;
    CHECK(mercury_rt_cuda_capture(context, runProgram, nullptr, &graph));
    if (rank == 0)
      CHECK(mercury_rt_cuda_replay(context, graph, nullptr));
    int32_t status = mercury_rt_cuda_synchronize(context);
    while (rank == 1 && status == 0)
      status = mercury_rt_cuda_synchronize(context);
    mercury_rt_cuda_graph_free(context, graph);
    return status;
  });
  job.expectFailure(MERCURY_RT_DEADLINE,
                    "not heard from group rank 1 on level 'gpu'");
}

static void testPrograms() {
  expectFailure(MERCURY_RT_LEASE, "without closing lease",
                [](mercury_rt_context *context, int64_t rank) {
                  int64_t lease;
                  const void *there;
                  return open(context, rank, &lease, &there);
                });
  expectFailure(MERCURY_RT_LEASE, "there is no open lease",
                [](mercury_rt_context *context, int64_t rank) {
                  int64_t lease;
                  const void *there;
                  CHECK(open(context, rank, &lease, &there));
                  CHECK(mercury_rt_lease_close(context, lease));
                  return mercury_rt_lease_close(context, lease);
                });
  expectFailure(MERCURY_RT_LEASE, "was not waited for",
                [](mercury_rt_context *context, int64_t rank) {
                  int64_t lease, token;
                  const void *there;
                  CHECK(open(context, rank, &lease, &there));
                  CHECK(pull(context, rank, lease, there, kBytes, &token));
                  return mercury_rt_lease_close(context, lease);
                });
  expectFailure(
      MERCURY_RT_INVALID, "lends memory of the local arena, which no peer maps",
      [](mercury_rt_context *context, int64_t) {
        int64_t lease;
        char *arena = static_cast<char *>(mercury_rt_local_arena(context));
        return mercury_rt_lease_open(context, 0, arena + kBytes - 8, 8, &lease);
      });
  expectFailure(MERCURY_RT_INVALID, "reads outside the 4096 bytes",
                [](mercury_rt_context *context, int64_t rank) {
                  int64_t lease, token;
                  const void *there;
                  CHECK(open(context, rank, &lease, &there));
                  return pull(context, rank, lease, there, kBytes + 1, &token);
                });
  expectFailure(MERCURY_RT_INVALID, "leases would be open at once",
                [](mercury_rt_context *context, int64_t) {
                  for (int64_t i = 0; i <= MERCURY_RT_CUDA_MAX_LEASES; ++i) {
                    int64_t lease;
                    CHECK(
                        mercury_rt_lease_open(context, 0, nullptr, 0, &lease));
                  }
                  return 0;
                });
  expectFailure(MERCURY_RT_TOKEN, "without waiting for token",
                [](mercury_rt_context *context, int64_t) {
                  int64_t token;
                  return mercury_rt_lane_mark(context, &token);
                });
  expectFailure(MERCURY_RT_TOKEN, "no open operation has token 7",
                [](mercury_rt_context *context, int64_t) {
                  return mercury_rt_wait(context, 7);
                });
  expectFailure(MERCURY_RT_INVALID, "lanes go from 0 to 7",
                [](mercury_rt_context *context, int64_t) {
                  return mercury_rt_lane_use(context, 8);
                });
  expectFailure(MERCURY_RT_KERNEL,
                "kernel 'unheard': there is no kernel of this name; the run "
                "came with 'test.broken', register it before the run",
                [](mercury_rt_context *context, int64_t) {
                  mercury_rt_launch_arguments arguments = {};
                  return mercury_rt_launch(context, "unheard", &arguments);
                });
  expectFailure(123, "kernel 'test.broken': failed with status 123: it broke",
                [](mercury_rt_context *context, int64_t) {
                  mercury_rt_launch_arguments arguments = {};
                  return mercury_rt_launch(context, "test.broken", &arguments);
                });
  expectFailure(MERCURY_RT_UNSUPPORTED,
                "exchange on level 'gpu': the group has no communicator",
                [](mercury_rt_context *context, int64_t rank) {
                  int64_t token;
                  void *arena = mercury_rt_local_arena(context);
                  return mercury_rt_exchange_start(context, 0, 1 - rank, arena,
                                                   kBytes, 1 - rank, arena,
                                                   kBytes, &token);
                });
}

static void testCollectives() {
  expectFailure(MERCURY_RT_INVALID,
                "cannot reduce elements of type 9; types go from 1 to 4",
                [](mercury_rt_context *context, int64_t) {
                  int64_t token;
                  void *arena = mercury_rt_local_arena(context);
                  return mercury_rt_all_reduce_start(
                      context, 0, arena, arena, 8, 9, MERCURY_RT_SUM, &token);
                });
  expectFailure(MERCURY_RT_INVALID,
                "the part of group rank 1 is of 12 bytes; sizes go from 0 to "
                "those of a slot, 8",
                [](mercury_rt_context *context, int64_t) {
                  int64_t token;
                  const int64_t parts[] = {8, 12};
                  void *arena = mercury_rt_local_arena(context);
                  return mercury_rt_reduce_scatter_start(
                      context, 0, arena, 8, arena, parts, MERCURY_RT_F32,
                      MERCURY_RT_SUM, &token);
                });
  expectFailure(MERCURY_RT_MISMATCH, "sends itself 4 bytes and receives 8",
                [](mercury_rt_context *context, int64_t) {
                  int64_t token;
                  const int64_t sent[] = {4, 4}, received[] = {8, 8};
                  void *arena = mercury_rt_local_arena(context);
                  return mercury_rt_all_to_all_start(
                      context, 0, arena, 8, sent, arena, 8, received, &token);
                });
  expectFailure(MERCURY_RT_INVALID,
                "there is no group rank 2; group ranks go from 0 to 1",
                [](mercury_rt_context *context, int64_t) {
                  int64_t token;
                  void *arena = mercury_rt_local_arena(context);
                  return mercury_rt_broadcast_start(context, 0, 2, arena, arena,
                                                    8, &token);
                });
}

int main() {
  testLibraries();
  testRefusals();
  testDevice();
  testPeers();
  testPrograms();
  testCollectives();
}
