//===- Lane.cpp - What a backend without a device does --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a call computes at once, the order of the program is one of all lanes.
//
//===----------------------------------------------------------------------===//

#include "mercury-rt/lane.h"
#include "lib/Runtime/Context.h"
#include <cstring>

int32_t mercury_rt_device_launch(mercury_rt_context *context,
                                 const mercury_rt_device_kernel *kernel) {
  return context->deviceLaunch(*kernel);
}

int32_t mercury_rt_copy(mercury_rt_context *context, const void *src,
                        int64_t src_pitch, void *dst, int64_t dst_pitch,
                        int64_t row_bytes, int64_t rows) {
  return context->copy(src, src_pitch, dst, dst_pitch, row_bytes, rows);
}

int32_t mercury_rt_lane_use(mercury_rt_context *context, int64_t lane) {
  return context->useLane(lane);
}

int32_t mercury_rt_lane_mark(mercury_rt_context *context, int64_t *token) {
  return context->markLane(token);
}

int32_t
mercury_rt_context::deviceLaunch(const mercury_rt_device_kernel &kernel) {
  return fail(MERCURY_RT_UNSUPPORTED,
              ("cannot launch device kernel '" + std::string(kernel.name) +
               "': this backend has no device; compile the plan for it")
                  .c_str());
}

int32_t mercury_rt_context::copy(const void *src, int64_t srcPitch, void *dst,
                                 int64_t dstPitch, int64_t rowBytes,
                                 int64_t rows) {
  for (int64_t row = 0; row < rows; ++row)
    std::memmove(static_cast<char *>(dst) + row * dstPitch,
                 static_cast<const char *>(src) + row * srcPitch, rowBytes);
  return MERCURY_RT_OK;
}

int32_t mercury_rt_context::useLane(int64_t lane) {
  if (lane >= 0 && lane < MERCURY_RT_MAX_LANES)
    return MERCURY_RT_OK;
  return fail(MERCURY_RT_INVALID, ("there is no lane " + std::to_string(lane) +
                                   "; lanes go from 0 to " +
                                   std::to_string(MERCURY_RT_MAX_LANES - 1))
                                      .c_str());
}

int32_t mercury_rt_context::markLane(int64_t *token) {
  *token = 0; // complete
  return MERCURY_RT_OK;
}
