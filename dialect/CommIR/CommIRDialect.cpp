//===- CommIRDialect.cpp - The commir dialect -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/CommIR.h"

using namespace mlir;
using namespace mlir::commir;

#include "dialect/CommIR/CommIRDialect.cpp.inc"

void CommIRDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/CommIR/CommIROps.cpp.inc"
      >();
}
