/*===- lane.h - Kernels of a device, and lanes of them ------------*- C -*-===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* What a program computes where kernels are queued and not called: kernels of
|* an image that the program carries, copies, and lanes, in which kernels run
|* beside each other. All run in the order of the program, after every operation
|* that was waited for before and before every one started later. So do kernels
|* by name, mercury_rt_launch(): on a GPU they put their work into the lane.
|*
\*===----------------------------------------------------------------------===*/

#ifndef MERCURY_RT_LANE_H
#define MERCURY_RT_LANE_H

#include "mercury-rt/runtime.h"

#define MERCURY_RT_MAX_LANES 8

#ifdef __cplusplus
extern "C" {
#endif

/** One launch of a kernel of a device image. */
typedef struct mercury_rt_device_kernel {
  const void *image; /**< PTX, ending in 0, or a cubin */
  int64_t image_bytes;
  const char *name; /**< in the image */
  int64_t grid[3], block[3];
  int64_t shared_bytes;
  void *const *arguments; /**< the address of each argument */
} mercury_rt_device_kernel;

/** Launches a kernel of a device image, which is loaded when it is met for the
    first time. */
MERCURY_RT_EXPORT int32_t mercury_rt_device_launch(
    mercury_rt_context *context, const mercury_rt_device_kernel *kernel);

/** Copies `rows` rows of `row_bytes` bytes within this rank's memory; pitches
    are in bytes. */
MERCURY_RT_EXPORT int32_t mercury_rt_copy(mercury_rt_context *context,
                                          const void *src, int64_t src_pitch,
                                          void *dst, int64_t dst_pitch,
                                          int64_t row_bytes, int64_t rows);

/** Puts the kernels, copies, starts and waits that follow into `lane`. A run
    begins in lane 0 and ends when all its lanes have. A lane holds nothing at
    first, and comes after what lane 0 held when it was first used; what two
    lanes do later is unordered, unless by a token. */
MERCURY_RT_EXPORT int32_t mercury_rt_lane_use(mercury_rt_context *context,
                                              int64_t lane);

/** Sets `*token` to one that is complete once all that the lane in use holds
    is; it is waited for in another lane. */
MERCURY_RT_EXPORT int32_t mercury_rt_lane_mark(mercury_rt_context *context,
                                               int64_t *token);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_RT_LANE_H */
