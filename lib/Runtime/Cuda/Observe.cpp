//===- Observe.cpp - What there is before a job is opened -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan is chosen by the memory that is free, and by who shares a GPU, so this
// asks before a context takes any of it; and whether there is an NCCL.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Context.h"
#include "lib/Runtime/Cuda/Library.h"
#include "mercury-rt/cuda.h"

using namespace mercury::rt;
using namespace mercury::rt::cuda;

static std::string getName(const Driver &driver, Result result) {
  const char *name = nullptr;
  driver.getErrorName(result, &name);
  return name ? name : std::to_string(result);
}

static int32_t refuse(int32_t device, const std::string &what,
                      const std::string &problem) {
  setLastError("cannot ask GPU " + std::to_string(device) + " for its " + what +
               ": " + problem);
  return MERCURY_RT_DEVICE;
}

int32_t mercury_rt_cuda_memory(int32_t device, const char *cuda_library,
                               int64_t *free_bytes, int64_t *total_bytes) {
  std::string problem;
  const Driver *driver = openDriver(cuda_library ? cuda_library : "", problem);
  if (!driver)
    return refuse(device, "memory", problem);
  Device handle = 0;
  cuda::Context context = nullptr;
  size_t free = 0, total = 0;
  Result result = driver->deviceGet(&handle, device);
  if (result == kSuccess)
    result = driver->primaryCtxRetain(&context, handle);
  if (result != kSuccess)
    return refuse(device, "memory", getName(*driver, result));
  result = driver->ctxSetCurrent(context);
  if (result == kSuccess)
    result = driver->memGetInfo(&free, &total);
  driver->primaryCtxRelease(handle);
  if (result != kSuccess)
    return refuse(device, "memory", getName(*driver, result));
  *free_bytes = static_cast<int64_t>(free);
  *total_bytes = static_cast<int64_t>(total);
  return MERCURY_RT_OK;
}

int32_t mercury_rt_cuda_address(int32_t device, const char *cuda_library,
                                char *text, int64_t text_bytes) {
  std::string problem;
  const Driver *driver = openDriver(cuda_library ? cuda_library : "", problem);
  if (!driver)
    return refuse(device, "address", problem);
  Device handle = 0;
  Result result = driver->deviceGet(&handle, device);
  if (result == kSuccess)
    result =
        driver->deviceGetPciBusId(text, static_cast<int>(text_bytes), handle);
  return result == kSuccess
             ? MERCURY_RT_OK
             : refuse(device, "address", getName(*driver, result));
}

int32_t mercury_rt_cuda_nccl(const char *nccl_library, int32_t *version) {
  std::string problem;
  const Nccl *nccl = openNccl(nccl_library ? nccl_library : "", problem);
  if (!nccl) {
    setLastError("cannot use NCCL: " + problem);
    return MERCURY_RT_DEVICE;
  }
  *version = nccl->version;
  return MERCURY_RT_OK;
}
