//===- Merges.cpp - Partial results and how they merge --------------------===//
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

LogicalResult Checker::checkIdentity(RankState &rank, const Content &content,
                                     double identity, const Twine &where) {
  if (content.value == identity)
    return success();
  return report(rank) << "merges " << where << ", which holds "
                      << describe(content) << "; the merge's identity is "
                      << std::to_string(identity);
}

/// Places what may lie anywhere, as it meets what lies there. Where that is was
/// not known when it was rounded, so what it lacks is asked for now.
LogicalResult Checker::settle(RankState &rank, Content &content,
                              const Box &where) {
  content.place(where);
  if (!content.isRounded || !content.isPlaced())
    return success();
  content.isRounded = false;
  std::optional<Box> missing =
      meaning.getMissing(content.buffer, content.box, *content.merged);
  if (!missing)
    return success();
  return report(rank) << "merges " << describe(content)
                      << ", which was rounded before "
                      << meaning.describeReduced(content.buffer, *missing)
                      << " was merged";
}

/// What has been merged, with more of it; each unmasked part only once.
FailureOr<Checker::SharedBoxes> Checker::unite(RankState &rank, int64_t output,
                                               const Box &elements,
                                               const SharedBoxes &merged,
                                               const SharedBoxes &more,
                                               Unions &unions) {
  if (auto known = unions.find({merged, more}); known != unions.end())
    return known->second;
  if (!merged || merged->isEmpty())
    return more;
  if (more->isEmpty())
    return merged;
  auto united = std::make_shared<BoxSet>(*merged);
  auto isApart = [&](const Box &box) {
    return llvm::none_of(merged->getNear(box), [&](const Box &held) {
      return intersect(held, box).has_value();
    });
  };
  if (llvm::all_of(more->getBoxes(), isApart)) {
    united->add(*more);
    unions[{merged, more}] = united;
    return SharedBoxes(united);
  }
  // What is merged twice may be so for some elements, and not for others. Of
  // what a launch worked on, a row of a group's results has its own part.
  Box needed = meaning.getNeeded(output, elements);
  for (const Box &box : more->getBoxes()) {
    SmallVector<Box> fresh = united->getMissing(box);
    for (const Box &held : united->getNear(box)) {
      std::optional<Box> twice = intersect(held, box);
      if (twice)
        twice = intersect(*twice, needed);
      if (!twice || meaning.isMasked(output, elements, *twice))
        continue;
      return report(rank) << "adds " << meaning.describeReduced(output, *twice)
                          << " to '" << meaning.getName(output) << "' ("
                          << meaning.describe(output, elements)
                          << ") a second time";
    }
    for (Box &part : fresh)
      united->add(std::move(part));
  }
  return SharedBoxes(united);
}

/// Merges what lies in a part of one region into what lies there in another.
LogicalResult Checker::mergePart(RankState &rank, const MemoryBox &target,
                                 Content more, Content &sum, MergeKind kind,
                                 bool isLSE, Unions &unions) {
  double identity = isLSE ? -std::numeric_limits<double>::infinity() : 0.0;
  for (const Content &part : {more, sum})
    if (part.kind == Content::Kind::Input)
      return report(rank) << "merges " << describe(part)
                          << ", which is no partial result";
  if (more.isFilled() || sum.isFilled()) {
    for (const Content &part : {more, sum})
      if (part.isFilled() &&
          failed(checkIdentity(rank, part, identity, describe(target))))
        return failure();
    if (more.isFilled())
      return success();
    sum = more;
  } else {
    if (more.buffer == sum.buffer && (failed(settle(rank, more, sum.box)) ||
                                      failed(settle(rank, sum, more.box))))
      return failure();
    if (more.buffer != sum.buffer || more.box != sum.box)
      return report(rank) << "merges " << describe(more) << " into "
                          << describe(sum);
    auto united =
        unite(rank, sum.buffer, sum.box, sum.merged, more.merged, unions);
    if (failed(united))
      return failure();
    sum.merged = *united;
    if (sum.hasOnce && more.hasOnce)
      return report(rank) << "merges what enters once into " << describe(sum)
                          << " a second time";
    sum.hasOnce |= more.hasOnce;
  }
  const ResultMeaning &result = meaning.getResult(sum.buffer);
  if (!result.merges || result.merge != kind)
    return report(rank) << "merges '" << meaning.getName(sum.buffer) << "' by "
                        << stringifyMergeKind(kind)
                        << ", not as the program says";
  if (kind == MergeKind::Softmax && (result.identity != 0.0) != isLSE)
    return report(rank) << "merges '" << meaning.getName(sum.buffer)
                        << "' in the place of '"
                        << meaning.getName(result.partner) << "'";
  return success();
}

