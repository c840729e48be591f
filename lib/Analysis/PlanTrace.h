//===- PlanTrace.h - What a rank does, event by event -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lowered plan is one SPMD text. For one rank of the mesh its integers are
// all known, so the text can be run without memory or messages: what is left is
// the order of events, each with the bytes that it touches. The plan checker,
// the simulator and `mercury explain` read plans this way.
//
//   FailureOr<PlanTrace> trace = PlanTrace::create(function);
//   PlanCursor cursor(*trace, /*rank=*/2);
//   while (const PlanEvent *event = cursor.next())
//     ...
//   if (cursor.hasFailed()) // an error was emitted
//
// A cursor stops at each event, so the ranks of a mesh can be run against each
// other by as many cursors. A trace must not outlive its function, nor a cursor
// its trace; a trace is not changed by its cursors.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANTRACE_H
#define LIB_ANALYSIS_PLANTRACE_H

#include "dialect/CommIR/CommIR.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <memory>
#include <vector>

namespace mlir::commir {

/// Memory that a plan can name.
struct MemorySpace {
  enum class Kind {
    /// The plan's own memory on this rank, which no peer reads.
    Local,
    /// The plan's own memory that peers may read.
    Symmetric,
    /// A buffer of the program on this rank, by its number.
    Argument,
    /// What a peer opened to be read, by the number of this rank's lease.
    Leased,
    /// A table of integers on the stack; no event touches it.
    Table
  };
  Kind kind = Kind::Local;
  int64_t number = 0;
  /// The group rank of the owner of leased memory.
  int64_t peer = 0;

  bool operator==(const MemorySpace &other) const {
    return kind == other.kind && number == other.number && peer == other.peer;
  }
};

/// A box of elements in memory. Offset and strides count bytes.
struct MemoryBox {
  MemorySpace space;
  int64_t offset = 0;
  Type elementType;
  int64_t elementBytes = 1;
  SmallVector<int64_t, 4> sizes;
  SmallVector<int64_t, 4> strides;

  int64_t getElements() const;
  int64_t getBytes() const { return getElements() * elementBytes; }
  bool isEmpty() const { return llvm::is_contained(sizes, 0); }
  /// The end of the last byte, when the region is not empty.
  int64_t getEnd() const;
  /// Whether its elements follow one another without a gap.
  bool isContiguous() const;
};

/// One thing that a rank does.
struct PlanEvent {
  enum class Kind {
    Launch,    // inputs, outputs, scratch, positions; the rest is the op's
    Exchange,  // inputs[0] goes `to`, outputs[0] comes `from`, if it `happens`
    AllGather, // inputs[0] goes to all; outputs[0] are the slots
    ReduceScatter, // slot m of inputs[0] is for member m; outputs[0] is merged
    AllReduce,     // inputs[0] of all is merged into outputs[0]
    AllToAll,      // slot m of inputs[0] goes to member m, slot m of outputs[0]
    Broadcast,     // inputs[0] of `from` comes to outputs[0] of all, if so
    Pull,          // inputs[0], memory of `from`, comes to outputs[0], if so
    Wait,          // for `token`
    Fill,          // outputs[0] becomes `value`
    Copy,          // inputs[0] to outputs[0]
    Accumulate,    // inputs[0] is added to outputs[0]
    LeaseOpen,     // inputs[0] may be read by peers
    LeaseClose,    // all members have read
    LaneUse,       // what follows is in lane `to`
    LaneOrder      // what comes in lane `to` is after what lane `from` holds
  };
  Kind kind = Kind::Wait;
  /// The op and so its location; the same for all ranks and steps.
  Operation *op = nullptr;
  /// The indices of the loops around it, outermost first.
  ArrayRef<int64_t> steps;

  SmallVector<MemoryBox, 4> inputs;
  SmallVector<MemoryBox, 2> outputs;
  /// What a launch works in and leaves undefined; no box, or one.
  SmallVector<MemoryBox, 1> scratch;
  SmallVector<int64_t, 4> positions;
  /// Communication only: the group, a number of the trace, and group ranks; of
  /// lanes, their numbers.
  int64_t group = 0;
  int64_t to = 0;
  int64_t from = 0;
  bool happens = true;
  /// For each member of the group, the bytes that it contributes; where slots
  /// go to members, the bytes that this rank has for it, and in `arrivals`,
  /// where they differ, those that come of it.
  SmallVector<int64_t, 0> lengths, arrivals;
  /// What a start gives and a wait takes; on each rank 1, 2, ... in the order
  /// of the starts, those that do not happen included.
  int64_t token = 0;
  /// On each rank 1, 2, ... in the order of opening.
  int64_t lease = 0;
  double value = 0.0;

