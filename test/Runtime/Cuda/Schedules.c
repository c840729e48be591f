/*===- Schedules.c - Three programs written by hand -----------------------===*\
|*
|* Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "Schedules.h"
#include <stddef.h>

enum { MAX_RANKS = 16, MAX_CHUNKS = 8, MERGE_ELEMENTS = 8, MERGE_BLOCK = 256 };

/** What a compiled program does with each status. */
#define CHECK(call)                                                            \
  do {                                                                         \
    int32_t status_ = (call);                                                  \
    if (status_)                                                               \
      return status_;                                                          \
  } while (0)

/*--- Tiles and kernels ------------------------------------------------------*/

/** A tile with its sizes and strides. */
typedef struct tile {
  void *data;
  int32_t element;
  int32_t dims;
  int64_t sizes[4], strides[4];
} tile;

static mercury_rt_tile describe(const tile *t) {
  mercury_rt_tile described = {t->data, t->element, t->dims, t->sizes,
                               t->strides};
  return described;
}

static tile matrix(const schedule_sizes *s, void *data, int64_t rows,
                   int64_t columns) {
  tile t = {data, s->element, 2, {rows, columns}, {columns, 1}};
  return t;
}

/** A tensor of [batch, rows, heads, dim] as [batch, heads, rows, dim]. */
static tile heads(const schedule_sizes *s, void *data, int64_t batch,
                  int64_t rows) {
  int64_t line = s->heads * s->dim;
  tile t = {data,
            s->element,
            4,
            {batch, s->heads, rows, s->dim},
            {rows * line, s->dim, line, 1}};
  return t;
}

/** c = a b, or c += a b. */
static int32_t matmul(mercury_rt_context *context, tile a, tile b, tile c,
                      int64_t accumulate) {
  mercury_rt_tile inputs[] = {describe(&a), describe(&b)};
  mercury_rt_tile output = describe(&c);
  mercury_rt_parameter parameter = {"accumulate", accumulate,
                                    (double)accumulate};
  mercury_rt_launch_arguments arguments = {2,       inputs, 1,
                                           &output, 1,      &parameter};
  return mercury_rt_launch(context, "test.matmul", &arguments);
}

/** Of `batch` batches, whose keys have `columns` rows. */
static int32_t attend(mercury_rt_context *context, const schedule_sizes *s,
                      int64_t batch, int64_t columns, void *q, void *k, void *v,
                      schedule_results *results) {
  tile given[] = {heads(s, q, batch, s->rows), heads(s, k, batch, columns),
                  heads(s, v, batch, columns)};
  mercury_rt_tile inputs[] = {describe(&given[0]), describe(&given[1]),
                              describe(&given[2])};
  mercury_rt_parameter parameter = {"results", (int64_t)(intptr_t)results, 0};
  mercury_rt_launch_arguments arguments = {3, inputs, 0, NULL, 1, &parameter};
  return mercury_rt_launch(context, "test.attention", &arguments);
}

/** (o, lse) = merge of two partial results. */
static int32_t merge(mercury_rt_context *context, const schedule_sizes *s,
                     schedule_results a, schedule_results b, void *o,
                     void *lse) {
  int64_t items = s->batch * s->rows * s->heads * s->dim / MERGE_ELEMENTS;
  int64_t row_items = s->dim / MERGE_ELEMENTS;
  int64_t head_count = s->heads, row_count = s->rows;
  void *arguments[] = {&a.o, &a.lse,     &b.o,        &b.lse,     &o,
                       &lse, &row_items, &head_count, &row_count, &items};
  mercury_rt_device_kernel kernel = {
      s->merge_image,
      s->merge_image_bytes,
      "softmax_merge",
      {(items + MERGE_BLOCK - 1) / MERGE_BLOCK, 1, 1},
      {MERGE_BLOCK, 1, 1},
      0,
      arguments};
  return mercury_rt_device_launch(context, &kernel);
}

/** Back to the first lane, after what the other one holds. */
static int32_t join(mercury_rt_context *context, const schedule_sizes *s) {
  int64_t token;
  if (s->lanes == 1)
    return 0;
  CHECK(mercury_rt_lane_mark(context, &token));
  CHECK(mercury_rt_lane_use(context, 0));
  return mercury_rt_wait(context, token);
}

/*--- The programs -----------------------------------------------------------*/

