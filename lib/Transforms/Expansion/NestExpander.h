//===- NestExpander.h - Loops to what every rank does -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H
#define LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H

#include "dialect/CommIR/CommIR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::commir {

/// The element type of a buffer or a tile.
Type getElementType(Value value);

/// A buffer that moves around the ring of a shifted loop.
struct Ring {
  Value own;   // the buffer of which this rank keeps its shard
  Value slots; // two parts: one being read, one arriving
  SmallVector<StringAttr> levels; // what the shifted axis is cut over
};

/// A part is the rank's own shard at one step, and in a slot at the others.
struct Arrival {
  Value isOwn;
  Value slots;
  Value slot;
};

/// Expands one nest, outside in.
class NestExpander {
public:
  NestExpander(ProgramOp program, ForOp nest, Pass::Statistic &transfers)
      : program(program), mesh(program.getMeshOp()), nest(nest),
        loops(nest.getLoops().getAsRange<LoopAttr>()),
        builder(nest.getContext()), transfers(transfers) {}

  LogicalResult expand();

private:
  /// Which part of an axis an iteration works on: `index` of `count`.
  struct Part {
    Value index;
    int64_t count = 1;
  };

  LogicalResult checkStores();
  LogicalResult checkOutput(int64_t buffer);
  LogicalResult checkShift(LoopAttr loop);
  LogicalResult placeInput(int64_t buffer);
  LogicalResult gather(int64_t buffer, CutAttr cut);
  LogicalResult addToRing(int64_t buffer, CutAttr cut, LoopAttr loop);
  LogicalResult startOutputs();
  void finishOutputs();
  LogicalResult emitLoops(size_t at);
  LogicalResult emitRing(size_t at, StringAttr level);
  LogicalResult emitBody();
  LogicalResult emitLaunch(KernelOp kernel);
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
  SmallVector<StringAttr> getRingLevels(LoopAttr loop);
  bool isParallelOver(StringRef axis, StringRef level);
  bool isShiftedOver(StringRef axis, StringRef level);
  bool followsLoops(CutAttr cut);

  /// Adds index `value` of `count` as the innermost cut of an axis so far.
  void pushPart(StringRef axis, Value value, int64_t count) {
    Part &part = parts[axis];
    part.index = part.index ? add(mul(part.index, count), value) : value;
    part.count *= count;
  }

  /// The tile of `memory` that the current iteration works on; only what is cut
  /// by now is restricted.
  Value getTile(Value memory, Value slot = {});
  /// The tile of `memory` that moves around the ring on `level`: all that a
  /// rank holds, with `part` in place of the rank.
  Value getRingTile(const Ring &ring, Value memory, StringAttr axis,
                    StringAttr level, Value part, Value slot = {});

  InFlightDiagnostic needsRule(StringRef rule, const Twine &why) {
    return nest.emitOpError()
           << "needs rule " << rule << " (" << why << "), which this version "
           << "does not lower yet";
  }
  StringRef getName(int64_t buffer) {
    return program.getBinding(buffer).getName();
  }

  ProgramOp program;
  MeshOp mesh;
  ForOp nest;
  SmallVector<LoopAttr> loops;
  OpBuilder builder;
  Pass::Statistic &transfers;
  llvm::StringMap<Part> parts;
  llvm::StringMap<Value> ranks;
  /// Where the tile of each input is read, and each output merged.
  DenseMap<Value, Value> memory;
  /// Where a step of a shifted loop finds its part of a buffer.
  DenseMap<Value, Arrival> arrived;
  /// The buffers in the ring of each shifted loop.
  llvm::StringMap<SmallVector<Ring>> rings;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_EXPANSION_NESTEXPANDER_H
