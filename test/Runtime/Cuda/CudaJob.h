//===- CudaJob.h - Running a program on the fake driver ---------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank is a thread with a context and a device of its own.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_RUNTIME_CUDA_CUDAJOB_H
#define TEST_RUNTIME_CUDA_CUDAJOB_H

#include "../SimJob.h" // EXPECT, CHECK, Level
#include "Fake.h"
#include "mercury-rt/cuda.h"
#include <atomic>
#include <functional>
#include <thread>
#include <unistd.h>

struct CudaJob {
  explicit CudaJob(const std::vector<Level> &levels) {
    static std::atomic<int> jobs;
    rendezvous = "/tmp/mercury-test-" + std::to_string(getpid()) + "-" +
                 std::to_string(++jobs);
    for (const Level &level : levels) {
      names.push_back(level.name);
      sizes.push_back(level.size);
      ranks *= level.size;
    }
    // Whatever a program may name.
    for (int64_t set = 1; set < 1 << levels.size(); ++set)
      groups.push_back({MERCURY_RT_LEVELS(set), 0, 0, nullptr});
    description.abi_version = MERCURY_RT_ABI_VERSION;
    description.number_of_levels = sizes.size();
    description.level_sizes = sizes.data();
    description.level_names = names.data();
    description.number_of_groups = groups.size();
    description.groups = groups.data();
    description.rendezvous = rendezvous.c_str();
    description.cuda_library = description.nccl_library = FAKE_CUDA_LIBRARY;
  }
  ~CudaJob() { unlink(rendezvous.c_str()); }

  /// Every group has a communicator.
  void makeCommunicators() {
    for (mercury_rt_cuda_group &group : groups)
      group.sends = 1;
  }

  /// What one rank does with its context. Returns a status.
  using Body =
      std::function<int32_t(mercury_rt_context *context, int64_t rank)>;

  /// Opens a context on every rank, runs the body, closes the context.
  void run(const Body &body) {
    std::vector<std::thread> threads;
    statuses.assign(ranks, 0);
    messages.assign(ranks, "");
    for (int64_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        mercury_rt_cuda_job job = description;
        job.rank = rank;
        job.device = static_cast<int32_t>(rank);
        mercury_rt_context *context = nullptr;
        std::vector<mercury_rt_cuda_group> named = groups;
        for (mercury_rt_cuda_group &group : named)
          if (findCommunicator)
            group.communicator = findCommunicator(group.group, rank);
        job.groups = named.data();
        std::vector<mercury_rt_kernel> table = kernels;
        for (mercury_rt_kernel &kernel : table)
          kernel.user_data = &context;
        job.kernels = table.data();
        job.number_of_kernels = table.size();
        statuses[rank] = mercury_rt_cuda_open(&job, &context);
        if (statuses[rank] == 0)
          statuses[rank] = body(context, rank);
        if (statuses[rank] != 0)
          messages[rank] = mercury_rt_last_error();
        mercury_rt_cuda_close(context);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  void expectSuccess() const {
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (statuses[rank] != 0) {
        std::fprintf(stderr, "rank %d: status %d: %s\n", static_cast<int>(rank),
                     statuses[rank], messages[rank].c_str());
        std::exit(1);
      }
  }

  /// Every rank ended with this status, and one with this text.
  void expectFailure(int32_t status, const std::string &text) const {
    bool found = false;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      found |= messages[rank].find(text) != std::string::npos;
      if (statuses[rank] != status) {
        std::fprintf(stderr, "expected status %d (%s)\nrank %d: %d: %s\n",
                     status, text.c_str(), static_cast<int>(rank),
                     statuses[rank], messages[rank].c_str());
        std::exit(1);
      }
    }
    if (!found)
      std::fprintf(stderr, "expected '%s', got '%s'\n", text.c_str(),
                   messages[0].c_str());
    EXPECT(found);
  }

  mercury_rt_cuda_job description = {};
  std::vector<mercury_rt_cuda_group> groups;
  /// Gives each rank the communicator of a group, if set.
  std::function<void *(int64_t group, int64_t rank)> findCommunicator;
  /// Their user data is the address of the rank's context.
  std::vector<mercury_rt_kernel> kernels;
  int64_t ranks = 1;
  std::vector<int32_t> statuses;
  std::vector<std::string> messages;

private:
  std::string rendezvous;
  std::vector<const char *> names;
  std::vector<int64_t> sizes;
};

#endif // TEST_RUNTIME_CUDA_CUDAJOB_H
