//===- FakeCuda.cpp - A CUDA driver on the host ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devices and their memory, and how often each function is called. Streams are
// in FakeStreams.cpp, kernels in FakeKernels.cpp, captures in FakeDevice.cpp.
//
//===----------------------------------------------------------------------===//

#include "FakeDevice.h"
#include "FakeMemory.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unistd.h>

using namespace fake;

namespace {
struct FailPoint {
  int left, result;
};

/// All that is not a device's, under one lock.
struct Process {
  std::mutex mutex;
  std::map<std::string, int64_t> calls;
  std::map<std::string, FailPoint> failPoints;
  std::map<DevicePtr, Shared> mappings;
  std::set<uint64_t> shared; // the numbers of allocations
  int64_t ownMappings = 0;
  int version = 13000;
  int64_t freeBytes = int64_t(64) << 30;
};
} // namespace

static Process &process() {
  static Process *process = new Process;
  return *process;
}

Result fake::failPoint(const char *function) {
  std::lock_guard lock(process().mutex);
  ++process().calls[function];
  auto found = process().failPoints.find(function);
  if (found == process().failPoints.end() || --found->second.left > 0)
    return kSuccess;
  Result result = found->second.result;
  process().failPoints.erase(found);
  return result;
}

thread_local DeviceThread *fake::current;

extern "C" {
Result cuMemAlloc_v2(DevicePtr *address, size_t bytes);
Result cuMemFree_v2(DevicePtr address);

void fake_cuda_set_version(int version) { process().version = version; }
void fake_cuda_set_free_bytes(int64_t bytes) { process().freeBytes = bytes; }
void fake_cuda_fail(const char *function, int nth, int result) {
  std::lock_guard lock(process().mutex);
  process().failPoints[function] = {nth, result};
}
int64_t fake_cuda_count_calls(const char *function) {
  std::lock_guard lock(process().mutex);
  return process().calls[function];
}
void fake_cuda_set_delay(int device, int max_us) {
  DeviceThread::get(device).maxDelayUs = max_us;
}
int fake_cuda_allocate(void **memory, uint64_t bytes) {
  DevicePtr address = 0;
  Result result = cuMemAlloc_v2(&address, bytes);
  *memory = at(address);
  return result;
}
void fake_cuda_free(void *memory) {
  cuMemFree_v2(reinterpret_cast<DevicePtr>(memory));
}
int fake_cuda_is_shared(const void *memory) {
  Shared shared;
  uint64_t number;
  if (!find(reinterpret_cast<DevicePtr>(memory), shared, number))
    return 0;
  std::lock_guard lock(process().mutex);
  return process().shared.count(number) != 0;
}

int64_t fake_cuda_count_objects(void) {
  std::lock_guard lock(process().mutex);
  return countAllocations() + process().mappings.size() +
         process().ownMappings + countStreams();
}

//===----------------------------------------------------------------------===//
// The driver and its devices
//===----------------------------------------------------------------------===//

Result cuInit(unsigned) {
  FAIL_POINT();
  return kSuccess;
}
Result cuDriverGetVersion(int *version) {
  *version = process().version;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char **name) {
  *name =
      result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return kSuccess;
}
Result cuGetErrorString(Result, const char **text) {
  *text = "an error of the fake driver";
  return kSuccess;
}
Result cuDeviceGetCount(int *count) {
  *count = DeviceThread::kDevices;
  return kSuccess;
}
Result cuDeviceGetPCIBusId(char *text, int bytes, Device device) {
  FAIL_POINT();
  std::snprintf(text, bytes, "0000:%02x:00.0", device + 1);
  return kSuccess;
}
Result cuDeviceGet(Device *device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context *context, Device device) {
  FAIL_POINT();
  *context = reinterpret_cast<Context>(&DeviceThread::get(device));
  return kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(Device) { return kSuccess; }
Result cuCtxSetCurrent(Context context) {
  FAIL_POINT();
  current = reinterpret_cast<DeviceThread *>(context);
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Result cuMemAlloc_v2(DevicePtr *address, size_t bytes) {
  FAIL_POINT();
  Shared shared;
  *address = reinterpret_cast<DevicePtr>(allocate(bytes, shared));
  return *address ? kSuccess : kOutOfMemory;
}
Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  FAIL_POINT();
  *free = process().freeBytes;
  *total = size_t(64) << 30;
  return kSuccess;
}
Result cuMemFree_v2(DevicePtr address) {
  Shared shared;
  uint64_t number;
  if (!find(address, shared, number) || shared.address != address)
    return 1;
  release(shared);
  return kSuccess;
}
Result cuMemGetAddressRange_v2(DevicePtr *base, size_t *bytes,
                               DevicePtr address) {
  FAIL_POINT();
  Shared shared;
  uint64_t number;
  if (!find(address, shared, number))
    return 1;
  *base = shared.address;
  *bytes = shared.bytes;
  return kSuccess;
}
Result cuPointerGetAttribute(void *value, int attribute, DevicePtr address) {
  FAIL_POINT();
  Shared shared;
  uint64_t number;
  if (attribute != kPointerAttributeBufferId || !find(address, shared, number))
    return 1;
  *static_cast<unsigned long long *>(value) = number;
  return kSuccess;
}
Result cuIpcGetMemHandle(IpcMemHandle *handle, DevicePtr address) {
  FAIL_POINT();
  Shared shared;
  uint64_t number;
  if (!find(address, shared, number))
    return 1;
  static_assert(sizeof(shared) <= sizeof(handle->reserved));
  std::memcpy(handle->reserved, &shared, sizeof(shared));
  std::lock_guard lock(process().mutex);
  process().shared.insert(number);
  return kSuccess;
}
Result cuIpcOpenMemHandle_v2(DevicePtr *address, IpcMemHandle handle,
                             unsigned) {
  FAIL_POINT();
  Shared shared;
  std::memcpy(&shared, handle.reserved, sizeof(shared));
  Shared own;
  uint64_t number;
  bool isOwn = shared.process == getpid();
  if (isOwn && !find(shared.address, own, number))
    return 1; // freed
  *address = reinterpret_cast<DevicePtr>(map(shared));
  if (!*address)
    return 1;
  std::lock_guard lock(process().mutex);
  if (isOwn)
    ++process().ownMappings;
  else
    process().mappings[*address] = shared;
  return kSuccess;
}
Result cuIpcCloseMemHandle(DevicePtr address) {
  std::lock_guard lock(process().mutex);
  auto found = process().mappings.find(address);
  if (found == process().mappings.end()) {
    --process().ownMappings;
    return kSuccess;
  }
  unmap(at(address), found->second);
  process().mappings.erase(found);
  return kSuccess;
}

} // extern "C"
