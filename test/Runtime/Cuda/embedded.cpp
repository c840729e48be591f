//===- embedded.cpp - What lane.h means where ranks are threads -----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../SimJob.h"
#include "mercury-rt/lane.h"
#include <cstring>

/// buffers: 12 bytes, and room for as many. Copies rows on two lanes, which are
/// in the order of the program.
static int32_t copyRows(mercury_rt_context *context, void *const *buffers) {
  int64_t token = 7;
  char *to = static_cast<char *>(buffers[1]);
  CHECK(mercury_rt_copy(context, buffers[0], 4, to, 3, 2, 3));
  CHECK(mercury_rt_lane_use(context, 1));
  CHECK(mercury_rt_copy(context, to + 6, 3, to, 3, 2, 1));
  CHECK(mercury_rt_lane_mark(context, &token));
  CHECK(mercury_rt_lane_use(context, 0));
  return mercury_rt_wait(context, token);
}

static int32_t useWrongLane(mercury_rt_context *context, void *const *) {
  return mercury_rt_lane_use(context, -1);
}

static int32_t launchOnNothing(mercury_rt_context *context, void *const *) {
  mercury_rt_device_kernel kernel = {"ptx",     4, "merge", {1, 1, 1},
                                     {1, 1, 1}, 0, nullptr};
  return mercury_rt_device_launch(context, &kernel);
}

int main() {
  char from[] = "abcdefghijkl", to[] = ".........";
  SimJob job({{"gpu", 1}}, copyRows);
  job.buffers[0] = {from, to};
  EXPECT(job.run() == 0);
  EXPECT(std::strcmp(to, "ij.ef.ij.") == 0);

  SimJob wrong({{"gpu", 1}}, useWrongLane);
  wrong.expectFailure(MERCURY_RT_INVALID, 0, "there is no lane -1");
  SimJob without({{"gpu", 1}}, launchOnNothing);
  without.expectFailure(MERCURY_RT_UNSUPPORTED, 0,
                        "cannot launch device kernel 'merge': this backend has "
                        "no device");
}
