//===- Memory.cpp - Reads and writes of a plan ----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

/// The arenas, then the arguments.
static size_t getMemoryNumber(MemorySpace space) {
  if (space.kind == MemorySpace::Kind::Local)
    return 0;
  return space.kind == MemorySpace::Kind::Symmetric ? 1 : space.number + 2;
}

Contents &Checker::getContents(RankState &rank, MemorySpace space) {
  return rank.memories[getMemoryNumber(space)];
}

/// Finds the memory behind a region, a peer's included, and checks that the
/// region lies inside it.
FailureOr<Checker::Place> Checker::locate(RankState &rank,
                                          const MemoryBox &region) {
  Place place{&rank, region};
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
  if (region.space.kind == MemorySpace::Kind::Table)
    return report(rank) << "works on a table of integers";
  if (region.space.kind == MemorySpace::Kind::Leased) {
    const Lease &lease = rank.leases[region.space.number - 1];
    int64_t peer =
        trace.getMember(rank.getRank(), lease.group, region.space.peer);
    const Lease *theirs = getPeerLease(lease, peer);
    if (lease.closed || lease.closing)
      return report(rank) << "reads " << describe(region)
                          << " after the lease was closed";
    place.owner = ranks[peer].get();
    place.region.space = theirs->memory.space;
    place.region.offset += theirs->memory.offset;
    first = theirs->memory.offset;
    if (theirs->memory.sizes.front() != last)
      last = theirs->memory.getEnd();
  }
  size_t number = getMemoryNumber(place.region.space);
  if (number >= place.owner->bytes.size())
    return report(rank) << "works on argument " << place.region.space.number
                        << ", which the program does not have";
  last = std::min(last, place.owner->bytes[number]);
  if (!region.isEmpty() &&
      (place.region.offset < first || place.region.getEnd() > last))
    return report(rank) << "works on " << describe(region)
                        << ", outside of the " << last - first
                        << " bytes that are there";
  if (place.region.offset % region.elementBytes != 0)
    return report(rank) << "works on " << describe(region)
                        << ", which no element of " << region.elementType
                        << " begins at";
  return place;
}

/// The transfer to a rank's memory that is not waited for yet, or null.
const Transfer *Checker::findArrival(const RankState &owner,
                                     const MemoryBox &region) {
  for (const auto &[token, transfer] : owner.open)
    if (transfer && transfer->target.space == region.space &&
        overlaps(transfer->target, region))
      return transfer.get();
  return nullptr;
}

/// Finds what a rank is about to read, which must have come.
FailureOr<Checker::Place> Checker::checkRead(RankState &rank,
                                             const MemoryBox &region) {
  FailureOr<Place> place = locate(rank, region);
  if (failed(place))
    return failure();
  if (const Transfer *coming = findArrival(*place->owner, place->region)) {
    InFlightDiagnostic error = report(rank)
                               << "reads " << describe(region)
                               << " before the transfer that writes it is "
                                  "waited for";
    note(error, coming->start, "the transfer starts here");
    return error;
  }
  if (failed(touch(rank, region, /*writes=*/false)))
    return failure();
  return place;
}

LogicalResult Checker::read(RankState &rank, const MemoryBox &region,
                            SmallVectorImpl<Piece> &pieces) {
  if (region.isEmpty())
    return success();
  FailureOr<Place> place = checkRead(rank, region);
  if (failed(place))
    return failure();
  pieces.append(
      getContents(*place->owner, place->region.space).read(place->region));
  int64_t elements = 0;
  for (const Piece &piece : pieces) {
    int64_t volume = 1;
    for (const Interval &interval : piece.local)
      volume *= interval.size();
    elements += volume;
  }
  if (elements != region.getElements())
    return report(rank) << "reads " << describe(region) << ", where "
                        << region.getElements() - elements << " of "
                        << region.getElements()
                        << " elements were never written in this shape";
  return success();
}

LogicalResult Checker::checkWrite(RankState &rank, const MemoryBox &region) {
  if (region.isEmpty())
    return success();
  if (region.space.kind == MemorySpace::Kind::Leased)
    return report(rank) << "writes " << describe(region)
                        << ", which belongs to a peer";
  if (failed(locate(rank, region)))
    return failure();
  if (region.space.kind == MemorySpace::Kind::Argument &&
      meaning.isInput(region.space.number))
    return report(rank) << "writes " << describe(region)
                        << ", which is an input of the program";
  for (auto &[token, transfer] : rank.open) {
    if (!transfer)
      continue;
    bool arrives = transfer->target.space == region.space &&
                   overlaps(transfer->target, region);
    if (!arrives && !(transfer->source.space == region.space &&
                      overlaps(transfer->source, region)))
      continue;
    InFlightDiagnostic error = report(rank) << "writes " << describe(region)
                                            << " before the transfer that "
                                            << (arrives ? "writes" : "reads")
                                            << " it is waited for";
    note(error, transfer->start, "the transfer starts here");
    return error;
  }
  for (const Lease &lease : rank.leases) {
    if (lease.closed || !(lease.memory.space == region.space) ||
        !overlaps(lease.memory, region))
      continue;
    InFlightDiagnostic error = report(rank) << "writes " << describe(region)
                                            << " while its peers may read it";
    note(error, lease.open, "the lease is opened here");
    return error;
  }
  return touch(rank, region, /*writes=*/true);
}

LogicalResult Checker::write(RankState &rank, const MemoryBox &region,
                             const Content &content) {
  if (failed(checkWrite(rank, region)))
    return failure();
  if (!region.isEmpty())
    getContents(rank, region.space).write(region, content);
  return success();
}

/// A narrower type loses what later merges would need, unless the schedule asks
/// for it on the wire.
LogicalResult Checker::checkConversion(RankState &rank, Type from, Type to,
                                       Content &content) {
  if (from == to || content.isFilled() || meaning.isLink(to))
    return success();
  if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return success();
  if (content.kind == Content::Kind::Input)
    return report(rank) << "rounds " << describe(content) << " from " << from
                        << " to " << to;
  if (!content.isPlaced()) {
    content.isRounded = true;
    return success();
  }
  std::optional<Box> missing =
      meaning.getMissing(content.buffer, content.box, *content.merged);
  if (!missing && meaning.getResult(content.buffer).once >= 0 &&
      !content.hasOnce)
    return report(rank) << "rounds " << describe(content) << " from " << from
                        << " to " << to
                        << " before what enters once was merged";
  if (!missing)
    return success();
  return report(rank) << "rounds " << describe(content) << " from " << from
                      << " to " << to << " before "
                      << meaning.describeReduced(content.buffer, *missing)
                      << " was merged";
}

LogicalResult Checker::copy(RankState &rank) {
  const MemoryBox &source = rank.event->inputs[0];
  const MemoryBox &target = rank.event->outputs[0];
  if (source.sizes != target.sizes)
    return report(rank) << "copies between tiles of different sizes, "
                        << describe(source) << " to " << describe(target);
  SmallVector<Piece> pieces;
  if (failed(read(rank, source, pieces)) || failed(checkWrite(rank, target)))
    return failure();
  if (source.space == target.space && overlaps(source, target))
    return report(rank) << "copies " << describe(source)
                        << " to memory that overlaps it";
  for (Piece &piece : pieces)
    if (failed(checkConversion(rank, source.elementType, target.elementType,
                               piece.content)))
      return failure();
  getContents(rank, target.space).write(target, pieces);
  return success();
}
