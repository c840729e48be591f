//===- schedules.cpp - The programs of Schedules.h, on the fake driver ----===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each program runs and is replayed with inputs that change every time, on
// devices that do unordered work in random order, and is compared with a
// reference in double precision. Kernels are put into the stream like any
// other work, as those of a library are.
//
//===----------------------------------------------------------------------===//

#include "Schedules.h"
#include "CudaJob.h"
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>

static constexpr int kReplays = 100;

//===----------------------------------------------------------------------===//
// Kernels, in float
//===----------------------------------------------------------------------===//

static void matmul(const float *a, const float *b, float *c, int64_t m,
                   int64_t k, int64_t n, bool accumulate) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = accumulate ? c[i * n + j] : 0;
      for (int64_t l = 0; l < k; ++l)
        sum += double(a[i * k + l]) * b[l * n + j];
      c[i * n + j] = static_cast<float>(sum);
    }
}

/// One (batch, head): rows of q and k are `stride` apart.
static void attend(const float *q, const float *k, const float *v, float *o,
                   float *lse, int64_t rows, int64_t columns, int64_t dim,
                   int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<double> out(dim), scores(columns);
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t d = 0; d < dim; ++d)
        scores[j] += double(q[i * stride + d]) * k[j * stride + d];
      largest = std::max(largest, scores[j]);
    }
    for (int64_t j = 0; j < columns; ++j) {
      double weight = std::exp(scores[j] - largest);
      sum += weight;
      for (int64_t d = 0; d < dim; ++d)
        out[d] += weight * v[j * stride + d];
    }
    for (int64_t d = 0; d < dim; ++d)
      o[i * stride + d] = static_cast<float>(out[d] / sum);
    lse[i] = static_cast<float>(largest + std::log(sum));
  }
}

/// The lane in use, of the context that a rank's kernels are told.
static void *streamOf(void *user_data) {
  return mercury_rt_cuda_stream(*static_cast<mercury_rt_context **>(user_data));
}

static int32_t launchMatmul(void *user_data,
                            const mercury_rt_launch_arguments *arguments,
                            char *, int64_t) {
  const mercury_rt_tile *in = arguments->inputs;
  auto *a = static_cast<float *>(in[0].data);
  auto *b = static_cast<float *>(in[1].data);
  auto *c = static_cast<float *>(arguments->outputs[0].data);
  int64_t m = in[0].sizes[0], k = in[0].sizes[1], n = in[1].sizes[1];
  bool accumulate = arguments->parameters[0].integer;
  fake_cuda_call(streamOf(user_data),
                 [=] { matmul(a, b, c, m, k, n, accumulate); });
  return 0;
}

/// Places its results itself, as a library would; they are kept for ever.
static int32_t launchAttention(void *user_data,
                               const mercury_rt_launch_arguments *arguments,
                               char *, int64_t) {
  const mercury_rt_tile *in = arguments->inputs;
  int64_t batch = in[0].sizes[0], heads = in[0].sizes[1];
  int64_t rows = in[0].sizes[2], dim = in[0].sizes[3], columns = in[1].sizes[2];
  auto *q = static_cast<float *>(in[0].data);
  auto *k = static_cast<float *>(in[1].data);
  auto *v = static_cast<float *>(in[2].data);
  static std::mutex mutex;
  static std::vector<std::vector<float>> kept;
  float *o, *lse;
  {
    std::lock_guard lock(mutex);
    kept.emplace_back(batch * heads * rows * dim, NAN);
    o = kept.back().data();
    kept.emplace_back(batch * heads * rows, NAN);
    lse = kept.back().data();
  }
  *reinterpret_cast<schedule_results *>(arguments->parameters[0].integer) = {
      o, lse};
  fake_cuda_call(streamOf(user_data), [=] {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h) {
        int64_t at = b * rows * heads * dim + h * dim;
        int64_t there = b * columns * heads * dim + h * dim;
        attend(q + at, k + there, v + there, o + at,
               lse + (b * heads + h) * rows, rows, columns, dim, heads * dim);
      }
  });
  return 0;
}

