//===- LayoutBuilder.cpp - Layout arithmetic as IR ------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/LayoutBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::commir;

bool mlir::commir::isOneInterval(AxisAttr axis) {
  Layout::Kind kind = axis.getLayout().getKind();
  return kind == Layout::Kind::Block || kind == Layout::Kind::Bounds;
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

int64_t mlir::commir::getLargestSize(AxisAttr axis, int64_t shards,
                                     int64_t divisor) {
  Layout layout = axis.getLayout().getLayout();
  int64_t largest = 0;
  for (int64_t index = 0; index < shards; ++index) {
    int64_t size = 0;
    for (Interval i : layout.shard(axis.getExtent(), shards, index))
      size += llvm::divideCeil(i.end, divisor) - i.begin / divisor;
    largest = std::max(largest, size);
  }
  return largest;
}

Value LayoutBuilder::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value LayoutBuilder::blockBound(int64_t extent, int64_t shards, Value index) {
  Value product = arith::MulIOp::create(builder, loc, index, constant(extent));
  return arith::CeilDivUIOp::create(builder, loc, product, constant(shards));
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
    Value here = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       index, constant(shard));
    chosen = arith::SelectOp::create(builder, loc, here, constant(end), chosen);
  }
  return chosen;
}

Value LayoutBuilder::begin(AxisAttr axis, Value index, int64_t shards,
                           int64_t divisor) {
  if (!index)
    return constant(0);
  Value first = bound(axis, index, shards);
  if (divisor == 1)
    return first;
  return arith::DivUIOp::create(builder, loc, first, constant(divisor));
}

Value LayoutBuilder::size(AxisAttr axis, Value index, int64_t shards,
                          int64_t divisor) {
  int64_t extent = axis.getExtent();
  if (!index)
    return constant(extent / divisor);
  auto sub = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(builder, loc, a, b);
  };
  auto add = [&](Value a, Value b) -> Value {
    return arith::AddIOp::create(builder, loc, a, b);
  };
  auto mul = [&](Value a, int64_t b) -> Value {
    return arith::MulIOp::create(builder, loc, a, constant(b));
  };
  Value next = add(index, constant(1));
  switch (axis.getLayout().getKind()) {
  case Layout::Kind::Block:
  case Layout::Kind::Bounds: {
    Value end = bound(axis, next, shards);
    if (divisor != 1)
      end = arith::CeilDivUIOp::create(builder, loc, end, constant(divisor));
    Value length = sub(end, begin(axis, index, shards, divisor));
    // An empty shard inside a group of heads must not count a shared head.
    if (divisor == 1)
      return length;
    Value first = bound(axis, index, shards), last = bound(axis, next, shards);
    Value empty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        last, first);
    return arith::SelectOp::create(builder, loc, empty, constant(0), length);
  }
  case Layout::Kind::Zigzag: {
    // Block `index` from the front and as many from the back.
    auto block = [&](Value from, Value to) {
      Value begin = blockBound(extent, 2 * shards, from);
      Value end = blockBound(extent, 2 * shards, to);
      return sub(end, begin);
    };
    Value count = constant(2 * shards);
    Value low = block(index, next);
    Value from = sub(count, next), to = sub(count, index);
    return add(low, block(from, to));
  }
  case Layout::Kind::Striped: {
    int64_t chunk = axis.getLayout().getChunk();
    int64_t rounds = extent / (chunk * shards);
    // What is left after whole rounds goes to the first shards.
    Value rest = constant(extent - rounds * chunk * shards);
    rest = sub(rest, mul(index, chunk));
    Value zero = constant(0), whole = constant(chunk);
    rest = arith::MaxSIOp::create(builder, loc, rest, zero);
    rest = arith::MinSIOp::create(builder, loc, rest, whole);
    Value before = constant(rounds * chunk);
    return add(before, rest);
  }
  }
  return {};
}

LayoutBuilder::Piece LayoutBuilder::piece(AxisAttr axis, Value index,
                                          int64_t shards, Value number,
                                          int64_t divisor) {
  auto add = [&](Value a, Value b) -> Value {
    return arith::AddIOp::create(builder, loc, a, b);
  };
  auto sub = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(builder, loc, a, b);
  };
  auto mul = [&](Value a, int64_t b) -> Value {
    return arith::MulIOp::create(builder, loc, a, constant(b));
  };
  Value zero = constant(0), one = constant(1);
  if (!index || getPieces(axis, shards) == 1) {
    Value first = begin(axis, index, shards, divisor);
    return {first, add(first, size(axis, index, shards, divisor)), zero};
  }
  assert(divisor == 1 && "a shard in pieces is cut along the axis itself");
  if (axis.getLayout().getKind() == Layout::Kind::Zigzag) {
    Value isFront = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, number, zero);
    auto choose = [&](Value front, Value back) -> Value {
      return arith::SelectOp::create(builder, loc, isFront, front, back);
    };
    int64_t blocks = 2 * shards;
    Value mirrored = sub(constant(blocks - 1), index);
    Value block = choose(index, mirrored);
    Value front = sub(blockBound(axis.getExtent(), blocks, add(index, one)),
                      blockBound(axis.getExtent(), blocks, index));
    return {blockBound(axis.getExtent(), blocks, block),
            blockBound(axis.getExtent(), blocks, add(block, one)),
            choose(zero, front)};
  }
  int64_t chunk = axis.getLayout().getChunk();
  Value extent = constant(axis.getExtent());
  Value first = mul(add(mul(number, shards), index), chunk);
  Value from = arith::MinSIOp::create(builder, loc, first, extent);
  Value to =
      arith::MinSIOp::create(builder, loc, add(first, constant(chunk)), extent);
  return {from, to, mul(number, chunk)};
}
