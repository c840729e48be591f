//===- Trace.cpp - A plan and its ranks -----------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanTrace.h"
#include "lib/Analysis/PlanTrace/Code.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::trace;

//===----------------------------------------------------------------------===//
// MemoryBox
//===----------------------------------------------------------------------===//

int64_t MemoryBox::getElements() const {
  int64_t elements = 1;
  for (int64_t size : sizes)
    elements *= size;
  return elements;
}

int64_t MemoryBox::getEnd() const {
  int64_t last = offset;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    last += (size - 1) * stride;
  return last + elementBytes;
}

bool MemoryBox::isContiguous() const {
  int64_t expected = elementBytes;
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(sizes, strides))) {
    if (size != 1 && stride != expected)
      return isEmpty();
    expected *= size;
  }
  return true;
}

StringRef mlir::commir::getName(PlanEvent::Kind kind) {
  using Kind = PlanEvent::Kind;
  switch (kind) {
  case Kind::Launch:
    return "launch";
  case Kind::Exchange:
    return "exchange";
  case Kind::AllGather:
    return "all_gather";
  case Kind::ReduceScatter:
    return "reduce_scatter";
  case Kind::AllReduce:
    return "all_reduce";
  case Kind::AllToAll:
    return "all_to_all";
  case Kind::Broadcast:
    return "broadcast";
  case Kind::Pull:
    return "pull";
  case Kind::Wait:
    return "wait";
  case Kind::Fill:
    return "fill";
  case Kind::Copy:
    return "copy";
  case Kind::Accumulate:
    return "accumulate";
  case Kind::LeaseOpen:
    return "lease_open";
  case Kind::LeaseClose:
    return "lease_close";
  case Kind::LaneUse:
    return "lane_use";
  case Kind::LaneOrder:
    return "lane_order";
  }
  llvm_unreachable("a kind of event");
}

//===----------------------------------------------------------------------===//
// PlanTrace
//===----------------------------------------------------------------------===//

FailureOr<PlanTrace> PlanTrace::create(func::FuncOp function) {
  auto symbol = function->getAttrOfType<FlatSymbolRefAttr>("commir.mesh");
  MeshOp mesh =
      symbol ? SymbolTable::lookupNearestSymbolFrom<MeshOp>(function, symbol)
             : MeshOp();
  if (!mesh)
    return function.emitOpError() << "must name a commir.mesh to be traced";
  auto local = function->getAttrOfType<IntegerAttr>("commir.local_bytes");
  if (!local)
    return function.emitOpError() << "has no commir.local_bytes; run "
                                     "commir-plan-memory first";
  auto symmetric =
      function->getAttrOfType<IntegerAttr>("commir.symmetric_bytes");
  PlanTrace trace;
  trace.function = function;
  trace.mesh = mesh;
  trace.localBytes = local.getInt();
  trace.symmetricBytes = symmetric ? symmetric.getInt() : 0;
  for (auto level : mesh.getLevels().getAsRange<LevelAttr>())
    trace.levelSizes.push_back(level.getSize());
  trace.levelStrides.assign(trace.levelSizes.size(), 1);
  for (size_t level = trace.levelSizes.size(); level-- > 0;) {
    trace.levelStrides[level] = trace.ranks;
    trace.ranks *= trace.levelSizes[level];
  }
  trace.code = compile(function, mesh);
  if (!trace.code)
    return failure();
  return trace;
}

StringRef PlanTrace::getLevelName(int64_t level) const {
  return cast<LevelAttr>(MeshOp(mesh).getLevels()[level]).getName();
}

int64_t PlanTrace::getNumGroups() const { return code->groups.size(); }

ArrayRef<int64_t> PlanTrace::getGroupLevels(int64_t group) const {
  return code->groups[group];
}

int64_t PlanTrace::getGroupSize(int64_t group) const {
  int64_t size = 1;
  for (int64_t level : getGroupLevels(group))
    size *= levelSizes[level];
  return size;
}

int64_t PlanTrace::getGroupRank(int64_t rank, int64_t group) const {
  int64_t found = 0;
  for (int64_t level : getGroupLevels(group))
    found = found * levelSizes[level] + getCoordinate(rank, level);
  return found;
}

int64_t PlanTrace::getMember(int64_t rank, int64_t group,
                             int64_t member) const {
  int64_t found = rank;
  for (int64_t level : llvm::reverse(getGroupLevels(group))) {
    int64_t there = member % levelSizes[level];
    found += (there - getCoordinate(rank, level)) * levelStrides[level];
    member /= levelSizes[level];
  }
  return found;
}

std::string PlanTrace::describeGroup(int64_t group) const {
  std::string text;
  for (int64_t level : getGroupLevels(group))
    text += (text.empty() ? "'" : ", '") + getLevelName(level).str() + "'";
  return text;
}

std::string PlanTrace::describeRank(int64_t rank) const {
  std::string text = "rank " + std::to_string(rank);
  if (levelSizes.size() == 1)
    return text;
  for (size_t level = 0; level < levelSizes.size(); ++level)
    text += (level == 0 ? " (" : ", ") + getLevelName(level).str() + " " +
            std::to_string(getCoordinate(rank, level));
  return text + ")";
}
