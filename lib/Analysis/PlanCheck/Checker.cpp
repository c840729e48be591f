//===- Checker.cpp - Run the ranks of a plan against each other -----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Checker.h"
#include "lib/Analysis/PlanCheck/PieceOrder.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

/// Every box of a rank's shard of a buffer: its indices and its positions.
static SmallVector<std::pair<Box, Box>> getBoxes(ArrayRef<Segments> shard) {
  SmallVector<std::pair<Box, Box>> boxes{{{}, {}}};
  for (ArrayRef<Segment> segments : shard) {
    SmallVector<std::pair<Box, Box>> longer;
    for (const auto &[indices, positions] : boxes)
      for (const Segment &segment : segments) {
        longer.emplace_back(indices, positions);
        longer.back().first.push_back(segment.local);
        longer.back().second.push_back(segment.getPositions());
      }
    boxes = std::move(longer);
  }
  return boxes;
}

/// A shard as it lies in its argument: row-major, without gaps.
static MemoryBox getShardRegion(int64_t buffer, Type elementType,
                                ArrayRef<Segments> shard) {
  MemoryBox region;
  region.space = {MemorySpace::Kind::Argument, buffer};
  region.elementType = elementType;
  region.elementBytes = elementType.getIntOrFloatBitWidth() / 8;
  for (ArrayRef<Segment> segments : shard)
    region.sizes.push_back(getLength(segments));
  region.strides.resize(region.sizes.size());
  int64_t stride = region.elementBytes;
  for (size_t dim = region.sizes.size(); dim-- > 0;) {
    region.strides[dim] = stride;
    stride *= region.sizes[dim];
  }
  return region;
}

void Checker::begin(RankState &rank) {
  rank.memories.resize(2);
  rank.bytes = {trace.getLocalBytes(), trace.getSymmetricBytes()};
  rank.starts.assign(trace.getNumGroups(), 0);
  rank.opened.assign(trace.getNumGroups(), 0);
  for (int64_t buffer = 0; buffer < meaning.getNumBuffers(); ++buffer) {
    SmallVector<Segments> shard =
        meaning.getShard(trace, rank.getRank(), buffer);
    MemoryBox region =
        getShardRegion(buffer, meaning.getElementType(buffer), shard);
    rank.bytes.push_back(region.getBytes());
    Contents &contents = rank.memories.emplace_back();
    if (!meaning.isInput(buffer))
      continue;
    SmallVector<Piece> pieces;
    for (auto &[indices, positions] : getBoxes(shard))
      pieces.push_back({indices, {Content::Kind::Input, buffer, positions}});
    contents.write(region, pieces);
  }
}

void Checker::wake(RankState &rank) {
  if (rank.isRunnable || rank.ended)
    return;
  rank.isRunnable = true;
  runnable.push_back(rank.getRank());
}

Checker::Progress Checker::process(RankState &rank) {
  auto goOn = [](LogicalResult result) {
    return succeeded(result) ? Progress::Goes : Progress::Fails;
  };
  const PlanEvent &event = *rank.event;
  for (const MemoryBox &region : event.inputs) {
    if (!event.happens || region.space.kind != MemorySpace::Kind::Leased)
      continue;
    int64_t number = region.space.number;
    bool open = number >= 1 && number <= int64_t(rank.leases.size());
    int64_t members =
        open ? trace.getGroupSize(rank.leases[number - 1].group) : 0;
    if (!open || region.space.peer < 0 || region.space.peer >= members) {
      report(rank) << "reads " << describe(region) << ", which is no lease";
      return Progress::Fails;
    }
  }
  if (event.happens && !canReadLeases(rank))
    return Progress::Blocks;
  switch (event.kind) {
  case PlanEvent::Kind::Launch:
    return goOn(launch(rank));
  case PlanEvent::Kind::Exchange:
    return goOn(startExchange(rank));
  case PlanEvent::Kind::AllGather:
    return goOn(startAllGather(rank));
  case PlanEvent::Kind::ReduceScatter:
  case PlanEvent::Kind::AllReduce:
  case PlanEvent::Kind::AllToAll:
  case PlanEvent::Kind::Broadcast:
    return goOn(startCollective(rank));
  case PlanEvent::Kind::Pull:
    return goOn(startPull(rank));
  case PlanEvent::Kind::Wait:
    return wait(rank);
  case PlanEvent::Kind::Fill:
    return goOn(write(rank, event.outputs[0], makeFilled(event.value)));
  case PlanEvent::Kind::Copy:
    return goOn(copy(rank));
  case PlanEvent::Kind::Accumulate:
    return goOn(mergeSum(rank));
  case PlanEvent::Kind::LeaseOpen:
    return goOn(openLease(rank));
  case PlanEvent::Kind::LeaseClose:
    return closeLease(rank);
  case PlanEvent::Kind::LaneUse:
    rank.lanes.use(event.to);
    return Progress::Goes;
  case PlanEvent::Kind::LaneOrder:
    rank.lanes.order(event.from, event.to);
    return Progress::Goes;
  }
  llvm_unreachable("all kinds of events are above");
}

