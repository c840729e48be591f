//===- launch.cpp - Kernels that a run comes with -------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <cstring>

/// Adds `factor` times its strided input to its output, of one dimension.
static int32_t addScaled(void *user_data,
                         const mercury_rt_launch_arguments *arguments,
                         char *message, int64_t message_bytes) {
  const mercury_rt_tile &in = arguments->inputs[0];
  const mercury_rt_tile &out = arguments->outputs[0];
  EXPECT(arguments->number_of_inputs == 1 && arguments->number_of_outputs == 1);
  EXPECT(arguments->number_of_parameters == 2);
  EXPECT(in.element_type == MERCURY_RT_F32 && out.rank == 1);
  const mercury_rt_parameter *parameters = arguments->parameters;
  EXPECT(std::string(parameters[0].name) == "factor");
  EXPECT(std::string(parameters[1].name) == "rank");
  if (parameters[1].integer == *static_cast<const int64_t *>(user_data)) {
    std::snprintf(message, message_bytes, "%s",
                  std::string(4000, 'x').replace(0, 9, "it broke:").c_str());
    return 123;
  }
  for (int64_t i = 0; i < in.sizes[0]; ++i)
    static_cast<float *>(out.data)[i * out.strides[0]] +=
        static_cast<float>(parameters[0].number) *
        static_cast<const float *>(in.data)[i * in.strides[0]];
  return 0;
}

static int32_t silent(void *, const mercury_rt_launch_arguments *, char *,
                      int64_t) {
  return 7;
}

/// buffers: the kernel's name.
static int32_t launchOnce(mercury_rt_context *context, void *const *buffers) {
  int64_t self = mercury_rt_group_rank(context, 0);
  float in[] = {1, -1, 2, -1, 3, -1}, out[] = {10, 20, 30};
  int64_t sizes[] = {3}, two[] = {2}, one[] = {1};
  mercury_rt_tile from = {in, MERCURY_RT_F32, 1, sizes, two};
  mercury_rt_tile to = {out, MERCURY_RT_F32, 1, sizes, one};
  mercury_rt_parameter parameters[] = {{"factor", 0, 0.5}, {"rank", self, 0}};
  mercury_rt_launch_arguments arguments = {1, &from, 1, &to, 2, parameters};
  CHECK(mercury_rt_launch(context, static_cast<const char *>(buffers[0]),
                          &arguments));
  EXPECT(out[0] == 10.5f && out[1] == 21 && out[2] == 31.5f);
  return 0;
}

int main() {
  int64_t breaks = -1;
  mercury_rt_kernel kernels[] = {{"mine.add", addScaled, &breaks},
                                 {"mine.silent", silent, nullptr}};
  auto makeJob = [&](const char *name) {
    SimJob job({{"gpu", 3}}, launchOnce);
    job.description.kernels = kernels;
    job.description.number_of_kernels = 2;
    for (std::vector<void *> &buffers : job.buffers)
      buffers = {const_cast<char *>(name)};
    return job;
  };
  EXPECT(makeJob("mine.add").run() == 0);
  breaks = 2;
  SimJob broken = makeJob("mine.add");
  broken.expectFailure(123, 2,
                       "rank 2 (gpu=2), after operation 0, kernel 'mine.add' "
                       "failed with status 123: it broke:xxx");
  EXPECT(std::string(mercury_rt_last_error()).size() < 1200);
  SimJob quiet = makeJob("mine.silent");
  EXPECT(quiet.run() == 7);
  EXPECT(std::strstr(mercury_rt_last_error(),
                     "kernel 'mine.silent' failed with status 7: it gave no "
                     "cause"));
  SimJob unknown = makeJob("torch.add");
  EXPECT(unknown.run() == MERCURY_RT_KERNEL);
  EXPECT(std::strstr(mercury_rt_last_error(),
                     "after operation 0, kernel 'torch.add': there is no "
                     "kernel of this name; the run came with 'mine.add', "
                     "'mine.silent', register it before the run"));

  SimJob bad = makeJob("mine.add");
  bad.description.kernels = nullptr;
  EXPECT(bad.run() == MERCURY_RT_INVALID);
  EXPECT(std::string(mercury_rt_last_error()) ==
         "cannot run the job: it has 2 kernels and no table of them");
  kernels[1].function = nullptr;
  EXPECT(makeJob("mine.add").run() == MERCURY_RT_INVALID);
}
