//===- Fake.h - A CUDA driver and an NCCL on the host -----------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shared library with the functions that the runtime calls, working on host
// memory. Each device is one thread that takes work from its streams in random
// order, so what no event orders is soon done in the wrong order. Ranks are
// threads of one process or processes, each with a device of its own.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_RUNTIME_CUDA_FAKE_H
#define TEST_RUNTIME_CUDA_FAKE_H

#include <cstdint>
#include <functional>

extern "C" {
/// The versions that the libraries tell.
void fake_cuda_set_version(int version);
void fake_nccl_set_version(int version);

/// The memory that the driver calls free on every device.
void fake_cuda_set_free_bytes(int64_t bytes);

/// The call number `nth`, from 1 on and counted from now, of a function returns
/// `result` and does nothing.
void fake_cuda_fail(const char *function, int nth, int result);

/// How often a function was called in this process.
int64_t fake_cuda_count_calls(const char *function);

/// From now on messages never end, and their communicator tells all its ranks
/// of this error. 0 mends it.
void fake_nccl_break(int result);

/// While set, memory is registered for no puts, as where GPUs cannot.
void fake_nccl_refuse_windows(int refused);

/// While set, the signal of a put comes before its bytes, which NCCL promises
/// that it does not.
void fake_nccl_hurry_signals(int early);

/// While set, a communicator that is aborted ends its messages but never
/// returns.
void fake_nccl_hold_aborts(int held);

/// The communicators that were not ended.
int64_t fake_nccl_count_communicators(void);

/// Before each piece of work a device sleeps up to so long.
void fake_cuda_set_delay(int device, int max_us);

/// Defines a kernel of every image, of those of PTX that have such an entry;
/// its arguments are of 8 bytes each.
void fake_cuda_define(const char *name, int arguments,
                      void (*kernel)(void **arguments));

/// Memory of a device, without a context.
int fake_cuda_allocate(void **memory, uint64_t bytes);
void fake_cuda_free(void *memory);

/// Puts work into a stream, as fake_cuda_call() for those who are no C++.
void fake_cuda_enqueue(void *stream, void (*body)(void *data), void *data);

/// A stream of a device, and waiting for it.
void *fake_cuda_stream(int device);
void fake_cuda_drain(void *stream);

/// What is still there: allocations, mappings, streams and events.
int64_t fake_cuda_count_objects(void);

/// Whether a handle was ever taken of the allocation that memory lies in.
int fake_cuda_is_shared(const void *memory);

/// The pieces of work in the last graph that was made.
int64_t fake_cuda_count_nodes(void);
}

/// Puts work into a stream, or the default one of the thread's device, as a
/// library does.
void fake_cuda_call(void *stream, std::function<void()> body);

#ifdef FAKE_CUDA_IMPLEMENTATION
#include "lib/Runtime/Cuda/DriverTypes.h"

namespace fake {
using namespace mercury::rt::cuda;

/// Tries to go on; true once done. A device never waits in it.
using Work = std::function<bool()>;
/// Makes the work anew for each time it is done.
using MakeWork = std::function<Work()>;

Result enqueue(Stream stream, MakeWork make);
/// Work that is done in one go.
Result enqueueSimple(Stream stream, std::function<void()> body);
/// Counts a call of a function. Whether it is to fail, and how.
Result failPoint(const char *function);
/// In a function of the driver: counts the call, and ends it if it is to fail.
#define FAIL_POINT()                                                           \
  if (Result result_ = failPoint(__func__))                                    \
  return result_

/// The streams and events that there are.
int64_t countStreams();

inline char *at(DevicePtr address) { return reinterpret_cast<char *>(address); }
} // namespace fake
#endif

#endif // TEST_RUNTIME_CUDA_FAKE_H
