//===- Checker.h - Run the ranks of a plan against each other ---*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_CHECKER_H
#define LIB_ANALYSIS_PLANCHECK_CHECKER_H

#include "lib/Analysis/PlanCheck/Contents.h"
#include "lib/Analysis/PlanCheck/Lanes.h"
#include "lib/Analysis/PlanCheck/Meaning.h"
#include "lib/Analysis/PlanCheck/PlanCheck.h"
#include <deque>

namespace mlir::commir::check {

/// What travels: contents by their place in the memory that is sent.
using Payload = std::vector<std::pair<MemoryBox, Content>>;

/// A transfer from its start to its wait.
struct Transfer {
  PlanEvent::Kind kind = PlanEvent::Kind::Exchange;
  Moment start;
  MemoryBox source, target;
  int64_t group = 0;
  int64_t to = 0, from = 0; // ranks of the mesh
  int64_t lease = 0;
  SmallVector<int64_t, 0> lengths, arrivals;
  /// What this rank sends, with offsets from the start of the source.
  std::shared_ptr<Payload> sent;
  /// Where slots go to members: what each of them gets.
  SmallVector<std::shared_ptr<Payload>, 0> dealt;
  /// What came, and at which byte of the target it begins.
  SmallVector<std::pair<std::shared_ptr<Payload>, int64_t>, 1> arrived;
  bool hasSent = false, hasReceived = false;
  bool isDone() const { return hasSent && hasReceived; }
  /// Whether all members of the group do it together.
  bool isCollective() const {
    return kind != PlanEvent::Kind::Exchange && kind != PlanEvent::Kind::Pull;
  }
  /// Whether what came is merged, rather than put in its place.
  bool isReduction() const {
    return kind == PlanEvent::Kind::ReduceScatter ||
           kind == PlanEvent::Kind::AllReduce;
  }
};

/// Leave to read this rank's memory; the `number`th of its group.
struct Lease {
  Moment open;
  MemoryBox memory;
  int64_t group = 0, number = 0;
  bool closing = false, closed = false;
};

struct RankState {
  RankState(const PlanTrace &trace, int64_t rank) : cursor(trace, rank) {}

  PlanCursor cursor;
  /// The event that it is at; kept while it is blocked.
  const PlanEvent *event = nullptr;
  bool ended = false, isRunnable = true;
  /// The local and the symmetric arena, then the arguments.
  std::vector<Contents> memories;
  std::vector<int64_t> bytes;
  /// Transfers by token, until they are waited for; null if nothing happens.
  std::map<int64_t, std::shared_ptr<Transfer>> open;
  /// Communication that is not complete, in the order of its starts.
  std::deque<std::shared_ptr<Transfer>> queue;
  int64_t tokens = 0;
  std::vector<Lease> leases;
  /// By group: how many transfers were started, and leases opened.
  SmallVector<int64_t> starts, opened;
  Lanes lanes;

  int64_t getRank() const { return cursor.getRank(); }
};

class Checker {
public:
  Checker(const PlanTrace &trace, const Meaning &meaning)
      : trace(trace), meaning(meaning) {}

  LogicalResult run();

  PlanProof proof;

private:
  enum class Progress { Goes, Blocks, Fails };

  //===--------------------------------------------------------------------===//
  // Checker.cpp: from the first event to the last
  //===--------------------------------------------------------------------===//
  void begin(RankState &rank);
  LogicalResult advance(RankState &rank);
  Progress process(RankState &rank);
  LogicalResult end(RankState &rank);
  LogicalResult checkOutput(RankState &rank, int64_t output);
  void wake(RankState &rank);
  LogicalResult reportDeadlock();
  int64_t describeBlock(RankState &rank, Diagnostic &note);

