//===- Launches.cpp - Kernels on what their tiles hold --------------------===//
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
    llvm::sort(sorted, [](const Segment &a, const Segment &b) {
      return a.local.begin < b.local.begin;
    });
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

static const Segments *findDim(ArrayRef<std::pair<DimAttr, Segments>> dims,
                               DimAttr wanted) {
  for (const auto &[dim, segments] : dims)
    if (dim == wanted)
      return &segments;
  return nullptr;
}

static std::string describe(DimAttr dim) {
  if (dim.isConstant())
    return std::to_string(dim.getValue());
  std::string text = dim.getAxis().str();
  return dim.getDivisor() == 1 ? text
                               : text + "/" + std::to_string(dim.getDivisor());
}

static std::string describe(ArrayRef<Segment> segments) {
  std::string text;
  for (const Segment &segment : segments) {
    Interval positions = segment.getPositions();
    text += (text.empty() ? "[" : ", [") + std::to_string(positions.begin) +
            ", " + std::to_string(positions.end) + ")";
  }
  return text.empty() ? "nothing" : text;
}

/// Reads the inputs of a launch, finds the kernel of the program that takes
/// them, and which positions each of its dimensions runs over.
LogicalResult Checker::readOperands(RankState &rank,
                                    const KernelMeaning *&kernel,
                                    DimMap &dims) {
  const PlanEvent &event = *rank.event;
  auto launch = cast<LaunchOp>(event.op);
  SmallVector<SmallVector<Piece>> pieces(event.inputs.size());
  SmallVector<int64_t> buffers;
  for (auto [input, read] : llvm::zip_equal(event.inputs, pieces)) {
    if (failed(this->read(rank, input, read)))
      return failure();
    bool holds =
        !read.empty() && read.front().content.kind == Content::Kind::Input;
    buffers.push_back(holds ? read.front().content.buffer : -1);
  }
  kernel = nullptr;
  for (const KernelMeaning &each : meaning.getKernels()) {
    if (KernelOp(each.op).getKernel() != launch.getKernel() ||
        each.inputs.size() != event.inputs.size() ||
        each.outputs.size() != event.outputs.size())
      continue;
    bool fits = ArrayRef(each.inputs) == ArrayRef(buffers);
    if (!kernel || fits)
      kernel = &each;
    if (fits)
      break;
  }
  if (!kernel)
    return report(rank) << "the program has no kernel '" << launch.getKernel()
                        << "' of these operands";
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t buffer = kernel->inputs[i];
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
               << "', holds " << ::describe(dim) << " " << ::describe(found)
               << " where earlier inputs hold " << ::describe(*known);
      if (dim.isConstant() && getLength(found) != dim.getValue())
        return report(rank) << "input " << i << ", '" << meaning.getName(buffer)
                            << "', holds " << ::describe(found)
                            << " of a dimension of " << dim.getValue();
    }
  }
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
        return report(rank) << "groups " << group << " of '"
                            << ::describe(whole) << "', the program " << ratio;
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
                   << "'" << ::describe(whole) << "' "
                   << segment.first + i - segment.local.begin << " needs '"
                   << ::describe(part) << "' " << needed
                   << ", but the launch is told that its tiles, "
                   << ::describe(heads) << " and " << ::describe(shared)
                   << ", begin at " << p << " and " << q;
        }
      }
    }
  }
  if (!grouped && group != 1)
    return report(rank) << "groups " << group << " where the program does not";
  return success();
}

