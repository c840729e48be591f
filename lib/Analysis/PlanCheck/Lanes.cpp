//===- Lanes.cpp - What the lanes of a rank leave unordered ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Lanes.h"
#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

void Lanes::advance(Clock &clock, const Clock &past) {
  for (auto [own, other] : llvm::zip_equal(clock, past))
    own = std::max(own, other);
}

/// A lane begins after what lane 0 holds when it is first used.
Lanes::Clock &Lanes::open(int64_t lane) {
  if (!clocks[lane])
    clocks[lane] = clocks[0];
  several |= lane != 0;
  return *clocks[lane];
}

void Lanes::use(int64_t lane) {
  open(lane);
  current = lane;
}

void Lanes::order(int64_t earlier, int64_t later) {
  const Clock &past = open(earlier);
  advance(open(later), past);
}

void Lanes::start(int64_t token) {
  if (several)
    starts[token] = *clocks[current];
}

void Lanes::wait(int64_t token) {
  auto found = starts.find(token);
  if (found == starts.end())
    return;
  advance(*clocks[current], found->second);
  starts.erase(found);
}

void Lanes::add(const MemoryBox &region, bool writes, Moment moment) {
  int64_t time = ++(*clocks[current])[current];
  accesses.push_back({region, writes, current, time, std::move(moment)});
}

const Lanes::Access *
Lanes::findUnordered(llvm::function_ref<bool(const Access &)> concerns) const {
  const Clock &past = *clocks[current];
  for (const Access &access : accesses)
    if (access.time > past[access.lane] && concerns(access))
      return &access;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// What a rank touches
//===----------------------------------------------------------------------===//

LogicalResult Checker::reportRace(RankState &rank, const Twine &does,
                                  const Lanes::Access &other) {
  StringRef verb = other.writes ? "writes" : "reads";
  InFlightDiagnostic error =
      report(rank) << does << " in lane " << rank.lanes.getCurrent()
                   << ", in no order with lane " << other.lane << ", which "
                   << verb << " " << describe(other.region);
  note(error, other.moment,
       "lane " + Twine(other.lane) + " " + verb + " it here");
  return error;
}

/// Notes that the lane in use reads or writes memory; no other lane may touch
/// it in no order with that, unless both read.
LogicalResult Checker::touch(RankState &rank, const MemoryBox &region,
                             bool writes) {
  if (!rank.lanes.areSeveral() || region.isEmpty())
    return success();
  const Lanes::Access *race =
      rank.lanes.findUnordered([&](const Lanes::Access &other) {
        return (writes || other.writes) && other.region.space == region.space &&
               overlaps(other.region, region);
      });
  if (race)
    return reportRace(rank, (writes ? "writes " : "reads ") + describe(region),
                      *race);
  rank.lanes.add(region, writes, getMoment(rank));
  return success();
}

/// A transfer was under way until its wait, and is over for the lane of that.
LogicalResult Checker::waitInLane(RankState &rank, int64_t token,
                                  const Transfer &transfer) {
  rank.lanes.wait(token);
  return failure(failed(touch(rank, transfer.source, /*writes=*/false)) ||
                 failed(touch(rank, transfer.target, /*writes=*/true)));
}

/// Peers read the memory until the lease is closed, and this rank theirs.
LogicalResult Checker::closeInLane(RankState &rank, int64_t number) {
  const Lanes::Access *race =
      rank.lanes.findUnordered([&](const Lanes::Access &other) {
        MemorySpace space = other.region.space;
        return space.kind == MemorySpace::Kind::Leased &&
               space.number == number;
      });
  if (race)
    return reportRace(rank, "closes a lease", *race);
  return touch(rank, rank.leases[number - 1].memory, /*writes=*/false);
}
