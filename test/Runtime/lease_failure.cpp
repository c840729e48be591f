//===- lease_failure.cpp - Leases used wrongly, and what is said ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each program is wrong in one way. The job ends with the message of the first
// cause, whatever the other ranks were doing.
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <thread>

static constexpr int64_t kBytes = 64;

/// One rank's use of one lease, whose steps a test may replace.
struct Use {
  mercury_rt_context *context;
  int64_t self, peer;
  char *arena;
  int64_t lease = 0, token = 0;
  const char *remote = nullptr;

  explicit Use(mercury_rt_context *context)
      : context(context), self(mercury_rt_group_rank(context, 0)),
        peer((self + 1) % mercury_rt_group_size(context, 0)),
        arena(static_cast<char *>(mercury_rt_symmetric_arena(context))) {}

  int32_t open() {
    return mercury_rt_lease_open(context, 0, arena, kBytes, &lease);
  }
  int32_t address() {
    const void *base = nullptr;
    CHECK(mercury_rt_lease_address(context, lease, peer, &base));
    remote = static_cast<const char *>(base);
    return 0;
  }
  int32_t pull(int64_t offset = 0, int64_t rowBytes = 8, int64_t rows = 2,
               int64_t pitch = 16) {
    return mercury_rt_pull_start(context, lease, peer, remote + offset, pitch,
                                 arena + kBytes, 8, rowBytes, rows, &token);
  }
  int32_t wait() { return mercury_rt_wait(context, token); }
  int32_t close() { return mercury_rt_lease_close(context, lease); }
};

static int32_t rightUse(Use &use) {
  CHECK(use.open());
  CHECK(use.address());
  CHECK(use.pull());
  CHECK(use.wait());
  return use.close();
}

static int32_t right(mercury_rt_context *context, void *const *) {
  Use use(context);
  CHECK(rightUse(use));
  return rightUse(use);
}

static SimJob makeJob(mercury_rt_entry entry, int64_t ranks = 3) {
  SimJob job({{"gpu", ranks}}, entry);
  job.localBytes = job.symmetricBytes = 4 * kBytes;
  return job;
}

static void testInjected() {
  const char *kinds[] = {"lease_open", "lease_address", "pull", "lease_close"};
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (int64_t rank = 0; rank < 3; ++rank)
      for (int64_t ops = 0; ops < 8; ++ops) {
        SimJob job = makeJob(right);
        job.description.seed = seed;
        job.description.max_delay_us = 100;
        job.description.fail_rank = rank;
        job.description.fail_after_ops = ops;
        std::string at = std::to_string(rank);
        job.expectFailure(MERCURY_RT_INJECTED, rank,
                          "rank " + at + " (gpu=" + at + "), operation " +
                              std::to_string(ops + 1) + ", " + kinds[ops % 4] +
                              " on level 'gpu': failed as the job asked");
      }
  SimJob job = makeJob(right);
  job.description.fail_rank = 1;
  job.description.fail_after_ops = 8;
  EXPECT(job.run() == 0);
}

//===----------------------------------------------------------------------===//
// Peers that never come
//===----------------------------------------------------------------------===//

static int32_t oneNeverOpens(mercury_rt_context *context, void *const *) {
  Use use(context);
  return use.self == 2 ? 0 : rightUse(use);
}

static int32_t oneNeverCloses(mercury_rt_context *context, void *const *) {
  Use use(context);
  CHECK(use.open());
  if (use.self != 1)
    return use.close();
  // It waits for a message that nobody sends.
  CHECK(mercury_rt_exchange_start(context, 0, 0, nullptr, 0, 0, use.arena, 8,
                                  &use.token));
  CHECK(use.wait());
  return use.close();
}

