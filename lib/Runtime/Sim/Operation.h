//===- Operation.h - What a rank starts and messages are made of *- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation is what one start call began; its messages are posted, one end
// at a time, and count it down as they arrive.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_SIM_OPERATION_H
#define LIB_RUNTIME_SIM_OPERATION_H

#include <cstdint>
#include <string_view>

namespace mercury::rt::sim {

class Rank;

/// Its number on its rank, from 1, is also its token.
struct Operation {
  Rank *rank;
  int64_t number;
  std::string_view kind;
  int64_t group;
  int64_t openMessages = 0; // message ends that have not been served yet
  bool empty = false;       // nothing to send and nothing to receive
  bool waited = false;

  bool complete() const { return openMessages == 0; }
};

/// One end of a message. A sender's `data` is only read.
struct Post {
  Operation *operation;
  char *data;
  int64_t bytes;
};

/// Two ends that found each other.
struct Message {
  Post from, to;
};

} // namespace mercury::rt::sim

#endif // LIB_RUNTIME_SIM_OPERATION_H
