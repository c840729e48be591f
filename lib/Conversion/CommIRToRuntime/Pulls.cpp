//===- Pulls.cpp - Pulls to runtime calls ---------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime pulls rows of bytes that lie at one distance. From the innermost
// dimension of two tiles, those that lie together in both make up a row, and
// those outside of it that follow one another evenly count the rows. Where two
// axes are cut and something is outside of both, what is left are planes, each
// a pull: all but the last are waited for as they are started, since a transfer
// has one token.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/CommIRToRuntime/FunctionConverter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Two tiles of one shape as planes of rows, in elements.
struct Planes {
  Value row, rows, fromPitch, toPitch;
  /// How many planes there are, and of each dimension, innermost first, how
  /// many it makes of them.
  Value count;
  SmallVector<Value> sizes;
};

class PlaneBuilder {
public:
  PlaneBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Planes build(memref::ExtractStridedMetadataOp source,
               memref::ExtractStridedMetadataOp target);

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value isEqual(Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  }
  Value both(Value a, Value b) {
    return arith::AndIOp::create(builder, loc, a, b);
  }
  Value without(Value a, Value b) {
    Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
    return both(a, arith::XOrIOp::create(builder, loc, b, always));
  }
  Value choose(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  Value multiply(Value a, Value b) {
    return arith::MulIOp::create(builder, loc, a, b);
  }

  OpBuilder &builder;
  Location loc;
};
} // namespace

Planes PlaneBuilder::build(memref::ExtractStridedMetadataOp source,
                           memref::ExtractStridedMetadataOp target) {
  Value one = constant(1), zero = constant(0);
  Planes planes{one, one, zero, zero, one, {}};
  // Whether dimensions still join the row, and whether they still count rows.
  Value joining = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value counting = joining;
  Value fromNext = one, toNext = one;
  for (int64_t dim = source.getSizes().size(); dim-- > 0;) {
    Value size = source.getSizes()[dim];
    Value from = source.getStrides()[dim], to = target.getStrides()[dim];
    Value counts = without(arith::ConstantIntOp::create(builder, loc, 1, 1),
                           isEqual(size, one));
    Value follows = both(isEqual(from, fromNext), isEqual(to, toNext));
    Value joins = both(joining, follows);
    Value isFirst = both(counts, without(joining, follows));
    Value isRow = both(without(counting, joining), follows);
    Value isPlane = without(without(counts, joining), isRow);
    auto scale = [&](Value condition, Value value) {
      return choose(both(counts, condition), multiply(value, size), value);
    };
    planes.row = scale(joins, planes.row);
    planes.rows = choose(isFirst, size, scale(isRow, planes.rows));
    planes.fromPitch = choose(isFirst, from, planes.fromPitch);
    planes.toPitch = choose(isFirst, to, planes.toPitch);
    planes.sizes.push_back(choose(isPlane, size, one));
    planes.count = multiply(planes.count, planes.sizes.back());
    joining = without(joining, isFirst);
    counting = without(counting, isPlane);
    fromNext = choose(counts, multiply(from, size), fromNext);
    toNext = choose(counts, multiply(to, size), toNext);
  }
  return planes;
}

void FunctionConverter::convert(PullStartOp op) {
  auto type = cast<MemRefType>(op.getSource().getType());
  auto source =
      memref::ExtractStridedMetadataOp::create(builder, loc, op.getSource());
  auto target =
      memref::ExtractStridedMetadataOp::create(builder, loc, op.getTarget());
  Planes planes = PlaneBuilder(builder, loc).build(source, target);
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  auto inBytes = [&](Value elements) {
    return toI64(arith::MulIOp::create(builder, loc, elements, bytes));
  };
  LLVM::StoreOp::create(builder, loc, constant64(0), tokenSlot);
  auto guarded = scf::IfOp::create(builder, loc, op.getWhen(), false);
  builder.setInsertionPointToStart(guarded.thenBlock());
  Value zero = constant(0), one = constant(1);
  auto each = scf::ForOp::create(builder, loc, zero, planes.count, one);
  builder.setInsertionPointToStart(each.getBody());
  // The one before has the slot of this one's token.
  callChecked("mercury_rt_wait",
              {context, LLVM::LoadOp::create(builder, loc, i64, tokenSlot)});
  Value left = each.getInductionVar(), from = zero, to = zero;
  for (auto [number, size] : llvm::enumerate(planes.sizes)) {
    size_t dim = planes.sizes.size() - 1 - number;
    Value index = arith::RemUIOp::create(builder, loc, left, size);
    left = arith::DivUIOp::create(builder, loc, left, size);
    auto move = [&](Value at, Value stride) -> Value {
      return arith::AddIOp::create(
          builder, loc, at, arith::MulIOp::create(builder, loc, index, stride));
    };
    from = move(from, source.getStrides()[dim]);
    to = move(to, target.getStrides()[dim]);
  }
  auto getPlace = [&](Value tile, Value at) -> Value {
    return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(),
                               getPointer(tile),
                               ArrayRef<LLVM::GEPArg>{inBytes(at)});
  };
  callChecked("mercury_rt_pull_start",
              {context, tokens.lookup(op.getLease()), toI64(op.getPeer()),
               getPlace(op.getSource(), from), inBytes(planes.fromPitch),
               getPlace(op.getTarget(), to), inBytes(planes.toPitch),
               inBytes(planes.row), toI64(planes.rows), tokenSlot});
  builder.setInsertionPointAfter(guarded);
  tokens[op.getToken()] = LLVM::LoadOp::create(builder, loc, i64, tokenSlot);
}
