//===- failure.cpp - Jobs that fail, and what they say --------------------===//
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

static const std::vector<Level> kThree = {{"gpu", 3}};
static constexpr int64_t kRounds = 5;

/// One ring step of `sendBytes` and `recvBytes`.
static int32_t step(mercury_rt_context *context, int64_t sendBytes = 8,
                    int64_t recvBytes = 8) {
  int64_t self = mercury_rt_group_rank(context, 0);
  int64_t size = mercury_rt_group_size(context, 0);
  char *arena = static_cast<char *>(mercury_rt_local_arena(context));
  int64_t token = 0;
  CHECK(mercury_rt_exchange_start(context, 0, (self + size - 1) % size, arena,
                                  sendBytes, (self + 1) % size, arena + 128,
                                  recvBytes, &token));
  return mercury_rt_wait(context, token);
}

static int32_t gather(mercury_rt_context *context) {
  int64_t size = mercury_rt_group_size(context, 0), token = 0;
  std::vector<int64_t> bytes(size, 8);
  char *arena = static_cast<char *>(mercury_rt_local_arena(context));
  CHECK(mercury_rt_all_gather_start(context, 0, arena, 8, arena + 128, 8,
                                    bytes.data(), &token));
  return mercury_rt_wait(context, token);
}

static int32_t rounds(mercury_rt_context *context, void *const *) {
  for (int64_t round = 0; round < kRounds; ++round)
    CHECK(step(context));
  return 0;
}

static SimJob makeJob(mercury_rt_entry entry,
                      const std::vector<Level> &levels = kThree) {
  SimJob job(levels, entry);
  job.localBytes = 1024;
  return job;
}

static void testInjected() {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (int64_t rank = 0; rank < 3; ++rank)
      for (int64_t ops = 0; ops < kRounds; ++ops) {
        SimJob job = makeJob(rounds);
        job.description.seed = seed;
        job.description.max_delay_us = 100;
        job.description.fail_rank = rank;
        job.description.fail_after_ops = ops;
        std::string at = std::to_string(rank);
        job.expectFailure(MERCURY_RT_INJECTED, rank,
                          "rank " + at + " (gpu=" + at + "), operation " +
                              std::to_string(ops + 1) +
                              ", exchange on level 'gpu': failed as the job "
                              "asked (fail_rank = " +
                              at);
      }
  SimJob job = makeJob(rounds);
  job.description.fail_rank = 1;
  job.description.fail_after_ops = kRounds;
  EXPECT(job.run() == 0);

  SimJob many = makeJob(rounds, {{"node", 8}, {"gpu", 8}});
  many.description.fail_rank = 37;
  many.description.fail_after_ops = 2;
  many.expectFailure(MERCURY_RT_INJECTED, 37, "rank 37 (node=4, gpu=5), ");
}

