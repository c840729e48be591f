//===- TileBuilder.cpp - Parts, tiles, single transfers -------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/TileBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::commir;

Value TileBuilder::getRank(StringAttr level) {
  Value &rank = ranks[level.getValue()];
  if (!rank) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&program.getBody().front());
    rank = GroupRankOp::create(builder, nest.getLoc(), builder.getIndexType(),
                               level);
  }
  return rank;
}

void TileBuilder::addPart(StringRef axis, Part &part, Value index,
                          int64_t count, int64_t each) {
  bool isDealt = each != 1 && isStriped(axis);
  Value within, member = index;
  if (isDealt) {
    Location loc = nest.getLoc();
    member = arith::DivUIOp::create(builder, loc, index, constant(each));
    within = arith::RemUIOp::create(builder, loc, index, constant(each));
    count /= each;
  }
  part.index = part.index ? add(mul(part.index, count), member) : member;
  part.count *= count;
  if (isDealt)
    part = cutPart(axis, part, {within, each});
}

NestSchedule::Part TileBuilder::cutPart(StringRef axis, Part part, Part by) {
  if (!part.index || !by.index)
    return part.index ? part : by;
  bool isDealt = isStriped(axis);
  const Part &outer = isDealt ? by : part, &inner = isDealt ? part : by;
  return {add(mul(outer.index, inner.count), inner.index),
          part.count * by.count};
}

NestSchedule::Part TileBuilder::getPart(ArrayRef<Attribute> factors,
                                        StringAttr level, Value member,
                                        StringRef axis, int64_t members) {
  Part part;
  SmallVector<Visit> visits(
      llvm::make_filter_range(visited[axis], [&](const Visit &visit) {
        return isNumberIn(visit.loop, factors);
      }));
  size_t number = 0;
  for (Attribute factor : factors) {
    auto own = dyn_cast<StringAttr>(factor);
    Value index;
    if (!own) {
      index = visits[number++].part;
    } else {
      index = own == level ? member : visiting.lookup({axis, own});
    }
    if (!index)
      index = getRank(own);
    int64_t size = own == level && members ? members : countParts(factor);
    addPart(axis, part, index, size, size / countParts(factor));
  }
  return part;
}

Value TileBuilder::getTile(Value memory, Value slot, int64_t stack) {
  auto type = cast<BufferType>(memory.getType());
  TileType tile = type.getTileType();
  if (stack) {
    SmallVector<DimAttr> dims{DimAttr::get(nest.getContext(), "", stack)};
    llvm::append_range(dims, type.getDims());
    tile = TileType::get(nest.getContext(), dims, type.getElementType());
  }
  SmallVector<Value> indices;
  SmallVector<Attribute> axes;
  SmallVector<int64_t> counts;
  for (DimAttr dim : type.getDims()) {
    auto part = parts.find(dim.getAxis());
    if (dim.isConstant() || part == parts.end() || part->second.count == 1)
      continue;
    indices.push_back(part->second.index);
    axes.push_back(builder.getStringAttr(dim.getAxis()));
    counts.push_back(part->second.count);
  }
  return PartOp::create(
      builder, nest.getLoc(), tile, memory, slot, indices,
      builder.getArrayAttr(axes), builder.getDenseI64ArrayAttr(counts),
      stack ? builder.getI64IntegerAttr(stack) : IntegerAttr());
}

Value TileBuilder::getTileAt(Value memory,
                             ArrayRef<std::pair<StringRef, Part>> at,
                             Value slot, int64_t stack) {
  llvm::StringMap<Part> before = std::exchange(parts, {});
  for (const auto &[axis, part] : at)
    parts[axis] = part;
  Value tile = getTile(memory, slot, stack);
  parts = std::move(before);
  return tile;
}

Value TileBuilder::makeMemory(BufferType type, int64_t slots,
                              PlacementAttr placement,
                              ArrayRef<NamedAttribute> parts) {
  return AllocOp::create(builder, nest.getLoc(), type, slots, placement,
                         builder.getDictionaryAttr(parts));
}

Value TileBuilder::lend(Value own, ArrayRef<StringAttr> group) {
  SmallVector<Attribute> levels(group.begin(), group.end());
  return LeaseOpenOp::create(builder, nest.getLoc(), own,
                             builder.getArrayAttr(levels));
}

/// Ends leases, the last one first.
void TileBuilder::closeAll(SmallVectorImpl<Value> &opened) {
  for (Value lease : llvm::reverse(opened))
    LeaseCloseOp::create(builder, nest.getLoc(), lease);
  opened.clear();
}

Value TileBuilder::startExchange(StringAttr level, Value source, Value to,
                                 Value target, Value from, Value when) {
  ++transfers;
  return ExchangeStartOp::create(
      builder, nest.getLoc(), TokenType::get(nest.getContext()), source, to,
      target, from, builder.getArrayAttr(level), when);
}

void TileBuilder::waitForAll(SmallVectorImpl<Value> &tokens) {
  for (Value token : tokens)
    WaitOp::create(builder, nest.getLoc(), token);
  tokens.clear();
}

void TileBuilder::exchange(StringAttr level, Value source, Value to,
                           Value target, Value from) {
  Location loc = nest.getLoc();
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value token = ExchangeStartOp::create(
      builder, loc, TokenType::get(nest.getContext()), source, to, target, from,
      builder.getArrayAttr(level), always);
  WaitOp::create(builder, loc, token);
  ++transfers;
}

void TileBuilder::forEachHop(StringAttr level,
                             function_ref<void(Value, Value)> body) {
  int64_t size = mesh.getLevelSize(level);
  Value rank = getRank(level), one = constant(1), count = constant(size);
  auto hops = scf::ForOp::create(builder, nest.getLoc(), one, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(hops.getBody());
  Value hop = hops.getInductionVar();
  Value to = wrap(add(rank, hop), size);
  Value back = arith::SubIOp::create(builder, nest.getLoc(), rank, hop);
  body(to, wrap(back, size));
}

/// Runs `body` with the number of each member of a group, as that member; just
/// once, without a number, where there is no group.
void TileBuilder::forEachMember(ArrayRef<StringAttr> group,
                                function_ref<void(Value)> body) {
  if (group.empty())
    return body(Value());
  int64_t members = 1;
  for (StringAttr level : group)
    members *= mesh.getLevelSize(level);
  Value zero = constant(0), count = constant(members), one = constant(1);
  auto each = scf::ForOp::create(builder, nest.getLoc(), zero, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(each.getBody());
  Value member = each.getInductionVar();
  asMember(group, member, [&] { body(member); });
}

/// Builds something from the place of member `member` of a group.
void TileBuilder::asMember(ArrayRef<StringAttr> group, Value member,
                           function_ref<void()> build) {
  llvm::StringMap<Value> before = ranks;
  Value left = member;
  for (StringAttr level : llvm::reverse(group.drop_front())) {
    Value size = constant(mesh.getLevelSize(level));
    ranks[level.getValue()] =
        arith::RemUIOp::create(builder, nest.getLoc(), left, size);
    left = arith::DivUIOp::create(builder, nest.getLoc(), left, size);
  }
  ranks[group.front().getValue()] = left;
  build();
  ranks = std::move(before);
}

void TileBuilder::whenTrue(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(builder, nest.getLoc(), condition,
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
}
