//===- types.cpp - Our declarations beside the vendor's -------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled where there is a cuda.h, and never linked: every function that we
// call is there under the same name, with parameters of the same sizes, and
// every constant and field is what we say.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/DriverTypes.h"
#include <array>
#include <cuda.h>

using namespace mercury::rt::cuda;

template <typename... Parameters>
constexpr std::array<size_t, sizeof...(Parameters) + 1>
sizesOf(CUresult (*)(Parameters...)) {
  return {sizeof(CUresult), sizeof(Parameters)...};
}
template <typename... Parameters>
constexpr std::array<size_t, sizeof...(Parameters) + 1>
sizesOf(Result (*)(Parameters...)) {
  return {sizeof(Result), sizeof(Parameters)...};
}

template <size_t N>
constexpr bool equal(const std::array<size_t, N> &a,
                     const std::array<size_t, N> &b) {
  for (size_t i = 0; i < N; ++i)
    if (a[i] != b[i])
      return false;
  return true;
}

#define SYMBOL(member, name, parameters)                                       \
  static_assert(equal(sizesOf(decltype(&name){}),                              \
                      sizesOf(static_cast<Result(*) parameters>(nullptr))),    \
                #name);
#include "lib/Runtime/Cuda/CudaSymbols.def"

static_assert(kSuccess == CUDA_SUCCESS);
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNotReady == CUDA_ERROR_NOT_READY);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kIpcLazyEnablePeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(kCaptureModeRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kPointerAttributeBufferId == CU_POINTER_ATTRIBUTE_BUFFER_ID);
static_assert(kMemoryTypeDevice == CU_MEMORYTYPE_DEVICE);
static_assert(kAttributeMaxDynamicShared ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kWaitValue32 == CU_STREAM_MEM_OP_WAIT_VALUE_32);
static_assert(kWriteValue32 == CU_STREAM_MEM_OP_WRITE_VALUE_32);
static_assert(kWaitGreaterOrEqual == CU_STREAM_WAIT_VALUE_GEQ);

static_assert(sizeof(IpcMemHandle) == sizeof(CUipcMemHandle));
static_assert(sizeof(MemOp) == sizeof(CUstreamBatchMemOpParams));
using WaitOp = decltype(CUstreamBatchMemOpParams::waitValue);
static_assert(offsetof(MemOp, address) == offsetof(WaitOp, address));
static_assert(offsetof(MemOp, value) == offsetof(WaitOp, value));
static_assert(offsetof(MemOp, flags) == offsetof(WaitOp, flags));
static_assert(offsetof(MemOp, alias) == offsetof(WaitOp, alias));
static_assert(sizeof(Memcpy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(Memcpy2D, srcDevice) ==
              offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(Memcpy2D, srcPitch) ==
              offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(Memcpy2D, dstType) ==
              offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(Memcpy2D, dstDevice) ==
              offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(Memcpy2D, dstPitch) ==
              offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(Memcpy2D, width) ==
              offsetof(CUDA_MEMCPY2D, WidthInBytes));
