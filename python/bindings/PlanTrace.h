//===- PlanTrace.h - Events of a plan, for Python ----------------*- C++
//-*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PYTHON_BINDINGS_PLANTRACE_H
#define PYTHON_BINDINGS_PLANTRACE_H

#include "nanobind/nanobind.h"

namespace mercury {
/// Adds `trace_plan` to the module.
void defineTracePlan(nanobind::module_ &module);
} // namespace mercury

#endif // PYTHON_BINDINGS_PLANTRACE_H
