/*===- Schedules.h - Three programs written by hand ---------------*- C -*-===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* What the compiler is to emit for a GPU: attention whose keys and values are
|* read from the peers, and a matrix product with its input gathered or its
|* result scattered. They run on any number of ranks of one level.
|*
\*===----------------------------------------------------------------------===*/

#ifndef TEST_RUNTIME_CUDA_SCHEDULES_H
#define TEST_RUNTIME_CUDA_SCHEDULES_H

#include "mercury-rt/lane.h"

/** What a program is told beside its tensors: buffers[0]. */
typedef struct schedule_sizes {
  int32_t element; /**< of the tensors */
  int32_t element_bytes;
  /* attention: q, k, v, o of [batch, rows, heads, dim], lse of
     [batch, heads, rows] */
  int64_t batch, rows, heads, dim;
  /* products: a of [m, k], b of [k, n], c of [m, n] on one rank alone */
  int64_t m, k, n;
  int64_t chunks;            /**< of a transfer */
  int64_t lanes;             /**< of kernels: 1 or 2 */
  const void *merge_image;   /**< with the kernel softmax_merge */
  int64_t merge_image_bytes; /**< its end included */
} schedule_sizes;

/** Where a kernel that allocates its results has put them. */
typedef struct schedule_results {
  void *o, *lse;
} schedule_results;

/* The kernels that a run comes with, by name:
   "test.matmul": inputs a, b; output c, which is added to if the parameter
   "accumulate" is not 0, and written if it is.
   "test.attention": inputs q, k, v of [batch, heads, rows, dim]; the parameter
   "results" is the address of a schedule_results to be filled. */

#ifdef __cplusplus
extern "C" {
#endif

/** buffers: sizes, q, k, v, o, lse; local arena: k and v of all others. */
MERCURY_RT_EXPORT int32_t schedule_attention(mercury_rt_context *context,
                                             void *const *buffers);

/** buffers: sizes, a of [m / ranks, k], b of [k, n], c of [m, n]; local
    arena: the other ranks' parts of a. */
MERCURY_RT_EXPORT int32_t schedule_ag_gemm(mercury_rt_context *context,
                                           void *const *buffers);

/** buffers: sizes, a of [m, k], b of [k, n], c of [m / ranks, n];
    symmetric arena: the partial results for the other rank. */
MERCURY_RT_EXPORT int32_t schedule_gemm_rs(mercury_rt_context *context,
                                           void *const *buffers);

/** buffers: sizes, src of m bytes, dst of m bytes, slots of m bytes a rank.
    Sends src once around the ring, by way of dst of each rank in turn, and
    gathers it: dst ends as src of this rank, slots hold that of every rank, of
    which member r gives m - r bytes if k is not 0. */
MERCURY_RT_EXPORT int32_t schedule_messages(mercury_rt_context *context,
                                            void *const *buffers);

/** buffers: sizes, src of m bytes, slots of m bytes a rank; symmetric arena:
   two slots of m bytes. Puts src once around the ring, each part into the slot
   that the last but one was in: slot h ends as the part that was h hops away.
 */
MERCURY_RT_EXPORT int32_t schedule_puts(mercury_rt_context *context,
                                        void *const *buffers);

/** A kernel that does nothing, to time all else. */
MERCURY_RT_EXPORT int32_t
schedule_nothing(void *user_data, const mercury_rt_launch_arguments *arguments,
                 char *message, int64_t message_bytes);

#ifdef __cplusplus
}
#endif

#endif /* TEST_RUNTIME_CUDA_SCHEDULES_H */
