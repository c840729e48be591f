//===- Transfers.cpp - Communication between the ranks of a plan ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Starts do not block and waits do. A rank's transfers take place one after
// another in the order of their starts, as on a stream of a device, and each
// only when the peer's turn has come too: a plan that cannot hang here hangs
// nowhere.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transport.h"
#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

/// All members of a group start the same communication in the same order, and
/// agree on whether it happens.
LogicalResult Checker::agreeOnOrder(RankState &rank) {
  const PlanEvent &event = *rank.event;
  int64_t first = trace.getMember(rank.getRank(), event.group, 0);
  auto &order = orders[{event.group, first}];
  size_t number = rank.starts[event.group]++;
  if (number == order.size()) {
    order.emplace_back(getMoment(rank), event.happens);
    return success();
  }
  auto &[moment, happens] = order[number];
  if (moment.op == event.op && happens == event.happens)
    return success();
  InFlightDiagnostic error = report(rank);
  if (moment.op != event.op)
    error << "is number " << number + 1 << " of its communication on "
          << trace.describeGroup(event.group)
          << ", where another rank of the group has another";
  else
    error << (event.happens ? "happens" : "does not happen")
          << ", which the ranks of the group do not agree on";
  note(error, moment, "the other rank's is here");
  return error;
}

/// Reads what a transfer sends, at its start: nothing may change it later.
LogicalResult Checker::takeSource(RankState &rank, Transfer &transfer) {
  SmallVector<Piece> pieces;
  if (!transfer.source.isContiguous())
    return report(rank) << "sends " << describe(transfer.source)
                        << ", which has gaps";
  if (failed(read(rank, transfer.source, pieces)))
    return failure();
  transfer.sent = std::make_shared<Payload>();
  for (const Piece &piece : pieces) {
    MemoryBox part = slice(transfer.source, piece.local);
    part.offset -= transfer.source.offset;
    transfer.sent->emplace_back(part, piece.content);
  }
  return success();
}

LogicalResult Checker::start(RankState &rank,
                             std::shared_ptr<Transfer> transfer) {
  rank.open[rank.event->token] = transfer;
  rank.queue.push_back(std::move(transfer));
  if (rank.queue.size() == 1)
    toActivate.push_back(rank.getRank());
  return activate();
}

LogicalResult Checker::startExchange(RankState &rank) {
  const PlanEvent &event = *rank.event;
  if (failed(agreeOnOrder(rank)))
    return failure();
  if (!event.happens) {
    rank.open[event.token] = nullptr;
    return success();
  }
  auto transfer = std::make_shared<Transfer>();
  transfer->start = getMoment(rank);
  transfer->source = event.inputs[0];
  transfer->target = event.outputs[0];
  transfer->group = event.group;
  bool sends = !transfer->source.isEmpty();
  bool receives = !transfer->target.isEmpty();
  for (auto [used, peer] :
       {std::pair(sends, event.to), std::pair(receives, event.from)})
    if (used && (peer < 0 || peer >= trace.getGroupSize(event.group)))
      return report(rank) << "names group rank " << peer << " of "
                          << trace.describeGroup(event.group) << ", which has "
                          << trace.getGroupSize(event.group);
  transfer->to = trace.getMember(rank.getRank(), event.group, event.to);
  transfer->from = trace.getMember(rank.getRank(), event.group, event.from);
  transfer->hasSent = !sends;
  transfer->hasReceived = !receives;
  if (sends && receives &&
      (transfer->to == rank.getRank()) != (transfer->from == rank.getRank()))
    return report(rank) << "names this rank on one side only";
  if (!transfer->target.isContiguous())
    return report(rank) << "receives into " << describe(transfer->target)
                        << ", which has gaps";
  if (failed(takeSource(rank, *transfer)) ||
      failed(checkWrite(rank, transfer->target)))
    return failure();
  if (transfer->source.space == transfer->target.space &&
      overlaps(transfer->source, transfer->target))
    return report(rank) << "receives into " << describe(transfer->target)
                        << ", which it sends";
  if (isPut(cast<ExchangeStartOp>(event.op)) &&
      failed(checkPut(rank, *transfer)))
    return failure();
  if (sends && transfer->to != rank.getRank()) {
    ++proof.messages;
    proof.bytes += transfer->source.getBytes();
  }
  return start(rank, transfer);
}

/// Both ends of a put lie where peers reach memory. The target does even where
/// nothing comes: it tells the place on the receiver.
LogicalResult Checker::checkPut(RankState &rank, const Transfer &transfer) {
  for (const MemoryBox *end : {&transfer.source, &transfer.target}) {
    bool isUsed = !end->isEmpty() || end == &transfer.target;
    if (isUsed && end->space.kind != MemorySpace::Kind::Symmetric)
      return report(rank) << "puts from or to " << describe(*end)
                          << "; both ends of a put must lie in the symmetric "
                             "arena";
  }
  return success();
}

