//===- Operands.cpp - What a launch is given ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

/// Which positions the indices of each dimension are; nullopt when that depends
/// on the other dimensions.
static std::optional<SmallVector<Segments>> getSegments(ArrayRef<Piece> pieces,
                                                        size_t rank) {
  SmallVector<Segments> all(rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    SmallVector<Segment> sorted;
    for (const Piece &piece : pieces)
      sorted.push_back({piece.local[dim], piece.content.box[dim].begin});
    auto isBefore = [](const Segment &a, const Segment &b) {
      return a.local.begin < b.local.begin;
    };
    if (!llvm::is_sorted(sorted, isBefore))
      llvm::sort(sorted, isBefore);
    for (const Segment &next : sorted) {
      if (all[dim].empty() || next.local.begin > all[dim].back().local.end) {
        all[dim].push_back(next);
        continue;
      }
      Segment &last = all[dim].back();
      if (next.first - next.local.begin == last.first - last.local.begin)
        last.local.end = std::max(last.local.end, next.local.end);
      else if (next.local.begin == last.local.end)
        all[dim].push_back(next);
      else
        return std::nullopt;
    }
  }
  return all;
}

/// The buffer that pieces are of, or -1.
static int64_t getBuffer(ArrayRef<Piece> pieces, Content::Kind kind) {
  for (const Piece &piece : pieces)
    if (piece.content.kind == kind)
      return piece.content.buffer;
  return -1;
}

/// Finds the kernel of the program that a launch is of: by its inputs first,
/// then by what its results hold, then by what it is told.
const KernelMeaning *Checker::findKernel(RankState &rank,
                                         ArrayRef<SmallVector<Piece>> inputs,
                                         ArrayRef<SmallVector<Piece>> outputs) {
  const PlanEvent &event = *rank.event;
  auto launch = cast<LaunchOp>(event.op);
  const KernelMeaning *best = nullptr;
  int most = -1;
  for (const KernelMeaning &each : meaning.getKernels()) {
    KernelOp kernel = each.op;
    if (kernel.getKernel() != launch.getKernel() ||
        each.inputs.size() != inputs.size() ||
        each.outputs.size() != outputs.size())
      continue;
    auto takes = [&](auto pair) {
      auto &[buffer, pieces] = pair;
      return getBuffer(pieces, Content::Kind::Input) == buffer;
    };
    auto adds = [&](auto tuple) {
      auto &[output, pieces, region] = tuple;
      MemorySpace space = region.space;
      return getBuffer(pieces, Content::Kind::Partial) == output ||
             (space.kind == MemorySpace::Kind::Argument && output >= 0 &&
              space.number >= meaning.getNumInputs() &&
              space.number < meaning.getNumBuffers() &&
              meaning.getSame(space.number) == output);
    };
    int fits =
        4 * llvm::all_of(llvm::zip_equal(each.inputs, inputs), takes) +
        2 * llvm::any_of(llvm::zip_equal(each.outputs, outputs, event.outputs),
                         adds) +
        (each.getMask() == launch.getMask().value_or(MaskAttr()) &&
         kernel->getAttrOfType<FloatAttr>("scale") == launch.getScaleAttr());
    if (fits <= most)
      continue;
    best = &each;
    most = fits;
  }
  return best;
}

/// A kernel takes the length of a dimension from one of its operands: all of
/// them must have it, also those that hold nothing.
LogicalResult Checker::checkLengths(RankState &rank,
                                    const KernelMeaning &kernel) {
  const PlanEvent &event = *rank.event;
  SmallVector<std::pair<DimAttr, int64_t>> lengths;
  auto check = [&](int64_t buffer, const MemoryBox &tile) -> LogicalResult {
    if (buffer < 0)
      return success();
    ArrayRef<DimAttr> dims = meaning.getDims(buffer);
    if (dims.size() != tile.sizes.size())
      return report(rank) << "its tile of '" << meaning.getName(buffer)
                          << "' has " << tile.sizes.size()
                          << " dimensions, the buffer " << dims.size();
    for (auto [dim, length] : llvm::zip_equal(dims, tile.sizes)) {
      auto *known = llvm::find_if(
          lengths, [&](const auto &each) { return each.first == dim; });
      if (known == lengths.end())
        lengths.emplace_back(dim, length);
      else if (known->second != length)
        return report(rank)
               << "its tile of '" << meaning.getName(buffer) << "' has "
               << length << " of '" << check::describe(dim)
               << "', an earlier one " << known->second;
    }
    return success();
  };
  for (auto [buffer, tile] : llvm::zip(kernel.inputs, event.inputs))
    if (failed(check(buffer, tile)))
      return failure();
  for (auto [buffer, tile] : llvm::zip(kernel.outputs, event.outputs))
    if (failed(check(buffer, tile)))
      return failure();
  return success();
}

