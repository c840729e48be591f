//===- FoldingBuilder.cpp - Arithmetic that folds as it is built ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/FoldingBuilder.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace mlir::commir;

unsigned
FoldingBuilder::SameOperation::getHashValue(const Operation *operation) {
  return OperationEquivalence::computeHash(
      const_cast<Operation *>(operation), OperationEquivalence::directHashValue,
      OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations);
}

bool FoldingBuilder::SameOperation::isEqual(const Operation *one,
                                            const Operation *other) {
  auto isOperation = [](const Operation *op) {
    return op != getEmptyKey() && op != getTombstoneKey();
  };
  if (one == other || !isOperation(one) || !isOperation(other))
    return one == other;
  return OperationEquivalence::isEquivalentTo(
      const_cast<Operation *>(one), const_cast<Operation *>(other),
      OperationEquivalence::IgnoreLocations);
}

Operation *FoldingBuilder::findSame(Operation *op) {
  Operation *around = op;
  do {
    auto &ops = known[around->getBlock()];
    if (auto same = ops.find(op); same != ops.end())
      return *same;
    around = around->getParentOp();
  } while (!around->hasTrait<OpTrait::IsIsolatedFromAbove>());
  known[op->getBlock()].insert(op);
  return op;
}

Value FoldingBuilder::simplify(Operation *op) {
  SmallVector<OpFoldResult, 1> folded;
  // An op that folds in place, as by swapping its operands, may fold again.
  while (succeeded(op->fold(folded)) && folded.empty())
    continue;
  if (!folded.empty()) {
    Location loc = op->getLoc();
    op->erase();
    auto value = dyn_cast<Value>(folded.front());
    return value ? value
                 : constant(loc, cast<TypedAttr>(cast<Attribute>(folded[0])));
  }
  Operation *same = findSame(op);
  if (same != op)
    op->erase();
  return same->getResult(0);
}

Value FoldingBuilder::constant(Location loc, TypedAttr value) {
  Value &found = constants[value];
  if (found)
    return found;
  Operation *function = getInsertionBlock()->getParentOp();
  while (!function->hasTrait<OpTrait::IsIsolatedFromAbove>())
    function = function->getParentOp();
  InsertionGuard guard(*this);
  setInsertionPointToStart(&function->getRegion(0).front());
  return found = arith::ConstantOp::create(*this, loc, value);
}
