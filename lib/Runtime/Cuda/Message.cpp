//===- Message.cpp - Messages and collectives by NCCL ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"

using namespace mercury::rt;
using namespace mercury::rt::cuda;

/// The ranks are together here, so that all make them in the job's order: no
/// two ranks ever wait for each other in communicators of different groups.
int32_t Rank::openCommunicators(const mercury_rt_cuda_job &job) {
  for (int64_t index = 0; index < groups.count(); ++index) {
    const mercury_rt_cuda_group &given = job.groups[index];
    Communicator &made = communicators[index];
    made = static_cast<Communicator>(given.communicator);
    if (made || !(given.sends || given.puts))
      continue;
    operation = {"communicator of " + mesh.groupName(given.group)};
    if (!isLocalGroup(given.group))
      return failWith(MERCURY_RT_UNSUPPORTED,
                      "its ranks are on several hosts; pass a communicator");
    NcclUniqueId id = {};
    int64_t self = mesh.groupRank(number, given.group);
    if (self == 0)
      MERCURY_RT_NCCL(nccl->getUniqueId(&id));
    if (std::string problem = board.passUniqueId(index, id); !problem.empty())
      return failWith(MERCURY_RT_DEADLINE, problem);
    MERCURY_RT_NCCL(nccl->commInitRank(&made, groups.size(index), id, self));
    ownCommunicators.push_back(index);
  }
  return groups.findPutting() < 0 ? MERCURY_RT_OK : openWindow();
}

int32_t Rank::findCommunicator(int64_t group, Communicator &found) {
  found = communicators[groups.find(group)];
  if (found)
    return MERCURY_RT_OK;
  return failWith(MERCURY_RT_UNSUPPORTED,
                  "the group has no communicator; open the job with one, or "
                  "say there that the group sends");
}

/// Refuses what no program may start, and finds out what it is.
int32_t Rank::beginExchange(std::string_view kind, Exchange &exchange,
                            int64_t *token) {
  if (int32_t status = begin(kind, exchange.group))
    return status;
  if (!token)
    return invalid("no place for the token; pass a pointer to one");
  *token = 0;
  int64_t self = mesh.groupRank(number, exchange.group);
  int64_t members = mesh.groupSize(exchange.group);
  bool sends = exchange.sends(), receives = exchange.receives();
  if (exchange.sent < 0 || exchange.received < 0)
    return invalid("cannot send " + std::to_string(exchange.sent) +
                   " bytes and receive " + std::to_string(exchange.received) +
                   "; sizes start at 0");
  for (auto [used, peer] :
       {std::pair(sends, exchange.to), {receives, exchange.from}})
    if (used && (peer < 0 || peer >= members))
      return invalid("there is no group rank " + std::to_string(peer) +
                     "; group ranks go from 0 to " +
                     std::to_string(members - 1));
  if ((sends && !exchange.src) || (receives && !exchange.dst))
    return invalid("a side that is not empty has no memory; pass its address");
  bool toSelf = sends && exchange.to == self;
  bool fromSelf = receives && exchange.from == self;
  exchange.isCopy = toSelf && fromSelf;
  if (toSelf != fromSelf)
    return invalid("names this rank on one side only; a local copy names it on "
                   "both");
  if (exchange.isCopy && exchange.sent != exchange.received)
    return failWith(MERCURY_RT_MISMATCH,
                    "copies " + std::to_string(exchange.sent) + " bytes into " +
                        std::to_string(exchange.received));
  return MERCURY_RT_OK;
}

int32_t Rank::startExchange(const Exchange &exchange, bool puts,
                            int64_t *token) {
  MERCURY_RT_CUDA(lanes.fork(lanes.messages));
  int32_t status =
      exchange.isCopy
          ? copyInto(lanes.messages.stream(), exchange.src, exchange.sent,
                     exchange.dst, exchange.sent, exchange.sent, 1)
      : puts ? put(exchange)
             : message(exchange);
  if (status != MERCURY_RT_OK)
    return status;
  return start(lanes.messages, 0, token);
}