/// Merges pieces of one region into those of another of the same sizes.
LogicalResult Checker::merge(RankState &rank, const MemoryBox &target,
                             ArrayRef<Piece> from, ArrayRef<Piece> to,
                             MergeKind kind, bool isLSE) {
  Unions unions;
  PieceOrder order(to, getAllDims(getIndices(target)));
  SmallVector<Piece> merged;
  for (const Piece &source : from) {
    for (const Piece *held : order.getNear(source.local)) {
      std::optional<Box> common = intersect(source.local, held->local);
      if (!common)
        continue;
      Content sum = takePart(*held, *common);
      if (failed(mergePart(rank, target, takePart(source, *common), sum, kind,
                           isLSE, unions)))
        return failure();
      merged.push_back({std::move(*common), std::move(sum)});
    }
  }
  getContents(rank, target.space).write(target, merged);
  return success();
}

LogicalResult Checker::mergeSum(RankState &rank) {
  const MemoryBox &source = rank.event->inputs[0];
  const MemoryBox &target = rank.event->outputs[0];
  if (source.sizes != target.sizes)
    return report(rank) << "merges tiles of different sizes";
  SmallVector<Piece> from, to;
  if (failed(read(rank, source, from)) || failed(read(rank, target, to)) ||
      failed(checkWrite(rank, target)))
    return failure();
  if (source.space == target.space && overlaps(source, target))
    return report(rank) << "merges " << describe(source) << " into itself";
  return merge(rank, target, from, to, MergeKind::Sum, /*isLSE=*/false);
}

/// The weights of a pair's output are those of its log-sum-exp: both must be of
/// the same rows, and have merged the same. Dimensions of the same name run
/// along the same indices.
LogicalResult Checker::checkPair(RankState &rank, ArrayRef<DimAttr> dims,
                                 ArrayRef<Piece> pieces,
                                 ArrayRef<DimAttr> otherDims,
                                 ArrayRef<Piece> others) {
  auto getShift = [](const Piece &piece, size_t dim) {
    return piece.content.box[dim].begin - piece.local[dim].begin;
  };
  auto isBeside = [&](const Piece &piece, const Piece &other) {
    for (auto [i, dim] : llvm::enumerate(dims))
      for (auto [j, otherDim] : llvm::enumerate(otherDims))
        if (dim == otherDim && !dim.isConstant() &&
            !isAnywhere(piece.content.box[i]) &&
            !isAnywhere(other.content.box[j]) &&
            getShift(piece, i) != getShift(other, j))
          return false;
    return true;
  };
  // The dimensions that both have.
  SmallVector<unsigned> shared, same;
  for (auto [i, dim] : llvm::enumerate(dims))
    for (auto [j, otherDim] : llvm::enumerate(otherDims))
      if (dim == otherDim && !dim.isConstant()) {
        shared.push_back(j);
        same.push_back(i);
      }
  auto meets = [&](const Piece &piece, const Piece &other) {
    for (auto [dim, interval] : llvm::zip(dims, piece.local))
      for (auto [otherDim, range] : llvm::zip(otherDims, other.local))
        if (dim == otherDim && !dim.isConstant() &&
            (interval.end <= range.begin || range.end <= interval.begin))
          return false;
    return true;
  };
  PieceOrder order(others, shared);
  // The dimension of `dims` that they are ordered along.
  const unsigned *along =
      order.getDim() ? llvm::find(shared, *order.getDim()) : nullptr;
  for (const Piece &piece : pieces) {
    Interval interval =
        along ? piece.local[same[along - shared.begin()]] : Interval();
    for (const Piece *each : order.getNear(interval)) {
      const Piece &other = *each;
      const Content &one = piece.content, &two = other.content;
      if (!meets(piece, other) || (one.isFilled() && two.isFilled()))
        continue;
      if (one.kind != two.kind || one.hasOnce != two.hasOnce ||
          (one.merged != two.merged && !(*one.merged == *two.merged)))
        return report(rank) << "uses a softmax pair of which one, "
                            << describe(one) << ", has merged other parts than "
                            << "the other, " << describe(two);
      if (!isBeside(piece, other))
        return report(rank) << "uses a softmax pair of which one, "
                            << describe(one) << ", is of other rows than "
                            << "the other, " << describe(two);
    }
  }
  return success();
}

