/*===- cuda.h - Running a program on GPUs -------------------------*- C -*-===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The backend for GPUs: one process a GPU, each with one context a job. The
|* CUDA driver and NCCL are opened at run time; nothing links to them.
|*
|* A run is asynchronous. The program only puts work into lanes, which are CUDA
|* streams: kernels into their lane, each pull into the lane of its peer,
|* messages into the lane of NCCL. A start makes the other lane wait for what
|* the kernels' lane holds so far; mercury_rt_wait() makes the kernels' lane
|* wait for the operation. The host waits for a peer's host only to open the
|* same lease, and for a device in mercury_rt_cuda_synchronize().
|*
|* Failures that the host sees end the job on every rank of this host. What only
|* the device sees, a peer that never signals above all, ends it in
|* mercury_rt_cuda_synchronize(), after the deadline.
|*
\*===----------------------------------------------------------------------===*/

#ifndef MERCURY_RT_CUDA_H
#define MERCURY_RT_CUDA_H

#include "mercury-rt/lane.h"

#define MERCURY_RT_CUDA_DEFAULT_DEADLINE_MS 30000

/** As many leases of one group may be open at once. */
#define MERCURY_RT_CUDA_MAX_LEASES 64

#ifdef __cplusplus
extern "C" {
#endif

/** A group that programs name. */
typedef struct mercury_rt_cuda_group {
  int64_t group; /**< a level's number, or MERCURY_RT_LEVELS of several */
  /** Not 0: its members send each other messages, for which it has a
      communicator. Leases need none. */
  int32_t sends;
  /** Not 0: they put, too, which the members of one group may, and for which
      NCCL must be 2.29 or later. The symmetric arena is then memory of NCCL's,
      of which nothing may be lent. */
  int32_t puts;
  /** An ncclComm_t over this rank's group, ordered by group rank, which the
      caller keeps, and ends after the context; after a failure, aborts on a
      thread of its own and then closes the context, as NCCL waits for the
      graphs that have messages. Null: one is made, where all levels of the
     group are local. */
  void *communicator;
} mercury_rt_cuda_group;

typedef struct mercury_rt_cuda_job {
  int32_t abi_version; /**< MERCURY_RT_ABI_VERSION of the caller */

  int64_t number_of_levels; /**< 0 is a mesh of one rank */
  const int64_t *level_sizes;
  const char *const *level_names;
  /** For each level, whether its ranks are processes of one host, whose GPUs
      reach each other's memory: leases need it. Null: all are. */
  const int32_t *level_is_local;

  int64_t rank;   /**< this process's global rank */
  int32_t device; /**< its GPU */

  /** The path of a file through which the ranks of this host find each other;
      the same on all of them, and of no other job. It is made by whoever comes
      first, and removed once all are there. */
  const char *rendezvous;

  int64_t local_bytes;     /**< of the local arena, which no peer maps */
  int64_t symmetric_bytes; /**< the same on every rank */
  /** The longest wait for a peer, and the longest run; 0 takes the default. */
  int64_t deadline_ms;

  /** Every group that programs name, the same in the same order on every rank:
      in this order the ranks come together to make what a group needs. */
  int64_t number_of_groups;
  const mercury_rt_cuda_group *groups;

  /** What mercury_rt_launch finds; null if there is none. A kernel puts its
     work into mercury_rt_cuda_stream() and never waits for it. */
  const mercury_rt_kernel *kernels;
  int64_t number_of_kernels;

  /** Paths of the libraries, or null: MERCURY_RT_CUDA_LIBRARY and
      MERCURY_RT_NCCL_LIBRARY, or libcuda.so.1 and libnccl.so.2. */
  const char *cuda_library;
  const char *nccl_library;
} mercury_rt_cuda_job;

/** A program captured with its buffers. */
typedef struct mercury_rt_cuda_graph mercury_rt_cuda_graph;

/** Asks for the memory of a GPU, in bytes, before a job takes any of it. The
    path is as in mercury_rt_cuda_job. */
MERCURY_RT_EXPORT int32_t mercury_rt_cuda_memory(int32_t device,
                                                 const char *cuda_library,
                                                 int64_t *free_bytes,
                                                 int64_t *total_bytes);

/** Tells which GPU of the host this process calls `device`: puts the address of
    its bus, as in "0000:c1:00.0" and ended by 0, into the `text_bytes` bytes at
    `text`. The path is as in mercury_rt_cuda_job. */
MERCURY_RT_EXPORT int32_t mercury_rt_cuda_address(int32_t device,
                                                  const char *cuda_library,
                                                  char *text,
                                                  int64_t text_bytes);

/** Opens NCCL as a job with this path does, and tells its version: 22809 is
    2.28.9. Fails where it is missing or too old. */
MERCURY_RT_EXPORT int32_t mercury_rt_cuda_nccl(const char *nccl_library,
                                               int32_t *version);

/** Opens a context; returns once every rank of this host has opened its own.
    Sets `*context` if it returns 0. */
MERCURY_RT_EXPORT int32_t mercury_rt_cuda_open(const mercury_rt_cuda_job *job,
                                               mercury_rt_context **context);

/** Waits for the context's work and frees what it holds. Its graphs must have
    been freed before. Null is allowed. */
MERCURY_RT_EXPORT void mercury_rt_cuda_close(mercury_rt_context *context);

/** The CUstream of the lane in use: where a kernel puts its work. */
MERCURY_RT_EXPORT void *mercury_rt_cuda_stream(mercury_rt_context *context);

/** Puts a run of `entry` into the lanes, after what `caller`, a CUstream, holds
    and before what it is given next. `buffers` are this rank's, on its GPU. */
MERCURY_RT_EXPORT int32_t mercury_rt_cuda_run(mercury_rt_context *context,
                                              mercury_rt_entry entry,
                                              void *const *buffers,
                                              void *caller);

/** Captures a run of `entry` into a graph, without running it. Puts are
   captured by NCCL 2.30 or later. Every rank captures the same programs in the
   same order among its runs. A program runs once before it is captured, so that
   every kernel has what it allocates. */
MERCURY_RT_EXPORT int32_t
mercury_rt_cuda_capture(mercury_rt_context *context, mercury_rt_entry entry,
                        void *const *buffers, mercury_rt_cuda_graph **graph);

/** Puts a captured run into the lanes, as mercury_rt_cuda_run() would. Every
    rank replays the same graphs in the same order among its runs. */
MERCURY_RT_EXPORT int32_t mercury_rt_cuda_replay(mercury_rt_context *context,
                                                 mercury_rt_cuda_graph *graph,
                                                 void *caller);

/** Frees a graph, after its last replay is over. Null is allowed. */
MERCURY_RT_EXPORT void mercury_rt_cuda_graph_free(mercury_rt_context *context,
                                                  mercury_rt_cuda_graph *graph);

/** Waits for everything in the lanes. Returns the first failure of the job:
    MERCURY_RT_DEADLINE, naming the peers that were not heard from, if no run
    ends within the deadline, which thus bounds the longest run. */
MERCURY_RT_EXPORT int32_t
mercury_rt_cuda_synchronize(mercury_rt_context *context);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_RT_CUDA_H */
