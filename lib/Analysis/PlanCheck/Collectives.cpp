//===- Collectives.cpp - What the ranks of a group do together ------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective takes place when the turn of every member has come. What is
// reduced is merged as a kernel's results are: each part once, and by the merge
// that the program names.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

/// The bytes of a slot: the memory is shared out evenly among the members.
static int64_t getSlotBytes(const MemoryBox &slots, int64_t members) {
  return slots.getBytes() / members;
}

static MemoryBox makeBytes(const MemoryBox &slots, int64_t offset,
                           int64_t bytes) {
  MemoryBox region = slots;
  region.offset += offset;
  region.sizes = {bytes};
  region.strides = {1};
  return region;
}

/// Reads what this rank has for each member out of its slot.
LogicalResult Checker::dealSlots(RankState &rank, Transfer &transfer) {
  int64_t members = trace.getGroupSize(transfer.group);
  int64_t slot = getSlotBytes(transfer.source, members);
  for (auto [member, bytes] : llvm::enumerate(transfer.lengths)) {
    if (bytes < 0 || bytes > slot)
      return report(rank) << "has " << bytes << " bytes for group rank "
                          << member << " in a slot of " << slot;
    auto payload = std::make_shared<Payload>();
    transfer.dealt.push_back(payload);
    if (bytes == 0)
      continue;
    MemoryBox region = makeBytes(transfer.source, member * slot, bytes);
    if (failed(checkRead(rank, region)))
      return failure();
    int64_t begin = region.offset, found = 0;
    for (auto &[part, content] :
         getContents(rank, region.space).readBytes(begin, begin + bytes)) {
      found += part.getBytes();
      payload->emplace_back(part, content);
      payload->back().first.offset -= begin;
    }
    if (found != bytes)
      return report(rank) << "sends group rank " << member << " "
                          << describe(region) << ", where " << bytes - found
                          << " of " << bytes << " bytes were never written";
  }
  return success();
}

LogicalResult Checker::startCollective(RankState &rank) {
  using Kind = PlanEvent::Kind;
  const PlanEvent &event = *rank.event;
  if (failed(agreeOnOrder(rank)))
    return failure();
  if (!event.happens) {
    rank.open[event.token] = nullptr;
    return success();
  }
  auto transfer = std::make_shared<Transfer>();
  transfer->kind = event.kind;
  transfer->start = getMoment(rank);
  transfer->source = event.inputs[0];
  transfer->target = event.outputs[0];
  transfer->group = event.group;
  transfer->from = event.from;
  transfer->lengths = event.lengths;
  transfer->arrivals = event.arrivals;
  int64_t members = trace.getGroupSize(event.group);
  int64_t own = trace.getGroupRank(rank.getRank(), event.group);
  bool isRoot = event.kind != Kind::Broadcast || event.from == own;
  if (event.kind == Kind::Broadcast &&
      (event.from < 0 || event.from >= members))
    return report(rank) << "names group rank " << event.from << " of "
                        << trace.describeGroup(event.group) << ", which has "
                        << members;
  bool deals =
      event.kind == Kind::ReduceScatter || event.kind == Kind::AllToAll;
  int64_t sent = 0;
  if (deals) {
    if (failed(dealSlots(rank, *transfer)))
      return failure();
    for (auto [member, bytes] : llvm::enumerate(transfer->lengths))
      if (static_cast<int64_t>(member) != own && bytes != 0) {
        ++proof.messages;
        sent += bytes;
      }
  } else if (isRoot) {
    if (failed(takeSource(rank, *transfer)))
      return failure();
    sent = transfer->source.getBytes() * (members - 1);
    proof.messages += sent ? members - 1 : 0;
  }
  proof.bytes += sent;
  if (event.kind == Kind::ReduceScatter &&
      transfer->target.getBytes() != event.lengths[own])
    return report(rank) << "makes " << transfer->target.getBytes()
                        << " bytes, but its table says " << event.lengths[own];
  if (!transfer->target.isContiguous())
    return report(rank) << "receives into " << describe(transfer->target)
                        << ", which has gaps";
  if (failed(checkWrite(rank, transfer->target)))
    return failure();
  const MemoryBox &source = transfer->source, &target = transfer->target;
  bool mayBeInPlace =
      event.kind == Kind::AllReduce || event.kind == Kind::Broadcast;
  bool inPlace = mayBeInPlace && source.space == target.space &&
                 source.offset == target.offset && source.sizes == target.sizes;
  if (!inPlace && isRoot && source.space == target.space &&
      overlaps(source, target))
    return report(rank) << "receives into " << describe(target)
                        << ", which it sends";
  // What pads a slot is reduced in place where parts are uneven.
  if (event.kind == Kind::ReduceScatter) {
    int64_t slot = getSlotBytes(source, members);
    MemoryBox clobbered = makeBytes(source, own * slot, slot);
    if (failed(checkWrite(rank, clobbered)))
      return failure();
    getContents(rank, source.space).forget(clobbered);
  }
  return start(rank, transfer);
}

