//===- NestExpander.cpp - The loops of a nest -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"
#include "dialect/CommIR/LoopRules.h"

using namespace mlir;
using namespace mlir::commir;

Type mlir::commir::getElementType(Value value) {
  return isa<BufferType>(value.getType())
             ? cast<BufferType>(value.getType()).getElementType()
             : cast<TileType>(value.getType()).getElementType();
}

SmallVector<LoopAttr> mlir::commir::splitSequences(ProgramOp program,
                                                   ForOp nest) {
  SmallVector<LoopAttr> loops;
  for (auto loop : nest.getLoops().getAsRange<LoopAttr>()) {
    if (loop.isParallel() || loop.getAxes().size() == 1) {
      loops.push_back(loop);
      continue;
    }
    // It is cut along whole axes, the outer first: so they nest.
    auto parts = *getPartsOfAxes(program, loop);
    for (auto [axis, count] : llvm::zip_equal(loop.getAxes(), parts))
      loops.push_back(LoopAttr::get(
          loop.getContext(), (loop.getName() + "." + axis.getValue()).str(),
          axis, count, ArrayRef<StringAttr>(), ShiftAttr()));
  }
  return loops;
}

Value NestExpander::getRank(StringAttr level) {
  Value &rank = ranks[level.getValue()];
  if (!rank) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&program.getBody().front());
    rank = GroupRankOp::create(builder, nest.getLoc(), builder.getIndexType(),
                               level);
  }
  return rank;
}