static int32_t oneOpensLate(mercury_rt_context *context, void *const *) {
  Use use(context);
  if (use.self == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  return rightUse(use);
}

static int32_t oneClosesLate(mercury_rt_context *context, void *const *) {
  Use use(context);
  CHECK(use.open());
  CHECK(use.address());
  if (use.self == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  return use.close();
}

static void testPeers() {
  makeJob(oneNeverOpens)
      .expectFailure(MERCURY_RT_DEADLOCK, 1,
                     "rank 1 (gpu=1), operation 2, lease_address on level "
                     "'gpu': no rank can go on: it waits to see group rank 2 "
                     "open its lease 1 on this level, which has ended its "
                     "program; every member of a group opens and closes the "
                     "same leases, in the same order");
  SimJob unclosed = makeJob(oneNeverCloses);
  EXPECT(unclosed.run() == MERCURY_RT_DEADLOCK);
  std::string message = mercury_rt_last_error();
  EXPECT(message.find("no rank can go on: it waits to receive 8 bytes from "
                      "group rank 0, which itself waits in rank 0 (gpu=0), "
                      "operation 2, lease_close on level 'gpu'") !=
         std::string::npos);

  SimJob late = makeJob(oneOpensLate, 2);
  late.description.deadline_ms = 100;
  late.expectFailure(MERCURY_RT_DEADLINE, 0,
                     "operation 2, lease_address on level 'gpu': no rank made "
                     "progress for 100 ms: it waits to see group rank 1 open "
                     "its lease 1 on this level, which still computes, after "
                     "its operation 0");
  late = makeJob(oneClosesLate, 2);
  late.description.deadline_ms = 100;
  late.expectFailure(MERCURY_RT_DEADLINE, 0,
                     "operation 3, lease_close on level 'gpu': no rank made "
                     "progress for 100 ms: it waits to see group rank 1 close "
                     "its lease 1 on this level, which still computes");

  // A pull that is slow by request is not a late peer.
  for (uint64_t seed = 1; seed < 4; ++seed) {
    SimJob slow = makeJob(right);
    slow.description.seed = seed;
    slow.description.deadline_ms = 200;
    slow.description.max_delay_us = 600000;
    EXPECT(slow.run() == 0);
  }
}

//===----------------------------------------------------------------------===//
// Misuse
//===----------------------------------------------------------------------===//

using Wrong = int32_t (*)(Use &use);

static int32_t rankOneWrong(mercury_rt_context *context, void *const *buffers) {
  Use use(context);
  return use.self == 1 ? (*static_cast<const Wrong *>(buffers[0]))(use)
                       : rightUse(use);
}

static void expectWrong(int32_t status, const std::string &text, Wrong wrong) {
  SimJob job = makeJob(rankOneWrong);
  job.buffers[1] = {reinterpret_cast<void *>(&wrong)};
  job.expectFailure(status, 1, "rank 1 (gpu=1)" + text);
}

static void testMisuse() {
  expectWrong(MERCURY_RT_INVALID,
              ", operation 1, lease_open on level 'gpu': cannot lend -8 bytes; "
              "sizes start at 0",
              [](Use &use) {
                return mercury_rt_lease_open(use.context, 0, use.arena, -8,
                                             &use.lease);
              });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 1, lease_open on level 'gpu': lends memory of the "
              "local arena, which no peer reaches; lend what lies in the "
              "symmetric arena",
              [](Use &use) {
                void *local = mercury_rt_local_arena(use.context);
                return mercury_rt_lease_open(use.context, 0, local, 8,
                                             &use.lease);
              });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 1, lease_open on level number 1: the mesh has no "
              "such group",
              [](Use &use) {
                return mercury_rt_lease_open(use.context, 1, use.arena, 8,
                                             &use.lease);
              });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 1, lease_open on level 'gpu': no place for its "
              "result",
              [](Use &use) {
                return mercury_rt_lease_open(use.context, 0, use.arena, 8,
                                             nullptr);
              });
  expectWrong(MERCURY_RT_LEASE,
              ", lease_address: there is no lease 7; pass what "
              "mercury_rt_lease_open has set",
              [](Use &use) {
                CHECK(use.open());
                use.lease = 7;
                return use.address();
              });
  // The number of another operation is no lease.
  expectWrong(MERCURY_RT_LEASE, ", lease_close: there is no lease 3",
              [](Use &use) {
                CHECK(use.open());
                CHECK(use.address());
                CHECK(use.pull());
                return mercury_rt_lease_close(use.context, use.token);
              });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 2, lease_address on level 'gpu': there is no group "
              "rank 3; group ranks go from 0 to 2",
              [](Use &use) {
                CHECK(use.open());
                use.peer = 3;
                return use.address();
              });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 3, pull on level 'gpu': there is no group rank -1",
              [](Use &use) {
                CHECK(use.open());
                CHECK(use.address());
                use.peer = -1;
                return use.pull();
              });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 3, pull on level 'gpu': reads bytes 41 to 65 of the "
              "64 that group rank 2 lent; stay within them",
              [](Use &use) {
                CHECK(use.open());
                CHECK(use.address());
                return use.pull(/*offset=*/41);
              });
  expectWrong(
      MERCURY_RT_INVALID,
      ", operation 3, pull on level 'gpu': reads bytes -1 to 23 of the 64 that",
      [](Use &use) {
        CHECK(use.open());
        CHECK(use.address());
        return use.pull(/*offset=*/-1);
      });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 3, pull on level 'gpu': its 2 rows of 8 bytes lie 4 "
              "bytes apart in the source and 8 "
              "in the destination; rows must not overlap",
              [](Use &use) {
                CHECK(use.open());
                CHECK(use.address());
                return use.pull(0, 8, 2, /*pitch=*/4);
              });
  expectWrong(
      MERCURY_RT_INVALID,
      ", operation 3, pull on level 'gpu': cannot read -2 rows of 8 bytes",
      [](Use &use) {
        CHECK(use.open());
        CHECK(use.address());
        return use.pull(0, 8, -2);
      });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 3, pull on level 'gpu': no memory for what it reads",
              [](Use &use) {
                CHECK(use.open());
                CHECK(use.address());
                return mercury_rt_pull_start(use.context, use.lease, use.peer,
                                             use.remote, 8, nullptr, 8, 8, 1,
                                             &use.token);
              });
  expectWrong(MERCURY_RT_TOKEN,
              ", operation 1, lease_open on level 'gpu': it has no token to "
              "wait for",
              [](Use &use) {
                CHECK(use.open());
                return mercury_rt_wait(use.context, use.lease);
              });
  expectWrong(MERCURY_RT_TOKEN,
              ", operation 3, pull on level 'gpu': its token was waited for "
              "before",
              [](Use &use) {
                CHECK(use.open());
                CHECK(use.address());
                CHECK(use.pull());
                CHECK(use.wait());
                return use.wait();
              });
  expectWrong(MERCURY_RT_LEASE,
              ", operation 4, lease_close on level 'gpu': its pull, operation "
              "3, was not waited for; wait for every pull of a lease",
              [](Use &use) {
                CHECK(use.open());
                CHECK(use.address());
                CHECK(use.pull());
                return use.close();
              });
  expectWrong(MERCURY_RT_LEASE,
              ", operation 5, pull on level 'gpu': its lease, opened by "
              "operation 1, was closed before by operation 4; close it after "
              "its last use, once",
              [](Use &use) {
                CHECK(rightUse(use));
                return use.pull();
              });
  expectWrong(MERCURY_RT_LEASE,
              ", operation 5, lease_close on level 'gpu': ", [](Use &use) {
                CHECK(rightUse(use));
                return use.close();
              });
  expectWrong(MERCURY_RT_LEASE,
              ", operation 1, lease_open on level 'gpu': its lease was never "
              "closed; close every lease before the program returns",
              [](Use &use) { return use.open(); });
}

