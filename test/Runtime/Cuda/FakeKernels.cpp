//===- FakeKernels.cpp - Modules and kernels of fake devices --------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDevice.h"
#include <cstring>

using namespace fake;

namespace {
struct Kernel {
  int arguments;
  void (*body)(void **arguments);
};
} // namespace

static std::mutex mutex;
static std::map<std::string, Kernel> &kernels() {
  static auto *kernels = new std::map<std::string, Kernel>;
  return *kernels;
}

static bool isPtx(const char *image) {
  return std::strstr(image, ".version ") && std::strstr(image, ".target sm_");
}

extern "C" {

void fake_cuda_define(const char *name, int arguments,
                      void (*kernel)(void **arguments)) {
  std::lock_guard lock(mutex);
  kernels()[name] = {arguments, kernel};
}

Result cuModuleLoadData(Module *module, const void *image) {
  FAIL_POINT();
  auto *text = static_cast<const char *>(image);
  if (std::strncmp(text, "fake", 4) != 0 && !isPtx(text))
    return 200; // an invalid image
  *module = reinterpret_cast<Module>(new std::string(text));
  return kSuccess;
}
Result cuModuleUnload(Module module) {
  delete reinterpret_cast<std::string *>(module);
  return kSuccess;
}
Result cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  std::lock_guard lock(mutex);
  auto &text = *reinterpret_cast<std::string *>(module);
  std::string entry = ".entry " + std::string(name) + "(";
  if (isPtx(text.c_str()) && text.find(entry) == std::string::npos)
    return 500; // not found
  auto found = kernels().find(name);
  if (found == kernels().end())
    return 500; // not found
  *function = reinterpret_cast<Function>(&found->second);
  return kSuccess;
}
Result cuFuncSetAttribute(Function, int, int) {
  FAIL_POINT();
  return kSuccess;
}
Result cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned, Stream stream,
                      void **arguments, void **) {
  FAIL_POINT();
  uint64_t threads = uint64_t(blockX) * blockY * blockZ;
  if (!gridX || !gridY || !gridZ || gridX > INT32_MAX || gridY > 65535 ||
      gridZ > 65535 || threads == 0 || threads > 1024)
    return 1; // an invalid value
  Kernel kernel = *reinterpret_cast<Kernel *>(function);
  std::vector<uint64_t> values(kernel.arguments);
  for (int i = 0; i < kernel.arguments; ++i)
    std::memcpy(&values[i], arguments[i], sizeof(uint64_t));
  return enqueueSimple(stream, [=]() mutable {
    std::vector<void *> addresses;
    for (uint64_t &value : values)
      addresses.push_back(&value);
    kernel.body(addresses.data());
  });
}

} // extern "C"
