//===- LayoutBuilder.cpp - Layout arithmetic as IR ------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/LayoutBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::commir;

bool mlir::commir::isOneInterval(AxisAttr axis) {
  Layout::Kind kind = axis.getLayout().getKind();
  return kind == Layout::Kind::Block || kind == Layout::Kind::Bounds;
}

int64_t AxisPart::getShards() const {
  int64_t shards = 1;
  for (const Step &step : steps)
    shards *= step.size;
  return shards;
}

int64_t mlir::commir::getPieces(AxisAttr axis, int64_t shards) {
  if (shards == 1 || isOneInterval(axis))
    return 1;
  if (axis.getLayout().getKind() == Layout::Kind::Zigzag)
    return 2;
  int64_t chunks =
      llvm::divideCeil(axis.getExtent(), axis.getLayout().getChunk());
  return std::max<int64_t>(llvm::divideCeil(chunks, shards), 1);
}

int64_t mlir::commir::getPieces(AxisAttr axis, const AxisPart &range) {
  return range.index ? range.getShards() * getPieces(axis, range.count) : 1;
}

int64_t mlir::commir::getLargestSize(AxisAttr axis, const AxisPart &range,
                                     int64_t divisor) {
  Layout layout = axis.getLayout().getLayout();
  int64_t largest = 0;
  for (int64_t first = 0; first < range.count; ++first) {
    if (llvm::any_of(range.steps, [&](AxisPart::Step step) {
          return first / step.stride % step.size != 0;
        }))
      continue;
    SmallVector<int64_t> shards{first};
    for (AxisPart::Step step : range.steps) {
      size_t before = shards.size();
      for (int64_t i = 1; i < step.size; ++i)
        for (size_t at = 0; at < before; ++at)
          shards.push_back(shards[at] + i * step.stride);
    }
    SmallVector<Interval> held;
    for (int64_t shard : shards)
      for (Interval i : layout.shard(axis.getExtent(), range.count, shard))
        held.push_back(
            {i.begin / divisor, llvm::divideCeilSigned(i.end, divisor)});
    largest = std::max(largest, totalSize(normalize(held)));
  }
  return largest;
}

/// The positions of `axis / divisor` in each piece of a part like this one,
/// where an even cut makes all alike: then sizes are known, and begins are
/// multiples.
static std::optional<int64_t> getEvenPiece(AxisAttr axis, const AxisPart &range,
                                           int64_t divisor) {
  int64_t extent = axis.getExtent(), blocks = range.count;
  switch (axis.getLayout().getKind()) {
  case Layout::Kind::Block:
    break;
  case Layout::Kind::Zigzag:
    blocks *= range.count == 1 ? 1 : 2;
    break;
  case Layout::Kind::Striped:
    if (range.count > 1)
      blocks *= getPieces(axis, range.count);
    if (range.count > 1 && extent != blocks * axis.getLayout().getChunk())
      return std::nullopt;
    break;
  case Layout::Kind::Bounds:
    return std::nullopt;
  }
  if (extent % (blocks * divisor) != 0)
    return std::nullopt;
  return extent / (blocks * divisor);
}

Value LayoutBuilder::constant(int64_t value) {
  return builder.constant(loc, value);
}

Value LayoutBuilder::add(Value a, Value b) {
  return builder.fold<arith::AddIOp>(loc, a, b);
}

Value LayoutBuilder::sub(Value a, Value b) {
  return builder.fold<arith::SubIOp>(loc, a, b);
}

Value LayoutBuilder::mul(Value a, int64_t b) {
  return b == 1 ? a : builder.fold<arith::MulIOp>(loc, a, constant(b));
}

Value LayoutBuilder::div(Value a, int64_t b) {
  return builder.fold<arith::DivUIOp>(loc, a, constant(b));
}

Value LayoutBuilder::rem(Value a, int64_t b) {
  return builder.fold<arith::RemUIOp>(loc, a, constant(b));
}

