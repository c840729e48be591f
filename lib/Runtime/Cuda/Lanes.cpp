//===- Lanes.cpp - Streams that one rank's work is put into ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Lanes.h"

using namespace mercury::rt::cuda;

Result Lanes::open() {
  for (Stream *stream : {&compute, &messages, &control})
    if (Result result = driver.streamCreate(stream, kStreamNonBlocking))
      return result;
  return kSuccess;
}

void Lanes::close(bool idle) {
  if (!idle) // destroying what still waits could block for ever
    return;
  for (Event event : events)
    driver.eventDestroy(event);
  for (auto [rank, lane] : pullLanes)
    driver.streamDestroy(lane);
  for (Stream stream : {compute, messages, control})
    if (stream)
      driver.streamDestroy(stream);
}

Result Lanes::pulls(int64_t rank, Stream &lane) {
  Stream &kept = pullLanes[rank];
  Result result =
      kept ? kSuccess : driver.streamCreate(&kept, kStreamNonBlocking);
  lane = kept;
  return result;
}

Result Lanes::mark(Stream lane, Event &mark) {
  if (spare.empty()) {
    Event event = nullptr;
    if (Result result = driver.eventCreate(&event, kEventDisableTiming))
      return result;
    events.push_back(event);
    spare.push_back(event);
  }
  // A wait takes the event as it is when the wait is put into its stream, so
  // that one may be marked again as soon as all its waits are.
  mark = spare.back();
  spare.pop_back();
  return driver.eventRecord(mark, lane);
}

Result Lanes::fork(Stream lane) {
  Event event = nullptr;
  if (Result result = mark(compute, event))
    return result;
  release(event);
  return driver.streamWaitEvent(lane, event, 0);
}

Result Lanes::join(Event mark) {
  release(mark);
  return driver.streamWaitEvent(compute, mark, 0);
}

Result Lanes::joinLane(Stream lane) {
  Event event = nullptr;
  if (Result result = mark(lane, event))
    return result;
  return join(event);
}