  //===--------------------------------------------------------------------===//
  // Memory.cpp: reads and writes
  //===--------------------------------------------------------------------===//
  struct Place {
    RankState *owner;
    MemoryBox region;
  };
  FailureOr<Place> locate(RankState &rank, const MemoryBox &region);
  static const Transfer *findArrival(const RankState &owner,
                                     const MemoryBox &region);
  FailureOr<Place> checkRead(RankState &rank, const MemoryBox &region);
  LogicalResult read(RankState &rank, const MemoryBox &region,
                     SmallVectorImpl<Piece> &pieces);
  LogicalResult checkWrite(RankState &rank, const MemoryBox &region);
  LogicalResult write(RankState &rank, const MemoryBox &region,
                      const Content &content);
  Contents &getContents(RankState &rank, MemorySpace space);
  LogicalResult copy(RankState &rank);
  LogicalResult checkConversion(RankState &rank, Type from, Type to,
                                Content &content);

  //===--------------------------------------------------------------------===//
  // Lanes.cpp: what runs beside each other
  //===--------------------------------------------------------------------===//
  LogicalResult touch(RankState &rank, const MemoryBox &region, bool writes);
  LogicalResult waitInLane(RankState &rank, int64_t token,
                           const Transfer &transfer);
  LogicalResult closeInLane(RankState &rank, int64_t lease);
  LogicalResult reportRace(RankState &rank, const Twine &does,
                           const Lanes::Access &other);

  //===--------------------------------------------------------------------===//
  // Launches.cpp: kernels
  //===--------------------------------------------------------------------===//
  LogicalResult launch(RankState &rank);
  LogicalResult checkScratch(RankState &rank);
  LogicalResult checkScratchSize(RankState &rank, const KernelMeaning &kernel,
                                 const DimMap &dims);
  LogicalResult checkMask(RankState &rank, const KernelMeaning &kernel,
                          const DimMap &dims);
  LogicalResult readResults(RankState &rank, const KernelMeaning &kernel,
                            const DimMap &dims,
                            ArrayRef<SmallVector<Piece>> held);
  /// The type that a kernel sums in: float64 where one of its tensors is, else
  /// float32.
  static Type getAccumulatorType(const PlanEvent &event);
  LogicalResult contribute(RankState &rank, const KernelMeaning &kernel,
                           const DimMap &dims,
                           ArrayRef<SmallVector<Piece>> held);

  //===--------------------------------------------------------------------===//
  // Operands.cpp: what a launch is given
  //===--------------------------------------------------------------------===//
  const KernelMeaning *findKernel(RankState &rank,
                                  ArrayRef<SmallVector<Piece>> inputs,
                                  ArrayRef<SmallVector<Piece>> outputs);
  LogicalResult readOperands(RankState &rank, const KernelMeaning &kernel,
                             ArrayRef<SmallVector<Piece>> inputs, DimMap &dims);
  LogicalResult checkWhole(RankState &rank, const KernelMeaning &kernel,
                           DimMap &dims);
  LogicalResult checkLengths(RankState &rank, const KernelMeaning &kernel);
  LogicalResult checkGroups(RankState &rank, const KernelMeaning &kernel,
                            const DimMap &dims);

  //===--------------------------------------------------------------------===//
  // Merges.cpp: partial results
  //===--------------------------------------------------------------------===//
  LogicalResult mergeSum(RankState &rank);
  LogicalResult mergeSoftmax(RankState &rank);
  LogicalResult mergePair(RankState &rank, const MemoryBox (&targets)[2],
                          const SmallVector<Piece> (&from)[2],
                          const SmallVector<Piece> (&to)[2]);
  using SharedBoxes = std::shared_ptr<const BoxSet>;
  /// The unions of sets that had nothing in common. Many elements have merged
  /// the same, and are given the same.
  using Unions = std::map<std::pair<SharedBoxes, SharedBoxes>, SharedBoxes>;
  LogicalResult mergePart(RankState &rank, const MemoryBox &target,
                          Content more, Content &sum, MergeKind kind,
                          bool isLSE, Unions &unions);
  LogicalResult merge(RankState &rank, const MemoryBox &target,
                      ArrayRef<Piece> from, ArrayRef<Piece> to, MergeKind kind,
                      bool isLSE);
  FailureOr<SharedBoxes> unite(RankState &rank, int64_t output,
                               const Box &elements, const SharedBoxes &merged,
                               const SharedBoxes &more, Unions &unions);
  LogicalResult settle(RankState &rank, Content &content, const Box &where);
  LogicalResult checkIdentity(RankState &rank, const Content &content,
                              double identity, const Twine &where);
  LogicalResult checkPair(RankState &rank, ArrayRef<DimAttr> dims,
                          ArrayRef<Piece> pieces, ArrayRef<DimAttr> otherDims,
                          ArrayRef<Piece> others);

