//===- arenas.cpp - What peers reach, on the fake driver ------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"

static constexpr int64_t kBytes = 1024;

/// buffers: this rank's number. Lends the symmetric arena, filled with that,
/// from the middle on, and reads the peer's into the local arena.
static int32_t readPeer(mercury_rt_context *context, void *const *buffers) {
  int64_t peer = 1 - mercury_rt_group_rank(context, 0), lease = 0, token = 0;
  char *lent = static_cast<char *>(mercury_rt_symmetric_arena(context));
  char *local = static_cast<char *>(mercury_rt_local_arena(context));
  const void *there = nullptr;
  CHECK(mercury_rt_copy(context, buffers[0], kBytes, lent, kBytes, kBytes, 1));
  CHECK(
      mercury_rt_lease_open(context, 0, lent + kBytes / 2, kBytes / 2, &lease));
  CHECK(mercury_rt_lease_address(context, lease, peer, &there));
  CHECK(mercury_rt_pull_start(context, lease, peer, there, kBytes / 2, local,
                              kBytes / 2, kBytes / 2, 1, &token));
  CHECK(mercury_rt_wait(context, token));
  CHECK(mercury_rt_lease_close(context, lease));
  return mercury_rt_copy(context, local, kBytes, buffers[1], kBytes, kBytes, 1);
}

/// Peers map the symmetric arena, and no handle is taken of the local one.
static void testShared() {
  CudaJob job({{"gpu", 2}});
  job.description.local_bytes = job.description.symmetric_bytes = kBytes;
  job.run([](mercury_rt_context *context, int64_t rank) {
    Bytes own(kBytes, static_cast<int>(10 + rank)), seen(kBytes);
    void *buffers[] = {own.data, seen.data};
    void *local = mercury_rt_local_arena(context);
    void *symmetric = mercury_rt_symmetric_arena(context);
    EXPECT(local && symmetric && local != symmetric);
    EXPECT(!fake_cuda_is_shared(symmetric));
    CHECK(mercury_rt_cuda_run(context, readPeer, buffers, nullptr));
    CHECK(mercury_rt_cuda_synchronize(context));
    EXPECT(seen.isAll(0, kBytes / 2, static_cast<int>(11 - rank)));
    // The rest is as a context begins: NaN of every type.
    EXPECT(seen.isAll(kBytes / 2, kBytes, -1));
    EXPECT(fake_cuda_is_shared(symmetric));
    EXPECT(!fake_cuda_is_shared(local));
    return 0;
  });
  job.expectSuccess();
}

/// An arena of no bytes is none.
static void testNone() {
  CudaJob job({{"gpu", 2}});
  job.run([](mercury_rt_context *context, int64_t) {
    EXPECT(!mercury_rt_local_arena(context));
    EXPECT(!mercury_rt_symmetric_arena(context));
    return 0;
  });
  job.expectSuccess();
}

/// A rank that failed and is closed keeps what its peer may read yet, for
/// longer than it waits for the peer.
static void testOutlives() {
  CudaJob job({{"gpu", 2}});
  job.description.symmetric_bytes = job.description.local_bytes = kBytes;
  std::atomic<void *> lent{nullptr};
  job.run([&](mercury_rt_context *context, int64_t rank) {
    Bytes own(kBytes), seen(kBytes);
    void *buffers[] = {own.data, seen.data};
    CHECK(mercury_rt_cuda_run(context, readPeer, buffers, nullptr));
    CHECK(mercury_rt_cuda_synchronize(context));
    if (rank == 0) {
      lent = mercury_rt_symmetric_arena(context);
      return mercury_rt_fail(context, 200, "no more");
    }
    while (!lent)
      std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::seconds(3));
    EXPECT(fake_cuda_is_shared(lent)); // so it is still there
    return mercury_rt_cuda_synchronize(context);
  });
  job.expectFailure(200, "no more");
}

int main() {
  testShared();
  int64_t before = fake_cuda_count_objects();
  testShared();
  testNone();
  EXPECT(fake_cuda_count_objects() == before);
  testOutlives();
}
