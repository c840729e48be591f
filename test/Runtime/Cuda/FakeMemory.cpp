//===- FakeMemory.cpp - Memory of fake devices ----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeMemory.h"
#include <algorithm>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace fake;

namespace {
struct Allocation {
  Shared shared;
  uint64_t number;
};

struct Allocations {
  std::mutex mutex;
  std::map<uint64_t, Allocation> byAddress;
  uint64_t last = 0;
};
} // namespace

static Allocations &allocations() {
  static Allocations *allocations = new Allocations;
  return *allocations;
}

static void *mapFile(int file, uint64_t bytes) {
  void *memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void *fake::share(uint64_t bytes, Shared &shared) {
  bytes = std::max<uint64_t>(bytes, 1);
  int file = memfd_create("fake-cuda", MFD_CLOEXEC);
  void *memory = nullptr;
  if (file >= 0 && ftruncate(file, bytes) == 0)
    memory = mapFile(file, bytes);
  if (!memory) {
    if (file >= 0)
      close(file);
    return nullptr;
  }
  shared = {reinterpret_cast<uint64_t>(memory), bytes, getpid(), file};
  return memory;
}

void *fake::allocate(uint64_t bytes, Shared &shared) {
  void *memory = share(bytes, shared);
  if (!memory)
    return nullptr;
  std::lock_guard lock(allocations().mutex);
  allocations().byAddress[shared.address] = {shared, ++allocations().last};
  return memory;
}

void fake::release(const Shared &shared) {
  {
    std::lock_guard lock(allocations().mutex);
    allocations().byAddress.erase(shared.address);
  }
  munmap(reinterpret_cast<void *>(shared.address), shared.bytes);
  close(shared.file);
}

bool fake::find(uint64_t address, Shared &shared, uint64_t &number) {
  std::lock_guard lock(allocations().mutex);
  auto after = allocations().byAddress.upper_bound(address);
  if (after == allocations().byAddress.begin())
    return false;
  const Allocation &found = std::prev(after)->second;
  shared = found.shared;
  number = found.number;
  return address < shared.address + shared.bytes;
}

void *fake::map(const Shared &shared) {
  if (shared.process == getpid())
    return reinterpret_cast<void *>(shared.address);
  std::string path = "/proc/" + std::to_string(shared.process) + "/fd/" +
                     std::to_string(shared.file);
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return nullptr;
  void *memory = mapFile(file, shared.bytes);
  close(file);
  return memory;
}

void fake::unmap(void *memory, const Shared &shared) {
  if (memory && shared.process != getpid())
    munmap(memory, shared.bytes);
}

int64_t fake::countAllocations() {
  std::lock_guard lock(allocations().mutex);
  return allocations().byAddress.size();
}
