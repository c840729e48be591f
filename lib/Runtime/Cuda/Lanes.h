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
// Each lane has a vector clock: how much of every lane comes before what it is
// given next. A wait that the clock implies costs no call of the driver.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_LANES_H
#define LIB_RUNTIME_CUDA_LANES_H

#include "lib/Runtime/Cuda/Library.h"
#include <deque>
#include <map>
#include <vector>

namespace mercury::rt::cuda {

/// How much of each lane, by its number; of those not there, nothing.
using LaneClock = std::vector<int64_t>;

class Lane {
public:
  /// The stream, to put work into before the next mark.
  Stream stream() {
    ++clock[number];
    return handle;
  }

private:
  friend class Lanes;
  Lane(size_t number) : number(number), clock(number + 1) { clock[number] = 1; }

  size_t number;
  Stream handle = nullptr;
  LaneClock clock; // of itself: itself, its runs, and what was put into it
};

/// An event, and what comes before it.
struct Mark {
  Event event;
  LaneClock clock;
};

/// Every function returns the driver's result.
class Lanes {
  std::deque<Lane> all; // at places that they keep
  Lane &make() { return all.emplace_back(Lane(all.size())); }

public:
  explicit Lanes(const Driver &driver);
  Lanes(const Lanes &) = delete;

  Result open();
  /// Ends the streams and the marks. `idle` says that no work is left in them.
  void close(bool idle);

  Lane &first;              // of kernels; a run begins and ends in it
  Lane &messages;           // of NCCL
  Lane &signals;            // to peers, of what they may read
  Lane *current;            // of the kernels that come next
  Stream control = nullptr; // never part of a run: to look and to end waits

  /// Begins a run, or a capture. That takes in each lane that is forked: also
  /// one that is given nothing counts as new, and is joined.
  void begin();
  /// The first lane waits for what a caller's stream holds now.
  Result enter(Stream caller);
  /// A caller's stream waits for what the first lane holds now, of which `mark`
  /// is taken.
  Result leave(Stream caller, Event &mark);

  /// Kernels that come next go into lane `number`, from 0 on.
  Result use(int64_t number);
  /// Goes back to the first lane, which waits for every other one forked.
  Result joinAll();

  /// Whether all lanes are done, those of a run that failed included.
  Result query() const;

  /// The lane of pulls from a global rank.
  Result pulls(int64_t rank, Lane *&lane);

  /// Marks take an event from a pool, to which it is given back.
  Result mark(Lane &lane, Mark &mark);
  Result mark(Stream stream, Event &event);
  void release(Event event) { spare.push_back(event); }

  /// `lane` waits for what the current lane holds now.
  Result fork(Lane &lane);
  /// The current lane waits for a mark.
  Result join(const Mark &mark) { return wait(*current, mark); }

private:
  Result find(std::map<int64_t, Lane *> &lanes, int64_t key, Lane *&lane);
  /// `later` waits for what `earlier` holds now.
  Result order(const Lane &earlier, Lane &later);
  Result wait(Lane &later, const Mark &mark);

  const Driver &driver;
  std::map<int64_t, Lane *> pullLanes, kernelLanes;
  std::vector<Lane *> forked; // since all were joined
  std::vector<Event> events, spare;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_LANES_H
