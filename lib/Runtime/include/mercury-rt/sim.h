/*===- sim.h - Running a program on ranks that are threads --------*- C -*-===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The embedded backend: every rank is a thread of this process. Messages are
|* real and asynchronous: their bytes are copied, by another thread unless a
|* seed says otherwise, after both starts and before either wait returns.
|* Nothing is global; any number of jobs may run at the same time.
|*
\*===----------------------------------------------------------------------===*/

#ifndef MERCURY_RT_SIM_H
#define MERCURY_RT_SIM_H

#include "mercury-rt/runtime.h"

#define MERCURY_RT_SIM_MAX_RANKS 4096
#define MERCURY_RT_SIM_DEFAULT_DEADLINE_MS 30000

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mercury_rt_sim_job {
  int32_t abi_version; /**< MERCURY_RT_ABI_VERSION of the caller */

  int64_t number_of_levels; /**< 0 is a mesh of one rank */
  const int64_t *level_sizes;
  const char *const *level_names;

  mercury_rt_entry entry;
  void *const *const *buffers; /**< for each global rank, the entry's buffers;
                                    null if the entry takes none */
  /** Of the arenas, which start as NaN of every float type: of the local one
      for each global rank, null if there is none, and of the symmetric one. */
  const int64_t *local_bytes;
  int64_t symmetric_bytes;

  /** A wait fails when no rank of the job has made progress for this long; 0
      takes the default. Computing is not progress, so this bounds the longest
      kernel that a peer waits for. A rank cannot be stopped inside a kernel:
      the run returns once every kernel has. */
  int64_t deadline_ms;

  /** With a seed, each message is copied as early as can be (before the later
      start returns), as late as can be (not before one of its ends waits), or
      after up to `max_delay_us`. The choice is a function of the seed, the
      sender, its operation and the receiver. Seed 0 delays nothing. */
  uint64_t seed;
  int64_t max_delay_us;

  /** Global rank whose operation `fail_after_ops + 1` fails; -1: none. */
  int64_t fail_rank;
  int64_t fail_after_ops;

  /** What mercury_rt_launch finds; null if there is none. */
  const mercury_rt_kernel *kernels;
  int64_t number_of_kernels;

  /** Null, or a flag that another thread, or a signal, may set at any time to
      another value than 0: the run then fails as soon as no kernel runs. */
  const volatile int32_t *cancel;
} mercury_rt_sim_job;

typedef struct mercury_rt_sim_report {
  /** For each level, what crossed it between two ranks, as far as the run came.
      Arrays of the caller's, of `number_of_levels` entries, or null. */
  int64_t *bytes_sent;
  int64_t *messages;
  int64_t peak_arena_bytes; /**< of both arenas, on the rank with the most */
  int64_t failing_rank;     /**< global rank of the first failure, or -1 */
} mercury_rt_sim_report;

/** Runs the job to its end, joining every thread it started. Returns the status
    of its first failure, whose message is then mercury_rt_last_error() here.
    `report` may be null, and is left alone if the job could not begin. */
MERCURY_RT_EXPORT int32_t mercury_rt_sim_run(const mercury_rt_sim_job *job,
                                             mercury_rt_sim_report *report);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_RT_SIM_H */
