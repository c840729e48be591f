//===- Lanes.cpp - Streams that one rank's work is put into ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Lanes.h"
#include <algorithm>

using namespace mercury::rt::cuda;

Lanes::Lanes(const Driver &driver)
    : first(make()), messages(make()), signals(make()), current(&first),
      driver(driver) {}

Result Lanes::open() {
  for (Lane *lane : {&first, &messages, &signals})
    if (Result result = driver.streamCreate(&lane->handle, kStreamNonBlocking))
      return result;
  return driver.streamCreate(&control, kStreamNonBlocking);
}

void Lanes::close(bool idle) {
  if (!idle) // destroying what still waits could block for ever
    return;
  for (Event event : events)
    driver.eventDestroy(event);
  for (const Lane &lane : all)
    if (lane.handle)
      driver.streamDestroy(lane.handle);
  if (control)
    driver.streamDestroy(control);
}

Result Lanes::query() const {
  for (const Lane &lane : all)
    if (Result result =
            lane.handle ? driver.streamQuery(lane.handle) : kSuccess)
      return result;
  return kSuccess;
}

Result Lanes::find(std::map<int64_t, Lane *> &lanes, int64_t key, Lane *&lane) {
  Lane *&kept = lanes[key];
  if (!kept)
    kept = &make();
  lane = kept;
  return lane->handle ? kSuccess
                      : driver.streamCreate(&lane->handle, kStreamNonBlocking);
}

Result Lanes::pulls(int64_t rank, Lane *&lane) {
  return find(pullLanes, rank, lane);
}

Result Lanes::use(int64_t number) {
  current = &first;
  Lane *lane = nullptr;
  if (number == 0)
    return kSuccess;
  if (Result result = find(kernelLanes, number, lane))
    return result;
  // It becomes a part of the run when it is first used.
  bool isNew = std::find(forked.begin(), forked.end(), lane) == forked.end();
  if (Result result = isNew ? fork(*lane) : kSuccess)
    return result;
  current = lane;
  return kSuccess;
}

Result Lanes::joinAll() {
  current = &first;
  for (Lane *lane : forked)
    if (Result result = order(*lane, first))
      return result;
  forked.clear();
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Whether all that `earlier` counts is in `later`.
static bool isIn(const LaneClock &earlier, const LaneClock &later) {
  for (size_t lane = 0; lane < earlier.size(); ++lane)
    if (earlier[lane] > (lane < later.size() ? later[lane] : 0))
      return false;
  return true;
}

void Lanes::begin() {
  for (Lane &lane : all)
    ++lane.clock[lane.number];
}

Result Lanes::enter(Stream caller) {
  Event event = nullptr;
  if (Result result = mark(caller, event))
    return result;
  release(event);
  return driver.streamWaitEvent(first.stream(), event, 0);
}

Result Lanes::leave(Stream caller, Event &event) {
  if (Result result = mark(first.handle, event))
    return result;
  return driver.streamWaitEvent(caller, event, 0);
}

Result Lanes::mark(Stream stream, Event &event) {
  if (spare.empty()) {
    if (Result result = driver.eventCreate(&event, kEventDisableTiming))
      return result;
    events.push_back(event);
    spare.push_back(event);
  }
  // A wait takes the event as it is when the wait is put into its stream, so
  // that one may be marked again as soon as all its waits are.
  event = spare.back();
  spare.pop_back();
  return driver.eventRecord(event, stream);
}

Result Lanes::mark(Lane &lane, Mark &mark) {
  mark.clock = lane.clock;
  return this->mark(lane.handle, mark.event);
}

Result Lanes::fork(Lane &lane) {
  if (std::find(forked.begin(), forked.end(), &lane) == forked.end())
    forked.push_back(&lane);
  return order(*current, lane);
}

Result Lanes::order(const Lane &earlier, Lane &later) {
  if (isIn(earlier.clock, later.clock))
    return kSuccess;
  Event event = nullptr;
  if (Result result = mark(earlier.handle, event))
    return result;
  release(event);
  return wait(later, {event, earlier.clock});
}

Result Lanes::wait(Lane &later, const Mark &mark) {
  if (isIn(mark.clock, later.clock))
    return kSuccess;
  later.clock.resize(std::max(later.clock.size(), mark.clock.size()));
  for (size_t lane = 0; lane < mark.clock.size(); ++lane)
    later.clock[lane] = std::max(later.clock[lane], mark.clock[lane]);
  return driver.streamWaitEvent(later.handle, mark.event, 0);
}
