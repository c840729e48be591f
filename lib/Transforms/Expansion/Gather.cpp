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
  if (!llvm::all_of(factors, llvm::IsaPred<StringAttr>))
    return needsRule("R8", "'" + getName(buffer) +
                               "' is gathered from a strided placement");
  Value argument = program.getBody().getArgument(buffer);
  Value own = memory[argument];
  PlacementAttr inside = program.getBinding(buffer).getInside();
  PlacementAttr placement = dropCuts(inside, cut.getAxis());
  // Of several levels the fast ones come first, each within its own group.
  while (factors.size() > 1) {
    factors.pop_back();
    SmallVector<CutAttr> cuts(placement.getCuts());
    cuts.push_back(CutAttr::get(nest.getContext(), cut.getAxis(), factors,
                                cut.getLayout()));
    auto outer = PlacementAttr::get(nest.getContext(), cuts);
    FailureOr<Value> gathered = reshard(getName(buffer), own, inside, outer);
    if (failed(gathered))
      return failure();
    own = *gathered;
    inside = outer;
  }
  auto level = cast<StringAttr>(factors.front());
  auto type = cast<BufferType>(own.getType());
  int64_t size = mesh.getLevelSize(level);
  Location loc = nest.getLoc();
  NamedAttribute part(builder.getStringAttr(cut.getAxis()),
                      builder.getI64IntegerAttr(size));
  Value slots = makeMemory(type, size, placement, part);
  Value whole = makeMemory(type, 1, placement);
  Value token = AllGatherStartOp::create(
      builder, loc, TokenType::get(nest.getContext()), getTile(own), slots,
      /*bytes=*/Value(), builder.getArrayAttr(level), builder.getStringAttr(cut.getAxis()));
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
