//===- Lanes.cpp - Streams that one rank's work is put into ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Lanes.h"
#include <algorithm>

using namespace mercury::rt::cuda;

Result Lanes::open() {
  for (Stream *stream : {&first, &messages, &signals, &control})
    if (Result result = driver.streamCreate(stream, kStreamNonBlocking))
      return result;
  current = first;
  return kSuccess;
}

void Lanes::close(bool idle) {
  if (!idle) // destroying what still waits could block for ever
    return;
  for (Event event : events)
    driver.eventDestroy(event);
  for (const auto *lanes : {&pullLanes, &kernelLanes})
    for (const auto &[key, lane] : *lanes)
      driver.streamDestroy(lane);
  for (Stream stream : {first, messages, signals, control})
    if (stream)
      driver.streamDestroy(stream);
}

Result Lanes::query() const {
  std::vector<Stream> all = {first, messages, signals};
  for (const auto *lanes : {&pullLanes, &kernelLanes})
    for (const auto &[key, lane] : *lanes)
      all.push_back(lane);
  for (Stream lane : all)
    if (Result result = lane ? driver.streamQuery(lane) : kSuccess)
      return result;
  return kSuccess;
}

Result Lanes::find(std::map<int64_t, Stream> &lanes, int64_t key,
                   Stream &lane) {
  Stream &kept = lanes[key];
  Result result =
      kept ? kSuccess : driver.streamCreate(&kept, kStreamNonBlocking);
  lane = kept;
  return result;
}

Result Lanes::pulls(int64_t rank, Stream &lane) {
  return find(pullLanes, rank, lane);
}

Result Lanes::use(int64_t number) {
  current = first;
  Stream lane = nullptr;
  if (number == 0)
    return kSuccess;
  if (Result result = find(kernelLanes, number, lane))
    return result;
  // It becomes a part of the run when it is first used.
  bool isNew = std::find(forked.begin(), forked.end(), lane) == forked.end();
  if (Result result = isNew ? fork(lane) : kSuccess)
    return result;
  current = lane;
  return kSuccess;
}

Result Lanes::joinAll() {
  current = first;
  for (Stream lane : forked)
    if (Result result = order(lane, first))
      return result;
  forked.clear();
  return kSuccess;
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
  if (std::find(forked.begin(), forked.end(), lane) == forked.end())
    forked.push_back(lane);
  return order(current, lane);
}

Result Lanes::order(Stream earlier, Stream later) {
  Event event = nullptr;
  if (Result result = mark(earlier, event))
    return result;
  release(event);
  return driver.streamWaitEvent(later, event, 0);
}