static int32_t lateRank(mercury_rt_context *context, void *const *) {
  if (mercury_rt_group_rank(context, 0) == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  return step(context);
}

static int32_t oneStep(mercury_rt_context *context, void *const *) {
  return step(context);
}

static void testDeadline() {
  SimJob job = makeJob(lateRank, {{"gpu", 2}});
  job.description.deadline_ms = 100;
  job.expectFailure(
      MERCURY_RT_DEADLINE, 0,
      "rank 0 (gpu=0), operation 1, exchange on level 'gpu': no rank made "
      "progress for 100 ms: it waits to send 8 bytes to group rank 1, which "
      "still computes, after its operation 0; start the same");
  SimJob patient = makeJob(lateRank, {{"gpu", 2}});
  EXPECT(patient.run() == 0);

  // A message that is slow by request is not a late peer.
  for (uint64_t seed = 1; seed < 4; ++seed) {
    SimJob slow = makeJob(oneStep);
    slow.description.seed = seed;
    slow.description.deadline_ms = 400;
    slow.description.max_delay_us = 1200000;
    EXPECT(slow.run() == 0);
  }
}

static int32_t missingStep(mercury_rt_context *context, void *const *) {
  return mercury_rt_group_rank(context, 0) == 2 ? 0 : step(context);
}

static int32_t everyoneReceives(mercury_rt_context *context, void *const *) {
  return step(context, 0, 8);
}

static int32_t emptyOnOneEnd(mercury_rt_context *context, void *const *) {
  bool odd = mercury_rt_group_rank(context, 0) == 1;
  return step(context, odd ? 0 : 8, 8);
}

static void testDeadlock() {
  makeJob(missingStep)
      .expectFailure(MERCURY_RT_DEADLOCK, 0,
                     "rank 0 (gpu=0), operation 1, exchange on level 'gpu': no "
                     "rank can go on: it waits to send 8 bytes to group rank "
                     "2, which has ended its program");
  makeJob(everyoneReceives)
      .expectFailure(MERCURY_RT_DEADLOCK, 2,
                     "operation 1, exchange on level 'gpu': no rank can go on: "
                     "it waits to receive 8 bytes from group rank 0, which "
                     "itself waits in rank 0 (gpu=0), operation 1, exchange");
  makeJob(emptyOnOneEnd)
      .expectFailure(MERCURY_RT_DEADLOCK, 0,
                     "waits to receive 8 bytes from group rank 1, which has "
                     "ended");
}

static int32_t wrongSize(mercury_rt_context *context, void *const *) {
  CHECK(step(context));
  bool odd = mercury_rt_group_rank(context, 1) == 1;
  return step(context, 64, odd ? 96 : 64);
}

static int32_t wrongOrder(mercury_rt_context *context, void *const *) {
  if (mercury_rt_group_rank(context, 0) == 0) {
    CHECK(gather(context));
    return step(context);
  }
  CHECK(step(context));
  return gather(context);
}

static int32_t wrongTable(mercury_rt_context *context, void *const *) {
  int64_t self = mercury_rt_group_rank(context, 0), token = 0;
  int64_t bytes[] = {0, 8, self == 0 ? 4 : 0};
  char *arena = static_cast<char *>(mercury_rt_local_arena(context));
  CHECK(mercury_rt_all_gather_start(context, 0, arena, bytes[self], arena + 128,
                                    8, bytes, &token));
  return mercury_rt_wait(context, token);
}

static void testMismatch() {
  SimJob job = makeJob(wrongSize, {{"node", 2}, {"gpu", 2}});
  int32_t status = job.run();
  std::string message = mercury_rt_last_error();
  EXPECT(status == MERCURY_RT_MISMATCH);
  // Rank 1 or 3, whichever came first.
  EXPECT(message.find("gpu=1), operation 2, exchange on level 'node': expected "
                      "96 bytes from group rank ") != std::string::npos);
  EXPECT(message.find(" but 64 were sent (its operation 2); size both ends "
                      "from the same layout") != std::string::npos);

  job = makeJob(wrongOrder);
  EXPECT(job.run() == MERCURY_RT_MISMATCH);
  message = mercury_rt_last_error();
  EXPECT(message.find("started another one in its place, ") !=
         std::string::npos);

  makeJob(wrongTable)
      .expectFailure(MERCURY_RT_MISMATCH, 0,
                     "operation 1, all_gather on level 'gpu': "
                     "expected 4 bytes from group rank 2 but 0 "
                     "were sent");
}

/// What rank 1 does wrong while the others wait for it.
using Wrong = int32_t (*)(mercury_rt_context *context, char *arena,
                          int64_t *token);

static int32_t rankOneWrong(mercury_rt_context *context, void *const *buffers) {
  if (mercury_rt_group_rank(context, 0) != 1)
    return step(context);
  int64_t token = 0;
  char *arena = static_cast<char *>(mercury_rt_local_arena(context));
  CHECK((*static_cast<const Wrong *>(buffers[0]))(context, arena, &token));
  return 0;
}

static void expectWrong(int32_t status, const std::string &text, Wrong wrong) {
  SimJob job = makeJob(rankOneWrong);
  job.buffers[1] = {&wrong};
  job.expectFailure(status, 1, "rank 1 (gpu=1)" + text);
}

static void testArguments() {
  const std::string first = ", operation 1, exchange on level 'gpu': ";
  const std::string gathers = ", operation 1, all_gather on level 'gpu': ";
  expectWrong(MERCURY_RT_INVALID,
              first + "there is no group rank 3; group ranks go from 0 to 2",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                return mercury_rt_exchange_start(context, 0, 3, arena, 8, 0,
                                                 nullptr, 0, token);
              });
  expectWrong(MERCURY_RT_INVALID, first + "there is no group rank -1",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                return mercury_rt_exchange_start(context, 0, -7, nullptr, 0, -1,
                                                 arena, 8, token);
              });
  expectWrong(MERCURY_RT_INVALID,
              ", operation 1, exchange on level number 1: the mesh has no such "
              "group; levels are numbered from 0 to 0",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                return mercury_rt_exchange_start(context, 1, 0, arena, 8, 0,
                                                 nullptr, 0, token);
              });
  expectWrong(MERCURY_RT_INVALID, ": the mesh has no level number -1",
              [](mercury_rt_context *context, char *, int64_t *) {
                return mercury_rt_group_size(context, -1) == -1 ? 0 : 1;
              });
  expectWrong(MERCURY_RT_INVALID, first + "cannot send -8 bytes",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                return mercury_rt_exchange_start(context, 0, 0, arena, -8, 0,
                                                 nullptr, 0, token);
              });
  expectWrong(MERCURY_RT_INVALID, first + "a side that is not empty has no",
              [](mercury_rt_context *context, char *, int64_t *token) {
                return mercury_rt_exchange_start(context, 0, 0, nullptr, 8, 0,
                                                 nullptr, 0, token);
              });
  expectWrong(MERCURY_RT_INVALID, first + "names this rank on one side only",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                return mercury_rt_exchange_start(context, 0, 1, arena, 8, 0,
                                                 arena + 8, 8, token);
              });
  expectWrong(MERCURY_RT_INVALID, first + "the destination overlaps the source",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                return mercury_rt_exchange_start(context, 0, 0, arena, 8, 2,
                                                 arena + 7, 8, token);
              });
  expectWrong(MERCURY_RT_INVALID, first + "no place for its result",
              [](mercury_rt_context *context, char *arena, int64_t *) {
                return mercury_rt_exchange_start(context, 0, 0, arena, 8, 2,
                                                 arena + 8, 8, nullptr);
              });
  expectWrong(MERCURY_RT_INVALID,
              gathers + "sends 4 bytes but the table says 8 for this rank",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                int64_t bytes[] = {8, 8, 8};
                return mercury_rt_all_gather_start(context, 0, arena, 4,
                                                   arena + 64, 8, bytes, token);
              });
  expectWrong(MERCURY_RT_INVALID,
              gathers + "the part of group rank 2 is of 9 bytes; sizes go from "
                        "0 to those of a slot, 8",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                int64_t bytes[] = {8, 8, 9};
                return mercury_rt_all_gather_start(context, 0, arena, 8,
                                                   arena + 64, 8, bytes, token);
              });
  expectWrong(MERCURY_RT_INVALID,
              gathers + "the source overlaps the slot of group rank 0",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                int64_t bytes[] = {8, 8, 8};
                return mercury_rt_all_gather_start(context, 0, arena, 8, arena,
                                                   8, bytes, token);
              });
}