Value LayoutBuilder::blockBound(int64_t extent, int64_t shards, Value index) {
  if (extent % shards == 0)
    return mul(index, extent / shards);
  Value product = builder.fold<arith::MulIOp>(loc, index, constant(extent));
  return builder.fold<arith::CeilDivUIOp>(loc, product, constant(shards));
}

Value LayoutBuilder::blockSize(int64_t extent, int64_t shards, Value index) {
  if (extent % shards == 0)
    return constant(extent / shards);
  return sub(blockBound(extent, shards, add(index, constant(1))),
             blockBound(extent, shards, index));
}

Value LayoutBuilder::bound(AxisAttr axis, Value index, int64_t shards) {
  if (axis.getLayout().getKind() == Layout::Kind::Block)
    return blockBound(axis.getExtent(), shards, index);
  // Explicit bounds have no formula: a chain of choices, as long as the bounds
  // that the user gave. Evaluated at every bound, so that `index` may be the
  // end of the last shard.
  Layout layout = axis.getLayout().getLayout();
  Value chosen = constant(axis.getExtent());
  int64_t end = axis.getExtent();
  for (int64_t shard = shards; shard-- > 0;) {
    SmallVector<Interval> held = layout.shard(axis.getExtent(), shards, shard);
    end = held.empty() ? end : held.front().begin;
    Value here = builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                             index, constant(shard));
    chosen = builder.fold<arith::SelectOp>(loc, here, constant(end), chosen);
  }
  return chosen;
}

Value LayoutBuilder::begin(AxisAttr axis, const AxisPart &range,
                           int64_t divisor) {
  if (!range.index)
    return constant(0);
  if (auto even = getEvenPiece(axis, range, divisor))
    return mul(range.index, *even);
  Value first = bound(axis, range.index, range.count);
  if (divisor == 1)
    return first;
  return div(first, divisor);
}

Value LayoutBuilder::sizeOfShard(AxisAttr axis, const AxisPart &shard,
                                 int64_t divisor) {
  int64_t extent = axis.getExtent(), shards = shard.count;
  Value index = shard.index;
  if (!index)
    return constant(extent / divisor);
  Value next = add(index, constant(1));
  switch (axis.getLayout().getKind()) {
  case Layout::Kind::Block:
  case Layout::Kind::Bounds: {
    Value end = bound(axis, next, shards);
    if (divisor != 1)
      end = builder.fold<arith::CeilDivUIOp>(loc, end, constant(divisor));
    Value length = sub(end, begin(axis, shard, divisor));
    // An empty shard inside a group of heads must not count a shared head.
    if (divisor == 1)
      return length;
    Value first = bound(axis, index, shards), last = bound(axis, next, shards);
    Value empty =
        builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, last, first);
    return builder.fold<arith::SelectOp>(loc, empty, constant(0), length);
  }
  case Layout::Kind::Zigzag: {
    // Block `index` from the front and as many from the back.
    Value low = blockSize(extent, 2 * shards, index);
    Value back = sub(constant(2 * shards), next);
    return add(low, blockSize(extent, 2 * shards, back));
  }
  case Layout::Kind::Striped: {
    int64_t chunk = axis.getLayout().getChunk();
    int64_t rounds = extent / (chunk * shards);
    // What is left after whole rounds goes to the first shards.
    Value rest = constant(extent - rounds * chunk * shards);
    rest = sub(rest, mul(index, chunk));
    Value zero = constant(0), whole = constant(chunk);
    rest = builder.fold<arith::MaxSIOp>(loc, rest, zero);
    rest = builder.fold<arith::MinSIOp>(loc, rest, whole);
    Value before = constant(rounds * chunk);
    return add(before, rest);
  }
  }
  return {};
}

