//===- Lease.h - What the members of a group lent each other ----*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One lease of one group. It exists from the first member's opening, or from
// the first look at it.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_SIM_LEASE_H
#define LIB_RUNTIME_SIM_LEASE_H

#include "lib/Runtime/Sim/Operation.h"
#include <vector>

namespace mercury::rt::sim {

struct Lease {
  struct Member {
    const Operation *opening = nullptr;
    const char *base = nullptr;
    int64_t bytes = 0;
    int64_t pulls = 0; // started by it and not waited for yet
    Operation *closing = nullptr;
    std::vector<Operation *> awaiting; // those that wait for its opening
  };

  int64_t group = 0;
  int64_t number = 0; // among the leases of its group, from 1
  std::vector<Member> members;
};

} // namespace mercury::rt::sim

#endif // LIB_RUNTIME_SIM_LEASE_H
