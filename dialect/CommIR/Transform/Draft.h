//===- Draft.h - A program's schedule while it is edited --------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_TRANSFORM_DRAFT_H
#define DIALECT_COMMIR_TRANSFORM_DRAFT_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// All that a schedule may change of a program, copied out of its attributes.
/// An edit works on the draft; only a legal one is written back, so a refused
/// step leaves the program as it was.
class Draft {
public:
  struct Nest {
    ForOp op;
    SmallVector<LoopAttr> loops;
  };
  struct Found {
    Nest *nest = nullptr;
    size_t at = 0;
    LoopAttr &loop() { return nest->loops[at]; }
  };

  explicit Draft(ProgramOp program);

  ProgramOp getProgram() { return program; }
  MeshOp getMesh() { return mesh; }
  MLIRContext *getContext() { return program->getContext(); }

  /// Finds a loop by name, in any nest. When there is none, `why` says so.
  Found findLoop(StringRef name, std::string &why);
  bool hasLoop(StringRef name);

  /// Finds a buffer's binding by name. When there is none, `why` says so.
  BindingAttr *findBinding(StringRef name, std::string &why);

  /// Lays an axis out in parts of these sizes. Where it must not, says why.
  std::string setSizes(StringRef axis, ArrayRef<int64_t> sizes);

  /// Says why the draft is not a legal program; empty when it is.
  std::string whyNot();

  /// Writes the draft back to the program.
  void commit();

private:
  ArrayAttr makeAxes();

  ProgramOp program;
  MeshOp mesh;
  SmallVector<AxisAttr> axes;
  SmallVector<Nest> nests;
  SmallVector<BindingAttr> bindings;
};

} // namespace mlir::commir

#endif // DIALECT_COMMIR_TRANSFORM_DRAFT_H
