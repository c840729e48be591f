//===- Transport.h - How the bytes of a transfer move -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What commir-select-transport says of a transfer. To those who lower and check
// it, only one answer makes a difference.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_TRANSPORT_H
#define DIALECT_COMMIR_TRANSPORT_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// Whether what a rank sends is written to where its target lies, in the memory
/// of its receiver.
inline bool isPut(ExchangeStartOp op) {
  auto transport = op->getAttrOfType<StringAttr>("commir.transport");
  return transport && transport == "rma";
}

} // namespace mlir::commir

#endif // DIALECT_COMMIR_TRANSPORT_H
