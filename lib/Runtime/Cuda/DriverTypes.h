//===- DriverTypes.h - What we use of cuda.h and nccl.h ---------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The types and values of the two libraries' binary interfaces, so that the
// runtime is built where neither is installed. A test compares them with the
// vendor's header where there is one.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_DRIVERTYPES_H
#define LIB_RUNTIME_CUDA_DRIVERTYPES_H

#include <cstddef>
#include <cstdint>

namespace mercury::rt::cuda {

// Handles are pointers to nothing we know; enumerations are ints.
using Result = int;
using Device = int;
using DevicePtr = unsigned long long;
using Context = struct OpaqueContext *;
using Stream = struct OpaqueStream *;
using Event = struct OpaqueEvent *;
using Module = struct OpaqueModule *;
using Function = struct OpaqueFunction *;
using Graph = struct OpaqueGraph *;
using GraphExec = struct OpaqueGraphExec *;

constexpr Result kSuccess = 0;
constexpr Result kOutOfMemory = 2;
constexpr Result kNotReady = 600;

constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kIpcLazyEnablePeerAccess = 1;
constexpr int kCaptureModeRelaxed = 2;
constexpr int kPointerAttributeBufferId = 7;
constexpr int kMemoryTypeDevice = 2;
constexpr int kAttributeMaxDynamicShared = 8;

/// The driver calls memory what an allocation is shared by between processes.
struct IpcMemHandle {
  char reserved[64];
};

/// Waits for a word to reach a value (operation 1), or writes one (2).
struct MemOp {
  int operation;
  DevicePtr address;
  uint64_t value;
  unsigned flags;
  DevicePtr alias;
  uint64_t padding;
};
constexpr int kWaitValue32 = 1;
constexpr int kWriteValue32 = 2;
constexpr unsigned kWaitGreaterOrEqual = 0;

struct Memcpy2D {
  size_t srcX, srcY;
  int srcType;
  const void *srcHost;
  DevicePtr srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstX, dstY;
  int dstType;
  void *dstHost;
  DevicePtr dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t width, height;
};

// NCCL.
using NcclResult = int;
using Communicator = struct OpaqueCommunicator *;
constexpr int kNcclInt8 = 0;
constexpr NcclResult kNcclInProgress = 7;
struct NcclUniqueId {
  char internal[128];
};

/// Memory that all members of a communicator registered together.
using Window = struct OpaqueWindow *;
constexpr int kWindowSymmetric = 1;
/// How many signals of a peer to wait for.
struct SignalWait {
  int count, peer, signal, context;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_DRIVERTYPES_H
