//===- Clock.h - What happens next ------------------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Alarms in the order of time, those of one time in the order of setting, so
// that a simulation is the same whenever it is run.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SIMULATOR_CLOCK_H
#define LIB_SIMULATOR_CLOCK_H

#include <cstdint>
#include <queue>
#include <vector>

namespace mlir::commir::simulator {

struct Alarm {
  enum class Kind : uint8_t {
    Resume,       // stream `id` goes on
    ComputeTurns, // of stream `id`, if its version is still `version`: its
                  // kernel ends, or takes another part of the device
    TransferEnds, // number `id`, if its version is still `version`
    LaneEnds,     // a copy inside a rank, in lane `id`
    LaneStarts    // the pull in front of lane `id` may start
  };
  double time;
  uint64_t order;
  Kind kind;
  int32_t id;
  uint32_t version;
};

class Clock {
public:
  double now = 0;

  void set(double time, Alarm::Kind kind, int32_t id, uint32_t version = 0) {
    alarms.push({time, order++, kind, id, version});
  }
  bool isEmpty() const { return alarms.empty(); }
  /// Takes the next alarm; it is `now` then.
  Alarm next() {
    Alarm alarm = alarms.top();
    alarms.pop();
    now = alarm.time;
    return alarm;
  }

private:
  struct Later {
    bool operator()(const Alarm &a, const Alarm &b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  uint64_t order = 0;
  std::priority_queue<Alarm, std::vector<Alarm>, Later> alarms;
};

} // namespace mlir::commir::simulator

#endif // LIB_SIMULATOR_CLOCK_H
