//===- FakeStreams.cpp - Streams, events and the work in them -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDevice.h"
#include <cstring>

using namespace fake;

static std::atomic<int64_t> made; // streams and events
int64_t fake::countStreams() { return made; }

Result fake::enqueueSimple(Stream stream, std::function<void()> body) {
  return enqueue(stream, [body]() -> Work {
    return [body] {
      body();
      return true;
    };
  });
}

void fake_cuda_call(void *stream, std::function<void()> body) {
  enqueueSimple(orDefault(static_cast<Stream>(stream), current),
                std::move(body));
}

extern "C" {

void fake_cuda_enqueue(void *stream, void (*body)(void *data), void *data) {
  fake_cuda_call(stream, [=] { body(data); });
}

void *fake_cuda_stream(int device) {
  return DeviceThread::get(device).makeStream();
}
void fake_cuda_drain(void *stream) {
  Stream drained = orDefault(static_cast<Stream>(stream), current);
  drained->device->drain(drained);
}

Result cuStreamCreate(Stream *stream, unsigned) {
  FAIL_POINT();
  *stream = current->makeStream();
  ++made;
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream stream) {
  stream->device->drain(stream);
  stream->device->drop(stream);
  --made;
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
  ++made;
  return kSuccess;
}
Result cuEventDestroy_v2(Event event) {
  delete event;
  --made;
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
// Work
//===----------------------------------------------------------------------===//

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

} // extern "C"
