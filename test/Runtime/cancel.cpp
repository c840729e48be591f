//===- cancel.cpp - Runs that their caller ends ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <thread>

/// Rank 1 computes for half a second; rank 0 waits for it, which the deadline
/// would allow for half a minute. Then both go round for ever.
static int32_t forever(mercury_rt_context *context, void *const *) {
  int64_t self = mercury_rt_group_rank(context, 0);
  char *arena = static_cast<char *>(mercury_rt_local_arena(context));
  if (self == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  while (true) {
    int64_t token = 0;
    CHECK(mercury_rt_exchange_start(context, 0, 1 - self, arena, 8, 1 - self,
                                    arena + 8, 8, &token));
    CHECK(mercury_rt_wait(context, token));
  }
}

/// Ends before the flag is set.
static int32_t nothing(mercury_rt_context *, void *const *) { return 0; }

static void testCancelledAfter(int64_t ms) {
  volatile int32_t cancel = 0;
  SimJob job({{"gpu", 2}}, forever);
  job.localBytes = 64;
  job.description.cancel = &cancel;
  std::thread caller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
  });
  job.expectFailure(MERCURY_RT_CANCELLED, -1, "the run was cancelled");
  EXPECT(job.seconds < 5);
  caller.join();
}

int main() {
  testCancelledAfter(0);   // before any rank waits
  testCancelledAfter(100); // while one waits for the other
  testCancelledAfter(700); // while both send
  volatile int32_t cancel = 0;
  SimJob job({{"gpu", 2}}, nothing);
  job.description.cancel = &cancel;
  EXPECT(job.run() == 0);
}
