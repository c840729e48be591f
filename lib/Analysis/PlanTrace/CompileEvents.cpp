//===- CompileEvents.cpp - What a rank of a plan does ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanTrace/Compiler.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::trace;

FailureOr<int64_t> Compiler::getLevel(Operation *op, StringRef name) {
  int64_t level = mesh.getLevelNumber(name);
  if (level >= 0)
    return level;
  return op->emitOpError() << "must name a level of the mesh ("
                           << mesh.describeLevels() << "), got '" << name
                           << "'";
}

LogicalResult Compiler::addEvent(EventSite site, ArrayAttr group) {
  SmallVector<int64_t> levels;
  if (group)
    for (auto name : group.getAsRange<StringAttr>()) {
      FailureOr<int64_t> level = getLevel(site.op, name);
      if (failed(level))
        return failure();
      levels.push_back(*level);
    }
  if (group) {
    // A set: its ranks are row-major in the order of the mesh.
    llvm::sort(levels);
    levels.erase(llvm::unique(levels), levels.end());
    site.group = llvm::find(code.groups, levels) - code.groups.begin();
    if (site.group == static_cast<int64_t>(code.groups.size()))
      code.groups.push_back(levels);
  }
  for (Value operand : site.op->getOperands())
    if (isa<BufferType, TileType>(operand.getType()))
      return site.op->emitOpError() << "works on tiles without a place in "
                                       "memory; run commir-to-spmd first";
  add(Opcode::Event, site.op).immediate = code.sites.size();
  code.sites.push_back(std::move(site));
  return success();
}

LogicalResult Compiler::compileCollective(Operation &op) {
  using Kind = PlanEvent::Kind;
  EventSite site{Kind::AllReduce, &op};
  site.token = get(op.getResult(0));
  if (auto scatter = dyn_cast<ReduceScatterStartOp>(op)) {
    if (!scatter.getBytes())
      return op.emitOpError() << "has no table of lengths; run commir-to-spmd "
                                 "first";
    site.kind = Kind::ReduceScatter;
    site.inputs = {get(scatter.getSource())};
    site.outputs = {get(scatter.getTarget())};
    site.lengths = get(scatter.getBytes());
    return addEvent(site, scatter.getGroup());
  }
  if (auto reduce = dyn_cast<AllReduceStartOp>(op)) {
    site.inputs = {get(reduce.getSource())};
    site.outputs = {get(reduce.getTarget())};
    return addEvent(site, reduce.getGroup());
  }
  if (auto deal = dyn_cast<AllToAllStartOp>(op)) {
    site.kind = Kind::AllToAll;
    site.inputs = {get(deal.getSource())};
    site.outputs = {get(deal.getTarget())};
    site.lengths = get(deal.getSends());
    site.arrivals = get(deal.getReceives());
    return addEvent(site, deal.getGroup());
  }
  auto broadcast = cast<BroadcastStartOp>(op);
  site.kind = Kind::Broadcast;
  site.inputs = {get(broadcast.getSource())};
  site.outputs = {get(broadcast.getTarget())};
  site.from = get(broadcast.getRoot());
  site.when = get(broadcast.getWhen());
  return addEvent(site, broadcast.getGroup());
}