Value NestExpander::getTile(Value memory, Value slot, int64_t stack) {
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

Value NestExpander::getTileAt(Value memory,
                              ArrayRef<std::pair<StringRef, Part>> at,
                              Value slot, int64_t stack) {
  llvm::StringMap<Part> before = std::exchange(parts, {});
  for (const auto &[axis, part] : at)
    parts[axis] = part;
  Value tile = getTile(memory, slot, stack);
  parts = std::move(before);
  return tile;
}

void NestExpander::whenTrue(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(builder, nest.getLoc(), condition,
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
}

int64_t NestExpander::countParts(ArrayRef<Attribute> factors) {
  int64_t parts = 1;
  for (Attribute factor : factors) {
    auto level = dyn_cast<StringAttr>(factor);
    parts *=
        level ? mesh.getLevelSize(level) : cast<IntegerAttr>(factor).getInt();
  }
  return parts;
}

bool NestExpander::isNumberIn(LoopAttr loop, ArrayRef<Attribute> factors) {
  return !loop.isParallel() && loop.getParts() > 1 &&
         (!loop.getShift() ||
          llvm::none_of(getRingLevels(loop), [&](StringAttr level) {
            return llvm::is_contained(factors, level);
          }));
}

bool NestExpander::isOpenAround(LoopAttr loop, StringRef axis,
                                ArrayRef<Attribute> factors) {
  auto around =
      ArrayRef(loops).take_while([&](LoopAttr outer) { return outer != loop; });
  return llvm::count_if(factors, llvm::IsaPred<IntegerAttr>) <=
         llvm::count_if(around, [&](LoopAttr outer) {
           return outer.isOver(axis) && isNumberIn(outer, factors);
         });
}

NestExpander::Part NestExpander::getPart(ArrayRef<Attribute> factors,
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

NestExpander::Part NestExpander::cutPart(StringRef axis, Part part, Part by) {
  if (!part.index || !by.index)
    return part.index ? part : by;
  bool isDealt = isStriped(axis);
  const Part &outer = isDealt ? by : part, &inner = isDealt ? part : by;
  return {add(mul(outer.index, inner.count), inner.index),
          part.count * by.count};
}

void NestExpander::addPart(StringRef axis, Part &part, Value index,
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

Value NestExpander::getHeldTile(const Ring &ring,
                                ArrayRef<std::pair<StringRef, Part>> at) {
  Value slice = packed.lookup(ring.buffer);
  Value tile = getTileAt(slice ? slice : ring.own, at);
  if (auto outer = arrived.find(ring.buffer); outer != arrived.end())
    for (const Arrival &arrival : outer->second) {
      Value came = getTileAt(arrival.slots, at, arrival.slot);
      tile = arith::SelectOp::create(builder, nest.getLoc(), arrival.isOwn,
                                     tile, came);
    }
  return tile;
}

Value NestExpander::makeMemory(BufferType type, int64_t slots,
                               PlacementAttr placement,
                               ArrayRef<NamedAttribute> parts) {
  return AllocOp::create(builder, nest.getLoc(), type, slots, placement,
                         builder.getDictionaryAttr(parts));
}

PlacementAttr NestExpander::dropCuts(PlacementAttr placement,
                                     ArrayRef<StringRef> axes) {
  SmallVector<CutAttr> kept(
      llvm::make_filter_range(placement.getCuts(), [&](CutAttr cut) {
        return !llvm::is_contained(axes, cut.getAxis());
      }));
  return PlacementAttr::get(nest.getContext(), kept);
}

void NestExpander::forEachHop(StringAttr level,
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

void NestExpander::exchange(StringAttr level, Value source, Value to,
                            Value target, Value from) {
  Location loc = nest.getLoc();
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value token = ExchangeStartOp::create(
      builder, loc, TokenType::get(nest.getContext()), source, to, target, from,
      builder.getArrayAttr(level), always);
  WaitOp::create(builder, loc, token);
  ++transfers;
}

LogicalResult NestExpander::expand() {
  builder.setInsertionPoint(nest);
  cutPanels();
  // What runs in parallel is a coordinate of this rank, known from the start.
  for (LoopAttr loop : loops) {
    if (!loop.isParallel())
      continue;
    auto levels = *getLevelsOfAxes(program, mesh, loop);
    for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels)) {
      (void)axis;
      for (StringAttr level : own)
        getRank(level);
    }
  }
  if (failed(checkStores()))
    return failure();
  for (LoopAttr loop : loops)
    if (loop.getShift() && loop.isParallel() && loop.getParts() != 1)
      return needsRule("R3 of a parallel loop",
                       "the parts of '" + loop.getName() +
                           "' are spread already; tile it first, and shift the "
                           "loop that is not parallel");
  alignPairs();
  if (failed(settleRings()) || failed(placeOutputs()))
    return failure();
  findChunks();
  if (failed(checkCuts()))
    return failure();
  llvm::SetVector<int64_t> inputs;
  for (LoadOp load : nest.getBody().getOps<LoadOp>())
    inputs.insert(cast<BlockArgument>(load.getBuffer()).getArgNumber());
  for (int64_t buffer : inputs)
    if (failed(placeInput(buffer)))
      return failure();
  if (failed(startOutputs()))
    return failure();
  for (LoopAttr loop : loops) {
    if (failed(addTravellers(loop)))
      return failure();
    remarkInTurn(loop);
  }
  if (failed(emitLoops(0)))
    return failure();
  builder.setInsertionPoint(nest);
  for (Value lease : llvm::reverse(leases))
    LeaseCloseOp::create(builder, nest.getLoc(), lease);
  if (failed(finishOutputs()))
    return failure();
  nest.erase();
  return success();
}

/// A parallel loop is at the part of this rank.
void NestExpander::pushRanks(LoopAttr loop) {
  auto levels = *getLevelsOfAxes(program, mesh, loop);
  for (auto [axis, own] : llvm::zip_equal(loop.getAxes(), levels))
    for (StringAttr level : own)
      pushPart(axis, getRank(level), mesh.getLevelSize(level));
  for (StringAttr axis : loop.getAxes())
    cutInChunks(loop, axis);
}

LogicalResult NestExpander::emitLoops(size_t at) {
  if (at == loops.size())
    return emitBody();
  LoopAttr loop = loops[at];
  if (loop.getParts() == 1)
    return emitLoops(at + 1);
  if (loop.getShift() || !rings[loop.getName()].empty())
    return emitRing(at);
  if (loop.isParallel()) {
    llvm::StringMap<Part> before = parts;
    pushRanks(loop);
    LogicalResult result = emitLoops(at + 1);
    parts = before;
    return result;
  }
  bool exchanges = !exchangedInputs.empty() || !exchangedResults.empty();
  if (exchanges && loop == getExchangeLoop())
    return emitExchanges(at);
  if (std::optional<size_t> ring = findRingOfSlices(at))
    return emitSlices(at, *ring);

  Value zero = constant(0), count = constant(loop.getParts());
  auto sequence =
      scf::ForOp::create(builder, nest.getLoc(), zero, count, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(sequence.getBody());
  return emitTurn(at, sequence.getInductionVar());
}

/// One iteration of a loop in sequence.
LogicalResult NestExpander::emitTurn(size_t at, Value index) {
  LoopAttr loop = loops[at];
  StringRef axis = loop.getAxes().front();
  Part before = parts.lookup(axis);
  pushPart(axis, index, loop.getParts());
  visited[axis].push_back({loop, index});
  turns.push_back({axis, index, loop.getParts()});
  LogicalResult result = emitLoops(at + 1);
  turns.pop_back();
  visited[axis].pop_back();
  parts[axis] = before;
  return result;
}

/// Whether a kernel's result enters an output once, when that is whole.
bool NestExpander::entersOnce(KernelOp kernel) {
  return llvm::any_of(kernel->getUsers(), [&](Operation *user) {
    auto store = dyn_cast<StoreOp>(user);
    return store && llvm::any_of(store.getOnce(), [&](Value tile) {
             return tile.getDefiningOp() == kernel;
           });
  });
}

LogicalResult NestExpander::emitBody() {
  for (KernelOp kernel : nest.getBody().getOps<KernelOp>())
    if (!entersOnce(kernel) && failed(emitLaunch(kernel)))
      return failure();
  return success();
}
