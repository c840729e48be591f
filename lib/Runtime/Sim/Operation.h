//===- Operation.h - What a rank starts and messages are made of *- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation is what one start call, or call on a lease, began. What it waits
// for counts it down: the ends of its messages as they arrive, and its peers as
// they open or close a lease.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_SIM_OPERATION_H
#define LIB_RUNTIME_SIM_OPERATION_H

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace mercury::rt::sim {

class Rank;
struct Lease;

/// Its number on its rank, from 1, is also its token.
struct Operation {
  Rank *rank;
  int64_t number;
  std::string_view kind;
  int64_t group;
  int64_t outstanding = 0; // message ends and peers that it waits for
  bool empty = false;      // nothing to send and nothing to receive
  bool waited = false;

  // Of an operation on a lease.
  Lease *lease = nullptr;
  int64_t awaits = -1; // the member whose opening it waits for
  bool pulls = false;  // and so has a token

  // Of ranks that reduce: what comes of each member, and what is done with it
  // once all has come.
  std::vector<char> scratch;
  std::function<void()> finish;

  bool complete() const { return outstanding == 0; }
};

/// One end of a message: rows of `bytes` bytes in the memory of `rank`. Those
/// of a sender are only read.
struct Post {
  Operation *operation;
  int64_t rank; // the operation's, but for what a pull reads
  char *data;
  int64_t bytes;
  int64_t pitch = 0;  // bytes from one row to the next
  int64_t place = -1; // of a put, in the symmetric arena of its receiver
};

/// Two ends that found each other. Both of a pull are its reader's.
struct Message {
  Post from, to;
  int64_t rows = 1;

  int64_t bytes() const { return rows * from.bytes; }
};

} // namespace mercury::rt::sim

#endif // LIB_RUNTIME_SIM_OPERATION_H
