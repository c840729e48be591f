//===- Overlap.h - Steps that compute beside each other ---------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_OVERLAP_H
#define DIALECT_COMMIR_OVERLAP_H

#include "llvm/ADT/StringRef.h"

namespace mlir::commir {

/// On a nest, the name of the loop whose steps may overlap.
inline constexpr llvm::StringLiteral kOverlap = "commir.overlap";

} // namespace mlir::commir

#endif // DIALECT_COMMIR_OVERLAP_H
