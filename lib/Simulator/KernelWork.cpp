//===- KernelWork.cpp - The arithmetic and the bytes of a launch ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Workload.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::simulator;

namespace {
struct Range {
  int64_t begin, end;
  bool isEmpty() const { return begin >= end; }
  int64_t size() const { return end - begin; }
  Range clip(Range other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};
} // namespace

/// The sum over i in `range` of i + `add`, each at least 0 and at most `most`.
static double sumClamped(Range range, int64_t add, int64_t most) {
  // From `first` on above 0, from `full` on at the most.
  int64_t first = std::clamp(-add, range.begin, range.end);
  int64_t full = std::clamp(most - add, first, range.end);
  double count = full - first;
  return count * (first + add) + count * (count - 1) / 2 +
         static_cast<double>(most) * (range.end - full);
}

/// How many i in `range` have i + `add` above 0 and below `most`.
static double countBetween(Range range, int64_t add, int64_t most) {
  return std::max<int64_t>(0, std::min(range.end, most - add) -
                                  std::max(range.begin, 1 - add));
}

namespace {
struct Visible {
  /// What a mask leaves of the pairs, and how many rows its borders cut: those
  /// that have keys on both sides.
  double pairs = 0, cutRows = 0;
};
} // namespace

/// Every pair when there is no mask.
static Visible countVisible(std::optional<MaskAttr> mask, Range queries,
                            Range keys) {
  if (!mask || mask->isFull())
    return {static_cast<double>(queries.size()) * keys.size(), 0};
  Visible found;
  auto addWindow = [&](Range q, Range k) {
    if (q.isEmpty() || k.isEmpty())
      return;
    double upTo = static_cast<double>(k.size()) * q.size(), before = 0;
    if (mask->getRight() != MaskAttr::kUnbounded) {
      int64_t add = mask->getRight() + 1 - k.begin;
      upTo = sumClamped(q, add, k.size());
      found.cutRows += countBetween(q, add, k.size());
    }
    if (mask->getLeft() != MaskAttr::kUnbounded) {
      int64_t add = -mask->getLeft() - k.begin;
      before = sumClamped(q, add, k.size());
      found.cutRows += countBetween(q, add, k.size());
    }
    found.pairs += upTo - before;
  };
  ArrayRef<int64_t> documents = mask->getDocuments();
  if (documents.empty())
    addWindow(queries, keys);
  for (size_t i = 0; i + 1 < documents.size(); ++i) {
    Range document{documents[i], documents[i + 1]};
    addWindow(queries.clip(document), keys.clip(document));
  }
  return found;
}

static KernelWork getAttention(LaunchOp launch, const PlanEvent &event,
                               bool backward) {
  ArrayRef<int64_t> q = event.inputs[0].sizes, k = event.inputs[1].sizes;
  double d = q[3], e = event.inputs[2].sizes[3];
  Range queries{event.positions[0], event.positions[0] + q[1]};
  Range keys{event.positions[1], event.positions[1] + k[1]};
  Visible visible = countVisible(launch.getMask(), queries, keys);
  KernelWork work;
  work.batch = static_cast<double>(q[0]) * q[2];
  // Two products forward; backward computes the first again and makes four.
  double ofPair = 2 * work.batch * (backward ? 3 * d + 2 * e : d + e);
  work.flops = ofPair * visible.pairs;
  work.edge = ofPair * visible.cutRows;
  work.hidden = ofPair * (static_cast<double>(q[1]) * k[1] - visible.pairs);
  // Backward gives keys to its blocks.
  work.rows = backward ? k[1] : q[1];
  return work;
}

KernelWork mlir::commir::simulator::getWork(LaunchOp launch,
                                            const PlanEvent &event) {
  KernelWork work;
  StringRef kernel = launch.getKernel();
  auto merges = [&](unsigned output) { return !launch.overwrites(output); };
  if (kernel == "matmul") {
    // It adds to its result as it goes.
    ArrayRef<int64_t> a = event.inputs[0].sizes, b = event.inputs[1].sizes;
    work.rows = a[0];
    work.columns = b[1];
    work.flops = 2 * work.rows * work.columns * a[1];
    return work;
  }
  if (kernel == "attention_fwd" || kernel == "attention_bwd") {
    work = getAttention(launch, event, kernel == "attention_bwd");
    // A library hands its results over in the type of its operands, except for
    // log-sum-exps. Merging reads that and the result, and writes the result.
    if (work.flops <= 0)
      return work;
    int64_t width = event.inputs[0].elementBytes;
    for (auto [i, box] : llvm::enumerate(event.outputs)) {
      double elements = box.getElements();
      bool isSum = kernel == "attention_fwd" && i == 1;
      if (merges(i))
        work.bytes += elements * (width + 2 * box.elementBytes);
      else if (!isSum && box.elementBytes > width)
        work.widened += elements * (width + box.elementBytes);
    }
    return work;
  }
  for (const MemoryBox &box : event.inputs)
    work.bytes += box.getBytes();
  for (auto [i, box] : llvm::enumerate(event.outputs))
    work.bytes += box.getBytes() * (merges(i) ? 2 : 1);
  return work;
}
