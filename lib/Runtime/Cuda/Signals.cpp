//===- Signals.cpp - Words that devices wait for --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Signals.h"
#include "mercury-rt/cuda.h"
#include <algorithm>

using namespace mercury::rt::cuda;

Signals::Signals(const Driver &driver, const Groups &groups)
    : driver(driver), groups(groups), begins(1, 0) {
  for (int64_t group = 0; group < groups.count(); ++group)
    begins.push_back(begins.back() +
                     2 * MERCURY_RT_CUDA_MAX_LEASES * groups.size(group));
}

size_t Signals::at(const Word &word) const {
  int64_t pair = word.slot * groups.size(word.group) + word.member;
  return begins[word.group] + 2 * pair + static_cast<size_t>(word.signal);
}

Result Signals::open(Stream stream) {
  if (Result result = driver.memAlloc(&words, count() * sizeof(uint32_t)))
    return result;
  if (Result result = driver.memsetD32Async(words, 0, count(), stream))
    return result;
  return driver.streamSynchronize(stream);
}

void Signals::close() {
  if (words)
    driver.memFree(words);
  words = 0;
}

/// The driver takes 256 operations at once.
static constexpr size_t kMostWords = 128;

Result
Signals::send(Stream stream,
              const std::vector<std::pair<int64_t, Word>> &targets) const {
  for (size_t begin = 0; begin < targets.size(); begin += kMostWords) {
    std::vector<MemOp> operations;
    size_t end = std::min(targets.size(), begin + kMostWords);
    for (size_t i = begin; i < end; ++i) {
      const auto &[rank, word] = targets[i];
      DevicePtr address = peers.at(rank) + at(word) * sizeof(uint32_t);
      operations.push_back({kWriteValue32, address, 1, 0, 0, 0});
    }
    if (Result result = driver.streamBatchMemOp(stream, operations.size(),
                                                operations.data(), 0))
      return result;
  }
  return kSuccess;
}

Result Signals::receive(Stream stream, const std::vector<Word> &awaited) const {
  for (size_t begin = 0; begin < awaited.size(); begin += kMostWords) {
    std::vector<MemOp> operations;
    size_t end = std::min(awaited.size(), begin + kMostWords);
    for (int operation : {kWaitValue32, kWriteValue32})
      for (size_t i = begin; i < end; ++i) {
        DevicePtr address = words + at(awaited[i]) * sizeof(uint32_t);
        uint64_t value = operation == kWaitValue32;
        operations.push_back(
            {operation, address, value, kWaitGreaterOrEqual, 0, 0});
      }
    if (Result result = driver.streamBatchMemOp(stream, operations.size(),
                                                operations.data(), 0))
      return result;
  }
  return kSuccess;
}

Result Signals::poison(Stream stream) const {
  return driver.memsetD32Async(words, 1, count(), stream);
}

Result Signals::read(Stream stream, std::vector<uint32_t> &values) const {
  values.resize(count());
  if (Result result = driver.memcpyDtoHAsync(
          values.data(), words, values.size() * sizeof(uint32_t), stream))
    return result;
  return driver.streamSynchronize(stream);
}
