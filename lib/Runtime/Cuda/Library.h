//===- Library.h - The vendor's libraries, opened at run time ---*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of functions for each library. Nothing links to them: a process
// that never opens a CUDA context never needs them.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_LIBRARY_H
#define LIB_RUNTIME_CUDA_LIBRARY_H

#include "lib/Runtime/Cuda/DriverTypes.h"
#include <string>

namespace mercury::rt::cuda {

struct Driver {
#define SYMBOL(member, name, parameters) Result(*member) parameters;
#include "lib/Runtime/Cuda/CudaSymbols.def"
  int version = 0; // 12040 is CUDA 12.4
};

struct Nccl {
#define SYMBOL(member, name, parameters) NcclResult(*member) parameters;
#include "lib/Runtime/Cuda/NcclSymbols.def"
  const char *(*getErrorString)(NcclResult result);
  int version = 0; // 22809 is 2.28.9
};

/// The first NCCL that puts, and the first whose puts may be captured; and what
/// driver it asks for.
constexpr int kOldestPuts = 22900;
constexpr int kOldestCapturedPuts = 23000;
constexpr int kOldestDriverOfPuts = 12050;

/// "12.4", "2.28.9".
std::string describeDriver(int version);
std::string describeNccl(int version);

/// Opens the library at `path`, where that is empty at the path that the
/// environment names, and else by its usual name. Returns null, and says why in
/// `problem`, if it is missing, too old, or lacks a function. A library is
/// opened once for each path and stays open.
const Driver *openDriver(const std::string &path, std::string &problem);
const Nccl *openNccl(const std::string &path, std::string &problem);

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_LIBRARY_H
