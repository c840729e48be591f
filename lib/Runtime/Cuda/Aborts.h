//===- Aborts.h - Communicators that are ended by force ---------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ncclCommAbort first raises a flag, by which the communicator's messages end
// on the device, and then waits until no graph has messages of it. A graph that
// runs in turn can be destroyed only once its messages have ended. So each
// abort has a thread of its own, and the graphs are destroyed meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_ABORTS_H
#define LIB_RUNTIME_CUDA_ABORTS_H

#include "lib/Runtime/Cuda/Library.h"
#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace mercury::rt::cuda {

class Aborts {
public:
  /// Begins to abort the communicator of a group of this name.
  void raise(const Driver &driver, Context context, const Nccl &nccl,
             Communicator communicator, const std::string &name) {
    std::promise<void> over;
    raised.push_back({name, over.get_future()});
    // Detached: one that never returns does not keep the process.
    std::thread([=, &driver, &nccl, over = std::move(over)]() mutable {
      driver.ctxSetCurrent(context);
      nccl.commAbort(communicator); // what it returns is the failure's
      over.set_value();
    }).detach();
  }

  /// Waits until all are over, but not past `end`. Gives the names of the
  /// groups of which one is not, empty if there is none.
  std::string wait(std::chrono::steady_clock::time_point end) const {
    std::string left;
    for (const Abort &abort : raised)
      if (abort.over.wait_until(end) != std::future_status::ready)
        left += (left.empty() ? "" : ", ") + abort.name;
    return left;
  }

private:
  struct Abort {
    std::string name;
    std::future<void> over;
  };
  std::vector<Abort> raised;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_ABORTS_H
