//===- FakeMemory.h - Memory of fake devices --------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each allocation is a file without a name, so that another process can map it
// as it would map the memory of another GPU.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_RUNTIME_CUDA_FAKEMEMORY_H
#define TEST_RUNTIME_CUDA_FAKEMEMORY_H

#include <cstdint>

namespace fake {

/// An allocation as any process finds it.
struct Shared {
  uint64_t address; // in its own process
  uint64_t bytes;
  int32_t process, file;
};

/// Memory of all zeros that is no allocation of a device; null if there is none
/// to be had.
void *share(uint64_t bytes, Shared &shared);

/// Memory of a device.
void *allocate(uint64_t bytes, Shared &shared);
void release(const Shared &shared);

/// The allocation of this process that an address lies in, and a number that no
/// other has; false if it lies in none.
bool find(uint64_t address, Shared &shared, uint64_t &number);

/// Maps memory of this process or another; null if that has ended.
void *map(const Shared &shared);
void unmap(void *memory, const Shared &shared);

/// How many there are.
int64_t countAllocations();

} // namespace fake

#endif // TEST_RUNTIME_CUDA_FAKEMEMORY_H
