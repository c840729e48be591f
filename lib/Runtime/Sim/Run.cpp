//===- Run.cpp - Entry to the embedded backend ----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Refuses a job that makes no sense, runs one that does.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Sim/Job.h"
#include <new>
#include <system_error>

using namespace mercury::rt;
using namespace mercury::rt::sim;

/// Longer than any run, and small enough for all arithmetic on times.
static constexpr int64_t kDayMs = 24 * 60 * 60 * 1000;

/// What is wrong with the job; empty if nothing is.
static std::string check(const mercury_rt_sim_job &job) {
  if (job.abi_version != MERCURY_RT_ABI_VERSION)
    return "it was made for version " + std::to_string(job.abi_version) +
           " of the runtime's ABI and this is version " +
           std::to_string(MERCURY_RT_ABI_VERSION) + "; rebuild its caller";
  if (!job.entry)
    return "it has no entry";
  if (job.number_of_levels < 0)
    return "its mesh has " + std::to_string(job.number_of_levels) + " levels";
  if (job.number_of_levels > 0 && (!job.level_sizes || !job.level_names))
    return "its mesh has levels without sizes or names";

  int64_t ranks = 1;
  for (int64_t level = 0; level < job.number_of_levels; ++level) {
    int64_t size = job.level_sizes[level];
    if (!job.level_names[level])
      return "level number " + std::to_string(level) + " has no name";
    if (size < 1 || size > MERCURY_RT_SIM_MAX_RANKS / ranks)
      return "level '" + std::string(job.level_names[level]) + "' has size " +
             std::to_string(size) + "; the mesh holds 1 to " +
             std::to_string(MERCURY_RT_SIM_MAX_RANKS) + " ranks in all";
    ranks *= size;
  }
  for (int64_t rank = 0; job.local_bytes && rank < ranks; ++rank)
    if (job.local_bytes[rank] < 0)
      return "the local arena of rank " + std::to_string(rank) + " has " +
             std::to_string(job.local_bytes[rank]) + " bytes";
  if (job.symmetric_bytes < 0)
    return "the symmetric arena has " + std::to_string(job.symmetric_bytes) +
           " bytes";
  if (job.deadline_ms < 0 || job.deadline_ms > kDayMs)
    return "the deadline of " + std::to_string(job.deadline_ms) +
           " ms is not within a day";
  if (job.max_delay_us < 0 || job.max_delay_us > kDayMs * 1000)
    return "the longest delay of " + std::to_string(job.max_delay_us) +
           " us is not within a day";
  if (job.number_of_kernels < 0 || (job.number_of_kernels && !job.kernels))
    return "it has " + std::to_string(job.number_of_kernels) + " kernels" +
           (job.kernels ? "" : " and no table of them");
  for (int64_t i = 0; i < job.number_of_kernels; ++i)
    if (!job.kernels[i].name || !job.kernels[i].function)
      return "kernel number " + std::to_string(i) +
             " has no name or no function";
  if (job.fail_rank < -1 || job.fail_rank >= ranks || job.fail_after_ops < 0)
    return "rank " + std::to_string(job.fail_rank) + " cannot fail after " +
           std::to_string(job.fail_after_ops) +
           " operations; ranks go from 0 to " + std::to_string(ranks - 1) +
           ", or -1 for none";
  return "";
}

int32_t mercury_rt_sim_run(const mercury_rt_sim_job *job,
                           mercury_rt_sim_report *report) {
  std::string problem = job ? check(*job) : "there is none";
  if (!problem.empty()) {
    setLastError("cannot run the job: " + problem);
    return MERCURY_RT_INVALID;
  }
  try {
    Job running(*job);
    int32_t status = running.run();
    if (report)
      running.fill(*report);
    return status;
  } catch (const std::bad_alloc &) {
    setLastError("cannot run the job: no memory for its ranks and arenas; use "
                 "a smaller mesh or problem");
  } catch (const std::system_error &error) {
    setLastError("cannot run the job: no thread for its messages: " +
                 std::string(error.what()));
  }
  return MERCURY_RT_RESOURCE;
}
