//===- Kernel.cpp - Kernels by name, and what every backend can do --------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The registry is the process's: a kernel is code, and belongs to no plan.
//
//===----------------------------------------------------------------------===//

#include "mercury-rt/kernel.h"
#include "lib/Runtime/Context.h"
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

using namespace mercury::rt;

namespace {
struct Registered {
  mercury_rt_kernel kernel;
  void *user;
};
struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, Registered, std::less<>> kernels;
};
} // namespace

static Registry &registry() {
  static Registry *registry = new Registry; // outlives every thread
  return *registry;
}

int32_t mercury_rt_kernel_register(const char *name, mercury_rt_kernel kernel,
                                   void *user) {
  if (!name || !*name || !kernel) {
    setLastError("cannot register a kernel without a name or a function");
    return MERCURY_RT_INVALID;
  }
  std::unique_lock lock(registry().mutex);
  if (registry().kernels.try_emplace(name, Registered{kernel, user}).second)
    return MERCURY_RT_OK;
  setLastError("cannot register kernel '" + std::string(name) +
               "': there is one of this name; drop it first");
  return MERCURY_RT_INVALID;
}

void mercury_rt_kernel_drop(const char *name) {
  std::unique_lock lock(registry().mutex);
  if (auto found = registry().kernels.find(std::string_view(name));
      found != registry().kernels.end())
    registry().kernels.erase(found);
}

int32_t mercury_rt_kernel_call(mercury_rt_context *context, const char *name,
                               const mercury_rt_call *call) {
  Registered found = {};
  {
    std::shared_lock lock(registry().mutex);
    if (auto at = registry().kernels.find(std::string_view(name));
        at != registry().kernels.end())
      found = at->second;
  }
  if (!found.kernel)
    return context->fail(MERCURY_RT_INVALID,
                         ("no kernel '" + std::string(name) +
                          "' is registered; register it before the run")
                             .c_str());
  int32_t status = found.kernel(context, found.user, context->stream(), call);
  if (status == MERCURY_RT_OK)
    return status;
  return context->fail(
      status,
      ("kernel '" + std::string(name) + "' ended with this status").c_str());
}

int32_t mercury_rt_kernel_launch(mercury_rt_context *context,
                                 const mercury_rt_launch *launch) {
  return context->kernelLaunch(*launch);
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

int32_t mercury_rt_context::useLane(int64_t lane) {
  if (lane >= 0 && lane < MERCURY_RT_MAX_LANES)
    return MERCURY_RT_OK; // the order of the program is one of all lanes
  return fail(MERCURY_RT_INVALID, ("there is no lane " + std::to_string(lane) +
                                   "; lanes go from 0 to " +
                                   std::to_string(MERCURY_RT_MAX_LANES - 1))
                                      .c_str());
}

int32_t mercury_rt_context::markLane(int64_t *token) {
  *token = 0;
  return MERCURY_RT_OK;
}

int32_t mercury_rt_context::kernelLaunch(const mercury_rt_launch &launch) {
  return fail(MERCURY_RT_UNSUPPORTED,
              ("cannot launch device kernel '" + std::string(launch.kernel) +
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

static int32_t refuseLease(mercury_rt_context &context) {
  return context.fail(MERCURY_RT_UNSUPPORTED,
                      "this backend cannot read a peer's memory; use a "
                      "schedule that sends and receives");
}

int32_t mercury_rt_context::leaseOpen(int64_t, const void *, int64_t,
                                      int64_t *) {
  return refuseLease(*this);
}

int32_t mercury_rt_context::leaseAddress(int64_t, int64_t, const void **) {
  return refuseLease(*this);
}

int32_t mercury_rt_context::pullStart(int64_t, int64_t, const void *, int64_t,
                                      void *, int64_t, int64_t, int64_t,
                                      int64_t *) {
  return refuseLease(*this);
}

int32_t mercury_rt_context::leaseClose(int64_t) { return refuseLease(*this); }
