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
  if (sends && transfer->to != rank.getRank()) {
    ++proof.messages;
    proof.bytes += transfer->source.getBytes();
  }
  return start(rank, transfer);
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
    for (const auto &[part, content] : *payload) {
      if (transfer->kind == PlanEvent::Kind::Pull) {
        getContents(rank, target.space).write(part, content);
        continue;
      }
      MemoryBox region = part;
      region.space = target.space;
      region.offset += target.offset + start;
      getContents(rank, target.space).write(region, content);
    }
  }
  return Progress::Goes;
}

//===----------------------------------------------------------------------===//
// One-sided reads
//===----------------------------------------------------------------------===//

/// The lease of a peer that matches a rank's own; null while it is not open.
Lease *Checker::getPeerLease(const Lease &lease, int64_t rank) {
  for (Lease &theirs : ranks[rank]->leases)
    if (theirs.group == lease.group && theirs.number == lease.number)
      return &theirs;
  return nullptr;
}

/// Whether the peers whose memory an event names have opened it.
bool Checker::canReadLeases(RankState &rank) {
  return llvm::all_of(rank.event->inputs, [&](const MemoryBox &region) {
    if (region.space.kind != MemorySpace::Kind::Leased)
      return true;
    int64_t number = region.space.number;
    if (number < 1 || number > static_cast<int64_t>(rank.leases.size()))
      return true;
    const Lease &lease = rank.leases[number - 1];
    int64_t members = trace.getGroupSize(lease.group);
    if (region.space.peer < 0 || region.space.peer >= members)
      return true;
    int64_t peer =
        trace.getMember(rank.getRank(), lease.group, region.space.peer);
    return getPeerLease(lease, peer) != nullptr;
  });
}

/// Peers reach arguments and the symmetric arena, and find what is in that at
/// the same offset as their own.
LogicalResult Checker::checkLent(RankState &rank, const Lease &lease) {
  using Kind = MemorySpace::Kind;
  const MemoryBox &memory = lease.memory;
  if (memory.space.kind == Kind::Local) {
    int64_t end = std::min(memory.getEnd(), trace.getLocalBytes());
    auto held = getContents(rank, memory.space).readBytes(memory.offset, end);
    std::string with = held.empty() ? "" : " with " + describe(held[0].second);
    return report(rank) << "lets peers read " << describe(memory) << with
                        << ", which they do not map; what is lent must lie in "
                           "the symmetric arena or be an argument";
  }
  if (memory.space.kind == Kind::Argument)
    return success();
  if (memory.space.kind != Kind::Symmetric)
    return report(rank) << "leases memory that is not this rank's own";
  for (int64_t member = 0; member < trace.getGroupSize(lease.group); ++member) {
    const Lease *theirs = getPeerLease(
        lease, trace.getMember(rank.getRank(), lease.group, member));
    if (!theirs || !(theirs->memory.space == memory.space) ||
        theirs->memory.offset == memory.offset)
      continue;
    InFlightDiagnostic error =
        report(rank) << "lets peers read " << describe(memory)
                     << ", which a peer lends from byte "
                     << theirs->memory.offset
                     << "; the symmetric arena must have the same at the same "
                        "offset on every rank";
    note(error, theirs->open, "the peer's lease is opened here");
    return error;
  }
  return success();
}

LogicalResult Checker::openLease(RankState &rank) {
  const PlanEvent &event = *rank.event;
  if (failed(agreeOnOrder(rank)))
    return failure();
  const MemoryBox &memory = event.inputs[0];
  Lease lease{getMoment(rank), memory, event.group, rank.opened[event.group]++};
  if (failed(checkLent(rank, lease)))
    return failure();
  if (const Transfer *coming = findArrival(rank, memory)) {
    InFlightDiagnostic error = report(rank)
                               << "lets peers read " << describe(memory)
                               << " while a transfer writes it";
    note(error, coming->start, "the transfer starts here");
    return error;
  }
  if (failed(touch(rank, memory, /*writes=*/false)))
    return failure();
  rank.leases.push_back(lease);
  for (int64_t member = 0; member < trace.getGroupSize(event.group); ++member)
    wake(*ranks[trace.getMember(rank.getRank(), event.group, member)]);
  return success();
}

LogicalResult Checker::startPull(RankState &rank) {
  const PlanEvent &event = *rank.event;
  if (!event.happens) {
    rank.open[event.token] = nullptr;
    return success();
  }
  const MemoryBox &source = event.inputs[0], &target = event.outputs[0];
  if (source.space.kind != MemorySpace::Kind::Leased ||
      source.space.number != event.lease || source.space.peer != event.from)
    return report(rank) << "pulls from group rank " << event.from
                        << " of one lease, but its source is "
                        << describe(source) << " of another";
  if (source.sizes != target.sizes || source.elementType != target.elementType)
    return report(rank) << "pulls between tiles of different sizes or types";
  auto transfer = std::make_shared<Transfer>();
  transfer->kind = event.kind;
  transfer->start = getMoment(rank);
  transfer->source = source;
  transfer->target = target;
  transfer->lease = event.lease;
  transfer->hasSent = transfer->hasReceived = true;
  SmallVector<Piece> pieces;
  if (failed(read(rank, source, pieces)) || failed(checkWrite(rank, target)))
    return failure();
  auto payload = std::make_shared<Payload>();
  for (const Piece &piece : pieces)
    payload->emplace_back(slice(target, piece.local), piece.content);
  transfer->arrived.emplace_back(payload, 0);
  rank.open[event.token] = transfer;
  const Lease &lease = rank.leases[event.lease - 1];
  if (!source.isEmpty() &&
      event.from != trace.getGroupRank(rank.getRank(), lease.group)) {
    ++proof.messages;
    proof.bytes += source.getBytes();
  }
  return success();
}

Checker::Progress Checker::closeLease(RankState &rank) {
  int64_t number = rank.event->lease;
  if (number < 1 || number > static_cast<int64_t>(rank.leases.size()) ||
      rank.leases[number - 1].closed) {
    report(rank) << "closes a lease that is not open";
    return Progress::Fails;
  }
  Lease &lease = rank.leases[number - 1];
  for (auto &[token, transfer] : rank.open) {
    if (!transfer || transfer->kind != PlanEvent::Kind::Pull ||
        transfer->lease != number)
      continue;
    InFlightDiagnostic error =
        report(rank) << "closes a lease before a pull of it is waited for";
    note(error, transfer->start, "the pull starts here");
    return Progress::Fails;
  }
  int64_t members = trace.getGroupSize(lease.group);
  bool fresh = !lease.closing, all = true;
  lease.closing = true;
  for (int64_t member = 0; member < members; ++member) {
    int64_t peer = trace.getMember(rank.getRank(), lease.group, member);
    Lease *theirs = getPeerLease(lease, peer);
    all &= theirs && theirs->closing;
  }
  if (fresh && all)
    for (int64_t member = 0; member < members; ++member)
      wake(*ranks[trace.getMember(rank.getRank(), lease.group, member)]);
  lease.closed = all;
  if (!all)
    return Progress::Blocks;
  return failed(closeInLane(rank, number)) ? Progress::Fails : Progress::Goes;
}
