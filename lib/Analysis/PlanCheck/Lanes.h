//===- Lanes.h - What the lanes of a rank leave unordered -------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Happens-before between the lanes of one rank, by vector clocks. The text is
// one order that the lanes allow; a plan is free of races when whatever another
// order could exchange touches different memory, or only reads it.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_LANES_H
#define LIB_ANALYSIS_PLANCHECK_LANES_H

#include "lib/Analysis/PlanTrace.h"
#include <array>
#include <map>
#include <optional>

namespace mlir::commir::check {

/// Where and when something happens, for messages.
struct Moment {
  Operation *op = nullptr;
  int64_t rank = 0;
  SmallVector<int64_t, 4> steps;
};

class Lanes {
public:
  /// What a lane does to memory, as the `time`th thing in it.
  struct Access {
    MemoryBox region;
    bool writes;
    int64_t lane, time;
    Moment moment;
  };

  Lanes() { clocks[0].emplace(); }

  int64_t getCurrent() const { return current; }
  /// Whether anything can be unordered yet.
  bool areSeveral() const { return several; }

  void use(int64_t lane);
  void order(int64_t earlier, int64_t later);

  /// A transfer begins after what the lane in use holds now, and what that
  /// holds later is after a wait for it.
  void start(int64_t token);
  void wait(int64_t token);

  void add(const MemoryBox &region, bool writes, Moment moment);

  /// An access of another lane, of those that `concerns` names, that the lane
  /// in use does not come after; or null.
  const Access *
  findUnordered(llvm::function_ref<bool(const Access &)> concerns) const;

private:
  /// For each lane, how much of what it does comes before.
  using Clock = std::array<int64_t, kMaxLanes>;
  Clock &open(int64_t lane);
  static void advance(Clock &clock, const Clock &past);

  /// Of the lanes that were used.
  std::array<std::optional<Clock>, kMaxLanes> clocks;
  int64_t current = 0;
  bool several = false;
  std::map<int64_t, Clock> starts; // by token
  /// Since there are several lanes; before, all is in lane 0, and they begin
  /// after that.
  std::vector<Access> accesses;
};

} // namespace mlir::commir::check

#endif // LIB_ANALYSIS_PLANCHECK_LANES_H