/// A local copy, which needs no peer.
static int32_t copyStart(mercury_rt_context *context, char *arena,
                         int64_t *token) {
  return mercury_rt_exchange_start(context, 0, 1, arena, 8, 1, arena + 8, 8,
                                   token);
}

static void testTokens() {
  const std::string copy = ", operation 1, exchange on level 'gpu': ";
  expectWrong(MERCURY_RT_TOKEN, copy + "its token was waited for before",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                CHECK(copyStart(context, arena, token));
                CHECK(mercury_rt_wait(context, *token));
                return mercury_rt_wait(context, *token);
              });
  expectWrong(MERCURY_RT_TOKEN, copy + "its token was never waited for",
              copyStart);
  expectWrong(MERCURY_RT_TOKEN,
              ", wait: no operation has token 2, only 1 were started",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                CHECK(copyStart(context, arena, token));
                return mercury_rt_wait(context, *token + 1);
              });
  expectWrong(MERCURY_RT_TOKEN, ", wait: no operation has token -1",
              [](mercury_rt_context *context, char *, int64_t *) {
                return mercury_rt_wait(context, -1);
              });
}

static void testProgramFails() {
  expectWrong(7, ", after operation 1: kernel 'softmax' raised ValueError",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                CHECK(copyStart(context, arena, token));
                CHECK(mercury_rt_wait(context, *token));
                return mercury_rt_fail(context, 7,
                                       "kernel 'softmax' raised ValueError");
              });
  expectWrong(-3, ": the program returned status -3 and no cause",
              [](mercury_rt_context *, char *, int64_t *) { return -3; });
  expectWrong(MERCURY_RT_INVALID, ", after operation 0: failed with status 0",
              [](mercury_rt_context *context, char *, int64_t *) {
                return mercury_rt_fail(context, 0, "nothing");
              });
  // A program that ignores a failure does not undo it.
  expectWrong(MERCURY_RT_INVALID, ", after operation 0: failed with status 0",
              [](mercury_rt_context *context, char *arena, int64_t *token) {
                int32_t first = mercury_rt_fail(context, 0, nullptr);
                EXPECT(mercury_rt_fail(context, 9, "later") == first);
                EXPECT(copyStart(context, arena, token) == first);
                EXPECT(mercury_rt_wait(context, 0) == first);
                return 0;
              });
}

static void testJob() {
  auto refused = [](SimJob job, const std::string &text) {
    EXPECT(job.run() == MERCURY_RT_INVALID);
    EXPECT(std::string(mercury_rt_last_error()) ==
           "cannot run the job: " + text);
  };
  EXPECT(mercury_rt_sim_run(nullptr, nullptr) == MERCURY_RT_INVALID);
  refused(makeJob(nullptr), "it has no entry");
  refused(makeJob(rounds, {{"node", 4}, {"gpu", 1025}}),
          "level 'gpu' has size 1025; the mesh holds 1 to 4096 ranks in all");
  SimJob job = makeJob(rounds);
  job.description.fail_rank = 3;
  refused(job, "rank 3 cannot fail after 0 operations; ranks go from 0 to 2, "
               "or -1 for none");
  job = makeJob(rounds);
  job.description.deadline_ms = -1;
  refused(job, "the deadline of -1 ms is not within a day");
  job = makeJob(rounds);
  job.localBytes = -1;
  refused(job, "the local arena of rank 0 has -1 bytes");
  job.localBytes = int64_t(1) << 60;
  EXPECT(job.run() == MERCURY_RT_RESOURCE);
}

int main() {
  testInjected();
  testDeadline();
  testDeadlock();
  testMismatch();
  testArguments();
  testTokens();
  testProgramFails();
  testJob();
}