/// Two members take part in the same.
LogicalResult Checker::checkSame(const Transfer &one, const Transfer &other) {
  auto refuse = [&](const Twine &what) {
    InFlightDiagnostic error = report(other.start) << what;
    note(error, one.start, "the other rank's is here");
    return error;
  };
  if (one.from != other.from)
    return refuse("has group rank " + Twine(other.from) +
                  " as its root, where another rank has " + Twine(one.from));
  if ((one.kind == PlanEvent::Kind::AllReduce ||
       one.kind == PlanEvent::Kind::Broadcast) &&
      one.target.getBytes() != other.target.getBytes())
    return refuse("works on " + Twine(other.target.getBytes()) +
                  " bytes, where another rank has " +
                  Twine(one.target.getBytes()));
  return success();
}

LogicalResult Checker::gather(int64_t group, int64_t first) {
  using Kind = PlanEvent::Kind;
  auto &come = gatherings[{group, first}];
  int64_t members = trace.getGroupSize(group);
  if (static_cast<int64_t>(come.size()) < members)
    return success();
  SmallVector<std::shared_ptr<Transfer>> all(members);
  for (std::shared_ptr<Transfer> &transfer : come)
    all[trace.getGroupRank(transfer->start.rank, group)] = transfer;
  come.clear();
  for (auto [number, to] : llvm::enumerate(all)) {
    if (failed(checkSame(*all[0], *to)))
      return failure();
    int64_t slot = getSlotBytes(to->target, members);
    for (auto [member, from] : llvm::enumerate(all)) {
      if (to->kind == Kind::Broadcast) {
        if (static_cast<int64_t>(member) == to->from)
          to->arrived.emplace_back(from->sent, 0);
        if (static_cast<int64_t>(member) == to->from &&
            from->source.getBytes() != to->target.getBytes())
          return report(to->start) << "receives " << to->target.getBytes()
                                   << " bytes of its root, which sends "
                                   << from->source.getBytes();
        continue;
      }
      bool deals =
          to->kind == Kind::ReduceScatter || to->kind == Kind::AllToAll;
      int64_t sent = deals ? from->lengths[number] : from->source.getBytes();
      int64_t expected = to->kind == Kind::AllToAll    ? to->arrivals[member]
                         : to->kind == Kind::AllGather ? to->lengths[member]
                                                       : to->target.getBytes();
      if (sent != expected) {
        InFlightDiagnostic error = report(to->start)
                                   << "expects " << expected
                                   << " bytes of group rank " << member
                                   << ", which sends " << sent;
        note(error, from->start, "they are sent here");
        return error;
      }
      if (to->kind == Kind::AllToAll && expected > slot)
        return report(to->start)
               << "expects " << expected << " bytes of group rank " << member
               << " in a slot of " << slot;
      bool inSlots = to->kind == Kind::AllGather || to->kind == Kind::AllToAll;
      to->arrived.emplace_back(deals ? from->dealt[number] : from->sent,
                               inSlots ? member * slot : 0);
    }
  }
  for (const std::shared_ptr<Transfer> &transfer : all) {
    transfer->hasSent = transfer->hasReceived = true;
    complete(transfer);
  }
  return success();
}

/// Merges what every member sent, in the order of their ranks.
LogicalResult Checker::reduce(RankState &rank, const Transfer &transfer) {
  const MemoryBox &target = transfer.target;
  if (target.isEmpty())
    return success();
  MergeKind kind = MergeKind::Sum;
  if (auto scatter = dyn_cast<ReduceScatterStartOp>(transfer.start.op))
    kind = scatter.getMerge();
  if (auto reduce = dyn_cast<AllReduceStartOp>(transfer.start.op))
    kind = reduce.getMerge();
  Contents &contents = getContents(rank, target.space);
  for (auto [member, arrived] : llvm::enumerate(transfer.arrived)) {
    Contents came;
    for (auto [part, content] : *arrived.first) {
      part.space = target.space;
      part.offset += target.offset;
      came.write(part, content);
    }
    SmallVector<Piece, 1> pieces = came.read(target);
    int64_t elements = 0;
    for (const Piece &piece : pieces) {
      elements += slice(target, piece.local).getElements();
      if (member == 0)
        contents.write(slice(target, piece.local), piece.content);
    }
    if (elements != target.getElements())
      return report(transfer.start)
             << "reduces what group rank " << member
             << " sends in another shape than " << describe(target);
    if (member == 0)
      continue;
    SmallVector<Piece, 1> sum = contents.read(target);
    if (failed(merge(rank, target, pieces, sum, kind, /*isLSE=*/false)))
      return failure();
  }
  return success();
}
