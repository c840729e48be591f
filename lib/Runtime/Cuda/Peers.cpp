//===- Peers.cpp - Memory of other processes ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Peers.h"

using namespace mercury::rt::cuda;

Result Peers::share(DevicePtr address, Exported &memory, uint64_t &offset) {
  unsigned long long buffer = 0;
  if (Result result = driver.pointerGetAttribute(
          &buffer, kPointerAttributeBufferId, address))
    return result;
  auto kept = allocations.find(buffer);
  if (kept == allocations.end()) {
    Own own = {};
    size_t bytes = 0;
    if (Result result = driver.memGetAddressRange(&own.base, &bytes, address))
      return result;
    if (Result result = driver.ipcGetMemHandle(&own.handle, own.base))
      return result;
    kept = allocations.emplace(buffer, own).first;
  }
  memory = {kept->second.handle, buffer};
  offset = address - kept->second.base;
  return kSuccess;
}

Result Peers::map(int64_t rank, const Exported &memory, DevicePtr &base) {
  auto [kept, isNew] = mappings.try_emplace({rank, memory.buffer}, 0);
  if (isNew)
    if (Result result = driver.ipcOpenMemHandle(&kept->second, memory.handle,
                                                kIpcLazyEnablePeerAccess)) {
      mappings.erase(kept);
      return result;
    }
  base = kept->second;
  return kSuccess;
}

void Peers::close() {
  for (auto [key, base] : mappings)
    driver.ipcCloseMemHandle(base);
  mappings.clear();
}
