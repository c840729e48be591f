//===- Gather.cpp - Rule R2: all_gather before the loops ------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

LogicalResult NestExpander::gather(int64_t buffer, CutAttr cut) {
  SmallVector<Attribute> levels = getFactors(mesh, cut);
  Value argument = program.getBody().getArgument(buffer);
  Value own = memory[argument];
  PlacementAttr placement = dropCuts(getInside(buffer), cut.getAxis());
  ArrayAttr group = builder.getArrayAttr(levels);
  auto type = cast<BufferType>(own.getType());
  int64_t size = mesh.getGroupSize(group);
  Location loc = nest.getLoc();
  NamedAttribute part(builder.getStringAttr(cut.getAxis()),
                      builder.getI64IntegerAttr(size));
  Value slots = makeMemory(type, size, placement, part);
  Value whole = makeMemory(type, 1, placement);
  Value token = AllGatherStartOp::create(
      builder, loc, TokenType::get(nest.getContext()), getTile(own), slots,
      /*bytes=*/Value(), group, builder.getStringAttr(cut.getAxis()));
  WaitOp::create(builder, loc, token);
  ++transfers;

  Value zero = constant(0), count = constant(size), one = constant(1);
  auto unpack = scf::ForOp::create(builder, loc, zero, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(unpack.getBody());
  Value member = unpack.getInductionVar();
  pushPart(cut.getAxis(), member, size);
  Value source = getTile(slots, member), target = getTile(whole);
  CopyOp::create(builder, loc, source, target);
  parts.erase(cut.getAxis());
  memory[argument] = whole;
  return success();
}
