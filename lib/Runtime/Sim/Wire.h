//===- Wire.h - The thread that moves the bytes -----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A matched message is copied while the ranks at its ends go on, so that
// touching its memory before the wait is a true race. With a seed the wire
// picks each message's delay, and so the order in which they arrive: some at
// once, before the later start returns, some not before a wait needs them. A
// race with one of these shows in the result, with the others to thread
// sanitizer.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_SIM_WIRE_H
#define LIB_RUNTIME_SIM_WIRE_H

#include "lib/Runtime/Sim/Operation.h"
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>

namespace mercury::rt::sim {

using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

/// Every method but the constructor is called with the job's mutex held.
class Wire {
public:
  Wire(std::mutex &mutex, uint64_t seed, int64_t maxDelayUs,
       std::function<void(const Message &)> delivered);
  ~Wire();

  void send(const Message &message);

  /// The messages of `operation` need not be late any longer.
  void hasten(const Operation &operation);

  /// Whether something will be delivered without any rank doing anything.
  bool busy() const { return copying || !due.empty(); }

  /// Begins no further copy, and returns when none is under way.
  void stop(Lock &lock);

private:
  void run();

  std::mutex &mutex;
  const uint64_t seed;
  const int64_t maxDelayUs;
  const std::function<void(const Message &)> delivered;

  std::multimap<Clock::time_point, Message> due;
  std::list<Message> late; // until one of its ends waits
  bool copying = false;
  bool stopped = false;
  std::condition_variable changed, settled;
  std::thread thread;
};

} // namespace mercury::rt::sim

#endif // LIB_RUNTIME_SIM_WIRE_H