/// Rank 1 lends null, which is nothing, whatever its size.
static int32_t nothingIsLent(mercury_rt_context *context, void *const *) {
  Use use(context);
  CHECK(mercury_rt_lease_open(context, 0, use.self == 1 ? nullptr : use.arena,
                              INT64_MAX, &use.lease));
  CHECK(use.address());
  CHECK(use.pull(0, /*rowBytes=*/0)); // what is empty needs no memory
  EXPECT(use.token == 0);
  if (use.self != 0)
    return use.close();
  return use.pull();
}

/// Asking a peer that has not opened is refused, not waited for.
static int32_t pullsUnasked(mercury_rt_context *context, void *const *) {
  Use use(context);
  if (use.self != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return rightUse(use);
  }
  CHECK(use.open());
  use.remote = use.arena;
  return use.pull();
}

int main() {
  testInjected();
  testPeers();
  testMisuse();
  makeJob(nothingIsLent)
      .expectFailure(MERCURY_RT_INVALID, 0,
                     "operation 4, pull on level 'gpu': reads bytes 0 to 24 of "
                     "the 0 that group rank 1 lent; stay within them");
  makeJob(pullsUnasked)
      .expectFailure(MERCURY_RT_INVALID, 0,
                     "rank 0 (gpu=0), operation 2, pull on level 'gpu': group "
                     "rank 1 has not opened the lease yet; reckon the source "
                     "from mercury_rt_lease_address");
}