/// The buffer whose partial results pieces hold, or -1.
static int64_t getOutput(ArrayRef<Piece> pieces) {
  for (const Piece &piece : pieces)
    if (piece.content.kind == Content::Kind::Partial)
      return piece.content.buffer;
  return -1;
}

/// Merges a softmax pair into another: both must be pairs of the program, and
/// each of the same rows and have merged the same.
LogicalResult Checker::mergePair(RankState &rank, const MemoryBox (&targets)[2],
                                 const SmallVector<Piece> (&from)[2],
                                 const SmallVector<Piece> (&to)[2]) {
  // The kernels walk (o[b, s, h, dv], lse[b, h, s]) by the sizes of o.
  ArrayRef<int64_t> o = targets[0].sizes, lse = targets[1].sizes;
  if (o.size() != 4 || lse.size() != 3 || o[0] != lse[0] || o[1] != lse[2] ||
      o[2] != lse[1])
    return report(rank) << "merges a softmax pair of tiles that are not of the "
                           "same rows, "
                        << describe(targets[0]) << " and "
                        << describe(targets[1]);
  for (const SmallVector<Piece> *pair : {from, to}) {
    int64_t output = getOutput(pair[0]), other = getOutput(pair[1]);
    if (output < 0 && other < 0)
      continue;
    if (output < 0)
      output = meaning.getResult(other).partner;
    if (other < 0)
      other = meaning.getResult(output).partner;
    if (output < 0 || other < 0 || meaning.getResult(output).partner != other)
      return report(rank) << "merges results that are no softmax pair";
    if (failed(checkPair(rank, meaning.getDims(output), pair[0],
                         meaning.getDims(other), pair[1])))
      return failure();
  }
  return failure(
      failed(merge(rank, targets[0], from[0], to[0], MergeKind::Softmax,
                   /*isLSE=*/false)) ||
      failed(merge(rank, targets[1], from[1], to[1], MergeKind::Softmax,
                   /*isLSE=*/true)));
}

LogicalResult Checker::mergeSoftmax(RankState &rank) {
  const PlanEvent &event = *rank.event;
  if (event.inputs.size() != 2 || event.outputs.size() != 2)
    return report(rank) << "merges a softmax pair, but has "
                        << event.inputs.size() << " inputs and "
                        << event.outputs.size() << " outputs";
  if (cast<LaunchOp>(event.op).getOverwrite())
    return report(rank) << "overwrites what it is to merge into";
  SmallVector<Piece> from[2], to[2];
  for (int i : {0, 1}) {
    if (event.inputs[i].sizes != event.outputs[i].sizes)
      return report(rank) << "merges tiles of different sizes";
    if (failed(read(rank, event.inputs[i], from[i])) ||
        failed(read(rank, event.outputs[i], to[i])) ||
        failed(checkWrite(rank, event.outputs[i])))
      return failure();
    for (const MemoryBox &source : event.inputs)
      if (source.space == event.outputs[i].space &&
          overlaps(source, event.outputs[i]))
        return report(rank) << "merges " << describe(source) << " into itself";
  }
  if (event.outputs[0].space == event.outputs[1].space &&
      overlaps(event.outputs[0], event.outputs[1]))
    return report(rank) << "writes both results of a pair to "
                        << describe(event.outputs[0]);
  return mergePair(rank, {event.outputs[0], event.outputs[1]}, from, to);
}
