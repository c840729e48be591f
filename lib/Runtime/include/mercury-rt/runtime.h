/*===- runtime.h - What a compiled host program calls -------------*- C -*-===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The C ABI between a compiled host program and the machine it runs on. One
|* program text runs on every rank; the context says which rank this is.
|*
|* Ranks. A mesh is an n-d grid of levels, outermost first, its ranks row-major.
|* Every operation names a group: a level by its number (outermost = 0), or
|* several by MERCURY_RT_LEVELS. It speaks of *group* ranks: row-major
|* coordinates on these levels, among the ranks that differ from this one on
|* them only. No call takes a global rank.
|*
|* Failure. Every status is 0 or the code of the job's first failure. A failure
|* on any rank ends the whole job: blocked waits return at once and every later
|* call returns the same code, on every rank. A program therefore tests each
|* status and returns it; it need not wait for its open tokens, and no copy
|* touches its memory once a call has returned the failure.
|*
|* Operations. Each start is one operation, numbered from 1 on its rank, and is
|* asynchronous: until its token is waited for, a source may not be written and
|* a destination may be neither read nor written. Every token is waited for
|* once, before the program returns, in any order. Each call on a lease is an
|* operation too.
|*
|* Leases. Memory of another rank may be read, and only under a lease (and
|* written by a put alone, which its receiver takes part in): every member of a
group opens it and says what the others may read,
|* and every member closes it. That is memory of the caller's or of the
|* symmetric arena. From its opening until its closing returns, no rank writes
|* what it lent. Leases of a group match in the order of their openings, so that
|* several may be open at once.
|*
|* Kernels. A program calls its own kernels directly, and those of others by
|* name: the run comes with a table of them. A kernel never waits for a peer.
|*
\*===----------------------------------------------------------------------===*/

#ifndef MERCURY_RT_RUNTIME_H
#define MERCURY_RT_RUNTIME_H

#include <stdint.h>

#define MERCURY_RT_EXPORT __attribute__((visibility("default")))

/** Grows whenever the meaning or the signature of anything here changes. */
#define MERCURY_RT_ABI_VERSION 5

/** The group of several levels: bit l of `set` stands for level l. */
#define MERCURY_RT_LEVELS(set) ((INT64_C(1) << 62) + (set))

