//===- Lanes.cpp - Launches that run beside each other --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches that do not depend on each other name a lane: the last blocks of one
// leave room on the device for the first ones of another. What stands between
// two launches is in the lane of the first; waits are in that of the second,
// which needs what they wait for.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"

using namespace mlir;
using namespace mlir::commir;

/// Counts the lanes of a function whose launches name some; where one of them
/// is in a loop, none has a lane.
void FunctionConverter::findLanes() {
  if (!onDevice)
    return;
  int64_t most = 0;
  bool isFlat = true;
  function.walk([&](LaunchOp op) {
    auto lane = op->getAttrOfType<IntegerAttr>(kLane);
    if (!lane)
      return;
    most = std::max(most, lane.getInt());
    isFlat &= op->getParentOp() == function;
  });
  lanes = isFlat ? most + 1 : 1;
}

void FunctionConverter::useLane(int64_t lane) {
  callChecked("mercury_rt_lane_use", {context, constant64(lane)});
}

/// What comes in lane `later` comes after what is in lane `earlier`.
void FunctionConverter::orderLanes(int64_t earlier, int64_t later) {
  useLane(earlier);
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  callChecked("mercury_rt_lane_mark", {context, tokenSlot});
  Value token = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
  useLane(later);
  callChecked("mercury_rt_wait", {context, token});
}

/// The lane that a launch names, if it does and there are any.
std::optional<int64_t> FunctionConverter::getLane(Operation *op) {
  auto launch = dyn_cast_or_null<LaunchOp>(op);
  auto lane =
      launch ? launch->getAttrOfType<IntegerAttr>(kLane) : IntegerAttr();
  return lane && lanes > 1 ? std::optional(lane.getInt()) : std::nullopt;
}

/// A wait just before a launch is in the lane of that.
void FunctionConverter::enterLaneOfNext(WaitOp wait) {
  Operation *next = wait->getNextNode();
  while (next && (isa<WaitOp>(next) || !isa<CommIRDialect>(next->getDialect())))
    next = next->getNextNode();
  if (std::optional<int64_t> lane = getLane(next))
    useLane(*lane);
}

void FunctionConverter::enterLane(LaunchOp launch) {
  std::optional<int64_t> lane = getLane(launch);
  if (!lane)
    return;
  if (launch->hasAttr(kLaneFork))
    for (int64_t other = 1; other < lanes; ++other)
      orderLanes(0, other);
  useLane(*lane);
}

void FunctionConverter::leaveLane(LaunchOp launch) {
  if (!getLane(launch) || !launch->hasAttr(kLaneJoin))
    return;
  for (int64_t other = 1; other < lanes; ++other)
    orderLanes(other, 0);
}
