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

int32_t Rank::findFunction(const mercury_rt_launch &launch,
                           Function &function) {
  LoadedImage &loaded = images[{launch.image, launch.image_bytes}];
  // An address may come back with another program behind it.
  auto *bytes = static_cast<const char *>(launch.image);
  bool isSame =
      loaded.image.size() == size_t(launch.image_bytes) &&
      std::memcmp(loaded.image.data(), bytes, launch.image_bytes) == 0;
  if (!loaded.module || !isSame) {
    loaded = {};
    loaded.image.assign(bytes, launch.image_bytes);
    MERCURY_RT_CUDA(
        driver.moduleLoadData(&loaded.module, loaded.image.c_str()));
  }
  auto found = loaded.functions.find(std::string_view(launch.kernel));
  if (found != loaded.functions.end()) {
    function = found->second;
    return MERCURY_RT_OK;
  }
  MERCURY_RT_CUDA(
      driver.moduleGetFunction(&function, loaded.module, launch.kernel));
  loaded.functions.emplace(launch.kernel, function);
  return MERCURY_RT_OK;
}

int32_t Rank::kernelLaunch(const mercury_rt_launch &launch) {
  if (board.failed())
    return firstFailure();
  operation = "operation " + std::to_string(++operations) + ", launch of '" +
              (launch.kernel ? launch.kernel : "") + "'";
  if (!launch.image || launch.image_bytes <= 0 || !launch.kernel)
    return invalid("no image or no name; pass both, and the image's size");
  for (const int64_t *sizes : {launch.grid, launch.block})
    for (int64_t dim = 0; dim < 3; ++dim)
      if (sizes[dim] < 0 || sizes[dim] > INT32_MAX)
        return invalid("a grid or block of " + std::to_string(sizes[dim]) +
                       "; sizes go from 0 to 2147483647");
  if (!launch.grid[0] || !launch.grid[1] || !launch.grid[2])
    return MERCURY_RT_OK;
  if (int32_t status = flushSignals())
    return status;
  Function function = nullptr;
  if (int32_t status = findFunction(launch, function))
    return status;
  if (launch.shared_bytes > kSharedBytes)
    MERCURY_RT_CUDA(driver.funcSetAttribute(
        function, kAttributeMaxDynamicShared, launch.shared_bytes));
  MERCURY_RT_CUDA(driver.launchKernel(
      function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
      launch.block[1], launch.block[2], launch.shared_bytes, lanes.current,
      const_cast<void **>(launch.arguments), nullptr));
  return MERCURY_RT_OK;
}