LogicalResult Checker::checkMask(RankState &rank, const KernelMeaning &kernel,
                                 const DimMap &dims) {
  auto launch = cast<LaunchOp>(rank.event->op);
  auto scale = KernelOp(kernel.op)->getAttrOfType<FloatAttr>("scale");
  if (launch.getScaleAttr() != scale)
    return report(rank) << "has scale " << Attribute(launch.getScaleAttr())
                        << ", the program " << Attribute(scale);
  MaskAttr mask = kernel.getMask();
  MaskAttr launched = launch.getMask().value_or(MaskAttr());
  const Segments *queries = findDim(dims, kernel.query);
  const Segments *keys = findDim(dims, kernel.key);
  if (!queries || !keys) {
    if (launched && !launched.isFull())
      return report(rank) << "has a mask where the program has none";
    return success();
  }
  int64_t firstQuery = 0, firstKey = 0;
  for (auto [dim, position] :
       llvm::zip(kernel.positions, rank.event->positions)) {
    if (dim == kernel.query)
      firstQuery = position;
    if (dim == kernel.key)
      firstKey = position;
  }
  if (seesTheSame(mask, *queries, *keys, launched, firstQuery, firstKey))
    return success();
  InFlightDiagnostic error =
      report(rank) << "its tiles are '" << kernel.query.getAxis() << "' "
                   << ::describe(*queries) << " and '" << kernel.key.getAxis()
                   << "' " << ::describe(*keys)
                   << ", but it is told that they begin at " << firstQuery
                   << " and " << firstKey
                   << ", which is another part of the mask";
  error.attachNote(KernelOp(kernel.op).getLoc())
      << "the program's mask is " << mask;
  return error;
}

/// Appends every box of one interval a dimension.
static void getProduct(ArrayRef<SmallVector<Interval>> intervals,
                       SmallVectorImpl<Box> &boxes) {
  boxes.push_back({});
  for (ArrayRef<Interval> choices : intervals) {
    SmallVector<Box> longer;
    for (const Box &box : boxes)
      for (Interval choice : choices) {
        longer.push_back(box);
        longer.back().push_back(choice);
      }
    boxes.assign(longer.begin(), longer.end());
  }
}

/// What a kernel adds to a result: the positions that its inputs hold of each
/// axis that is reduced over.
static std::optional<SmallVector<Box>>
getContribution(const ResultMeaning &result,
                ArrayRef<std::pair<DimAttr, Segments>> dims) {
  SmallVector<SmallVector<Interval>> intervals;
  for (auto [name, extent] : llvm::zip_equal(result.axes, result.extents)) {
    DimAttr found;
    for (const auto &[dim, segments] : dims)
      if (!dim.isConstant() && dim.getAxis() == name &&
          (!found || dim.getDivisor() < found.getDivisor()))
        found = dim;
    if (!found)
      return std::nullopt;
    intervals.push_back(getPositions(*findDim(dims, found)));
    for (Interval &interval : intervals.back())
      interval = {interval.begin * found.getDivisor(),
                  std::min(interval.end * found.getDivisor(), extent)};
  }
  SmallVector<Box> boxes;
  getProduct(intervals, boxes);
  return boxes;
}

/// Cuts a piece where the positions of a dimension are not consecutive, and
/// says which box of positions each part is.
static SmallVector<std::pair<Box, Box>>
cutAtSegments(const Box &local, ArrayRef<const Segments *> dims) {
  SmallVector<std::pair<Box, Box>> parts{{{}, {}}};
  for (auto [interval, segments] : llvm::zip_equal(local, dims)) {
    SmallVector<std::pair<Box, Box>> longer;
    for (const auto &[indices, positions] : parts) {
      for (const Segment &segment : *segments) {
        Interval cut{std::max(interval.begin, segment.local.begin),
                     std::min(interval.end, segment.local.end)};
        if (cut.size() <= 0)
          continue;
        int64_t first = segment.first + cut.begin - segment.local.begin;
        longer.emplace_back(indices, positions);
        longer.back().first.push_back(cut);
        longer.back().second.push_back({first, first + cut.size()});
      }
    }
    parts = std::move(longer);
  }
  return parts;
}

