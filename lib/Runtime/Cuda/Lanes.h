//===- Lanes.h - Streams that one rank's work is put into -------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane is a stream. Fork and join are explicit: a lane that starts an
// operation first waits for a mark of the compute lane, and the compute lane
// waits for the operation's mark before it uses the result. Nothing else orders
// two lanes, so a capture of the compute lane takes in all of them.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_LANES_H
#define LIB_RUNTIME_CUDA_LANES_H

#include "lib/Runtime/Cuda/Library.h"
#include <map>
#include <vector>

namespace mercury::rt::cuda {

/// Every function returns the driver's result.
class Lanes {
public:
  explicit Lanes(const Driver &driver) : driver(driver) {}
  Lanes(const Lanes &) = delete;

  Result open();
  /// Ends the streams and the marks. `idle` says that no work is left in them.
  void close(bool idle);

  Stream compute = nullptr;
  Stream messages = nullptr; // of NCCL
  Stream control = nullptr;  // never part of a run: to look and to end waits

  /// The lane of pulls from a global rank.
  Result pulls(int64_t rank, Stream &lane);

  /// A mark is an event that is taken from a pool and given back.
  Result mark(Stream lane, Event &mark);
  void release(Event mark) { spare.push_back(mark); }

  /// `lane` waits for what the compute lane holds now.
  Result fork(Stream lane);
  /// The compute lane waits for a mark and gives it back.
  Result join(Event mark);
  /// As join, for all that a lane holds now.
  Result joinLane(Stream lane);

private:
  const Driver &driver;
  std::map<int64_t, Stream> pullLanes;
  std::vector<Event> events, spare;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_LANES_H