  //===--------------------------------------------------------------------===//
  // Stacks.cpp: merges of many partial results at once
  //===--------------------------------------------------------------------===//
  LogicalResult mergeStacks(RankState &rank);
  LogicalResult checkStacks(RankState &rank);

  //===--------------------------------------------------------------------===//
  // Transfers.cpp: communication
  //===--------------------------------------------------------------------===//
  LogicalResult startExchange(RankState &rank);
  LogicalResult checkPut(RankState &rank, const Transfer &transfer);
  LogicalResult startAllGather(RankState &rank);
  LogicalResult startPull(RankState &rank);
  LogicalResult start(RankState &rank, std::shared_ptr<Transfer> transfer);
  LogicalResult agreeOnOrder(RankState &rank);
  LogicalResult takeSource(RankState &rank, Transfer &transfer);
  LogicalResult activate();
  LogicalResult match(int64_t group, int64_t from, int64_t to);
  void complete(const std::shared_ptr<Transfer> &transfer);
  Progress wait(RankState &rank);
  bool canReadLeases(RankState &rank);
  LogicalResult openLease(RankState &rank);
  LogicalResult checkLent(RankState &rank, const Lease &lease);
  Progress closeLease(RankState &rank);
  Lease *getPeerLease(const Lease &lease, int64_t rank);

  //===--------------------------------------------------------------------===//
  // Collectives.cpp: what a whole group does together
  //===--------------------------------------------------------------------===//
  LogicalResult startCollective(RankState &rank);
  LogicalResult dealSlots(RankState &rank, Transfer &transfer);
  LogicalResult gather(int64_t group, int64_t first);
  LogicalResult checkSame(const Transfer &one, const Transfer &other);
  LogicalResult reduce(RankState &rank, const Transfer &transfer);

  //===--------------------------------------------------------------------===//
  // Report.cpp: counterexamples
  //===--------------------------------------------------------------------===//
  InFlightDiagnostic report(const Moment &moment);
  InFlightDiagnostic report(RankState &rank) { return report(getMoment(rank)); }
  void note(InFlightDiagnostic &error, const Moment &moment, const Twine &text);
  Moment getMoment(RankState &rank) {
    return {rank.event->op, rank.getRank(),
            SmallVector<int64_t, 4>(rank.event->steps)};
  }
  std::string describe(const MemoryBox &region);
  std::string describe(const Content &content);
  std::string describeSteps(const Moment &moment);

  const PlanTrace &trace;
  const Meaning &meaning;
  std::vector<std::unique_ptr<RankState>> ranks;
  std::deque<int64_t> runnable;
  /// Ranks whose next communication may begin.
  std::vector<int64_t> toActivate;
  struct Channel {
    std::deque<std::shared_ptr<Transfer>> sends, receives;
  };
  /// By group, sender and receiver.
  std::map<std::tuple<int64_t, int64_t, int64_t>, Channel> channels;
  /// By group and its first rank: who has come to a collective.
  std::map<std::pair<int64_t, int64_t>, std::vector<std::shared_ptr<Transfer>>>
      gatherings;
  /// By group and its first rank: the order of its communication.
  std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<Moment, bool>>>
      orders;
};

} // namespace mlir::commir::check

#endif // LIB_ANALYSIS_PLANCHECK_CHECKER_H
