//===- FakeCuda.cpp - A CUDA driver on the host ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory, streams, events, modules; FakeGraph.h has the captures.
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
struct Kernel {
  int arguments;
  void (*body)(void **arguments);
};
struct FailPoint {
  int left, result;
};

/// All that is not a device's, under one lock.
struct Process {
  std::mutex mutex;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, int64_t> calls;
  std::map<std::string, FailPoint> failPoints;
  std::map<DevicePtr, Shared> mappings;
  std::set<uint64_t> shared; // the numbers of allocations
  int64_t ownMappings = 0, events = 0, streams = 0;
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

#define FAIL_POINT()                                                           \
  if (Result result_ = failPoint(__func__))                                    \
  return result_

static char *at(DevicePtr address) { return reinterpret_cast<char *>(address); }

/// Work that is done in one go.
static Result enqueueSimple(Stream stream, std::function<void()> body) {
  return enqueue(stream, [body]() -> Work {
    return [body] {
      body();
      return true;
    };
  });
}

thread_local DeviceThread *fake::current;

void fake_cuda_call(void *stream, std::function<void()> body) {
  enqueueSimple(orDefault(static_cast<Stream>(stream), current),
                std::move(body));
}

extern "C" {
Result cuMemAlloc_v2(DevicePtr *address, size_t bytes);
Result cuMemFree_v2(DevicePtr address);

void fake_cuda_enqueue(void *stream, void (*body)(void *data), void *data) {
  fake_cuda_call(stream, [=] { body(data); });
}

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
void fake_cuda_define(const char *name, int arguments,
                      void (*kernel)(void **arguments)) {
  std::lock_guard lock(process().mutex);
  process().kernels[name] = {arguments, kernel};
}
int fake_cuda_allocate(void **memory, uint64_t bytes) {
  DevicePtr address = 0;
  Result result = cuMemAlloc_v2(&address, bytes);
  *memory = at(address);
  return result;
}
void *fake_cuda_stream(int device) {
  return DeviceThread::get(device).makeStream();
}
void fake_cuda_drain(void *stream) {
  Stream drained = orDefault(static_cast<Stream>(stream), current);
  drained->device->drain(drained);
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
         process().ownMappings + process().streams + process().events;
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

Result cuMemsetD8Async(DevicePtr address, unsigned char value, size_t count,
                       Stream stream) {
  FAIL_POINT();
  return enqueueSimple(stream, [=] { std::memset(at(address), value, count); });
}
Result cuMemsetD32Async(DevicePtr address, unsigned value, size_t count,
                        Stream stream) {
  FAIL_POINT();
  return enqueueSimple(stream, [=] {
    for (size_t i = 0; i < count; ++i)
      __atomic_store_n(reinterpret_cast<unsigned *>(at(address)) + i, value,
                       __ATOMIC_RELEASE);
  });
}
Result cuMemcpyDtoDAsync_v2(DevicePtr dst, DevicePtr src, size_t bytes,
                            Stream stream) {
  FAIL_POINT();
  return enqueueSimple(stream, [=] { std::memcpy(at(dst), at(src), bytes); });
}
Result cuMemcpyDtoHAsync_v2(void *dst, DevicePtr src, size_t bytes,
                            Stream stream) {
  return enqueueSimple(stream, [=] {
    for (size_t i = 0; i < bytes; ++i)
      static_cast<char *>(dst)[i] =
          __atomic_load_n(at(src) + i, __ATOMIC_RELAXED);
  });
}
Result cuMemcpy2DAsync_v2(const Memcpy2D *given, Stream stream) {
  FAIL_POINT();
  Memcpy2D copy = *given;
  if (copy.width > copy.srcPitch || copy.width > copy.dstPitch)
    return 1;
  return enqueueSimple(stream, [=] {
    for (size_t row = 0; row < copy.height; ++row)
      std::memcpy(at(copy.dstDevice) + row * copy.dstPitch,
                  at(copy.srcDevice) + row * copy.srcPitch, copy.width);
  });
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

Result cuStreamCreate(Stream *stream, unsigned) {
  FAIL_POINT();
  *stream = current->makeStream();
  std::lock_guard lock(process().mutex);
  ++process().streams;
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream stream) {
  stream->device->drain(stream);
  stream->device->drop(stream);
  std::lock_guard lock(process().mutex);
  --process().streams;
  return kSuccess;
}
Result cuStreamQuery(Stream stream) {
  FAIL_POINT();
  stream = orDefault(stream, current);
  return stream->device->isIdle(stream) ? kSuccess : kNotReady;
}
Result cuStreamSynchronize(Stream stream) {
  FAIL_POINT();
  stream = orDefault(stream, current);
  stream->device->drain(stream);
  return kSuccess;
}
Result cuEventCreate(Event *event, unsigned) {
  FAIL_POINT();
  *event = new OpaqueEvent;
  std::lock_guard lock(process().mutex);
  ++process().events;
  return kSuccess;
}
Result cuEventDestroy_v2(Event event) {
  delete event;
  std::lock_guard lock(process().mutex);
  --process().events;
  return kSuccess;
}
Result cuEventQuery(Event event) {
  FAIL_POINT();
  return !event->happened || *event->happened ? kSuccess : kNotReady;
}
Result cuEventRecord(Event event, Stream stream) {
  FAIL_POINT();
  stream = orDefault(stream, current);
  event->graph = stream->graph;
  event->nodes = stream->tail;
  if (event->graph)
    return kSuccess;
  auto happened = std::make_shared<std::atomic<bool>>(false);
  event->happened = happened;
  return enqueueSimple(stream, [=] { *happened = true; });
}
Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  FAIL_POINT();
  stream = orDefault(stream, current);
  if (event->graph)
    return stream->joinCapture(*event);
  if (stream->graph)
    return kCaptureIsolation;
  auto happened = event->happened;
  if (!happened)
    return kSuccess;
  return enqueue(stream,
                 [=]() -> Work { return [=] { return happened->load(); }; });
}
Result cuStreamBatchMemOp_v2(Stream stream, unsigned count, MemOp *given,
                             unsigned) {
  FAIL_POINT();
  std::vector<MemOp> operations(given, given + count);
  return enqueue(stream, [=]() -> Work {
    return [=, next = size_t(0)]() mutable {
      for (; next < operations.size(); ++next) {
        auto *word = reinterpret_cast<uint32_t *>(at(operations[next].address));
        auto value = static_cast<uint32_t>(operations[next].value);
        if (operations[next].operation == kWriteValue32)
          __atomic_store_n(word, value, __ATOMIC_RELEASE);
        else if (int32_t(__atomic_load_n(word, __ATOMIC_ACQUIRE) - value) < 0)
          return false;
      }
      return true;
    };
  });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static bool isPtx(const char *image) {
  return std::strstr(image, ".version ") && std::strstr(image, ".target sm_");
}

Result cuModuleLoadData(Module *module, const void *image) {
  FAIL_POINT();
  auto *text = static_cast<const char *>(image);
  if (std::strncmp(text, "fake", 4) != 0 && !isPtx(text))
    return 200; // an invalid image
  *module = reinterpret_cast<Module>(new std::string(text));
  return kSuccess;
}
Result cuModuleUnload(Module module) {
  delete reinterpret_cast<std::string *>(module);
  return kSuccess;
}
Result cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  std::lock_guard lock(process().mutex);
  auto &text = *reinterpret_cast<std::string *>(module);
  std::string entry = ".entry " + std::string(name) + "(";
  if (isPtx(text.c_str()) && text.find(entry) == std::string::npos)
    return 500; // not found
  auto found = process().kernels.find(name);
  if (found == process().kernels.end())
    return 500; // not found
  *function = reinterpret_cast<Function>(&found->second);
  return kSuccess;
}
Result cuFuncSetAttribute(Function, int, int) {
  FAIL_POINT();
  return kSuccess;
}
Result cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned, Stream stream,
                      void **arguments, void **) {
  FAIL_POINT();
  uint64_t threads = uint64_t(blockX) * blockY * blockZ;
  if (!gridX || !gridY || !gridZ || gridX > INT32_MAX || gridY > 65535 ||
      gridZ > 65535 || threads == 0 || threads > 1024)
    return 1; // an invalid value
  Kernel kernel = *reinterpret_cast<Kernel *>(function);
  std::vector<uint64_t> values(kernel.arguments);
  for (int i = 0; i < kernel.arguments; ++i)
    std::memcpy(&values[i], arguments[i], sizeof(uint64_t));
  return enqueueSimple(stream, [=]() mutable {
    std::vector<void *> addresses;
    for (uint64_t &value : values)
      addresses.push_back(&value);
    kernel.body(addresses.data());
  });
}

} // extern "C"
