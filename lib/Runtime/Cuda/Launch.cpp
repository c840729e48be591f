//===- Launch.cpp - Kernels that a program carries ------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"
#include <cstring>

using namespace mercury::rt;
using namespace mercury::rt::cuda;

/// What any kernel may use; more must be asked for.
static constexpr int64_t kSharedBytes = 48 * 1024;

int32_t Rank::launch(const char *name,
                     const mercury_rt_launch_arguments *arguments) {
  if (board.failed())
    return firstFailure();
  operation = {"kernel", operations, std::nullopt, name, /*isAfter=*/true};
  if (int32_t status = flush())
    return status;
  lanes.current->stream(); // which the kernel may know from before
  auto found = kernels.find(std::string_view(name));
  if (found == kernels.end()) {
    std::string known;
    for (const auto &[other, kernel] : kernels)
      known += (known.empty() ? "'" : ", '") + other + "'";
    return failWith(MERCURY_RT_KERNEL,
                    "there is no kernel of this name; the run came with " +
                        (known.empty() ? "none" : known) +
                        ", register it before the run");
  }
  char message[1024] = "";
  int32_t status = found->second.function(found->second.user_data, arguments,
                                          message, sizeof(message));
  if (status == MERCURY_RT_OK)
    return status;
  message[sizeof(message) - 1] = 0;
  return failWith(status, "failed with status " + std::to_string(status) +
                              ": " +
                              (message[0] ? message : "it gave no cause"));
}

int32_t Rank::findFunction(const mercury_rt_device_kernel &kernel,
                           LoadedFunction *&found) {
  LoadedImage &loaded = images[{kernel.image, kernel.image_bytes}];
  // An address may come back with another program behind it, in another run.
  auto *bytes = static_cast<const char *>(kernel.image);
  bool isSame =
      loaded.compared ||
      (loaded.image.size() == size_t(kernel.image_bytes) &&
       std::memcmp(loaded.image.data(), bytes, kernel.image_bytes) == 0);
  if (!loaded.module || !isSame) {
    loaded = {}; // the module stays: a graph may still launch from it
    loaded.image.assign(bytes, kernel.image_bytes);
    MERCURY_RT_CUDA(
        driver.moduleLoadData(&loaded.module, loaded.image.c_str()));
  }
  loaded.compared = true;
  auto kept = loaded.functions.find(std::string_view(kernel.name));
  if (kept == loaded.functions.end()) {
    Function function = nullptr;
    MERCURY_RT_CUDA(
        driver.moduleGetFunction(&function, loaded.module, kernel.name));
    kept = loaded.functions
               .emplace(kernel.name, LoadedFunction{function, kSharedBytes})
               .first;
  }
  found = &kept->second;
  return MERCURY_RT_OK;
}

int32_t Rank::deviceLaunch(const mercury_rt_device_kernel &kernel) {
  if (board.failed())
    return firstFailure();
  operation = {"launch of", ++operations, std::nullopt,
               kernel.name ? kernel.name : ""};
  if (!kernel.image || kernel.image_bytes <= 0 || !kernel.name)
    return invalid("no image or no name; pass both, and the image's size");
  for (const int64_t *sizes : {kernel.grid, kernel.block})
    for (int64_t dim = 0; dim < 3; ++dim)
      if (sizes[dim] < 0 || sizes[dim] > INT32_MAX)
        return invalid("a grid or block of " + std::to_string(sizes[dim]) +
                       "; sizes go from 0 to 2147483647");
  if (!kernel.grid[0] || !kernel.grid[1] || !kernel.grid[2])
    return MERCURY_RT_OK;
  if (int32_t status = flush())
    return status;
  LoadedFunction *found = nullptr;
  if (int32_t status = findFunction(kernel, found))
    return status;
  if (kernel.shared_bytes > found->sharedBytes) {
    MERCURY_RT_CUDA(driver.funcSetAttribute(
        found->function, kAttributeMaxDynamicShared, kernel.shared_bytes));
    found->sharedBytes = kernel.shared_bytes;
  }
  MERCURY_RT_CUDA(driver.launchKernel(
      found->function, kernel.grid[0], kernel.grid[1], kernel.grid[2],
      kernel.block[0], kernel.block[1], kernel.block[2], kernel.shared_bytes,
      lanes.current->stream(), const_cast<void **>(kernel.arguments), nullptr));
  return MERCURY_RT_OK;
}
