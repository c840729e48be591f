//===- Code.h - A plan as a list of instructions ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between the compiler, which reads the IR once, and the cursor, which runs it
// for each rank: every value has a number, every constant is one of the
// numbers that a run begins with, and control flow is jumps.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_ANALYSIS_PLANTRACE_CODE_H
#define LIB_ANALYSIS_PLANTRACE_CODE_H

#include "lib/Analysis/PlanTrace.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::commir::trace {

enum class Opcode : uint8_t {
  // result = a op b
  Add,
  Sub,
  Mul,
  DivUnsigned,
  DivSigned,
  CeilDivUnsigned,
  CeilDivSigned,
  FloorDivSigned,
  RemUnsigned,
  RemSigned,
  And,
  Or,
  Xor,
  MinSigned,
  MaxSigned,
  MinUnsigned,
  MaxUnsigned,
  Equal,
  NotEqual,
  LessSigned,
  LessEqualSigned,
  LessUnsigned,
  LessEqualUnsigned,
  // result = a
  Move,
  MoveTile,
  // result = a ? b : c
  Select,
  SelectTile,
  // result = this rank on level `immediate`
  GroupRank,
  // tile result
  Argument,     // number `immediate`
  Arena,        // `immediate`
  LeasedMemory, // of lease a, of peer b
  View,         // of tile a from byte b; list = sizes
  Reinterpret,  // of view a; list = offset, sizes, strides
  SubView,      // of tile a; list = offsets, sizes, strides, kept dimensions
  Dim,          // number result = size b of tile a
  Table,        // list = sizes
  KnownTable,   // list = sizes; its entries are there from the start
  StoreTable,   // number a in tile b; list = indices
  LoadTable,    // number result = tile b; list = indices
  // control
  Jump,       // to `immediate`
  JumpUnless, // to `immediate` unless a
  EnterLoop,  // result = a; b is the step
  NextLoop,   // result += a; to `immediate`
  SetStep,    // the innermost loop is at a
  LeaveLoop,
  Event, // site `immediate`
  Return
};

struct Instruction {
  Opcode opcode;
  int32_t result = -1;
  int32_t a = -1, b = -1, c = -1;
  int64_t immediate = 0;
  SmallVector<int32_t, 0> list;
  /// Of a tile whose type says more than its source: its elements.
  Type elementType;
  int64_t elementBytes = 1;
  Operation *op = nullptr;
};

/// An op that is an event: which values it is made of.
struct EventSite {
  PlanEvent::Kind kind;
  Operation *op;
  SmallVector<int32_t> inputs, outputs, scratch, positions;
  int64_t group = 0;
  int32_t to = -1, from = -1, when = -1;
  int32_t lengths = -1, arrivals = -1;
  /// The token or lease that it gives, or takes.
  int32_t token = -1, lease = -1;
  double value = 0.0;
};

struct Code {
  std::vector<Instruction> instructions;
  std::vector<EventSite> sites;
  /// The levels of each group, outermost first; those of one level come first,
  /// in the order of the mesh.
  std::vector<SmallVector<int64_t>> groups;
  /// The numbers that a run begins with.
  std::vector<int64_t> numbers;
  size_t numTiles = 0;
  /// The tables that a run begins with.
  std::vector<std::vector<int64_t>> tables;
};

/// Reads a function; null, with an error, when it has an op that is not known.
std::shared_ptr<const Code> compile(func::FuncOp function, MeshOp mesh);

} // namespace mlir::commir::trace

#endif // LIB_ANALYSIS_PLANTRACE_CODE_H
