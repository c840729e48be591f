//===- Launches.cpp - Kernels on what their tiles hold --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/PlanCheck/Checker.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::check;

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
                   << check::describe(*queries) << " and '"
                   << kernel.key.getAxis() << "' " << check::describe(*keys)
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
getContribution(const ResultMeaning &result, const DimMap &dims) {
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
/// says which box of positions each part is. Along a dimension of which no
/// input says where it is, it is where the piece is, or anywhere.
static SmallVector<std::pair<Box, Box>>
cutAtSegments(const Piece &piece, int64_t output,
              ArrayRef<const Segments *> dims) {
  const Content &content = piece.content;
  bool isPlaced =
      content.kind == Content::Kind::Partial && content.buffer == output;
  SmallVector<std::pair<Box, Box>> parts{{{}, {}}};
  for (auto [dim, interval] : llvm::enumerate(piece.local)) {
    Segments own{{interval, isPlaced ? content.box[dim].begin : kAnywhere}};
    SmallVector<std::pair<Box, Box>> longer;
    for (const auto &[indices, positions] : parts) {
      const Segments &segments = dims[dim] ? *dims[dim] : own;
      const Segment *segment =
          llvm::partition_point(segments, [&](const Segment &each) {
            return each.local.end <= interval.begin;
          });
      for (; segment != segments.end() && segment->local.begin < interval.end;
           ++segment) {
        Interval cut{std::max(interval.begin, segment->local.begin),
                     std::min(interval.end, segment->local.end)};
        int64_t first = segment->first + cut.begin - segment->local.begin;
        longer.emplace_back(indices, positions);
        longer.back().first.push_back(cut);
        longer.back().second.push_back({first, first + cut.size()});
      }
    }
    parts = std::move(longer);
  }
  return parts;
}

/// The results of a launch are tiles of what its kernel makes, and lie apart.
LogicalResult Checker::readResults(RankState &rank, const KernelMeaning &kernel,
                                   const DimMap &dims,
                                   ArrayRef<SmallVector<Piece>> held) {
  const PlanEvent &event = *rank.event;
  for (auto [i, region] : llvm::enumerate(event.outputs)) {
    int64_t output = kernel.outputs[i];
    if (output < 0)
      return report(rank) << "makes a result that the program does not store";
    ArrayRef<DimAttr> names = meaning.getDims(output);
    for (DimAttr dim : names)
      if (!findDim(dims, dim) && !kernel.entersOnce)
        return report(rank)
               << "nothing says where the dimension '" << check::describe(dim)
               << "' of its result '" << meaning.getName(output) << "' begins";
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
  return success();
}

Type Checker::getAccumulatorType(const PlanEvent &event) {
  auto isDouble = [](const MemoryBox &box) { return box.elementType.isF64(); };
  Builder builder(event.op->getContext());
  return llvm::any_of(event.inputs, isDouble) ||
                 llvm::any_of(event.outputs, isDouble)
             ? Type(builder.getF64Type())
             : Type(builder.getF32Type());
}

LogicalResult Checker::contribute(RankState &rank, const KernelMeaning &kernel,
                                  const DimMap &dims,
                                  ArrayRef<SmallVector<Piece>> held) {
  const PlanEvent &event = *rank.event;
  auto launch = cast<LaunchOp>(event.op);
  Unions unions;
  SharedBoxes more;
  for (auto [i, region] : llvm::enumerate(event.outputs)) {
    int64_t output = kernel.outputs[i];
    const ResultMeaning &result = meaning.getResult(output);
    auto added =
        kernel.entersOnce ? SmallVector<Box>() : getContribution(result, dims);
    if (!added)
      return report(rank) << "has no input along an axis that '"
                          << meaning.getName(output) << "' is merged over";
    BoxSet boxes;
    for (Box &box : *added)
      boxes.add(std::move(box));
    // Both of a pair are given the same.
    if (!more || more->getBoxes() != boxes.getBoxes())
      more = std::make_shared<BoxSet>(std::move(boxes));
    SmallVector<const Segments *> segments;
    for (DimAttr dim : meaning.getDims(output))
      segments.push_back(findDim(dims, dim));
    SmallVector<Piece> made;
    for (const Piece &piece : held[i]) {
      const Content &before = piece.content;
      if (before.kind == Content::Kind::Input)
        return report(rank) << "adds to '" << meaning.getName(output)
                            << "' where " << describe(before) << " lies";
      if (before.isFilled() &&
          failed(checkIdentity(rank, before, result.identity,
                               "'" + meaning.getName(output) + "'")))
        return failure();
      for (auto &[indices, positions] :
           cutAtSegments(piece, output, segments)) {
        Content after{Content::Kind::Partial, output, positions};
        if (!before.isFilled()) {
          Content there = takePart(piece, indices);
          if (there.buffer == output && failed(settle(rank, there, positions)))
            return failure();
          if (there.buffer != output || there.box != positions)
            return report(rank)
                   << "adds " << describe(after) << " to " << describe(there);
          after.merged = before.merged;
          after.hasOnce = before.hasOnce;
        }
        if (kernel.entersOnce && after.hasOnce)
          return report(rank) << "merges what enters once into "
                              << describe(after) << " a second time";
        after.hasOnce |= kernel.entersOnce;
        auto united =
            unite(rank, output, positions, after.merged, more, unions);
        if (failed(united))
          return failure();
        after.merged = *united;
        // Attention of a library gives its pair in the type of its operands.
        bool isGiven = launch.getImpl() && launch.overwrites(i) &&
                       KernelSignature::makesSoftmax(launch.getKernel()) &&
                       region.elementType == event.inputs.front().elementType;
        if (!isGiven && failed(checkConversion(rank, getAccumulatorType(event),
                                               region.elementType, after)))
          return failure();
        made.push_back({indices, std::move(after)});
      }
    }
    getContents(rank, region.space).write(region, made);
  }
  return success();
}

/// A launch works in its scratch, so that it must be nothing else's.
LogicalResult Checker::checkScratch(RankState &rank) {
  const PlanEvent &event = *rank.event;
  for (const MemoryBox &scratch : event.scratch) {
    if (failed(checkWrite(rank, scratch)))
      return failure();
    for (const auto &[regions, does] :
         {std::pair(ArrayRef<MemoryBox>(event.inputs), "reads"),
          std::pair(ArrayRef<MemoryBox>(event.outputs), "merges into")})
      for (const MemoryBox &region : regions)
        if (region.space == scratch.space && overlaps(region, scratch))
          return report(rank) << "works in " << describe(scratch)
                              << ", which overlaps what it " << does << ", "
                              << describe(region);
  }
  return success();
}

/// A generated kernel needs as much scratch as its tiles say.
LogicalResult Checker::checkScratchSize(RankState &rank,
                                        const KernelMeaning &kernel,
                                        const DimMap &dims) {
  const PlanEvent &event = *rank.event;
  auto launch = cast<LaunchOp>(event.op);
  if (event.scratch.empty() || launch.getImpl())
    return success();
  int64_t needed = KernelSignature::getScratch(
      launch.getKernel(), [&](StringRef letter) -> int64_t {
        const Segments *found = findDim(dims, kernel.scratch.lookup(letter));
        return found ? getLength(*found) : 0;
      });
  int64_t given = event.scratch[0].getElements();
  if (given >= needed)
    return success();
  return report(rank) << "works in " << needed << " elements of scratch, but "
                      << "is given " << given;
}

LogicalResult Checker::launch(RankState &rank) {
  const PlanEvent &event = *rank.event;
  ++proof.launches;
  auto isEmpty = [](const MemoryBox &region) { return region.isEmpty(); };
  StringRef name = cast<LaunchOp>(event.op).getKernel();
  if (name == "softmax_merge")
    return mergeSoftmax(rank);
  if (name == "softmax_merge_all" || name == "sum_all")
    return mergeStacks(rank);
  if (failed(checkScratch(rank)))
    return failure();
  auto op = cast<LaunchOp>(event.op);
  SmallVector<SmallVector<Piece>> inputs(event.inputs.size());
  SmallVector<SmallVector<Piece>> held(event.outputs.size());
  // A kernel on a tile of no elements merges nothing. Which one of its name it
  // is, nothing says, but their lengths agree alike.
  if (llvm::any_of(event.inputs, isEmpty) ||
      llvm::any_of(event.outputs, isEmpty)) {
    const KernelMeaning *kernel = findKernel(rank, inputs, held);
    if (kernel && failed(checkLengths(rank, *kernel)))
      return failure();
    for (auto [i, output] : llvm::enumerate(event.outputs))
      if (op.overwrites(i) &&
          failed(write(
              rank, output,
              makeFilled(KernelSignature::getIdentity(op.getKernel(), i)))))
        return failure();
    return success();
  }
  for (auto [input, pieces] : llvm::zip_equal(event.inputs, inputs))
    if (failed(read(rank, input, pieces)))
      return failure();
  for (auto [i, output] : llvm::enumerate(event.outputs)) {
    if (failed(checkWrite(rank, output)))
      return failure();
    // What is overwritten is as if the identity lay there.
    if (op.overwrites(i))
      held[i].push_back(
          {getIndices(output),
           makeFilled(KernelSignature::getIdentity(op.getKernel(), i))});
    else if (failed(read(rank, output, held[i])))
      return failure();
  }
  const KernelMeaning *kernel = findKernel(rank, inputs, held);
  if (!kernel)
    return report(rank) << "the program has no kernel '" << op.getKernel()
                        << "' of these operands";
  DimMap dims;
  if (failed(checkLengths(rank, *kernel)) ||
      failed(readOperands(rank, *kernel, inputs, dims)) ||
      failed(checkGroups(rank, *kernel, dims)) ||
      failed(checkMask(rank, *kernel, dims)) ||
      failed(checkScratchSize(rank, *kernel, dims)) ||
      (kernel->entersOnce && failed(checkWhole(rank, *kernel, dims))) ||
      failed(readResults(rank, *kernel, dims, held)) ||
      failed(contribute(rank, *kernel, dims, held)))
    return failure();
  for (const MemoryBox &scratch : event.scratch)
    getContents(rank, scratch.space).forget(scratch);
  return success();
}
