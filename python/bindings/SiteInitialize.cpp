//===- SiteInitialize.cpp - Dialects of every context ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loaded while `mercury._mlir.ir` is still importing, so it may not look up
// anything there.
//
//===----------------------------------------------------------------------===//

#include "mercury-c/CommIR.h"
#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"

NB_MODULE(_site_initialize_0, m) {
  m.def("register_dialects", [](MlirDialectRegistry registry) {
    mercuryRegisterDialects(registry);
  });
  mercuryRegisterPasses();
}
