//===- Puts.h - Messages that are written to their place --------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_PUTS_H
#define LIB_TRANSFORMS_PUTS_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// Lets an exchange go by a put, if its sender knows without a word where its
/// receiver waits: what it sends is then in the plan's own memory, and copied
/// there where it was not. Says whether it can.
bool makePut(ExchangeStartOp op);

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_PUTS_H