int32_t schedule_attention(mercury_rt_context *context, void *const *buffers) {
  const schedule_sizes *s = buffers[0];
  void *q = buffers[1], *k = buffers[2], *v = buffers[3];
  int64_t ranks = mercury_rt_group_size(context, 0);
  int64_t self = mercury_rt_group_rank(context, 0);
  int64_t bytes = s->batch * s->rows * s->heads * s->dim * s->element_bytes;
  char *arena = mercury_rt_local_arena(context);
  int64_t k_lease, v_lease, tokens[2 * MAX_RANKS] = {0};
  if (ranks < 0 || ranks > MAX_RANKS)
    return mercury_rt_fail(context, MERCURY_RT_INVALID, "too many ranks");

  CHECK(mercury_rt_lease_open(context, 0, k, bytes, &k_lease));
  CHECK(mercury_rt_lease_open(context, 0, v, bytes, &v_lease));
  for (int64_t hop = 1; hop < ranks; ++hop) {
    int64_t peer = (self + hop) % ranks, leases[] = {k_lease, v_lease};
    const void *there[2];
    for (int64_t i = 0; i < 2; ++i)
      CHECK(mercury_rt_lease_address(context, leases[i], peer, &there[i]));
    for (int64_t i = 0; i < 2; ++i) {
      int64_t slot = 2 * (hop - 1) + i;
      CHECK(mercury_rt_pull_start(context, leases[i], peer, there[i], bytes,
                                  arena + slot * bytes, bytes, bytes, 1,
                                  &tokens[slot]));
    }
  }
  schedule_results total, part;
  CHECK(attend(context, s, s->batch, s->rows, q, k, v, &total));
  for (int64_t hop = 1; hop < ranks; ++hop) {
    int64_t slot = 2 * (hop - 1);
    CHECK(mercury_rt_lane_use(context, s->lanes - 1));
    CHECK(mercury_rt_wait(context, tokens[slot]));
    CHECK(mercury_rt_wait(context, tokens[slot + 1]));
    CHECK(attend(context, s, s->batch, s->rows, q, arena + slot * bytes,
                 arena + (slot + 1) * bytes, &part));
    CHECK(join(context, s));
    CHECK(merge(context, s, total, part, buffers[4], buffers[5]));
    total.o = buffers[4];
    total.lse = buffers[5];
  }
  if (ranks == 1) {
    CHECK(
        mercury_rt_copy(context, total.o, bytes, buffers[4], bytes, bytes, 1));
    int64_t lse_bytes = s->batch * s->rows * s->heads * 4;
    CHECK(mercury_rt_copy(context, total.lse, lse_bytes, buffers[5], lse_bytes,
                          lse_bytes, 1));
  }
  CHECK(mercury_rt_lease_close(context, k_lease));
  return mercury_rt_lease_close(context, v_lease);
}

int32_t schedule_ag_gemm(mercury_rt_context *context, void *const *buffers) {
  const schedule_sizes *s = buffers[0];
  int64_t ranks = mercury_rt_group_size(context, 0);
  int64_t self = mercury_rt_group_rank(context, 0);
  int64_t rows = s->m / ranks / s->chunks;
  int64_t row_bytes = s->k * s->element_bytes;
  char *a = buffers[1], *c = buffers[3],
       *arena = mercury_rt_local_arena(context);
  int64_t lease, tokens[MAX_RANKS * MAX_CHUNKS] = {0};
  if (ranks < 0 || ranks > MAX_RANKS || s->chunks > MAX_CHUNKS ||
      s->m % (ranks * s->chunks))
    return mercury_rt_fail(context, MERCURY_RT_INVALID,
                           "gathers even chunks of at most 16 ranks");

  CHECK(mercury_rt_lease_open(context, 0, a, rows * s->chunks * row_bytes,
                              &lease));
  for (int64_t part = 0; part < (ranks - 1) * s->chunks; ++part) {
    int64_t peer = (self + 1 + part / s->chunks) % ranks;
    const void *there;
    CHECK(mercury_rt_lease_address(context, lease, peer, &there));
    CHECK(mercury_rt_pull_start(context, lease, peer,
                                (const char *)there +
                                    part % s->chunks * rows * row_bytes,
                                row_bytes, arena + part * rows * row_bytes,
                                row_bytes, row_bytes, rows, &tokens[part]));
  }
  tile b = matrix(s, buffers[2], s->k, s->n);
  int64_t own = s->m / ranks, out = s->n * s->element_bytes;
  CHECK(matmul(context, matrix(s, a, own, s->k), b,
               matrix(s, c + self * own * out, own, s->n), 0));
  CHECK(mercury_rt_lane_use(context, s->lanes - 1));
  for (int64_t part = 0; part < (ranks - 1) * s->chunks; ++part) {
    int64_t peer = (self + 1 + part / s->chunks) % ranks;
    int64_t at = peer * own + part % s->chunks * rows;
    CHECK(mercury_rt_wait(context, tokens[part]));
    CHECK(matmul(context,
                 matrix(s, arena + part * rows * row_bytes, rows, s->k), b,
                 matrix(s, c + at * out, rows, s->n), 0));
  }
  CHECK(join(context, s));
  return mercury_rt_lease_close(context, lease);
}

