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

#include <cstddef>
#include <cstdint>
#include <map>
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
  Kind kind;
  int32_t id;
  uint32_t version;
};

class Clock {
public:
  double now = 0;

  void set(double time, Alarm::Kind kind, int32_t id, uint32_t version = 0) {
    if (last == times.end() || last->first != time)
      last = times.try_emplace(time).first;
    last->second.push_back({kind, id, version});
  }
  bool isEmpty() const { return times.empty(); }
  /// Takes the next alarm; it is `now` then.
  Alarm next() {
    auto first = times.begin();
    now = first->first;
    Alarm alarm = first->second[taken++];
    if (taken == first->second.size()) {
      if (last == first)
        last = times.end();
      times.erase(first);
      taken = 0;
    }
    return alarm;
  }

private:
  /// Ranks that do the same do it at one time, so there are few times.
  std::map<double, std::vector<Alarm>> times;
  /// Where the last alarm was set.
  std::map<double, std::vector<Alarm>>::iterator last = times.end();
  /// How many alarms of the first time were taken.
  size_t taken = 0;
};

} // namespace mlir::commir::simulator

#endif // LIB_SIMULATOR_CLOCK_H
