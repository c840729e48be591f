//===- Library.cpp - The vendor's libraries, opened at run time -----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Library.h"
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>

using namespace mercury::rt::cuda;

/// Batched memory operations became part of graphs in 11.7, and every driver
/// of the 12 series runs programs made for any of them.
static constexpr int kOldestDriver = 12000;
/// The first NCCL whose point-to-point calls may all be captured.
static constexpr int kOldestNccl = 21800;

std::string mercury::rt::cuda::describeDriver(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

std::string mercury::rt::cuda::describeNccl(int version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

namespace {
/// One library of one path, while its functions are looked up.
class Opening {
public:
  Opening(const std::string &given, const char *variable, const char *usual) {
    const char *named = std::getenv(variable);
    path = !given.empty() ? given : named && *named ? named : usual;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      problem = "cannot open '" + path + "' (" + dlerror() + "); set " +
                variable + " to its path";
  }

  template <typename Pointer> void find(Pointer &function, const char *name) {
    if (!handle || !problem.empty())
      return;
    function = reinterpret_cast<Pointer>(dlsym(handle, name));
    if (!function)
      problem = "'" + path + "' has no function " + name;
  }

  std::string path, problem;

private:
  void *handle; // never closed: functions and threads of it may live on
};

/// The tables, by path: a test has its own beside the vendor's.
template <typename Table> struct Opened {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Table>> tables;
};
} // namespace

/// Looks a table up, or fills and keeps it if nothing is missing.
template <typename Table, typename Fill>
static const Table *open(Opened<Table> &opened, Opening &opening,
                         std::string &problem, Fill fill) {
  std::lock_guard lock(opened.mutex);
  std::unique_ptr<Table> &kept = opened.tables[opening.path];
  if (kept)
    return kept.get();
  auto table = std::make_unique<Table>();
  if (opening.problem.empty())
    fill(*table);
  problem = opening.problem;
  if (problem.empty())
    kept = std::move(table);
  return kept.get();
}

const Driver *mercury::rt::cuda::openDriver(const std::string &path,
                                            std::string &problem) {
  static Opened<Driver> opened;
  Opening opening(path, "MERCURY_RT_CUDA_LIBRARY", "libcuda.so.1");
  return open(opened, opening, problem, [&](Driver &driver) {
    // The version first: an old driver may lack a function, and that is why.
    opening.find(driver.init, "cuInit");
    opening.find(driver.driverGetVersion, "cuDriverGetVersion");
    if (!opening.problem.empty())
      return;
    if (Result result = driver.driverGetVersion(&driver.version))
      opening.problem = "'" + opening.path +
                        "' does not tell its version, error " +
                        std::to_string(result);
    else if (driver.version < kOldestDriver)
      opening.problem = "'" + opening.path + "' is of CUDA " +
                        describeDriver(driver.version) + "; install CUDA " +
                        describeDriver(kOldestDriver) + " or later";
#define SYMBOL(member, name, parameters) opening.find(driver.member, #name);
#include "lib/Runtime/Cuda/CudaSymbols.def"
    if (!opening.problem.empty())
      return;
    if (Result result = driver.init(0)) {
      const char *name = nullptr;
      driver.getErrorName(result, &name);
      opening.problem = "'" + opening.path + "' finds no usable GPU: " +
                        (name ? name : std::to_string(result));
    }
  });
}

const Nccl *mercury::rt::cuda::openNccl(const std::string &path,
                                        std::string &problem) {
  static Opened<Nccl> opened;
  Opening opening(path, "MERCURY_RT_NCCL_LIBRARY", "libnccl.so.2");
  return open(opened, opening, problem, [&](Nccl &nccl) {
    opening.find(nccl.getVersion, "ncclGetVersion");
    if (!opening.problem.empty())
      return;
    if (NcclResult result = nccl.getVersion(&nccl.version))
      opening.problem = "'" + opening.path +
                        "' does not tell its version, error " +
                        std::to_string(result);
    else if (nccl.version < kOldestNccl)
      opening.problem = "'" + opening.path + "' is NCCL " +
                        describeNccl(nccl.version) + "; install NCCL " +
                        describeNccl(kOldestNccl) + " or later";
#define SYMBOL(member, name, parameters) opening.find(nccl.member, #name);
#define PUT_SYMBOL(member, name, parameters)                                   \
  if (nccl.version >= kOldestPuts)                                             \
    opening.find(nccl.member, #name);
#include "lib/Runtime/Cuda/NcclSymbols.def"
    opening.find(nccl.getErrorString, "ncclGetErrorString");
  });
}