  /// Whether all members of the group do it together.
  bool isCollective() const {
    return kind == Kind::AllGather || kind == Kind::ReduceScatter ||
           kind == Kind::AllReduce || kind == Kind::AllToAll ||
           kind == Kind::Broadcast;
  }
  bool isStart() const {
    return kind == Kind::Exchange || kind == Kind::Pull || isCollective();
  }
  /// Whether it says how a rank's own work is queued, and does none.
  bool isOfLanes() const {
    return kind == Kind::LaneUse || kind == Kind::LaneOrder;
  }
};

/// "launch", "all_gather", "lease_open", ...
StringRef getName(PlanEvent::Kind kind);

namespace trace {
struct Code;
} // namespace trace

/// A plan made ready to run, for any number of ranks.
class PlanTrace {
public:
  /// Reads a function that `commir-to-spmd` made. Fails, with an error at the
  /// op, when the plan does anything whose effect is not known.
  static FailureOr<PlanTrace> create(func::FuncOp function);

  func::FuncOp getFunction() const { return function; }
  int64_t getNumRanks() const { return ranks; }
  /// The size of each level, outermost first.
  ArrayRef<int64_t> getLevelSizes() const { return levelSizes; }
  StringRef getLevelName(int64_t level) const;
  /// The place of a rank along a level.
  int64_t getCoordinate(int64_t rank, int64_t level) const {
    return rank / levelStrides[level] % levelSizes[level];
  }

  /// Groups of ranks that differ on some levels only. Group l is that of level
  /// l; those of several levels come after the levels.
  int64_t getNumGroups() const;
  int64_t getGroupSize(int64_t group) const;
  /// The levels of a group, outermost first.
  ArrayRef<int64_t> getGroupLevels(int64_t group) const;
  /// The rank among its group, row-major.
  int64_t getGroupRank(int64_t rank, int64_t group) const;
  /// The rank of the mesh that is a member of the group of `rank`.
  int64_t getMember(int64_t rank, int64_t group, int64_t member) const;
  /// `'node', 'gpu'`, for messages.
  std::string describeGroup(int64_t group) const;
  /// `rank 5 (node 1, gpu 2)`, for messages.
  std::string describeRank(int64_t rank) const;
  /// The bytes of the arenas of a rank.
  int64_t getLocalBytes() const { return localBytes; }
  int64_t getSymmetricBytes() const { return symmetricBytes; }

private:
  friend class PlanCursor;
  PlanTrace() = default;

  func::FuncOp function;
  MeshOp mesh;
  int64_t ranks = 1;
  int64_t localBytes = 0, symmetricBytes = 0;
  SmallVector<int64_t> levelSizes, levelStrides;
  std::shared_ptr<const trace::Code> code;
};

/// One rank on its way through a plan.
class PlanCursor {
public:
  PlanCursor(const PlanTrace &trace, int64_t rank);

  /// Goes on to the next event, which stays valid until the next call. Null at
  /// the end, or after an error was emitted.
  const PlanEvent *next();

  bool hasFailed() const { return failed; }
  int64_t getRank() const { return rank; }

private:
  bool compute(size_t at);
  bool makeTile(size_t at);
  bool fail(Operation *op, const Twine &why);
  const PlanEvent *stop(size_t site);

  const PlanTrace &trace;
  const trace::Code &code;
  int64_t rank;
  bool failed = false;
  size_t at = 0;
  int64_t tokens = 0, leases = 0;
  std::vector<int64_t> numbers;
  std::vector<MemoryBox> tiles;
  std::vector<std::vector<int64_t>> tables;
  SmallVector<int64_t> steps;
  PlanEvent event;
};

} // namespace mlir::commir

#endif // LIB_ANALYSIS_PLANTRACE_H
