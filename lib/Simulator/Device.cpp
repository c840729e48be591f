//===- Device.cpp - Kernels on the device of a rank -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of one rank that run beside each other share its device as blocks
// take their places on it: the one that began first has all that it can use,
// the next one what that leaves. A kernel leaves something in its last wave,
// which is not full. What another one did there it need not do later, so that
// its own waves fall anew. Of what a launch costs beside its waves nothing is
// hidden.
//
//   device   |########|########|#####   |
//   first     wave     wave     last wave
//   second                      |   ####|########|### ...
//
// No kernel is faster for it, and no more is done at a time than one device
// does.
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Engine.h"

using namespace mlir::commir;
using namespace mlir::commir::simulator;

void Engine::compute(int32_t number, const Task &task) {
  Stream &stream = streams[number];
  stream.work = &workload.works[task.index];
  stream.occupancy = workOccupancy[task.index];
  stream.begin = stream.updated = clock.now;
  stream.left = workSeconds[task.index];
  stream.speed = 0;
  stream.sharesDevice = false;
  result.busy[stream.rank] += stream.left;
  ranks[stream.rank].running.push_back(number);
  shareDevice(stream.rank);
}

/// The alarm of a kernel: it ends, or comes to other waves.
void Engine::turn(int32_t number) {
  Stream &stream = streams[number];
  stream.left = stream.until;
  stream.updated = clock.now;
  if (stream.left > 0)
    return shareDevice(stream.rank);
  endCompute(number);
}

void Engine::endCompute(int32_t number) {
  Stream &stream = streams[number];
  const Task &task = getTask(stream);
  const Work &work = *stream.work;
  stream.work = nullptr;
  record({work.isCopy ? Span::Kind::Copy : Span::Kind::Kernel,
          Span::Lane::Compute, stream.rank, task.stream, task.site, task.step,
          std::min(stream.begin + machine.launch, clock.now), clock.now,
          work.isCopy ? static_cast<int64_t>(work.kernel.bytes) : 0});
  std::vector<int32_t> &running = ranks[stream.rank].running;
  llvm::erase(running, number);
  if (!running.empty())
    shareDevice(stream.rank);
  advance(number);
}

/// Gives each kernel that runs its part of the device until one of them comes
/// to other waves.
void Engine::shareDevice(int32_t rank) {
  const std::vector<int32_t> &running = ranks[rank].running;
  bool isAlone = running.size() == 1;
  double isFree = 1;
  for (int32_t number : running) {
    Stream &stream = streams[number];
    double passed = (clock.now - stream.updated) * stream.speed;
    stream.updated = clock.now;
    Occupancy &takes = stream.occupancy;
    double waves = takes.full + takes.last;
    stream.left = std::max(0.0, stream.left - passed);
    // One that had not all of the device need not have ended a wave.
    if (stream.sharesDevice && isFree == 1) {
      if (stream.left > takes.last && stream.left <= waves) {
        takes.full = stream.left - takes.last;
        takes.regroup();
        stream.left = takes.full + takes.last;
      }
      stream.sharesDevice = false;
    }
    double speed = 1;
    stream.until = 0;
    // Of one alone, nothing asks where its waves end.
    if (!isAlone) {
      bool isLast = stream.left <= takes.last;
      double wants = isLast ? takes.share : 1;
      double gets = std::min(wants, isFree);
      stream.until = isLast ? 0 : takes.last;
      stream.sharesDevice |= gets < wants;
      speed = gets / wants;
      isFree -= gets;
    }
    stream.speed = speed * ranks[rank].speed;
    ++stream.version;
    if (stream.speed > 0)
      clock.set(clock.now + (stream.left - stream.until) / stream.speed,
                Alarm::Kind::ComputeTurns, number, stream.version);
  }
}

/// Kernels are slowed by the lane that slows them most.
void Engine::updateSpeed(int32_t rank) {
  double slowdown = 0;
  for (int64_t i = 0; i < messageLanes; ++i)
    slowdown = std::max(slowdown, lanes[rank * messageLanes + i].slowdown);
  if (ranks[rank].speed == 1 - slowdown)
    return;
  ranks[rank].speed = 1 - slowdown;
  shareDevice(rank);
}