LogicalResult Checker::startAllGather(RankState &rank) {
  const PlanEvent &event = *rank.event;
  if (failed(agreeOnOrder(rank)))
    return failure();
  auto transfer = std::make_shared<Transfer>();
  transfer->kind = event.kind;
  transfer->start = getMoment(rank);
  transfer->source = event.inputs[0];
  transfer->target = event.outputs[0];
  transfer->group = event.group;
  transfer->lengths = event.lengths;
  int64_t members = trace.getGroupSize(event.group);
  int64_t own = trace.getGroupRank(rank.getRank(), event.group);
  int64_t bytes = transfer->source.getBytes();
  int64_t slot = transfer->target.getBytes() / members;
  if (event.lengths[own] != bytes)
    return report(rank) << "sends " << bytes << " bytes, but its table says "
                        << event.lengths[own];
  for (auto [member, length] : llvm::enumerate(event.lengths))
    if (length < 0 || length > slot)
      return report(rank) << "expects " << length << " bytes of group rank "
                          << member << " in a slot of " << slot;
  if (failed(takeSource(rank, *transfer)) ||
      failed(checkWrite(rank, transfer->target)))
    return failure();
  if (transfer->source.space == transfer->target.space &&
      overlaps(transfer->source, transfer->target))
    return report(rank) << "gathers into " << describe(transfer->target)
                        << ", which it sends";
  if (bytes != 0) {
    proof.messages += members - 1;
    proof.bytes += bytes * (members - 1);
  }
  return start(rank, transfer);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Begins the next communication of the ranks whose last one is complete.
LogicalResult Checker::activate() {
  while (!toActivate.empty()) {
    int64_t number = toActivate.back();
    toActivate.pop_back();
    RankState &rank = *ranks[number];
    if (rank.queue.empty())
      continue;
    std::shared_ptr<Transfer> transfer = rank.queue.front();
    int64_t group = transfer->group;
    if (transfer->isCollective()) {
      int64_t first = trace.getMember(number, group, 0);
      gatherings[{group, first}].push_back(transfer);
      if (failed(gather(group, first)))
        return failure();
      continue;
    }
    int64_t to = transfer->to, from = transfer->from;
    bool sends = !transfer->hasSent, receives = !transfer->hasReceived;
    if (sends)
      channels[{group, number, to}].sends.push_back(transfer);
    if (receives)
      channels[{group, from, number}].receives.push_back(transfer);
    if (transfer->isDone())
      complete(transfer);
    else if ((sends && failed(match(group, number, to))) ||
             (receives && failed(match(group, from, number))))
      return failure();
  }
  return success();
}

LogicalResult Checker::match(int64_t group, int64_t from, int64_t to) {
  Channel &channel = channels[{group, from, to}];
  while (!channel.sends.empty() && !channel.receives.empty()) {
    std::shared_ptr<Transfer> send = channel.sends.front();
    std::shared_ptr<Transfer> receive = channel.receives.front();
    channel.sends.pop_front();
    channel.receives.pop_front();
    int64_t sent = send->source.getBytes();
    int64_t expected = receive->target.getBytes();
    if (sent != expected) {
      InFlightDiagnostic error = report(receive->start)
                                 << "receives " << expected << " bytes from "
                                 << trace.describeRank(from) << ", which sends "
                                 << sent;
      note(error, send->start, "they are sent here");
      return error;
    }
    // All ranks start the same op, so that both ends of a put are of one.
    bool puts = isPut(cast<ExchangeStartOp>(send->start.op));
    if (puts && send->target.offset != receive->target.offset) {
      InFlightDiagnostic error =
          report(send->start)
          << "puts to byte " << send->target.offset
          << " of the symmetric arena, and " << trace.describeRank(to)
          << " waits for it at byte " << receive->target.offset
          << "; a put is received at the same offset on "
             "every rank";
      note(error, receive->start, "it is received here");
      return error;
    }
    receive->arrived.emplace_back(send->sent, 0);
    send->hasSent = true;
    receive->hasReceived = true;
    if (send->isDone())
      complete(send);
    if (receive->isDone() && receive != send)
      complete(receive);
  }
  return success();
}

void Checker::complete(const std::shared_ptr<Transfer> &transfer) {
  RankState &rank = *ranks[transfer->start.rank];
  if (rank.queue.empty() || rank.queue.front() != transfer)
    return;
  rank.queue.pop_front();
  toActivate.push_back(rank.getRank());
  wake(rank);
}

Checker::Progress Checker::wait(RankState &rank) {
  int64_t token = rank.event->token;
  auto it = rank.open.find(token);
  if (it == rank.open.end()) {
    report(rank) << "waits for a transfer "
                 << (token > 0 ? "that was waited for before"
                               : "that was not started");
    return Progress::Fails;
  }
  std::shared_ptr<Transfer> transfer = it->second;
  if (transfer && !transfer->isDone())
    return Progress::Blocks;
  rank.open.erase(it);
  if (!transfer)
    return Progress::Goes;
  if (failed(waitInLane(rank, token, *transfer)))
    return Progress::Fails;
  if (transfer->isReduction())
    return failed(reduce(rank, *transfer)) ? Progress::Fails : Progress::Goes;
  const MemoryBox &target = transfer->target;
  for (auto &[payload, start] : transfer->arrived) {
    Payload parts = *payload;
    if (transfer->kind != PlanEvent::Kind::Pull)
      for (auto &[region, content] : parts) {
        region.space = target.space;
        region.offset += target.offset + start;
      }
    getContents(rank, target.space).write(std::move(parts));
  }
  return Progress::Goes;
}
