//===- Compiler.h - From IR to the instructions of a plan -------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANTRACE_COMPILER_H
#define LIB_ANALYSIS_PLANTRACE_COMPILER_H

#include "lib/Analysis/PlanTrace/Code.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::commir::trace {

inline int64_t getElementBytes(Type type) {
  return type.isIntOrFloat() ? std::max(1u, type.getIntOrFloatBitWidth() / 8)
                             : 8;
}

class Compiler {
public:
  explicit Compiler(MeshOp mesh) : mesh(mesh) {
    for (size_t level = 0; level < mesh.getLevels().size(); ++level)
      code.groups.push_back({static_cast<int64_t>(level)});
  }

  LogicalResult compile(Block &block);

  Code code;

private:
  LogicalResult compile(Operation &op);
  LogicalResult compile(scf::ForOp loop);
  LogicalResult compile(scf::IfOp branch);
  LogicalResult compileArith(Operation &op);
  LogicalResult compileCompare(arith::CmpIOp op);
  LogicalResult compileMemRef(Operation &op);
  LogicalResult compileEvent(Operation &op);
  LogicalResult compileCollective(Operation &op);
  FailureOr<int64_t> getLevel(Operation *op, StringRef name);
  LogicalResult addEvent(EventSite site, ArrayAttr group = {});

  /// Tiles are counted by themselves; all else is a number.
  static bool isTile(Value value) { return isa<MemRefType>(value.getType()); }
  int32_t get(Value value) {
    auto [it, fresh] = slots.try_emplace(value, 0);
    if (fresh)
      it->second = isTile(value) ? code.numTiles++ : addNumber(0);
    return it->second;
  }
  int32_t addNumber(int64_t value) {
    code.numbers.push_back(value);
    return code.numbers.size() - 1;
  }
  int32_t getConstant(int64_t value) {
    auto [it, fresh] = constants.try_emplace(value, 0);
    if (fresh)
      it->second = addNumber(value);
    return it->second;
  }
  int32_t get(OpFoldResult value) {
    if (auto attribute = dyn_cast<Attribute>(value))
      return getConstant(cast<IntegerAttr>(attribute).getInt());
    return get(cast<Value>(value));
  }
  template <typename Range> SmallVector<int32_t> getAll(Range values) {
    SmallVector<int32_t> all;
    for (auto value : values)
      all.push_back(get(value));
    return all;
  }
  Instruction &add(Opcode opcode, Operation *op) {
    code.instructions.push_back({opcode});
    Instruction &added = code.instructions.back();
    added.op = op;
    auto type = op->getNumResults() == 1
                    ? dyn_cast<MemRefType>(op->getResult(0).getType())
                    : MemRefType();
    if (type) {
      added.elementType = type.getElementType();
      added.elementBytes = getElementBytes(added.elementType);
    }
    return added;
  }
  /// A cast is what it casts: that changes only when the cast is done again.
  void alias(Value from, Value to) {
    int32_t slot = get(from);
    slots[to] = slot;
  }
  void move(Value from, Value to, Operation *op);
  void moveAll(ValueRange from, ValueRange to, Operation *op);
  size_t here() const { return code.instructions.size(); }

  MeshOp mesh;
  DenseMap<Value, int32_t> slots;
  DenseMap<int64_t, int32_t> constants;
};

} // namespace mlir::commir::trace

#endif // LIB_ANALYSIS_PLANTRACE_COMPILER_H
