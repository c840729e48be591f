//===- Register.h - All that mercury tools know -----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_REGISTER_REGISTER_H
#define LIB_REGISTER_REGISTER_H

namespace mlir {
class DialectRegistry;

namespace commir {
/// Registers commir and the upstream dialects and extensions that plans use.
void registerDialects(DialectRegistry &registry);

/// Registers Mercury's passes and pipelines and the upstream passes around
/// them.
void registerPasses();
} // namespace commir
} // namespace mlir

#endif // LIB_REGISTER_REGISTER_H