LogicalResult Checker::contribute(RankState &rank, const KernelMeaning &kernel,
                                  const DimMap &dims) {
  const PlanEvent &event = *rank.event;
  SmallVector<SmallVector<Piece>> held(event.outputs.size());
  for (auto [i, region] : llvm::enumerate(event.outputs)) {
    int64_t output = kernel.outputs[i];
    if (output < 0)
      return report(rank) << "makes a result that the program does not store";
    ArrayRef<DimAttr> names = meaning.getDims(output);
    bool fits = names.size() == region.sizes.size();
    for (auto [dim, size] : llvm::zip(names, region.sizes)) {
      const Segments *segments = findDim(dims, dim);
      if (!segments)
        return report(rank)
               << "nothing says where the dimension '" << ::describe(dim)
               << "' of its result '" << meaning.getName(output) << "' begins";
      fits &= getLength(*segments) == size;
    }
    if (!fits)
      return report(rank) << "its result " << i << ", '"
                          << meaning.getName(output)
                          << "', has other sizes than its inputs";
    if (failed(read(rank, region, held[i])) || failed(checkWrite(rank, region)))
      return failure();
    for (const MemoryBox &input : event.inputs)
      if (input.space == region.space && overlaps(input, region))
        return report(rank)
               << "writes '" << meaning.getName(output) << "' over "
               << describe(input) << ", which it reads";
    for (const MemoryBox &other : ArrayRef(event.outputs).take_front(i))
      if (other.space == region.space && overlaps(other, region))
        return report(rank) << "writes two results to " << describe(region);
    int64_t partner = meaning.getResult(output).partner;
    for (size_t j = 0; j < i; ++j)
      if (kernel.outputs[j] == partner &&
          failed(checkPair(rank, names, held[i], meaning.getDims(partner),
                           held[j])))
        return failure();
  }
  for (auto [i, region] : llvm::enumerate(event.outputs)) {
    int64_t output = kernel.outputs[i];
    const ResultMeaning &result = meaning.getResult(output);
    auto added = getContribution(result, dims);
    if (!added)
      return report(rank) << "has no input along an axis that '"
                          << meaning.getName(output) << "' is merged over";
    SmallVector<const Segments *> segments;
    for (DimAttr dim : meaning.getDims(output))
      segments.push_back(findDim(dims, dim));
    for (const Piece &piece : held[i]) {
      const Content &before = piece.content;
      if (before.kind == Content::Kind::Input)
        return report(rank) << "adds to '" << meaning.getName(output)
                            << "' where " << describe(before) << " lies";
      if (before.isFilled() &&
          failed(checkIdentity(rank, before, result.identity,
                               "'" + meaning.getName(output) + "'")))
        return failure();
      for (auto &[indices, positions] : cutAtSegments(piece.local, segments)) {
        Content after{Content::Kind::Partial, output, positions};
        if (!before.isFilled()) {
          Box local = indices;
          for (auto [interval, start] : llvm::zip_equal(local, piece.local))
            interval = {interval.begin - start.begin,
                        interval.end - start.begin};
          Content there = before.slice(local);
          if (there.buffer != output || there.box != positions)
            return report(rank)
                   << "adds " << describe(after) << " to " << describe(there);
          after.merged = before.merged;
        }
        auto united = unite(rank, output, positions, after.merged, *added);
        if (failed(united))
          return failure();
        after.merged = *united;
        getContents(rank, region.space).write(slice(region, indices), after);
      }
    }
  }
  return success();
}

LogicalResult Checker::launch(RankState &rank) {
  const PlanEvent &event = *rank.event;
  ++proof.launches;
  auto isEmpty = [](const MemoryBox &region) { return region.isEmpty(); };
  if (cast<LaunchOp>(event.op).getKernel() == "softmax_merge")
    return mergeSoftmax(rank);
  // A kernel on a tile of no elements does nothing.
  if (llvm::any_of(event.inputs, isEmpty) ||
      llvm::any_of(event.outputs, isEmpty))
    return success();
  const KernelMeaning *kernel;
  DimMap dims;
  if (failed(readOperands(rank, kernel, dims)) ||
      failed(checkGroups(rank, *kernel, dims)) ||
      failed(checkMask(rank, *kernel, dims)))
    return failure();
  return contribute(rank, *kernel, dims);
}
