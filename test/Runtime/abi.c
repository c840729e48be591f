/*===- abi.c - The headers are C ------------------------------------------===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "mercury-rt/cuda.h"
#include "mercury-rt/lane.h"
#include "mercury-rt/runtime.h"
#include "mercury-rt/sim.h"
#include <stddef.h>
#include <stdint.h>

static int32_t entry(mercury_rt_context *context, void *const *buffers) {
  if (buffers || mercury_rt_group_size(context, 0) != 2)
    return mercury_rt_fail(context, MERCURY_RT_FIRST_FREE, "wrong context");
  if ((uintptr_t)mercury_rt_local_arena(context) % 64 ||
      (uintptr_t)mercury_rt_symmetric_arena(context) % 64)
    return mercury_rt_fail(context, MERCURY_RT_FIRST_FREE, "unaligned arena");
  return mercury_rt_wait(context, 0);
}

int main(void) {
  const int64_t sizes[] = {2};
  const char *const names[] = {"gpu"};
  const int64_t arenas[] = {100, 0};
  mercury_rt_sim_job job = {0};
  job.number_of_levels = 1;
  job.level_sizes = sizes;
  job.level_names = names;
  job.entry = entry;
  job.local_bytes = arenas;
  job.symmetric_bytes = 100;
  job.fail_rank = -1;
  job.abi_version = mercury_rt_abi_version() + 1;
  if (mercury_rt_sim_run(&job, NULL) != MERCURY_RT_INVALID)
    return 1;
  job.abi_version = MERCURY_RT_ABI_VERSION;
  return mercury_rt_sim_run(&job, NULL) != MERCURY_RT_OK;
}
