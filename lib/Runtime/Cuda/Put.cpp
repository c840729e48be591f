//===- Put.cpp - Messages by puts into a receiver's memory ----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A put of NCCL asks nothing of its receiver, so it must not come early: a rank
// tells whom it receives from that the place is free, by a signal of its own.
//
//            sender                         receiver
//              |                  free: signal |
//              |<------------------------------| starts
//              | waits, puts the bytes: signal |
//              |------------------------------>| waits
//
// NCCL counts the signals of a peer, whatever they say, and keeps their order.
// One rank's go out in the order of its starts, and each of its peers waits for
// them in that of its own, which are in one order too; within a start, "free"
// is first on both ends. So a count tells which signal has come.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"
#include <algorithm>

using namespace mercury::rt;
using namespace mercury::rt::cuda;

int32_t Rank::signal(int64_t member, Communicator communicator) {
  MERCURY_RT_NCCL(
      nccl->signal(member, 0, 0, 0, communicator, lanes.messages.stream()));
  return MERCURY_RT_OK;
}

int32_t Rank::waitForSignal(int64_t member, Communicator communicator) {
  SignalWait wait = {1, static_cast<int>(member), 0, 0};
  MERCURY_RT_NCCL(
      nccl->waitSignal(1, &wait, communicator, lanes.messages.stream()));
  return MERCURY_RT_OK;
}

/// Makes the symmetric arena one that the members of a group put into.
int32_t Rank::openWindow() {
  int64_t index = groups.findPutting(), group = groups.name(index);
  Communicator communicator = communicators[index];
  operation = {"window of " + mesh.groupName(group)};
  MERCURY_RT_NCCL(nccl->windowRegister(communicator, symmetricArena(),
                                       symmetric.bytes, &window,
                                       kWindowSymmetric));
  if (!window)
    return failWith(MERCURY_RT_UNSUPPORTED,
                    "NCCL registers no memory that these GPUs could put into; "
                    "use a plan without the transport rma");
  // The first signal sets up what all later ones need. Every member takes part
  // in that, which none may while it captures, or sends nothing in a plan.
  int64_t self = mesh.groupRank(number, group), members = groups.size(index);
  if (members == 1)
    return MERCURY_RT_OK;
  if (int32_t status = signal((self + 1) % members, communicator))
    return status;
  return waitForSignal((self + members - 1) % members, communicator);
}

int32_t Rank::put(const Exchange &exchange) {
  Communicator communicator = communicators[groups.findPutting()];
  if (exchange.receives())
    if (int32_t status = signal(exchange.from, communicator))
      return status;
  if (exchange.sends()) {
    if (int32_t status = waitForSignal(exchange.to, communicator))
      return status;
    MERCURY_RT_NCCL(nccl->putSignal(exchange.src, exchange.sent, kNcclInt8,
                                    exchange.to, window,
                                    symmetric.offsetOf(exchange.dst), 0, 0, 0,
                                    communicator, lanes.messages.stream()));
  }
  return exchange.receives() ? waitForSignal(exchange.from, communicator)
                             : MERCURY_RT_OK;
}

int32_t Rank::putStart(int64_t group, int64_t sendTo, const void *src,
                       int64_t sendBytes, int64_t recvFrom, void *dst,
                       int64_t recvBytes, int64_t *token) {
  Exchange exchange = {group, sendTo, recvFrom, src, dst, sendBytes, recvBytes};
  if (int32_t status = beginExchange("put", exchange, token))
    return status;
  if (exchange.isEmpty())
    return MERCURY_RT_OK;
  if (groups.find(group) != groups.findPutting())
    return failWith(MERCURY_RT_UNSUPPORTED,
                    "the job was opened without puts of this group; say there "
                    "that it puts");
  if (!symmetric.contains(dst, std::max(sendBytes, recvBytes)) ||
      (exchange.sends() && !symmetric.contains(src, sendBytes)))
    return invalid("puts from or to memory outside of the symmetric arena; "
                   "take both ends from there");
  if (capturing && nccl->version < kOldestCapturedPuts)
    return failWith(MERCURY_RT_UNSUPPORTED,
                    "NCCL " + describeNccl(nccl->version) +
                        " counts signals on the host, so that a graph cannot "
                        "hold them; install NCCL " +
                        describeNccl(kOldestCapturedPuts) +
                        " or later, or run without a graph");
  return startExchange(exchange, /*puts=*/true, token);
}