LayoutBuilder::Piece LayoutBuilder::pieceOfShard(AxisAttr axis,
                                                 const AxisPart &shard,
                                                 Value number,
                                                 int64_t divisor) {
  int64_t shards = shard.count;
  Value index = shard.index, zero = constant(0);
  if (getPieces(axis, shard) == 1) {
    Value first = begin(axis, shard, divisor);
    return {first, add(first, size(axis, shard, divisor)), zero};
  }
  assert(divisor == 1 && "a shard in pieces is cut along the axis itself");
  if (axis.getLayout().getKind() == Layout::Kind::Zigzag) {
    Value isFront = builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                                number, zero);
    auto choose = [&](Value front, Value back) -> Value {
      return builder.fold<arith::SelectOp>(loc, isFront, front, back);
    };
    int64_t extent = axis.getExtent(), blocks = 2 * shards;
    Value block = choose(index, sub(constant(blocks - 1), index));
    Value first = blockBound(extent, blocks, block);
    return {first, add(first, blockSize(extent, blocks, block)),
            choose(zero, blockSize(extent, blocks, index))};
  }
  int64_t chunk = axis.getLayout().getChunk();
  Value extent = constant(axis.getExtent());
  Value first = mul(add(mul(number, shards), index), chunk);
  if (getEvenPiece(axis, shard, divisor))
    return {first, add(first, constant(chunk)), mul(number, chunk)};
  Value from = builder.fold<arith::MinSIOp>(loc, first, extent);
  Value to =
      builder.fold<arith::MinSIOp>(loc, add(first, constant(chunk)), extent);
  return {from, to, mul(number, chunk)};
}

Value LayoutBuilder::countBelow(AxisAttr axis, const AxisPart &shard,
                                Value position) {
  if (shard.count == 1)
    return position;
  int64_t chunk = axis.getLayout().getChunk(), round = shard.count * chunk;
  Value rest = sub(rem(position, round), mul(shard.index, chunk));
  rest = builder.fold<arith::MaxSIOp>(loc, rest, constant(0));
  rest = builder.fold<arith::MinSIOp>(loc, rest, constant(chunk));
  return add(mul(div(position, round), chunk), rest);
}

Value LayoutBuilder::positionAt(AxisAttr axis, const AxisPart &shard,
                                Value number) {
  if (shard.count == 1)
    return number;
  int64_t chunk = axis.getLayout().getChunk();
  Value stripe = add(mul(div(number, chunk), shard.count), shard.index);
  return add(mul(stripe, chunk), rem(number, chunk));
}

//===----------------------------------------------------------------------===//
// Strided placements: several shards, side by side
//===----------------------------------------------------------------------===//

AxisPart LayoutBuilder::getShard(const AxisPart &range, Value number) {
  AxisPart shard{range.index, range.count};
  for (auto [i, step] : llvm::enumerate(llvm::reverse(range.steps))) {
    Value digit = number;
    if (i + 1 != range.steps.size()) {
      digit = rem(number, step.size);
      number = div(number, step.size);
    }
    shard.index = add(shard.index, mul(digit, step.stride));
  }
  return shard;
}

Value LayoutBuilder::findAround(AxisAttr axis, Value index, int64_t count,
                                int64_t shards) {
  if (count == shards)
    return index;
  return axis.getLayout().getKind() == Layout::Kind::Striped
             ? rem(index, shards)
             : div(index, count / shards);
}

Value LayoutBuilder::findShard(AxisAttr axis, const AxisPart &range,
                               Value index, int64_t count) {
  index = findAround(axis, index, count, range.count);
  Value number = constant(0);
  for (const AxisPart::Step &step : range.steps) {
    Value digit = rem(div(index, step.stride), step.size);
    number = add(mul(number, step.size), digit);
  }
  return number;
}

Value LayoutBuilder::findPiece(AxisAttr axis, const AxisPart &range,
                               Value index, int64_t count, Value number) {
  int64_t shards = range.getShards();
  Value shard = findShard(axis, range, index, count);
  switch (axis.getLayout().getKind()) {
  case Layout::Kind::Block:
  case Layout::Kind::Bounds:
    return shard;
  case Layout::Kind::Zigzag: {
    if (shards == 1)
      return number;
    // The fronts rise with the shards, and the backs fall.
    Value isFront = builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                                number, constant(0));
    Value back = sub(constant(2 * shards - 1), shard);
    return builder.fold<arith::SelectOp>(loc, isFront, shard, back);
  }
  case Layout::Kind::Striped:
    if (count != range.count)
      number = add(mul(number, count / range.count), div(index, range.count));
    return add(mul(number, shards), shard);
  }
  return {};
}

