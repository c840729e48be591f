//===- Peers.h - Memory of other processes ----------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An allocation is shared whole, under a handle; what lies in it is told as an
// offset. Handles and mappings are kept, by the number that the driver gives
// each allocation and to no other.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_PEERS_H
#define LIB_RUNTIME_CUDA_PEERS_H

#include "lib/Runtime/Cuda/Board.h"
#include "lib/Runtime/Cuda/Library.h"
#include <map>

namespace mercury::rt::cuda {

class Peers {
public:
  explicit Peers(const Driver &driver) : driver(driver) {}
  Peers(const Peers &) = delete;

  /// How others may map the allocation around `address`, and where in it that
  /// lies.
  Result share(DevicePtr address, Exported &memory, uint64_t &offset);

  /// Where an allocation of another rank begins here.
  Result map(int64_t rank, const Exported &memory, DevicePtr &base);

  void close();

private:
  const Driver &driver;
  struct Own {
    DevicePtr base;
    IpcMemHandle handle;
  };
  std::map<uint64_t, Own> allocations;
  std::map<std::pair<int64_t, uint64_t>, DevicePtr> mappings;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_PEERS_H
