//===- Meaning.h - What the source program asks for -------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that the checker knows of a program comes from its loops' bodies and its
// boundary placements, by the layout arithmetic; not from how it was scheduled.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANCHECK_MEANING_H
#define LIB_ANALYSIS_PLANCHECK_MEANING_H

#include "lib/Analysis/PlanCheck/Box.h"
#include "lib/Analysis/PlanTrace.h"

namespace mlir::commir::check {

/// A run of an index that follows a run of positions: index `local.begin + i`
/// is position `first + i`.
struct Segment {
  Interval local;
  int64_t first = 0;
  Interval getPositions() const { return {first, first + local.size()}; }
  bool operator==(const Segment &other) const {
    return local == other.local && first == other.first;
  }
};
using Segments = SmallVector<Segment, 1>;

/// For each dimension of a kernel, which positions its indices are.
using DimMap = SmallVector<std::pair<DimAttr, Segments>>;

/// What a map has of a dimension; null if nothing.
const Segments *findDim(const DimMap &dims, DimAttr wanted);

int64_t getLength(ArrayRef<Segment> segments);
SmallVector<Interval> getPositions(ArrayRef<Segment> segments);

/// One kernel of the program, and its operands as buffers.
struct KernelMeaning {
  KernelOp op;
  /// Outputs that other kernels make too, just so, have the first one's number.
  SmallVector<int64_t> inputs, outputs;
  /// Whether its results enter a merge one time, not once an iteration.
  bool entersOnce = false;
  /// The dimension of the query and key positions that its mask speaks of.
  DimAttr query, key;
  /// The dimensions that its scratch depends on, by letter of its signature.
  llvm::SmallDenseMap<StringRef, DimAttr> scratch;
  /// The dimensions whose positions a launch is given.
  SmallVector<DimAttr> positions;
  MaskAttr getMask() const {
    return KernelOp(op).getMask().value_or(MaskAttr());
  }
};

/// How an output comes about.
struct ResultMeaning {
  StoreOp store;
  int64_t kernel = -1;
  MergeKind merge = MergeKind::Sum;
  bool merges = false;
  /// What merging starts from.
  double identity = 0.0;
  /// The axes that each element is merged over, with their extents: the axes
  /// that the buffer lacks, and those that it has divided.
  SmallVector<StringRef> axes;
  SmallVector<int64_t> extents;
  /// The other one of a softmax pair, or -1.
  int64_t partner = -1;
  /// The kernel whose result enters once, or -1.
  int64_t once = -1;
  /// The first output that holds the same, made by a like kernel: what one of
  /// them holds, no one can tell from what another does.
  int64_t same = -1;
};

/// A program as the checker sees it.
class Meaning {
public:
  static FailureOr<Meaning> create(ProgramOp program);

  ProgramOp getProgram() const { return program; }
  int64_t getNumBuffers() const { return names.size(); }
  StringRef getName(int64_t buffer) const { return names[buffer]; }
  int64_t getNumInputs() const { return inputs; }
  int64_t getExtent(StringRef axis) const {
    return ProgramOp(program).getAxis(axis).getExtent();
  }
  bool isInput(int64_t buffer) const { return buffer < inputs; }
  ArrayRef<DimAttr> getDims(int64_t buffer) const { return dims[buffer]; }
  Type getElementType(int64_t buffer) const { return elementTypes[buffer]; }
  ArrayRef<KernelMeaning> getKernels() const { return kernels; }
  const ResultMeaning &getResult(int64_t output) const {
    return results[output];
  }
  /// The number by which the contents of an output are known.
  int64_t getSame(int64_t output) const { return results[output].same; }

  /// Whether the schedule names a type that partial results may be rounded to.
  bool isLink(Type type) const { return llvm::is_contained(links, type); }

  /// For each dimension of a buffer, what a rank holds of it at the boundary.
  SmallVector<Segments> getShard(const PlanTrace &trace, int64_t rank,
                                 int64_t buffer) const;

  /// The box of reduced axes that the elements of a box of an output need.
  Box getNeeded(int64_t output, const Box &elements) const;
  /// Whether the mask keeps all of `reduced` out of `elements`.
  bool isMasked(int64_t output, const Box &elements, const Box &reduced) const;
  /// What is not in `merged` and should be, if anything.
  std::optional<Box> getMissing(int64_t output, const Box &elements,
                                const BoxSet &merged) const;

  /// `sk [0, 4), h [2, 3)`, for messages.
  std::string describe(int64_t buffer, const Box &box) const;
  std::string describeReduced(int64_t output, const Box &box) const;

private:
  LogicalResult readNest(ForOp nest);
  LogicalResult readStore(StoreOp store);
  LogicalResult readMaker(StoreOp store, Value tile, int64_t number,
                          int64_t &kernel);
  bool isSame(const KernelMeaning &one, const KernelMeaning &other) const;
  void findSame();

  ProgramOp program;
  int64_t inputs = 0;
  SmallVector<StringRef> names;
  SmallVector<ArrayRef<DimAttr>> dims;
  SmallVector<Type> elementTypes, links;
  std::vector<KernelMeaning> kernels;
  std::vector<ResultMeaning> results;
};

/// `h/4`, and `[0, 2), [6, 8)`, for messages.
std::string describe(DimAttr dim);
std::string describe(ArrayRef<Segment> segments);

/// Whether no query of `queries` sees a key of `keys`.
bool isOutsideMask(MaskAttr mask, Interval queries, Interval keys);

/// Whether a launch under `launched`, told that its queries and keys begin at
/// these positions, sees the pairs that `mask` lets the true positions see. A
/// null mask is full.
bool seesTheSame(MaskAttr mask, ArrayRef<Segment> queries,
                 ArrayRef<Segment> keys, MaskAttr launched, int64_t firstQuery,
                 int64_t firstKey);

} // namespace mlir::commir::check

#endif // LIB_ANALYSIS_PLANCHECK_MEANING_H
