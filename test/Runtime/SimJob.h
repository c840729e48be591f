//===- SimJob.h - Running a program on the sim backend ----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program, here written by hand, is what the compiler would emit: a function
// of one rank's context that returns at the first status that is not 0.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_RUNTIME_SIMJOB_H
#define TEST_RUNTIME_SIMJOB_H

#include "mercury-rt/sim.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// Unlike assert, also there in a release build.
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: expected %s\n  last error: %s\n", __FILE__, \
                   __LINE__, #condition, mercury_rt_last_error());             \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

/// What a compiled program does with each status.
#define CHECK(call)                                                            \
  do {                                                                         \
    if (int32_t status = (call))                                               \
      return status;                                                           \
  } while (false)

struct Level {
  const char *name;
  int64_t size;
};

/// A job with its arguments, and what came of it.
struct SimJob {
  SimJob(const std::vector<Level> &levels, mercury_rt_entry entry) {
    for (const Level &level : levels) {
      names.push_back(level.name);
      sizes.push_back(level.size);
      ranks *= level.size;
    }
    buffers.resize(ranks);
    description.entry = entry;
    description.fail_rank = -1;
  }

  int32_t run() {
    std::vector<void *const *> tables;
    for (const std::vector<void *> &table : buffers)
      tables.push_back(table.data());
    std::vector<int64_t> arenas(ranks, localBytes);
    sent.assign(sizes.size(), 0);
    messages.assign(sizes.size(), 0);
    description.abi_version = MERCURY_RT_ABI_VERSION;
    description.number_of_levels = sizes.size();
    description.level_sizes = sizes.data();
    description.level_names = names.data();
    description.buffers = tables.data();
    description.local_bytes = arenas.data();
    description.symmetric_bytes = symmetricBytes;
    report.bytes_sent = sent.data();
    report.messages = messages.data();
    auto begin = std::chrono::steady_clock::now();
    int32_t status = mercury_rt_sim_run(&description, &report);
    seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    return status;
  }

  /// Runs a job that must fail as stated.
  void expectFailure(int32_t status, int64_t rank, const std::string &text) {
    int32_t actual = run();
    std::string message = mercury_rt_last_error();
    if (actual != status || report.failing_rank != rank ||
        message.find(text) == std::string::npos) {
      std::fprintf(stderr,
                   "expected status %d of rank %d: %s\nactual   status %d of "
                   "rank %d: %s\n",
                   status, static_cast<int>(rank), text.c_str(), actual,
                   static_cast<int>(report.failing_rank), message.c_str());
      std::exit(1);
    }
    EXPECT(seconds < 10);
  }

  mercury_rt_sim_job description = {};
  mercury_rt_sim_report report = {};
  int64_t ranks = 1;
  int64_t localBytes = 0, symmetricBytes = 0;
  std::vector<std::vector<void *>> buffers; // of each rank
  std::vector<int64_t> sent, messages;      // of each level
  double seconds = 0;

private:
  std::vector<const char *> names;
  std::vector<int64_t> sizes;
};

#endif // TEST_RUNTIME_SIMJOB_H
