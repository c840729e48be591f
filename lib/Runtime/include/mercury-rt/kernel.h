/*===- kernel.h - Computing on tiles ------------------------------*- C -*-===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The kernels of a program, by one of two doors. A kernel of a library is
|* registered by name and called back: it puts its work into the stream it is
|* given and returns. A generated kernel is a device image that the program
|* carries and launches. Both run in the order of the program, after every
|* operation that was waited for before and before every one started later.
|*
\*===----------------------------------------------------------------------===*/

#ifndef MERCURY_RT_KERNEL_H
#define MERCURY_RT_KERNEL_H

#include "mercury-rt/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum mercury_rt_element {
  MERCURY_RT_F64 = 1,
  MERCURY_RT_F32 = 2,
  MERCURY_RT_F16 = 3,
  MERCURY_RT_BF16 = 4,
  MERCURY_RT_I64 = 5,
  MERCURY_RT_I32 = 6,
  MERCURY_RT_I8 = 7
};

/** A strided tile in this rank's memory; strides are in elements. */
typedef struct mercury_rt_tile {
  void *data;
  int32_t element; /**< of mercury_rt_element */
  int32_t number_of_dims;
  const int64_t *sizes;
  const int64_t *strides;
} mercury_rt_tile;

/** What a registered kernel is called on; valid during the call. */
typedef struct mercury_rt_call {
  int64_t number_of_tiles;
  /** Inputs, then results. A result without data is the kernel's to place: it
      sets `data` to memory that it keeps for as long as the run, or the graph
      that was captured, is in use. */
  mercury_rt_tile *tiles;
  int64_t number_of_integers;
  const int64_t *integers;
  int64_t number_of_reals;
  const double *reals;
} mercury_rt_call;

/** A registered kernel. On a GPU it puts its work into `stream`, a CUstream,
    and never waits for it; elsewhere `stream` is null and it computes. Returns
    a status; mercury_rt_fail() gives that a message. */
typedef int32_t (*mercury_rt_kernel)(mercury_rt_context *context, void *user,
                                     void *stream, const mercury_rt_call *call);

/** Registers `kernel` for all programs of this process. A name is registered
    once; drop it first to replace it, while no program runs. */
MERCURY_RT_EXPORT int32_t mercury_rt_kernel_register(const char *name,
                                                     mercury_rt_kernel kernel,
                                                     void *user);

/** Forgets a registered kernel, if there is one of that name. */
MERCURY_RT_EXPORT void mercury_rt_kernel_drop(const char *name);

/** Calls the kernel registered under `name`. */
MERCURY_RT_EXPORT int32_t mercury_rt_kernel_call(mercury_rt_context *context,
                                                 const char *name,
                                                 const mercury_rt_call *call);

/** One launch of a device image. */
typedef struct mercury_rt_launch {
  const void *image; /**< PTX, ending in 0, or a cubin */
  int64_t image_bytes;
  const char *kernel; /**< its name in the image */
  int64_t grid[3], block[3];
  int64_t shared_bytes;
  void *const *arguments; /**< the address of each argument */
} mercury_rt_launch;

/** Launches a kernel of a device image. An image is loaded when it is met for
    the first time. */
MERCURY_RT_EXPORT int32_t mercury_rt_kernel_launch(
    mercury_rt_context *context, const mercury_rt_launch *launch);

/** Copies `rows` rows of `row_bytes` bytes within this rank's memory, in the
    order of the kernels; pitches are in bytes. */
MERCURY_RT_EXPORT int32_t mercury_rt_copy(mercury_rt_context *context,
                                          const void *src, int64_t src_pitch,
                                          void *dst, int64_t dst_pitch,
                                          int64_t row_bytes, int64_t rows);

/*--- Lanes: kernels beside each other ---------------------------------------*/

#define MERCURY_RT_MAX_LANES 8

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

#endif /* MERCURY_RT_KERNEL_H */
