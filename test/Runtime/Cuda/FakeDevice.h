//===- FakeDevice.h - The thread of a fake device ---------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TEST_RUNTIME_CUDA_FAKEDEVICE_H
#define TEST_RUNTIME_CUDA_FAKEDEVICE_H

#define FAKE_CUDA_IMPLEMENTATION
#include "Fake.h"
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace fake {
constexpr Result kCaptureUnjoined = 904;
constexpr Result kCaptureIsolation = 905;

struct Node {
  MakeWork make;
  std::vector<size_t> after;
};
class DeviceThread;
} // namespace fake

namespace mercury::rt::cuda {

/// The nodes are in an order in which they could be done.
struct OpaqueGraph {
  std::vector<fake::Node> nodes;
  std::vector<Stream> streams; // the first began the capture
};
struct OpaqueGraphExec {
  std::vector<fake::Node> nodes;
  std::shared_ptr<int> flight; // each launch that is not over has a copy
};
struct OpaqueEvent {
  std::shared_ptr<std::atomic<bool>> happened; // null: never recorded
  Graph graph = nullptr;                       // recorded in a capture
  std::vector<size_t> nodes;
};
struct OpaqueStream {
  Result joinCapture(const OpaqueEvent &event);

  fake::DeviceThread *device;
  std::deque<fake::Work> work; // under the device's lock
  Graph graph = nullptr;       // of a capture
  std::vector<size_t> tail;    // the nodes that the next one comes after
};

} // namespace mercury::rt::cuda

namespace fake {

class DeviceThread {
public:
  static constexpr int kDevices = 8;
  static DeviceThread &get(int device);

  Stream makeStream();
  void drop(Stream stream);
  void push(Stream stream, Work work);
  bool isIdle(Stream stream);
  void drain(Stream stream);

  std::atomic<int> maxDelayUs{0};
  Stream legacy; // the default stream

private:
  explicit DeviceThread(int device);
  void loop();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Stream> streams;
  std::mt19937 random;
};

/// Of the calling thread.
extern thread_local DeviceThread *current;

inline Stream orDefault(Stream stream, DeviceThread *device) {
  return stream ? stream : device->legacy;
}

} // namespace fake

#endif // TEST_RUNTIME_CUDA_FAKEDEVICE_H
