//===- Overlap.cpp - How two regions of a memory lie ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Overlap.h"
#include "lib/Analysis/PlanCheck/Contents.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

using WalkedDims = SmallVector<std::pair<int64_t, unsigned>, 4>;

/// How far a region reaches along the dimensions that are left.
static int64_t getReach(const MemoryBox &region,
                        ArrayRef<std::pair<int64_t, unsigned>> dims) {
  int64_t reach = 0;
  for (auto [stride, dim] : dims)
    reach += (region.sizes[dim] - 1) * stride;
  return reach;
}

/// Finds the shifts with sum(shift * stride) = distance under which the regions
/// overlap, the dimension of the widest stride first.
static void findShifts(const MemoryBox &a, const MemoryBox &b,
                       ArrayRef<std::pair<int64_t, unsigned>> dims,
                       int64_t distance, Overlap &at, Alignment &found) {
  if (dims.empty()) {
    if (distance == 0)
      found.overlaps.push_back(at);
    return;
  }
  auto [stride, dim] = dims.front();
  dims = dims.drop_front();
  int64_t size = a.sizes[dim], other = b.sizes[dim];
  int64_t least = std::max(
      1 - other, llvm::divideCeilSigned(distance - getReach(a, dims), stride));
  int64_t most = std::min(
      size - 1, llvm::divideFloorSigned(distance + getReach(b, dims), stride));
  for (int64_t shift = least; shift <= most; ++shift) {
    at.shift[dim] = shift;
    at.common[dim] = {std::max<int64_t>(0, shift),
                      std::min(size, other + shift)};
    findShifts(a, b, dims, distance - shift * stride, at, found);
  }
}

/// Whether the rows of a region lie apart, the widest stride first.
static bool hasRows(const MemoryBox &region, const WalkedDims &dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    if (getReach(region, ArrayRef(dims).drop_front(i)) >= dims[i - 1].first &&
        region.sizes[dims[i - 1].second] > 1)
      return false;
  return true;
}

Alignment check::align(const MemoryBox &a, const MemoryBox &b) {
  Alignment found;
  if (a.offset >= b.getEnd() || b.offset >= a.getEnd())
    return found;
  size_t rank = a.sizes.size();
  found.sameFrame = rank == b.sizes.size() && a.elementType == b.elementType;
  WalkedDims dims;
  for (unsigned dim = 0; found.sameFrame && dim < rank; ++dim) {
    bool walkedA = a.sizes[dim] > 1, walkedB = b.sizes[dim] > 1;
    if (!walkedA && !walkedB)
      continue;
    int64_t stride = walkedA ? a.strides[dim] : b.strides[dim];
    if (stride <= 0 || (walkedA && walkedB && stride != b.strides[dim]))
      found.sameFrame = false;
    dims.emplace_back(stride, dim);
  }
  llvm::sort(dims, std::greater<>());
  found.sameFrame = found.sameFrame && hasRows(a, dims) && hasRows(b, dims);
  if (!found.sameFrame)
    return found;
  Overlap at{getIndices(a), SmallVector<int64_t, 4>(rank, 0)};
  findShifts(a, b, dims, b.offset - a.offset, at, found);
  return found;
}

bool check::overlaps(const MemoryBox &a, const MemoryBox &b) {
  if (a.isEmpty() || b.isEmpty())
    return false;
  Alignment found = align(a, b);
  return !found.sameFrame || !found.overlaps.empty();
}
