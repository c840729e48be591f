//===- MergeApart.cpp - What a library made, merged by a kernel of ours ---===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention of a library cannot merge into what there is: it writes its pair,
// in the type of its operands. So where a launch of one should merge, it gets
// memory for that, and the generated merge takes it from there.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The store of the softmax pair that one launch of a library makes; null for
/// other kernels, and where several launches make it, one for each piece.
StoreOp NestSchedule::findStoreToMergeApart(KernelOp kernel) {
  if (kernel.getImpl().value_or("generated") == "generated" ||
      !KernelSignature::makesSoftmax(kernel.getKernel()) || entersOnce(kernel))
    return {};
  auto store = cast<StoreOp>(*kernel.getOutputs().front().getUsers().begin());
  for (auto [i, tile] : llvm::enumerate(store.getTiles()))
    if (tile.getDefiningOp() != kernel || comesInPieces(store, i))
      return {};
  return store;
}

/// Memory for what one launch makes of a result, of the parts at hand.
Value NestExpander::makePartial(StoreOp store, size_t result) {
  auto made = cast<OpResult>(store.getTiles()[result]);
  auto kernel = cast<KernelOp>(made.getOwner());
  BufferType type = getWideType(store, result);
  if (made.getResultNumber() == 0)
    type = withElementType(type, getElementType(kernel.getInputs().front()));
  SmallVector<NamedAttribute> held;
  for (DimAttr dim : type.getDims()) {
    auto part = dim.isConstant() ? parts.end() : parts.find(dim.getAxis());
    if (part != parts.end() && part->second.count > 1)
      held.emplace_back(builder.getStringAttr(dim.getAxis()),
                        builder.getI64IntegerAttr(part->second.count));
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&program.getBody().front());
  return makeMemory(type, 1, PlacementAttr::get(nest.getContext(), {}), held);
}

/// Lets `launch` overwrite memory of its own, and merges that into the targets,
/// which are in the order of the kernel's results.
void NestExpander::mergeApart(
    StoreOp store, ArrayRef<Value> targets,
    function_ref<void(ArrayRef<Value>, ArrayRef<bool>)> launch) {
  SmallVector<Value> places(targets.size()), stacks, sums;
  for (auto [i, tile] : llvm::enumerate(store.getTiles())) {
    unsigned number = cast<OpResult>(tile).getResultNumber();
    Value partial = makePartial(store, i);
    places[number] = getTile(partial);
    stacks.push_back(getTile(partial, Value(), /*stack=*/1));
    sums.push_back(targets[number]);
  }
  launch(places, SmallVector<bool>(places.size(), true));
  mergeAll(store, stacks, sums, /*overwrites=*/false);
}
