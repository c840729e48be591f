//===- Context.h - What a backend implements --------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C functions of runtime.h are methods of one rank's context; each backend
// derives its own. Their meaning is documented there.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CONTEXT_H
#define LIB_RUNTIME_CONTEXT_H

#include "mercury-rt/lane.h"
#include "mercury-rt/runtime.h"
#include <string>

struct mercury_rt_context {
  virtual ~mercury_rt_context() = default;
  virtual int64_t groupRank(int64_t group) = 0;
  virtual int64_t groupSize(int64_t group) = 0;
  virtual void *localArena() = 0;
  virtual void *symmetricArena() = 0;
  virtual int32_t exchangeStart(int64_t group, int64_t sendTo, const void *src,
                                int64_t sendBytes, int64_t recvFrom, void *dst,
                                int64_t recvBytes, int64_t *token) = 0;
  virtual int32_t putStart(int64_t group, int64_t sendTo, const void *src,
                           int64_t sendBytes, int64_t recvFrom, void *dst,
                           int64_t recvBytes, int64_t *token) = 0;
  virtual int32_t allGatherStart(int64_t group, const void *src,
                                 int64_t sendBytes, void *dst,
                                 int64_t slotBytes,
                                 const int64_t *bytesOfMember,
                                 int64_t *token) = 0;
  virtual int32_t reduceScatterStart(int64_t group, void *src,
                                     int64_t slotBytes, void *dst,
                                     const int64_t *bytesOfMember,
                                     int32_t elementType, int32_t reduction,
                                     int64_t *token) = 0;
  virtual int32_t allReduceStart(int64_t group, const void *src, void *dst,
                                 int64_t bytes, int32_t elementType,
                                 int32_t reduction, int64_t *token) = 0;
  virtual int32_t allToAllStart(int64_t group, const void *src,
                                int64_t sendSlotBytes, const int64_t *sendBytes,
                                void *dst, int64_t recvSlotBytes,
                                const int64_t *recvBytes, int64_t *token) = 0;
  virtual int32_t broadcastStart(int64_t group, int64_t root, const void *src,
                                 void *dst, int64_t bytes, int64_t *token) = 0;
  virtual int32_t wait(int64_t token) = 0;
  virtual int32_t leaseOpen(int64_t group, const void *base, int64_t bytes,
                            int64_t *lease) = 0;
  virtual int32_t leaseAddress(int64_t lease, int64_t peer,
                               const void **base) = 0;
  virtual int32_t pullStart(int64_t lease, int64_t peer, const void *src,
                            int64_t srcPitch, void *dst, int64_t dstPitch,
                            int64_t rowBytes, int64_t rows, int64_t *token) = 0;
  virtual int32_t leaseClose(int64_t lease) = 0;
  virtual int32_t launch(const char *name,
                         const mercury_rt_launch_arguments *arguments) = 0;
  virtual int32_t fail(int32_t code, const char *message) = 0;

  virtual int32_t useLane(int64_t lane);
  virtual int32_t markLane(int64_t *token);
  virtual int32_t copy(const void *src, int64_t srcPitch, void *dst,
                       int64_t dstPitch, int64_t rowBytes, int64_t rows);
  virtual int32_t deviceLaunch(const mercury_rt_device_kernel &kernel);
};

namespace mercury::rt {

/// Sets what mercury_rt_last_error() says on this thread.
void setLastError(const std::string &message);

} // namespace mercury::rt

#endif // LIB_RUNTIME_CONTEXT_H
