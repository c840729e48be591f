//===- FoldingBuilder.h - Arithmetic that folds as it is built --*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes and places of shards are long formulas of which little depends on the
// rank, and the same ones are asked for again and again. What is known is
// folded when it is asked for, and what is there already is used again, so that
// passes over the text have a small part of it to read.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_FOLDINGBUILDER_H
#define LIB_TRANSFORMS_FOLDINGBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::commir {

/// Builds one function, from its begin to its end.
class FoldingBuilder : public OpBuilder {
public:
  using OpBuilder::OpBuilder;

  /// Gives the result of an op without effects, which need not be a new one.
  template <typename OpTy, typename... Args>
  Value fold(Location loc, Args &&...args) {
    return simplify(OpTy::create(*this, loc, std::forward<Args>(args)...));
  }
  /// Gives what stands for the only result of an op without effects, which was
  /// just inserted; the op may be gone then.
  Value simplify(Operation *op);

  Value constant(Location loc, int64_t index) {
    return constant(loc, getIndexAttr(index));
  }
  /// In front of the function, where everybody sees it.
  Value constant(Location loc, TypedAttr value);

private:
  struct SameOperation : llvm::DenseMapInfo<Operation *> {
    static unsigned getHashValue(const Operation *op);
    static bool isEqual(const Operation *one, const Operation *other);
  };
  /// An op like this one that comes before it, in its block or around it.
  Operation *findSame(Operation *op);

  DenseMap<Attribute, Value> constants;
  DenseMap<Block *, llvm::DenseSet<Operation *, SameOperation>> known;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_FOLDINGBUILDER_H
