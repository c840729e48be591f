//===- Lanes.h - Streams that one rank's work is put into -------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane is a stream. Fork and join are explicit: a lane that starts an
// operation first waits for a mark of the kernels' lane, and that waits for the
// operation's mark before it uses the result. Nothing else orders two lanes, so
// a capture of the first takes in all of them.
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

  Stream first = nullptr;    // of kernels; a run begins and ends in it
  Stream current = nullptr;  // of the kernels that come next
  Stream messages = nullptr; // of NCCL
  Stream signals = nullptr;  // to peers, of what they may read
  Stream control = nullptr;  // never part of a run: to look and to end waits

  /// Kernels that come next go into lane `number`, from 0 on.
  Result use(int64_t number);
  /// Goes back to the first lane, which waits for every other one forked.
  Result joinAll();

  /// Whether all lanes are done, those of a run that failed included.
  Result query() const;

  /// The lane of pulls from a global rank.
  Result pulls(int64_t rank, Stream &lane);

  /// A mark is an event that is taken from a pool and given back.
  Result mark(Stream lane, Event &mark);
  void release(Event mark) { spare.push_back(mark); }

  /// `lane` waits for what the current lane holds now.
  Result fork(Stream lane);
  /// `later` waits for what `earlier` holds now.
  Result order(Stream earlier, Stream later);
  /// The current lane waits for a mark.
  Result join(Event mark) { return driver.streamWaitEvent(current, mark, 0); }

private:
  Result find(std::map<int64_t, Stream> &lanes, int64_t key, Stream &lane);

  const Driver &driver;
  std::map<int64_t, Stream> pullLanes, kernelLanes;
  std::vector<Stream> forked; // since all were joined
  std::vector<Event> events, spare;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_LANES_H
