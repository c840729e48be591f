//===- Leases.cpp - What a rank lends, and pulls of it --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One-sided reads: the owner opens a lease and takes no further part. A pull
// reads between the opening and the closing, which waits for all members.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

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

/// Whether two tiles of the same sizes are rows of bytes, equally far apart in
/// each: a pull moves no more at once.
static bool areRows(const MemoryBox &source, const MemoryBox &target) {
  if (source.isEmpty())
    return true;
  // The bytes of a row, and where one index further lies, if rows it counts.
  int64_t length = source.elementBytes, nextFrom = 0, nextTo = 0;
  for (auto [size, from, to] : llvm::reverse(
           llvm::zip_equal(source.sizes, source.strides, target.strides))) {
    if (size == 1)
      continue;
    if (nextFrom == 0 && from == length && to == length) {
      length *= size;
      continue;
    }
    if (nextFrom != 0 && (from != nextFrom || to != nextTo))
      return false;
    nextFrom = from * size;
    nextTo = to * size;
  }
  return true;
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
  if (!areRows(source, target))
    return report(rank) << "pulls " << describe(source)
                        << ", which is not rows that are equally far apart";
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
