//===- Lanes.cpp - Lanes to runtime calls ---------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are of a device: where a call computes at once, the order of the text
// is one that they allow.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"

using namespace mlir;
using namespace mlir::commir;

void FunctionConverter::useLane(int64_t number) {
  if (onDevice)
    callChecked("mercury_rt_lane_use", {context, constant64(number)});
}

void FunctionConverter::convert(LaneOrderOp op) {
  if (!onDevice)
    return;
  useLane(op.getEarlier());
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  callChecked("mercury_rt_lane_mark", {context, tokenSlot});
  Value token = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
  useLane(op.getLater());
  callChecked("mercury_rt_wait", {context, token});
  useLane(lane);
}
