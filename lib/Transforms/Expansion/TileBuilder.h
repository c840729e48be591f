//===- TileBuilder.h - The tiles of an iteration ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_TILEBUILDER_H
#define LIB_TRANSFORMS_EXPANSION_TILEBUILDER_H

#include "lib/Transforms/Expansion/NestSchedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace mlir::commir {

/// A loop that is not parallel, and which part it is at.
struct Visit {
  LoopAttr loop;
  Value part;
};

/// A loop that runs in sequence, while its body is emitted.
struct Turn {
  StringRef axis;
  Value index;
  int64_t count;
};

/// Makes the ops that say which part of each axis an iteration is at, the tiles
/// of memory at these parts, and transfers of single tiles.
class TileBuilder : protected NestSchedule {
protected:
  TileBuilder(ProgramOp program, ForOp nest, Pass::Statistic &transfers)
      : NestSchedule(program, nest), builder(nest.getContext()),
        transfers(transfers) {}

  Value lend(Value own, ArrayRef<StringAttr> group);
  llvm::StringMap<Part> getPartsIn(Value slice);
  void asMember(ArrayRef<StringAttr> group, Value member,
                function_ref<void()> build);
  void forEachMember(ArrayRef<StringAttr> group,
                     function_ref<void(Value)> body);
  void whenTrue(Value condition, function_ref<void()> body);
  void cutInChunks(LoopAttr loop, StringRef axis);
  Value getVisited(LoopAttr loop);
  Value getTileSlot(ArrayRef<LoopAttr> tiles, Value slot);
  void atTile(ArrayRef<LoopAttr> tiles, Value number, function_ref<void()> at);
  void closeAll(SmallVectorImpl<Value> &opened);
  void pushRanks(LoopAttr loop);
  Value startExchange(StringAttr level, Value source, Value to, Value target,
                      Value from, Value when);
  void waitForAll(SmallVectorImpl<Value> &tokens);
  Value getPosition(DimAttr dim);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, nest.getLoc(), value);
  }
  Value add(Value a, Value b) {
    return arith::AddIOp::create(builder, nest.getLoc(), a, b);
  }
  Value mul(Value a, int64_t b) {
    return arith::MulIOp::create(builder, nest.getLoc(), a, constant(b));
  }
  /// a mod n for a that may be negative but not below -n.
  Value wrap(Value a, int64_t n) {
    Value count = constant(n);
    return arith::RemUIOp::create(builder, nest.getLoc(), add(a, count), count);
  }
  Value getRank(StringAttr level);

  /// Adds index `value` of `count` as the innermost cut of an axis so far.
  void pushPart(StringRef axis, Value value, int64_t count, int64_t each = 1) {
    addPart(axis, parts[axis], value, count, each);
  }

  /// One of several parts of a part of an axis. Stripes are dealt in turn, so
  /// that those of one part are of one of more parts, too.
  Part cutPart(StringRef axis, Part part, Part by);

  /// Adds index `index` of `count` as the innermost cut of a part so far. Of a
  /// shifted loop each rank has `each` that follow one another, as the finer
  /// parts of a striped axis do not.
  void addPart(StringRef axis, Part &part, Value index, int64_t count,
               int64_t each = 1);

  /// The tile of `memory` that the current iteration works on; only what is cut
  /// by now is restricted.
  Value getTile(Value memory, Value slot = {}, int64_t stack = 0);
  /// The tile of `memory` at these parts of these axes, and all that it holds
  /// of the others.
  Value getTileAt(Value memory, ArrayRef<std::pair<StringRef, Part>> at,
                  Value slot = {}, int64_t stack = 0);
  /// The part of this rank in a cut by `factors`, with `member` in place of
  /// its group rank on `level`. Inside the loops over `axis`, the parts that
  /// outer rings are at stand in place of its ranks on their levels, and those
  /// of other loops for the numbers. `level` may have more `members` than
  /// ranks.
  Part getPart(ArrayRef<Attribute> factors, StringAttr level, Value member,
               StringRef axis = {}, int64_t members = 0);

  /// Local memory for parts of a buffer.
  Value makeMemory(BufferType type, int64_t slots, PlacementAttr placement,
                   ArrayRef<NamedAttribute> parts = {});

  /// For each other member of the level's group, in turn: to whom this rank
  /// sends, and from whom it receives meanwhile.
  void forEachHop(StringAttr level, function_ref<void(Value, Value)> body);
  /// Sends one tile, receives another, and waits for both.
  void exchange(StringAttr level, Value source, Value to, Value target,
                Value from);

  OpBuilder builder;
  Pass::Statistic &transfers;
  llvm::StringMap<Part> parts;
  /// Which chunk of its part the shifted loops over an axis work on.
  llvm::StringMap<Part> chunksOf;
  /// What the loops over an axis that are not parallel are at, outermost first.
  llvm::StringMap<SmallVector<Visit>> visited;
  llvm::StringMap<Value> ranks;
  /// The loops in sequence around what is emitted, outermost first.
  SmallVector<Turn> turns;
  /// Which part the ring over an axis on a level is at.
  llvm::DenseMap<std::pair<StringRef, StringAttr>, Value> visiting;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_EXPANSION_TILEBUILDER_H