LogicalResult Compiler::compileEvent(Operation &op) {
  using Kind = PlanEvent::Kind;
  if (auto rank = dyn_cast<GroupRankOp>(op)) {
    FailureOr<int64_t> level = getLevel(&op, rank.getLevel());
    if (failed(level))
      return failure();
    int32_t result = get(rank.getRank());
    Instruction &added = add(Opcode::GroupRank, &op);
    added.result = result;
    added.immediate = *level;
    return success();
  }
  if (auto memory = dyn_cast<MemoryOp>(op)) {
    int32_t result = get(memory.getBytes());
    std::optional<Arena> arena = memory.getArena();
    Instruction &added = add(arena ? Opcode::Arena : Opcode::Argument, &op);
    added.result = result;
    added.immediate =
        arena ? static_cast<int64_t>(*arena) : *memory.getArgument();
    return success();
  }
  if (auto status = dyn_cast<StatusOp>(op)) {
    slots[status.getStatus()] = getConstant(0);
    return success();
  }
  EventSite site{Kind::Wait, &op};
  if (auto wait = dyn_cast<WaitOp>(op)) {
    site.token = get(wait.getToken());
    return addEvent(site);
  }
  if (auto fill = dyn_cast<FillOp>(op)) {
    site.kind = Kind::Fill;
    site.outputs = {get(fill.getTile())};
    site.value = fill.getValue().convertToDouble();
    return addEvent(site);
  }
  if (isa<CopyOp, AccumulateOp>(op)) {
    site.kind = isa<CopyOp>(op) ? Kind::Copy : Kind::Accumulate;
    site.inputs = {get(op.getOperand(0))};
    site.outputs = {get(op.getOperand(1))};
    return addEvent(site);
  }
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    site.kind = Kind::Launch;
    site.inputs = getAll(launch.getInputs());
    site.outputs = getAll(launch.getOutputs());
    site.positions = getAll(launch.getPositions());
    if (launch.getScratch())
      site.scratch = {get(launch.getScratch())};
    return addEvent(site);
  }
  if (auto exchange = dyn_cast<ExchangeStartOp>(op)) {
    site.kind = Kind::Exchange;
    site.inputs = {get(exchange.getSource())};
    site.outputs = {get(exchange.getTarget())};
    site.to = get(exchange.getTo());
    site.from = get(exchange.getFrom());
    site.when = get(exchange.getWhen());
    site.token = get(exchange.getToken());
    return addEvent(site, exchange.getGroup());
  }
  if (auto gather = dyn_cast<AllGatherStartOp>(op)) {
    if (!gather.getBytes())
      return op.emitOpError() << "has no table of lengths; run commir-to-spmd "
                                 "first";
    site.kind = Kind::AllGather;
    site.inputs = {get(gather.getSource())};
    site.outputs = {get(gather.getTarget())};
    site.lengths = get(gather.getBytes());
    site.token = get(gather.getToken());
    return addEvent(site, gather.getGroup());
  }
  if (isa<ReduceScatterStartOp, AllReduceStartOp, AllToAllStartOp,
          BroadcastStartOp>(op))
    return compileCollective(op);
  if (auto open = dyn_cast<LeaseOpenOp>(op)) {
    site.kind = Kind::LeaseOpen;
    site.inputs = {get(open.getMemory())};
    site.lease = get(open.getLease());
    return addEvent(site, open.getGroup());
  }
  if (auto close = dyn_cast<LeaseCloseOp>(op)) {
    site.kind = Kind::LeaseClose;
    site.lease = get(close.getLease());
    return addEvent(site);
  }
  if (auto use = dyn_cast<LaneUseOp>(op)) {
    site.kind = Kind::LaneUse;
    site.to = getConstant(use.getLane());
    return addEvent(site);
  }
  if (auto order = dyn_cast<LaneOrderOp>(op)) {
    site.kind = Kind::LaneOrder;
    site.from = getConstant(order.getEarlier());
    site.to = getConstant(order.getLater());
    return addEvent(site);
  }
  if (auto leased = dyn_cast<LeaseMemoryOp>(op)) {
    if (!isa<MemRefType>(leased.getMemory().getType()))
      return op.emitOpError() << "gives a buffer without a place in memory; "
                                 "run commir-to-spmd first";
    int32_t lease = get(leased.getLease()), peer = get(leased.getPeer());
    int32_t result = get(leased.getMemory());
    Instruction &added = add(Opcode::LeasedMemory, &op);
    added.result = result;
    added.a = lease;
    added.b = peer;
    return success();
  }
  if (auto pull = dyn_cast<PullStartOp>(op)) {
    site.kind = Kind::Pull;
    site.inputs = {get(pull.getSource())};
    site.outputs = {get(pull.getTarget())};
    site.lease = get(pull.getLease());
    site.from = get(pull.getPeer());
    site.when = get(pull.getWhen());
    site.token = get(pull.getToken());
    return addEvent(site);
  }
  return op.emitOpError() << "is not known to the trace of plans";
}
