//===- Wire.cpp - The thread that moves the bytes -------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of arrival is decided here and nowhere else.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Sim/Wire.h"
#include "lib/Runtime/Sim/Job.h"
#include <cstring>

using namespace mercury::rt::sim;

/// One step of the splitmix64 generator, here a hash of `state` and `value`.
static uint64_t mix(uint64_t state, uint64_t value) {
  state += value + 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

Wire::Wire(std::mutex &mutex, uint64_t seed, int64_t maxDelayUs,
           std::function<void(const Message &)> delivered)
    : mutex(mutex), seed(seed), maxDelayUs(maxDelayUs),
      delivered(std::move(delivered)), thread([this] { run(); }) {}

Wire::~Wire() {
  {
    Lock lock(mutex);
    stop(lock);
  }
  thread.join();
}

static void copy(const Message &message) {
  const Post &from = message.from, &to = message.to;
  if (!to.bytes || to.data == from.data)
    return;
  for (int64_t row = 0; row < message.rows; ++row)
    std::memcpy(to.data + row * to.pitch, from.data + row * from.pitch,
                to.bytes);
}

void Wire::send(const Message &message) {
  const Operation &from = *message.from.operation;
  const Operation &to = *message.to.operation;
  uint64_t dice =
      mix(mix(mix(seed, message.from.rank), from.number), message.to.rank);
  if (seed && dice % 4 == 0 && !from.waited && !to.waited) {
    late.push_back(message);
    return;
  }
  if (seed && dice % 4 == 1) {
    copy(message);
    delivered(message);
    return;
  }
  int64_t delay = seed ? dice / 4 % (maxDelayUs + 1) : 0;
  due.emplace(Clock::now() + std::chrono::microseconds(delay), message);
  changed.notify_one();
}

void Wire::hasten(const Operation &operation) {
  for (auto it = late.begin(); it != late.end();) {
    if (it->from.operation != &operation && it->to.operation != &operation) {
      ++it;
      continue;
    }
    due.emplace(Clock::now(), *it);
    it = late.erase(it);
  }
  changed.notify_one();
}

void Wire::stop(Lock &lock) {
  stopped = true;
  changed.notify_one();
  settled.wait(lock, [this] { return !copying; });
}

void Wire::run() {
  Lock lock(mutex);
  while (!stopped) {
    if (due.empty()) {
      changed.wait(lock);
      continue;
    }
    auto first = due.begin();
    if (Clock::time_point time = first->first; time > Clock::now()) {
      changed.wait_until(lock, time);
      continue;
    }
    Message message = first->second;
    due.erase(first);
    copying = true;
    // Not under the lock, which would order the copy with the ranks' own
    // accesses and so hide their races from a sanitizer.
    lock.unlock();
    copy(message);
    lock.lock();
    copying = false;
    delivered(message);
    settled.notify_all();
  }
}