int32_t schedule_gemm_rs(mercury_rt_context *context, void *const *buffers) {
  const schedule_sizes *s = buffers[0];
  int64_t ranks = mercury_rt_group_size(context, 0);
  int64_t self = mercury_rt_group_rank(context, 0);
  int64_t own = s->m / ranks, rows = own / s->chunks;
  int64_t in = s->k * s->element_bytes, out = s->n * s->element_bytes;
  int64_t chunk_bytes = rows * out;
  char *a = buffers[1], *c = buffers[3];
  char *arena = mercury_rt_symmetric_arena(context);
  tile b = matrix(s, buffers[2], s->k, s->n);
  int64_t leases[MAX_RANKS * MAX_CHUNKS], tokens[MAX_CHUNKS] = {0};
  if (ranks != 2 || s->chunks > MAX_CHUNKS || own % s->chunks)
    return mercury_rt_fail(context, MERCURY_RT_UNSUPPORTED,
                           "adds even chunks of the parts of two ranks only");

  /* The peer's part, each chunk lent as soon as it exists. */
  int64_t peer = 1 - self;
  for (int64_t chunk = 0; chunk < s->chunks; ++chunk) {
    const void *there;
    char *part = arena + chunk * chunk_bytes;
    CHECK(matmul(context,
                 matrix(s, a + (peer * own + chunk * rows) * in, rows, s->k), b,
                 matrix(s, part, rows, s->n), 0));
    CHECK(mercury_rt_lease_open(context, 0, part, chunk_bytes, &leases[chunk]));
    CHECK(mercury_rt_lease_address(context, leases[chunk], peer, &there));
    CHECK(mercury_rt_pull_start(context, leases[chunk], peer, there, out,
                                c + chunk * chunk_bytes, out, out, rows,
                                &tokens[chunk]));
  }
  /* The own part, added to what was received. */
  CHECK(mercury_rt_lane_use(context, s->lanes - 1));
  for (int64_t chunk = 0; chunk < s->chunks; ++chunk) {
    CHECK(mercury_rt_wait(context, tokens[chunk]));
    CHECK(matmul(context,
                 matrix(s, a + (self * own + chunk * rows) * in, rows, s->k), b,
                 matrix(s, c + chunk * chunk_bytes, rows, s->n), 1));
  }
  CHECK(join(context, s));
  for (int64_t chunk = 0; chunk < s->chunks; ++chunk)
    CHECK(mercury_rt_lease_close(context, leases[chunk]));
  return 0;
}

int32_t schedule_messages(mercury_rt_context *context, void *const *buffers) {
  const schedule_sizes *s = buffers[0];
  int64_t ranks = mercury_rt_group_size(context, 0);
  int64_t self = mercury_rt_group_rank(context, 0);
  int64_t next = (self + 1) % ranks, previous = (self + ranks - 1) % ranks;
  int64_t token = 0, bytes[MAX_RANKS];
  char *arena = mercury_rt_local_arena(context);
  if (ranks < 0 || ranks > MAX_RANKS)
    return mercury_rt_fail(context, MERCURY_RT_INVALID, "too many ranks");

  for (int64_t member = 0; member < ranks; ++member)
    bytes[member] = s->k ? s->m - member : s->m;
  CHECK(mercury_rt_all_gather_start(context, 0, buffers[1], bytes[self],
                                    buffers[3], s->m, bytes, &token));
  CHECK(mercury_rt_copy(context, buffers[1], s->m, buffers[2], s->m, s->m, 1));
  CHECK(mercury_rt_wait(context, token));
  for (int64_t hop = 0; hop < ranks; ++hop) {
    CHECK(mercury_rt_exchange_start(context, 0, next, buffers[2], s->m,
                                    previous, arena, s->m, &token));
    CHECK(mercury_rt_wait(context, token));
    CHECK(mercury_rt_copy(context, arena, s->m, buffers[2], s->m, s->m, 1));
  }
  return 0;
}

int32_t schedule_puts(mercury_rt_context *context, void *const *buffers) {
  const schedule_sizes *s = buffers[0];
  int64_t ranks = mercury_rt_group_size(context, 0);
  int64_t self = mercury_rt_group_rank(context, 0);
  int64_t next = (self + 1) % ranks, previous = (self + ranks - 1) % ranks;
  int64_t token = 0;
  char *arena = mercury_rt_symmetric_arena(context);
  char *parts = buffers[2];

  CHECK(mercury_rt_copy(context, buffers[1], s->m, arena, s->m, s->m, 1));
  for (int64_t hop = 0; hop < ranks; ++hop) {
    char *held = arena + hop % 2 * s->m, *coming = arena + (hop + 1) % 2 * s->m;
    int64_t moved = hop + 1 < ranks ? s->m : 0;
    CHECK(mercury_rt_put_start(context, 0, next, held, moved, previous, coming,
                               moved, &token));
    CHECK(mercury_rt_copy(context, held, s->m, parts + hop * s->m, s->m, s->m,
                          1));
    CHECK(mercury_rt_wait(context, token));
  }
  return 0;
}

int32_t schedule_nothing(void *user_data,
                         const mercury_rt_launch_arguments *arguments,
                         char *message, int64_t message_bytes) {
  (void)user_data, (void)arguments, (void)message, (void)message_bytes;
  return 0;
}
