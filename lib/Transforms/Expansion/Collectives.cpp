//===- Collectives.cpp - Rules R4 and R5 of sums: a group reduces ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group sums by one collective: every rank gets all of the sum (R4) or its
// own part (R5). Softmax pairs have none, and are merged by kernels, in
// Reduction.cpp. Where a collective is not to be had, commir-select-transport
// takes it apart.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Whether ranks merge the results of a store by one collective; what is
/// deferred is merged by a kernel, all at once.
bool NestExpander::reducesTogether(StoreOp store) {
  auto kind = cast<MergeKindAttr>(*store.getMerge());
  return kind.getValue() != MergeKind::Softmax && !store.getDeferred();
}

/// R4: the sum takes the place of the partial results.
void NestExpander::allReduceTogether(StoreOp store, StringAttr level,
                                     ArrayRef<Accumulator> results) {
  Location loc = nest.getLoc();
  SmallVector<Value> tokens;
  for (const Accumulator &result : results) {
    Value partial = getTileAt(result.memory, {});
    tokens.push_back(AllReduceStartOp::create(
        builder, loc, TokenType::get(nest.getContext()), partial, partial,
        cast<MergeKindAttr>(*store.getMerge()), builder.getArrayAttr(level)));
    ++transfers;
  }
  waitForAll(tokens);
}

/// Whether the parts of `axis` follow one another in memory without gaps, each
/// as long as the next: they are slots already.
static bool liesInSlots(ProgramOp program, const Accumulator &result,
                        StringRef axis, int64_t parts) {
  constexpr int64_t kSlotAlignment = 64;
  AxisAttr found = program.getAxis(axis);
  auto type = cast<BufferType>(result.memory.getType());
  if (!result.memory.getDefiningOp<AllocOp>() ||
      !result.placement.getCuts().empty())
    return false;
  if (type.getDims().front().getAxis() != axis ||
      type.getDims().front().getDivisor() != 1 ||
      found.getLayout().getKind() != Layout::Kind::Block ||
      found.getExtent() % parts != 0)
    return false;
  // A slot is a whole number of cache lines.
  return found.getExtent() / parts *
             type.getElementType().getIntOrFloatBitWidth() / 8 %
             kSlotAlignment ==
         0;
}

/// R5: each part in a slot of its own, and the sum of this rank's apart.
void NestExpander::reduceScatterTogether(StoreOp store, StringAttr level,
                                         ArrayRef<StringRef> axes,
                                         MutableArrayRef<Accumulator> results) {
  Location loc = nest.getLoc();
  int64_t members = mesh.getLevelSize(level);
  Value rank = getRank(level);
  SmallVector<Value> tokens;
  for (auto [axis, result] : llvm::zip_equal(axes, results)) {
    SmallVector<Attribute> levels;
    if (CutAttr cut = result.placement.getCut(axis))
      for (Attribute factor : cut.getFactors())
        if (isa<StringAttr>(factor))
          levels.push_back(factor);
    levels.push_back(level);
    auto tileAt = [&](Value memory, Value member, Value slot) {
      std::pair<StringRef, Part> at(axis, getPart(levels, level, member));
      return getTileAt(memory, at, slot);
    };
    PlacementAttr others = dropCuts(result.placement, axis);
    auto type = cast<BufferType>(result.memory.getType());
    Value slots = result.memory;
    if (!liesInSlots(program, result, axis, members)) {
      NamedAttribute part(builder.getStringAttr(axis),
                          builder.getI64IntegerAttr(countParts(levels)));
      slots = makeMemory(type, members, others, part);
      Value zero = constant(0), count = constant(members), one = constant(1);
      auto pack = scf::ForOp::create(builder, loc, zero, count, one);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(pack.getBody());
      Value member = pack.getInductionVar();
      Value source = tileAt(result.memory, member, {});
      Value target = tileAt(slots, member, member);
      CopyOp::create(builder, loc, source, target);
    }
    result.placement = addCut(result.placement, axis, level);
    result.memory = makeMemory(type, 1, result.placement);
    Value sum = tileAt(result.memory, rank, {});
    tokens.push_back(ReduceScatterStartOp::create(
        builder, loc, TokenType::get(nest.getContext()), slots, sum,
        /*bytes=*/Value(), cast<MergeKindAttr>(*store.getMerge()),
        builder.getArrayAttr(level), builder.getStringAttr(axis)));
    ++transfers;
  }
  waitForAll(tokens);
}
