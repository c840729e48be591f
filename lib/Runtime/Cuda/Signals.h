//===- Signals.h - Words that devices wait for ------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two words for each lease slot and peer, in the memory of the rank that waits:
//
//            owner                       reader
//              | ready: 1 into the reader's word
//              |------------------------>| waits for 1, writes 0
//              |                         | reads the memory
//              | done: 1 into the owner's word
//              |<------------------------|
//              | waits for 1, writes 0
//
// Each word is back at 0 before its writer may write again, as the other way's
// signal lies between. So a captured run can be replayed any number of times,
// although a captured wait holds a fixed value: there is no stale value to be
// let through by.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_SIGNALS_H
#define LIB_RUNTIME_CUDA_SIGNALS_H

#include "lib/Runtime/Cuda/Groups.h"
#include "lib/Runtime/Cuda/Library.h"
#include <map>
#include <vector>

namespace mercury::rt::cuda {

enum class Signal : int64_t { Ready, Done };

class Signals {
public:
  Signals(const Driver &driver, const Groups &groups);
  Signals(const Signals &) = delete;

  /// Allocates this rank's words, all 0, by work in `stream`.
  Result open(Stream stream);
  DevicePtr memory() const { return words; }
  /// Where the words of another rank are mapped.
  void addPeer(int64_t rank, DevicePtr words) { peers[rank] = words; }
  void close();

  /// One word: of group rank `member` of a slot of a group, which is told by
  /// its number.
  struct Word {
    int64_t group, slot, member;
    Signal signal;
  };

  /// Writes 1 into a word of each of these ranks.
  Result send(Stream stream,
              const std::vector<std::pair<int64_t, Word>> &targets) const;
  /// Waits until each of this rank's words is 1, then makes them 0.
  Result receive(Stream stream, const std::vector<Word> &words) const;

  /// Ends every wait for a word of this rank, by work in `stream`.
  Result poison(Stream stream) const;
  /// Copies this rank's words, indexed by at().
  Result read(Stream stream, std::vector<uint32_t> &values) const;
  size_t at(const Word &word) const;

private:
  /// One more than are used, so that there is memory where nothing is leased.
  size_t count() const { return begins.back() + 1; }

  const Driver &driver;
  const Groups &groups;
  std::vector<size_t> begins; // of each group's words, and their end
  DevicePtr words = 0;
  std::map<int64_t, DevicePtr> peers;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_SIGNALS_H