/// Runs a rank until it blocks or ends.
LogicalResult Checker::advance(RankState &rank) {
  while (true) {
    if (!rank.event) {
      rank.event = rank.cursor.next();
      if (rank.cursor.hasFailed())
        return failure();
      if (!rank.event) {
        rank.ended = true;
        return end(rank);
      }
    }
    Progress progress = process(rank);
    if (progress == Progress::Fails)
      return failure();
    if (progress == Progress::Blocks)
      return success();
    if (rank.event->isStart())
      rank.lanes.start(rank.event->token);
    rank.event = nullptr;
  }
}

LogicalResult Checker::run() {
  for (int64_t rank = 0; rank < trace.getNumRanks(); ++rank) {
    ranks.push_back(std::make_unique<RankState>(trace, rank));
    begin(*ranks.back());
    runnable.push_back(rank);
  }
  while (!runnable.empty()) {
    RankState &rank = *ranks[runnable.front()];
    runnable.pop_front();
    rank.isRunnable = false;
    if (failed(advance(rank)))
      return failure();
  }
  proof.ranks = trace.getNumRanks();
  for (std::unique_ptr<RankState> &rank : ranks)
    if (!rank->ended)
      return reportDeadlock();
  return success();
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

LogicalResult Checker::end(RankState &rank) {
  for (auto &[token, transfer] : rank.open)
    if (transfer)
      return report(transfer->start) << "is never waited for";
  for (const Lease &lease : rank.leases)
    if (!lease.closed)
      return report(lease.open) << "is never closed";
  for (int64_t buffer = 0; buffer < meaning.getNumBuffers(); ++buffer)
    if (!meaning.isInput(buffer) && failed(checkOutput(rank, buffer)))
      return failure();
  return success();
}

/// The shard of an output holds what the program means, all merged.
LogicalResult Checker::checkOutput(RankState &rank, int64_t output) {
  SmallVector<Segments> shard = meaning.getShard(trace, rank.getRank(), output);
  MemoryBox whole =
      getShardRegion(output, meaning.getElementType(output), shard);
  func::FuncOp function = trace.getFunction();
  auto report = [&]() {
    return this->report({function, rank.getRank(), {}})
           << "at the end, output '" << meaning.getName(output) << "' ";
  };
  const ResultMeaning &result = meaning.getResult(output);
  SmallVector<Piece, 1> pieces = getContents(rank, whole.space).read(whole);
  PieceOrder order(pieces, getAllDims(getIndices(whole)));
  for (auto &[indices, positions] : getBoxes(shard)) {
    auto getPositions = [&](Box box) {
      for (auto [interval, index, start] :
           llvm::zip_equal(box, indices, positions))
        interval = {interval.begin - index.begin + start.begin,
                    interval.end - index.begin + start.begin};
      return box;
    };
    BoxSet found;
    for (const Piece *piece : order.getNear(indices)) {
      std::optional<Box> common = intersect(piece->local, indices);
      if (!common)
        continue;
      found.add(*common);
      Box expected = getPositions(*common);
      Content content = takePart(*piece, *common);
      if (content.isFilled() && content.value == result.identity)
        content = {Content::Kind::Partial, result.same, expected,
                   std::make_shared<BoxSet>()};
      content.place(expected);
      if (content.kind != Content::Kind::Partial ||
          content.buffer != result.same || content.box != expected)
        return report() << "(" << meaning.describe(output, expected)
                        << ") holds " << describe(content);
      std::optional<Box> lacks =
          meaning.getMissing(output, expected, *content.merged);
      if (lacks)
        return report() << "(" << meaning.describe(output, expected)
                        << ") lacks "
                        << meaning.describeReduced(output, *lacks);
      if (result.once >= 0 && !content.hasOnce)
        return report() << "(" << meaning.describe(output, expected)
                        << ") lacks what enters once";
    }
    SmallVector<Box> unwritten = found.getMissing(indices);
    if (!unwritten.empty())
      return report() << "("
                      << meaning.describe(output, getPositions(unwritten[0]))
                      << ") was never written";
  }
  return success();
}

/// Says what a rank waits for, and gives the rank that it waits for, or -1.
int64_t Checker::describeBlock(RankState &rank, Diagnostic &note) {
  if (rank.ended) {
    note << trace.describeRank(rank.getRank()) << " has ended";
    return -1;
  }
  note << describeSteps(getMoment(rank)) << " waits for ";
  if (rank.event->kind != PlanEvent::Kind::Wait) {
    const Lease &lease =
        rank.event->kind == PlanEvent::Kind::LeaseClose
            ? rank.leases[rank.event->lease - 1]
            : rank.leases[rank.event->inputs[0].space.number - 1];
    for (int64_t member = 0; member < trace.getGroupSize(lease.group);
         ++member) {
      int64_t peer = trace.getMember(rank.getRank(), lease.group, member);
      Lease *theirs = getPeerLease(lease, peer);
      if (theirs && theirs->closing)
        continue;
      note << trace.describeRank(peer) << " to open or close its lease";
      return peer;
    }
    return -1;
  }
  const Transfer &next = *rank.queue.front();
  int64_t peer = !next.hasSent ? next.to : next.from;
  if (next.isCollective()) {
    for (int64_t member = 0; member < trace.getGroupSize(next.group);
         ++member) {
      peer = trace.getMember(rank.getRank(), next.group, member);
      const auto &queue = ranks[peer]->queue;
      if (queue.empty() || queue.front()->start.op != next.start.op)
        break;
    }
  }
  note << trace.describeRank(peer) << " to take part in the "
       << (next.kind == PlanEvent::Kind::AllGather ? "gathering"
           : next.isCollective() ? "collective"
                                 : (next.hasSent ? "message that it sends"
                                                 : "message that it receives"))
       << " of " << describeSteps(next.start);
  return peer;
}

LogicalResult Checker::reportDeadlock() {
  RankState *rank = nullptr;
  for (std::unique_ptr<RankState> &each : ranks)
    if (!rank && !each->ended)
      rank = each.get();
  InFlightDiagnostic error = report(*rank) << "waits for ever";
  SmallVector<int64_t> seen;
  // The chain of ranks that wait for one another, until it closes.
  for (int64_t at = rank->getRank();
       at >= 0 && seen.size() < 8 && !llvm::is_contained(seen, at);) {
    seen.push_back(at);
    RankState &here = *ranks[at];
    Location loc =
        here.ended ? trace.getFunction().getLoc() : here.event->op->getLoc();
    at = describeBlock(here, error.attachNote(loc));
  }
  return error;
}

FailureOr<PlanProof> mlir::commir::checkPlan(func::FuncOp plan) {
  auto symbol = plan->getAttrOfType<FlatSymbolRefAttr>("commir.source");
  ProgramOp source =
      symbol ? SymbolTable::lookupNearestSymbolFrom<ProgramOp>(plan, symbol)
             : ProgramOp();
  if (!source)
    return plan.emitOpError()
           << "must name as commir.source the program that it was lowered "
              "from, to be checked against it";
  if (source.getMeshAttr() != plan->getAttr("commir.mesh"))
    return plan.emitOpError() << "runs on " << plan->getAttr("commir.mesh")
                              << ", the program that it was lowered from on "
                              << source.getMeshAttr();
  if (failed(checkControl(plan)))
    return failure();
  FailureOr<PlanTrace> trace = PlanTrace::create(plan);
  FailureOr<Meaning> meaning = Meaning::create(source);
  if (failed(trace) || failed(meaning))
    return failure();
  Checker checker(*trace, *meaning);
  if (failed(checker.run()))
    return failure();
  return checker.proof;
}
