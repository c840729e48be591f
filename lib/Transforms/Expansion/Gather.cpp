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
  SmallVector<Attribute> factors = getFactors(mesh, cut);
  if (factors.size() != 1)
    return needsRule("R8", "'" + getName(buffer) +
                               "' is gathered over several levels");
  auto level = cast<StringAttr>(factors.front());
  Value own = program.getBody().getArgument(buffer);
  auto type = cast<BufferType>(own.getType());
  SmallVector<CutAttr> others(
      llvm::make_filter_range(program.getBinding(buffer).getInside().getCuts(),
                              [&](CutAttr other) { return other != cut; }));
  auto placement = PlacementAttr::get(nest.getContext(), others);
  int64_t size = mesh.getLevelSize(level);
  Location loc = nest.getLoc();
  NamedAttribute part(builder.getStringAttr(cut.getAxis()),
                      builder.getI64IntegerAttr(size));
  Value slots = AllocOp::create(builder, loc, type, size, placement,
                                builder.getDictionaryAttr(part));
  Value whole = AllocOp::create(builder, loc, type, 1, placement,
                                builder.getDictionaryAttr({}));
  Value token = AllGatherStartOp::create(
      builder, loc, TokenType::get(nest.getContext()), getTile(own), slots,
      /*bytes=*/Value(), level, builder.getStringAttr(cut.getAxis()));
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
  memory[own] = whole;
  return success();
}