/// The arguments of softmax-merge-gpu.mlir, here for float.
static void merge(void **arguments) {
  auto pointer = [&](int i) { return *static_cast<float **>(arguments[i]); };
  auto number = [&](int i) { return *static_cast<int64_t *>(arguments[i]); };
  float *o1 = pointer(0), *lse1 = pointer(1), *o2 = pointer(2);
  float *lse2 = pointer(3), *o = pointer(4), *lse = pointer(5);
  int64_t dim = number(6) * 8, heads = number(7), rows = number(8);
  for (int64_t row = 0; row < number(9) / number(6); ++row) {
    int64_t head = row % heads, line = row / heads;
    int64_t at = (line / rows * heads + head) * rows + line % rows;
    double largest = std::max(lse1[at], lse2[at]);
    double w1 = std::exp(lse1[at] - largest), w2 = std::exp(lse2[at] - largest);
    for (int64_t d = row * dim; d < (row + 1) * dim; ++d)
      o[d] = static_cast<float>((w1 * o1[d] + w2 * o2[d]) / (w1 + w2));
    lse[at] = static_cast<float>(largest + std::log(w1 + w2));
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

using Tensor = std::vector<float>;

static Tensor randomTensor(int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Tensor tensor(size);
  for (float &value : tensor)
    value = uniform(random);
  return tensor;
}

static void expectNear(const float *actual, const Tensor &expected,
                       int64_t offset, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    double difference = std::abs(actual[i] - expected[offset + i]);
    if (!(difference < 1e-4)) {
      std::fprintf(stderr, "element %d: expected %g, got %g\n",
                   static_cast<int>(offset + i), expected[offset + i],
                   actual[i]);
      std::exit(1);
    }
  }
}

/// A tensor on the device of one rank, between two others in its allocation.
struct DeviceTensor {
  explicit DeviceTensor(size_t size) {
    EXPECT(fake_cuda_allocate(&memory, (size + 128) * sizeof(float)) == 0);
    data = static_cast<float *>(memory) + 64;
  }
  ~DeviceTensor() { fake_cuda_free(memory); }
  void *memory = nullptr;
  float *data;
};

/// Runs a program once, captures it, replays it, each time with new inputs.
static void runEach(mercury_rt_context *context, mercury_rt_entry entry,
                    void *const *buffers,
                    const std::function<void(int round)> &fill,
                    const std::function<void(int round)> &check) {
  mercury_rt_cuda_graph *graph = nullptr;
  for (int round = 0; round < kReplays; ++round) {
    fill(round);
    bool eager = round < 2 || round == kReplays / 2;
    if (round == 2)
      EXPECT(mercury_rt_cuda_capture(context, entry, buffers, &graph) == 0);
    EXPECT((eager ? mercury_rt_cuda_run(context, entry, buffers, nullptr)
                  : mercury_rt_cuda_replay(context, graph, nullptr)) == 0);
    EXPECT(mercury_rt_cuda_synchronize(context) == 0);
    check(round);
  }
  mercury_rt_cuda_graph_free(context, graph);
}

static void testAttention(int64_t ranks, int64_t lanes) {
  schedule_sizes sizes = {};
  sizes.lanes = lanes;
  sizes.chunks = 2;
  sizes.element = MERCURY_RT_F32;
  sizes.element_bytes = 4;
  sizes.batch = 2;
  sizes.rows = 3;
  sizes.heads = 2;
  sizes.dim = 8;
  sizes.merge_image = "fake";
  sizes.merge_image_bytes = 5;
  int64_t all = ranks * sizes.rows, line = sizes.heads * sizes.dim;
  int64_t size = sizes.batch * sizes.rows * line;
  CudaJob job({{"gpu", ranks}});
  job.description.local_bytes = 2 * ranks * size * 4;
  job.kernels = {{"test.matmul", launchMatmul, nullptr},
                 {"test.attention", launchAttention, nullptr}};
  job.run([&](mercury_rt_context *context, int64_t rank) {
    DeviceTensor q(size), k(size), v(size), o(size), lse(size / sizes.dim);
    void *buffers[] = {&sizes, q.data, k.data, v.data, o.data, lse.data};
    auto whole = [&](int round, int which) {
      return randomTensor(sizes.batch * all * line, 3 * round + which);
    };
    auto fill = [&](int round) {
      for (int which = 0; which < 3; ++which) {
        Tensor from = whole(round, which);
        for (int64_t b = 0; b < sizes.batch; ++b)
          std::memcpy(static_cast<float *>(buffers[1 + which]) +
                          b * sizes.rows * line,
                      &from[(b * all + rank * sizes.rows) * line],
                      sizes.rows * line * 4);
      }
      std::fill(o.data, o.data + size, NAN);
    };
    auto check = [&](int round) {
      Tensor whole_q = whole(round, 0), whole_k = whole(round, 1);
      Tensor whole_v = whole(round, 2), out(sizes.batch * all * line);
      Tensor sums(all);
      for (int64_t b = 0; b < sizes.batch; ++b) {
        for (int64_t h = 0; h < sizes.heads; ++h) {
          int64_t at = b * all * line + h * sizes.dim;
          attend(&whole_q[at], &whole_k[at], &whole_v[at], &out[at],
                 sums.data(), all, all, sizes.dim, line);
          expectNear(lse.data + (b * sizes.heads + h) * sizes.rows, sums,
                     rank * sizes.rows, sizes.rows);
        }
        expectNear(o.data + b * sizes.rows * line, out,
                   (b * all + rank * sizes.rows) * line, sizes.rows * line);
      }
    };
    runEach(context, schedule_attention, buffers, fill, check);
    return 0;
  });
  job.expectSuccess();
}

static void testProduct(int64_t ranks, mercury_rt_entry entry, bool gathers,
                        int64_t lanes) {
  schedule_sizes sizes = {};
  sizes.lanes = lanes;
  sizes.element = MERCURY_RT_F32;
  sizes.element_bytes = 4;
  sizes.m = 4 * ranks;
  sizes.k = 5;
  sizes.n = 3;
  sizes.chunks = 2;
  int64_t aRows = gathers ? sizes.m / ranks : sizes.m;
  int64_t cRows = gathers ? sizes.m : sizes.m / ranks;
  CudaJob job({{"gpu", ranks}});
  job.description.local_bytes = gathers ? sizes.m * sizes.k * 4 : 0;
  job.description.symmetric_bytes = gathers ? 0 : sizes.m * sizes.n * 4;
  job.kernels = {{"test.matmul", launchMatmul, nullptr},
                 {"test.attention", launchAttention, nullptr}};
  job.run([&](mercury_rt_context *context, int64_t rank) {
    DeviceTensor a(aRows * sizes.k), b(sizes.k * sizes.n), c(cRows * sizes.n);
    void *buffers[] = {&sizes, a.data, b.data, c.data};
    auto partA = [&](int round, int64_t of) {
      return randomTensor(aRows * sizes.k, 100 * round + of);
    };
    auto partB = [&](int round, int64_t of) {
      return randomTensor(sizes.k * sizes.n, 100 * round + 50 + of);
    };
    auto fill = [&](int round) {
      Tensor partOfA = partA(round, rank), partOfB = partB(round, rank);
      std::copy(partOfA.begin(), partOfA.end(), a.data);
      std::copy(partOfB.begin(), partOfB.end(), b.data);
      std::fill(c.data, c.data + cRows * sizes.n, NAN);
    };
    auto check = [&](int round) {
      Tensor expected(sizes.m * sizes.n);
      for (int64_t other = 0; other < ranks; ++other)
        if (gathers)
          matmul(partA(round, other).data(), partB(round, rank).data(),
                 &expected[other * aRows * sizes.n], aRows, sizes.k, sizes.n,
                 false);
        else
          matmul(partA(round, other).data(), partB(round, other).data(),
                 expected.data(), sizes.m, sizes.k, sizes.n, true);
      expectNear(c.data, expected, gathers ? 0 : rank * cRows * sizes.n,
                 cRows * sizes.n);
    };
    runEach(context, entry, buffers, fill, check);
    return 0;
  });
  job.expectSuccess();
}

int main() {
  fake_cuda_define("softmax_merge", 10, merge);
  fake_cuda_set_delay(1, 200); // one rank is late
  int64_t before = fake_cuda_count_objects();
  testAttention(1, 1);
  for (int64_t lanes : {1, 2}) {
    testAttention(2, lanes);
    testAttention(3, lanes);
    testProduct(2, schedule_ag_gemm, true, lanes);
    testProduct(4, schedule_ag_gemm, true, lanes);
    testProduct(2, schedule_gemm_rs, false, lanes);
  }
  EXPECT(fake_cuda_count_objects() == before);
}