LayoutBuilder::Piece LayoutBuilder::findInterval(AxisAttr axis,
                                                 const AxisPart &range,
                                                 Value number,
                                                 int64_t divisor) {
  int64_t shards = range.getShards();
  Value shard = number, within = constant(0);
  if (axis.getLayout().getKind() == Layout::Kind::Zigzag) {
    Value isFront = builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::ult,
                                                number, constant(shards));
    Value back = sub(constant(2 * shards - 1), number);
    shard = builder.fold<arith::SelectOp>(loc, isFront, number, back);
    within =
        builder.fold<arith::SelectOp>(loc, isFront, constant(0), constant(1));
  } else if (axis.getLayout().getKind() == Layout::Kind::Striped) {
    shard = rem(number, shards);
    within = div(number, shards);
  }
  return pieceOfShard(axis, getShard(range, shard), within, divisor);
}

std::pair<Value, Value> LayoutBuilder::sumPieces(AxisAttr axis,
                                                 const AxisPart &range,
                                                 Value number,
                                                 int64_t divisor) {
  Value zero = constant(0), one = constant(1);
  SmallVector<Value> start(divisor == 1 ? 1 : 2, zero);
  auto sum = scf::ForOp::create(builder, loc, zero, number, one, start);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(sum.getBody());
  Piece piece = findInterval(axis, range, sum.getInductionVar(), divisor);
  Value held = sum.getRegionIterArg(0);
  if (divisor == 1) {
    Value length = sub(piece.end, piece.begin);
    scf::YieldOp::create(builder, loc, add(held, length));
    return {sum.getResult(0), Value()};
  }
  // A head that two pieces share is held once.
  Value last = sum.getRegionIterArg(1);
  Value begin = builder.fold<arith::MaxSIOp>(loc, piece.begin, last);
  Value end = builder.fold<arith::MaxSIOp>(loc, piece.end, last);
  Value length = builder.fold<arith::MaxSIOp>(loc, sub(end, begin), zero);
  scf::YieldOp::create(builder, loc, ValueRange{add(held, length), end});
  return {sum.getResult(0), sum.getResult(1)};
}

Value LayoutBuilder::size(AxisAttr axis, const AxisPart &range,
                          int64_t divisor) {
  if (auto piece = getEvenPiece(axis, range, divisor); piece && range.index)
    return constant(getPieces(axis, range) * *piece);
  if (range.steps.empty())
    return sizeOfShard(axis, range, divisor);
  if (isOneInterval(axis))
    return sumPieces(axis, range, constant(range.getShards()), divisor).first;
  Value zero = constant(0), one = constant(1);
  auto sum = scf::ForOp::create(builder, loc, zero, constant(range.getShards()),
                                one, zero);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(sum.getBody());
  AxisPart shard = getShard(range, sum.getInductionVar());
  Value length = sizeOfShard(axis, shard, divisor);
  scf::YieldOp::create(builder, loc, add(sum.getRegionIterArg(0), length));
  return sum.getResult(0);
}

LayoutBuilder::Piece LayoutBuilder::piece(AxisAttr axis, const AxisPart &range,
                                          Value number, int64_t divisor) {
  if (range.steps.empty())
    return pieceOfShard(axis, range, number, divisor);
  Piece piece = findInterval(axis, range, number, divisor);
  if (auto even = getEvenPiece(axis, range, divisor)) {
    piece.local = mul(number, *even);
    return piece;
  }
  // All chunks before one are whole.
  if (axis.getLayout().getKind() == Layout::Kind::Striped) {
    piece.local = mul(number, axis.getLayout().getChunk());
    return piece;
  }
  auto [held, last] = sumPieces(axis, range, number, divisor);
  piece.local = held;
  if (divisor != 1) {
    Value shared = sub(last, piece.begin);
    shared = builder.fold<arith::MaxSIOp>(loc, shared, constant(0));
    piece.local = sub(held, shared);
  }
  return piece;
}