/// Finds which positions each dimension of a launch runs over, from what its
/// inputs hold.
LogicalResult Checker::readOperands(RankState &rank,
                                    const KernelMeaning &kernel,
                                    ArrayRef<SmallVector<Piece>> pieces,
                                    DimMap &dims) {
  const PlanEvent &event = *rank.event;
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t buffer = kernel.inputs[i];
    const MemoryBox &input = event.inputs[i];
    for (const Piece &piece : pieces[i])
      if (piece.content.kind != Content::Kind::Input ||
          piece.content.buffer != buffer)
        return report(rank)
               << "input " << i << " must hold '" << meaning.getName(buffer)
               << "', found " << describe(piece.content);
    if (!pieces[i].empty() &&
        input.elementType.getIntOrFloatBitWidth() <
            meaning.getElementType(buffer).getIntOrFloatBitWidth())
      return report(rank) << "reads '" << meaning.getName(buffer) << "' as "
                          << input.elementType;
    auto segments = getSegments(pieces[i], input.sizes.size());
    ArrayRef<DimAttr> names = meaning.getDims(buffer);
    if (!segments || segments->size() != names.size())
      return report(rank) << "input " << i
                          << " is in pieces that are no tile of '"
                          << meaning.getName(buffer) << "'";
    for (auto [dim, found] : llvm::zip_equal(names, *segments)) {
      const Segments *known = findDim(dims, dim);
      if (!known)
        dims.emplace_back(dim, found);
      else if (*known != found)
        return report(rank)
               << "input " << i << ", '" << meaning.getName(buffer)
               << "', holds " << check::describe(dim) << " "
               << check::describe(found) << " where earlier inputs hold "
               << check::describe(*known);
      if (dim.isConstant() && getLength(found) != dim.getValue())
        return report(rank) << "input " << i << ", '" << meaning.getName(buffer)
                            << "', holds " << check::describe(found)
                            << " of a dimension of " << dim.getValue();
    }
  }
  return success();
}

/// What enters once has no iterations: what it is contracted over must be there
/// whole. A tile of a result has all of a constant dimension.
LogicalResult Checker::checkWhole(RankState &rank, const KernelMeaning &kernel,
                                  DimMap &dims) {
  auto isResult = [&](DimAttr dim) {
    return llvm::any_of(kernel.outputs, [&](int64_t output) {
      return output >= 0 &&
             llvm::any_of(meaning.getDims(output), [&](DimAttr each) {
               return !each.isConstant() && each.getAxis() == dim.getAxis();
             });
    });
  };
  for (const auto &[dim, segments] : dims) {
    if (dim.isConstant() || isResult(dim))
      continue;
    int64_t extent = llvm::divideCeil(meaning.getExtent(dim.getAxis()),
                                      int64_t(dim.getDivisor()));
    if (getPositions(segments) != SmallVector<Interval>{{0, extent}})
      return report(rank) << "contracts '" << check::describe(dim) << "' "
                          << check::describe(segments) << ", which is not all "
                          << extent << " of it";
  }
  for (int64_t output : kernel.outputs)
    if (output >= 0)
      for (DimAttr dim : meaning.getDims(output))
        if (dim.isConstant() && !findDim(dims, dim))
          dims.emplace_back(dim, Segments{{{0, dim.getValue()}, 0}});
  return success();
}

/// Index i of a whole dimension works with index (p + i) / g - q of the divided
/// one, p and q the positions that the launch was given.
LogicalResult Checker::checkGroups(RankState &rank, const KernelMeaning &kernel,
                                   const DimMap &dims) {
  auto launch = cast<LaunchOp>(rank.event->op);
  int64_t group = launch.getGroup().value_or(1);
  bool grouped = false;
  auto getGiven = [&](DimAttr dim) -> int64_t {
    for (auto [named, position] :
         llvm::zip(kernel.positions, rank.event->positions))
      if (named == dim)
        return position;
    return 0;
  };
  for (const auto &[whole, heads] : dims) {
    for (const auto &[part, shared] : dims) {
      if (whole.isConstant() || part.isConstant() ||
          whole.getAxis() != part.getAxis() ||
          whole.getDivisor() >= part.getDivisor())
        continue;
      grouped = true;
      int64_t ratio = part.getDivisor() / whole.getDivisor();
      if (group != ratio)
        return report(rank)
               << "groups " << group << " of '" << check::describe(whole)
               << "', the program " << ratio;
      int64_t p = getGiven(whole), q = getGiven(part);
      for (const Segment &segment : heads) {
        for (int64_t i = segment.local.begin; i < segment.local.end; ++i) {
          int64_t used = llvm::divideFloorSigned(p + i, group) - q;
          int64_t needed = (segment.first + i - segment.local.begin) / group;
          bool right = llvm::any_of(shared, [&](const Segment &held) {
            return used >= held.local.begin && used < held.local.end &&
                   held.first + used - held.local.begin == needed;
          });
          if (!right)
            return report(rank)
                   << "'" << check::describe(whole) << "' "
                   << segment.first + i - segment.local.begin << " needs '"
                   << check::describe(part) << "' " << needed
                   << ", but the launch is told that its tiles, "
                   << check::describe(heads) << " and "
                   << check::describe(shared) << ", begin at " << p << " and "
                   << q;
        }
      }
    }
  }
  if (!grouped && group != 1)
    return report(rank) << "groups " << group << " where the program does not";
  return success();
}
