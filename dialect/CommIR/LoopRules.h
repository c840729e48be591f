//===- LoopRules.h - What makes a list of loops legal -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifier and the transforms ask the same rules, so that what a schedule
// may do and what the IR may say are one thing.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_LOOPRULES_H
#define DIALECT_COMMIR_LOOPRULES_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// Says why `loops` are not a legal nest of `program`; empty when they are.
std::string whyNotLoops(ProgramOp program, MeshOp mesh,
                        ArrayRef<LoopAttr> loops);

/// Says why `loop` cannot be shifted by the loop named `by` of the same nest;
/// empty when it can.
std::string whyNotShiftedBy(StringRef loop, StringRef by,
                            ArrayRef<LoopAttr> loops);

/// Says why a buffer's binding is not legal; empty when it is.
std::string whyNotBinding(ProgramOp program, MeshOp mesh, BindingAttr binding,
                          BufferType type);

/// Says why `loops` of a nest cannot walk the panels of what it loads and the
/// bindings broadcast; empty when they can. The bindings are legal.
std::string whyNotBroadcast(MeshOp mesh, ForOp nest, ArrayRef<LoopAttr> loops,
                            ArrayRef<BindingAttr> bindings);

/// Into how many parts a loop cuts each of its axes. A joined loop is cut along
/// its outer axis first, and along the next once each part is one position.
/// Nullopt when the parts do not fall on whole axes.
std::optional<SmallVector<int64_t>> getPartsOfAxes(ProgramOp program,
                                                   LoopAttr loop);

/// For each axis of a parallel loop, the levels it is spread over. Nullopt when
/// the levels do not fall on whole axes.
std::optional<SmallVector<SmallVector<StringAttr>>>
getLevelsOfAxes(ProgramOp program, MeshOp mesh, LoopAttr loop);

} // namespace mlir::commir

#endif // DIALECT_COMMIR_LOOPRULES_H
