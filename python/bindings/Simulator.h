//===- Simulator.h - The simulator, for Python ------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PYTHON_BINDINGS_SIMULATOR_H
#define PYTHON_BINDINGS_SIMULATOR_H

#include "nanobind/nanobind.h"

namespace mercury {
/// Defines the class `Workload`.
void defineSimulator(nanobind::module_ &module);
} // namespace mercury

#endif // PYTHON_BINDINGS_SIMULATOR_H