#ifdef __cplusplus
extern "C" {
#endif

/** Codes from MERCURY_RT_FIRST_FREE on are for programs and kernels. */
enum mercury_rt_status {
  MERCURY_RT_OK = 0,
  MERCURY_RT_INVALID = 1,  /**< an argument no program may pass */
  MERCURY_RT_MISMATCH = 2, /**< two ranks disagree about one message */
  MERCURY_RT_TOKEN = 3,    /**< a token waited for twice, never, or unknown */
  MERCURY_RT_DEADLOCK = 4, /**< every rank waits or has ended */
  MERCURY_RT_DEADLINE = 5, /**< a peer is late beyond the deadline */
  MERCURY_RT_INJECTED = 6, /**< the failure that the job asked for */
  MERCURY_RT_RESOURCE = 7, /**< no memory or no thread to be had */
  MERCURY_RT_LEASE =
      8, /**< a lease closed twice, never, too early, or unknown */
  MERCURY_RT_KERNEL = 9,     /**< no kernel of this name */
  MERCURY_RT_CANCELLED = 10, /**< the caller wanted no more of it */

  MERCURY_RT_UNSUPPORTED = 11, /**< what this backend cannot do */
  MERCURY_RT_DEVICE = 12,      /**< a device, or a library of it, failed */
  MERCURY_RT_FIRST_FREE = 100
};

/** One rank's view of one run. */
typedef struct mercury_rt_context mercury_rt_context;

/** A compiled host program. `buffers` holds the pointers to this rank's shards
    in argument order. Returns a status. */
typedef int32_t (*mercury_rt_entry)(mercury_rt_context *context,
                                    void *const *buffers);

enum mercury_rt_element_type {
  MERCURY_RT_F16 = 1,
  MERCURY_RT_BF16 = 2,
  MERCURY_RT_F32 = 3,
  MERCURY_RT_F64 = 4
};

/** How ranks merge elements that they reduce together. */
enum mercury_rt_reduction { MERCURY_RT_SUM = 0, MERCURY_RT_MAX = 1 };

/** An n-d tile in this rank's memory. Where a size is 0, `data` is not used. */
typedef struct mercury_rt_tile {
  void *data; /**< its first element */
  int32_t element_type;
  int64_t rank;
  const int64_t *sizes;
  const int64_t *strides; /**< in elements */
} mercury_rt_tile;

/** A number that a kernel is told beside its tiles: `number` as it was given,
    `integer` the same for those that count. */
typedef struct mercury_rt_parameter {
  const char *name;
  int64_t integer;
  double number;
} mercury_rt_parameter;

/** What one launch tells its kernel. Inputs are only read. Results are merged
    into what `outputs` hold, as the kernel's own merge says. */
typedef struct mercury_rt_launch_arguments {
  int64_t number_of_inputs;
  const mercury_rt_tile *inputs;
  int64_t number_of_outputs;
  const mercury_rt_tile *outputs;
  int64_t number_of_parameters;
  const mercury_rt_parameter *parameters;
} mercury_rt_launch_arguments;

/** Runs to its end on the calling thread, and may run on many at once. Returns
    0, or a status, and then puts its cause, ended by 0, into the
    `message_bytes` bytes at `message`. */
typedef int32_t (*mercury_rt_kernel_function)(
    void *user_data, const mercury_rt_launch_arguments *arguments,
    char *message, int64_t message_bytes);

/** One entry of the table of kernels that a run comes with. */
typedef struct mercury_rt_kernel {
  const char *name;
  mercury_rt_kernel_function function;
  void *user_data;
} mercury_rt_kernel;

/** MERCURY_RT_ABI_VERSION of the library; a loader compares it with its own. */
MERCURY_RT_EXPORT int32_t mercury_rt_abi_version(void);

/** This rank's rank in `group`; -1, and the job fails, if there is no
    such group. */
MERCURY_RT_EXPORT int64_t mercury_rt_group_rank(mercury_rt_context *context,
                                                int64_t group);

/** The number of ranks of `group`; -1 as above. */
MERCURY_RT_EXPORT int64_t mercury_rt_group_size(mercury_rt_context *context,
                                                int64_t group);

/** The base of this rank's local arena, 64-byte aligned and as large as the run
    was told; null where that is 0. Its first contents are undefined. No other
    rank reaches it: none of it may be lent. */
MERCURY_RT_EXPORT void *mercury_rt_local_arena(mercury_rt_context *context);

/** The same of the symmetric arena, which is as large on every rank, and may be
    lent. */
MERCURY_RT_EXPORT void *mercury_rt_symmetric_arena(mercury_rt_context *context);

/** Starts to send `send_bytes` at `src` to one member of the group and to
    receive `recv_bytes` into `dst` from another. A side of zero bytes is
    skipped and its peer ignored, so both ends must agree that it is empty.
    Messages between two ranks match in the order of their starts. Naming this
    rank on both sides is a local copy. Sets `*token`, to 0 if both sides are
    empty. */
MERCURY_RT_EXPORT int32_t mercury_rt_exchange_start(
    mercury_rt_context *context, int64_t group, int64_t send_to,
    const void *src, int64_t send_bytes, int64_t recv_from, void *dst,
    int64_t recv_bytes, int64_t *token);

/** The same, by a put: what this rank sends is written to where its receiver
    waits for it, which must be at the offset of `dst` in the symmetric arena.
    So `dst` lies in that arena on every rank, at one offset, even where nothing
    is received; and so does `src`, at any. Puts match puts. */
MERCURY_RT_EXPORT int32_t mercury_rt_put_start(
    mercury_rt_context *context, int64_t group, int64_t send_to,
    const void *src, int64_t send_bytes, int64_t recv_from, void *dst,
    int64_t recv_bytes, int64_t *token);

/** Starts to gather one part from every member of the group, this one included:
    member m's part, of `bytes_of_member[m]` bytes, lands at
    `dst + m * slot_bytes`. Parts may be uneven or empty. `bytes_of_member` has
    one entry a member and is read before the call returns. `src` may be this
    rank's own slot and must not overlap any other. Every member takes part, in
    the same order among its operations with each other member. */
MERCURY_RT_EXPORT int32_t mercury_rt_all_gather_start(
    mercury_rt_context *context, int64_t group, const void *src,
    int64_t send_bytes, void *dst, int64_t slot_bytes,
    const int64_t *bytes_of_member, int64_t *token);

/** Starts to merge what every member of the group adds to each part: the slot
   of member m, at `src + m * slot_bytes`, holds what this rank adds to that
    member's part, of `bytes_of_member[m]` bytes. This rank's part lands at
    `dst`, of `bytes_of_member[self]` bytes, which lies apart from `src`; its
   own slot is left undefined. Elements are of `element_type`, merged as
    `reduction` says; slots hold whole elements. Otherwise as all_gather. */
MERCURY_RT_EXPORT int32_t mercury_rt_reduce_scatter_start(
    mercury_rt_context *context, int64_t group, void *src, int64_t slot_bytes,
    void *dst, const int64_t *bytes_of_member, int32_t element_type,
    int32_t reduction, int64_t *token);

/** Starts to merge `bytes` bytes at `src` of every member of the group into
    `dst` on each of them, which is `src` or lies apart from it. */
MERCURY_RT_EXPORT int32_t mercury_rt_all_reduce_start(
    mercury_rt_context *context, int64_t group, const void *src, void *dst,
    int64_t bytes, int32_t element_type, int32_t reduction, int64_t *token);

/** Starts to send each member m of the group `send_bytes[m]` bytes at
    `src + m * send_slot_bytes`, and to receive `recv_bytes[m]` bytes of it at
    `dst + m * recv_slot_bytes`, this one included. Both tables are read before
    the call returns. A part of no bytes is skipped. */
MERCURY_RT_EXPORT int32_t mercury_rt_all_to_all_start(
    mercury_rt_context *context, int64_t group, const void *src,
    int64_t send_slot_bytes, const int64_t *send_bytes, void *dst,
    int64_t recv_slot_bytes, const int64_t *recv_bytes, int64_t *token);

/** Starts to bring `bytes` bytes at `src` of member `root` of the group to
   `dst` on every member, the root included, where it may be `src`. `src` of
   the others is not used. */
MERCURY_RT_EXPORT int32_t mercury_rt_broadcast_start(
    mercury_rt_context *context, int64_t group, int64_t root, const void *src,
    void *dst, int64_t bytes, int64_t *token);

/** Blocks until the operation behind `token` is complete on this rank: its
    sources may be written, its destinations read. Token 0 is complete. */
MERCURY_RT_EXPORT int32_t mercury_rt_wait(mercury_rt_context *context,
                                          int64_t token);

/** Opens a lease: the other members of the group may read `bytes` bytes at
    `base`, whose contents are ready and which do not lie in the local arena.
    Returns at once. A rank that lends nothing, which is no bytes or null, opens
    the lease all the same. Sets `*lease`. */
MERCURY_RT_EXPORT int32_t mercury_rt_lease_open(mercury_rt_context *context,
                                                int64_t group, const void *base,
                                                int64_t bytes, int64_t *lease);

/** Sets `*base` to where this rank finds what `peer`, a group rank, lent;
   blocks until the peer has opened the lease. Only mercury_rt_pull_start reads
   there. The own memory is where it was. */
MERCURY_RT_EXPORT int32_t mercury_rt_lease_address(mercury_rt_context *context,
                                                   int64_t lease, int64_t peer,
                                                   const void **base);

/** Starts to read `rows` rows of `row_bytes` bytes out of what a member lent,
    `src_pitch` bytes apart, into rows `dst_pitch` bytes apart. `src` was
    reckoned from mercury_rt_lease_address. The peer takes no part; where it is
    this rank itself, its own memory is copied beside its kernels. Sets
    `*token`, to 0 if there is nothing to read. */
MERCURY_RT_EXPORT int32_t mercury_rt_pull_start(
    mercury_rt_context *context, int64_t lease, int64_t peer, const void *src,
    int64_t src_pitch, void *dst, int64_t dst_pitch, int64_t row_bytes,
    int64_t rows, int64_t *token);

/** Closes a lease, of which every pull has been waited for. Blocks until every
    member has closed it: then nobody reads what this rank lent. A lease is
    closed once, before the program returns. */
MERCURY_RT_EXPORT int32_t mercury_rt_lease_close(mercury_rt_context *context,
                                                 int64_t lease);

/** Runs the kernel of this name and returns when it is done. A status of its
    own fails the job, naming rank and kernel. */
MERCURY_RT_EXPORT int32_t
mercury_rt_launch(mercury_rt_context *context, const char *name,
                  const mercury_rt_launch_arguments *arguments);

/** Fails the job with `code`, which must not be 0, and `message`, which the
    library prefixes with this rank. Returns the code of the job's first
    failure, which is `code` unless another came before. */
MERCURY_RT_EXPORT int32_t mercury_rt_fail(mercury_rt_context *context,
                                          int32_t code, const char *message);

/** The message of the last call, or run, that failed on this thread; empty if
    none did. Valid until the next failure on this thread. */
MERCURY_RT_EXPORT const char *mercury_rt_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_RT_RUNTIME_H */