int32_t Rank::message(const Exchange &exchange) {
  Communicator communicator = nullptr;
  if (int32_t status = findCommunicator(exchange.group, communicator))
    return status;
  MERCURY_RT_NCCL(nccl->groupStart());
  if (exchange.sends())
    MERCURY_RT_NCCL(nccl->send(exchange.src, exchange.sent, kNcclInt8,
                               exchange.to, communicator,
                               lanes.messages.stream()));
  if (exchange.receives())
    MERCURY_RT_NCCL(nccl->recv(exchange.dst, exchange.received, kNcclInt8,
                               exchange.from, communicator,
                               lanes.messages.stream()));
  MERCURY_RT_NCCL(nccl->groupEnd());
  return MERCURY_RT_OK;
}

int32_t Rank::exchangeStart(int64_t group, int64_t sendTo, const void *src,
                            int64_t sendBytes, int64_t recvFrom, void *dst,
                            int64_t recvBytes, int64_t *token) {
  Exchange exchange = {group, sendTo, recvFrom, src, dst, sendBytes, recvBytes};
  if (int32_t status = beginExchange("exchange", exchange, token))
    return status;
  return exchange.isEmpty() ? MERCURY_RT_OK
                            : startExchange(exchange, /*puts=*/false, token);
}

int32_t Rank::allGatherStart(int64_t group, const void *src, int64_t sendBytes,
                             void *dst, int64_t slotBytes,
                             const int64_t *bytesOfMember, int64_t *token) {
  if (int32_t status = begin("all_gather", group))
    return status;
  if (!token || !bytesOfMember)
    return invalid("no place for the token or no table of the members' bytes; "
                   "pass both");
  *token = 0;
  int64_t self = mesh.groupRank(number, group), members = mesh.groupSize(group);
  bool isEven = true, isEmpty = true;
  for (int64_t member = 0; member < members; ++member) {
    int64_t bytes = bytesOfMember[member];
    if (bytes < 0 || bytes > slotBytes)
      return invalid("the part of group rank " + std::to_string(member) +
                     " is of " + std::to_string(bytes) +
                     " bytes; sizes go from 0 to those of a slot, " +
                     std::to_string(slotBytes));
    isEven &= bytes == slotBytes;
    isEmpty &= bytes == 0;
  }
  if (bytesOfMember[self] != sendBytes)
    return invalid("sends " + std::to_string(sendBytes) +
                   " bytes but the table says " +
                   std::to_string(bytesOfMember[self]) + " for this rank");
  if (isEmpty)
    return MERCURY_RT_OK;
  if (!dst || (sendBytes && !src))
    return invalid("a part that is not empty has no memory; pass its address");

  Communicator communicator = nullptr;
  if (int32_t status = findCommunicator(group, communicator))
    return status;
  MERCURY_RT_CUDA(lanes.fork(lanes.messages));
  Stream lane = lanes.messages.stream();
  char *slots = static_cast<char *>(dst);
  if (isEven) {
    MERCURY_RT_NCCL(
        nccl->allGather(src, slots, slotBytes, kNcclInt8, communicator, lane));
  } else {
    char *own = slots + self * slotBytes;
    if (sendBytes && own != src)
      if (int32_t status =
              copyInto(lane, src, sendBytes, own, sendBytes, sendBytes, 1))
        return status;
    MERCURY_RT_NCCL(nccl->groupStart());
    for (int64_t member = 0; member < members; ++member) {
      if (member == self)
        continue;
      if (sendBytes)
        MERCURY_RT_NCCL(
            nccl->send(src, sendBytes, kNcclInt8, member, communicator, lane));
      if (int64_t bytes = bytesOfMember[member])
        MERCURY_RT_NCCL(nccl->recv(slots + member * slotBytes, bytes, kNcclInt8,
                                   member, communicator, lane));
    }
    MERCURY_RT_NCCL(nccl->groupEnd());
  }
  return start(lanes.messages, 0, token);
}
