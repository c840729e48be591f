//===- Collectives.cpp - What a whole group does, by NCCL -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"

using namespace mercury::rt;
using namespace mercury::rt::cuda;

namespace {
struct Elements {
  int type; // as NCCL numbers it
  int64_t bytes;
};
} // namespace

/// What NCCL calls an element type; no bytes for one that it does not reduce.
static Elements findElements(int32_t type) {
  switch (type) {
  case MERCURY_RT_F16:
    return {6, 2};
  case MERCURY_RT_F32:
    return {7, 4};
  case MERCURY_RT_F64:
    return {8, 8};
  case MERCURY_RT_BF16:
    return {9, 2};
  default:
    return {0, 0};
  }
}

static int findReduction(int32_t reduction) {
  return reduction == MERCURY_RT_SUM ? 0 : 2; // ncclSum, ncclMax
}

int32_t Rank::beginCollective(std::string_view kind, int64_t group,
                              int64_t *token) {
  if (int32_t status = begin(kind, group))
    return status;
  if (!token)
    return invalid("no place for the token; pass a pointer to one");
  *token = 0;
  return MERCURY_RT_OK;
}

int32_t Rank::checkReduction(int64_t bytes, int32_t elementType,
                             int32_t reduction) {
  int64_t size = findElements(elementType).bytes;
  if (size == 0)
    return invalid("cannot reduce elements of type " +
                   std::to_string(elementType) + "; types go from 1 to 4");
  if (reduction != MERCURY_RT_SUM && reduction != MERCURY_RT_MAX)
    return invalid("there is no reduction " + std::to_string(reduction) +
                   "; sum is 0 and max is 1");
  if (bytes < 0 || bytes % size != 0)
    return invalid("cannot reduce " + std::to_string(bytes) +
                   " bytes; give a whole number of elements of " +
                   std::to_string(size));
  return MERCURY_RT_OK;
}

/// Joins the messages' lane to what was put into this one before.
int32_t Rank::openCollective(int64_t group, Communicator &communicator) {
  if (int32_t status = findCommunicator(group, communicator))
    return status;
  MERCURY_RT_CUDA(lanes.fork(lanes.messages));
  return MERCURY_RT_OK;
}

int32_t Rank::closeCollective(int64_t *token) {
  return start(lanes.messages, 0, token);
}

int32_t Rank::reduceScatterStart(int64_t group, void *src, int64_t slotBytes,
                                 void *dst, const int64_t *bytesOfMember,
                                 int32_t elementType, int32_t reduction,
                                 int64_t *token) {
  if (int32_t status = beginCollective("reduce_scatter", group, token))
    return status;
  if (!bytesOfMember)
    return invalid("no table of the members' bytes; pass one entry a member");
  int64_t self = mesh.groupRank(number, group), members = mesh.groupSize(group);
  bool isEven = true, isEmpty = true;
  for (int64_t member = 0; member < members; ++member) {
    int64_t bytes = bytesOfMember[member];
    if (int32_t status = checkReduction(bytes, elementType, reduction))
      return status;
    if (bytes > slotBytes)
      return invalid("the part of group rank " + std::to_string(member) +
                     " is of " + std::to_string(bytes) +
                     " bytes; sizes go from 0 to those of a slot, " +
                     std::to_string(slotBytes));
    isEven &= bytes == bytesOfMember[0];
    isEmpty &= bytes == 0;
  }
  if (int32_t status = checkReduction(slotBytes, elementType, reduction))
    return status;
  if (isEmpty)
    return MERCURY_RT_OK;
  int64_t own = bytesOfMember[self];
  if (!src || (own && !dst))
    return invalid("a part that is not empty has no memory; pass its address");

  Communicator communicator = nullptr;
  if (int32_t status = openCollective(group, communicator))
    return status;
  Elements elements = findElements(elementType);
  char *slot = static_cast<char *>(src) + self * slotBytes;
  // NCCL reduces slots of one size: what pads the smaller parts is reduced too,
  // and so the result, a whole slot, is made in this rank's own.
  bool isWhole = isEven && bytesOfMember[0] == slotBytes;
  MERCURY_RT_NCCL(nccl->reduceScatter(
      src, isWhole ? dst : slot, slotBytes / elements.bytes, elements.type,
      findReduction(reduction), communicator, lanes.messages.stream()));
  if (!isWhole && own)
    if (int32_t status =
            copyInto(lanes.messages.stream(), slot, own, dst, own, own, 1))
      return status;
  return closeCollective(token);
}

int32_t Rank::allReduceStart(int64_t group, const void *src, void *dst,
                             int64_t bytes, int32_t elementType,
                             int32_t reduction, int64_t *token) {
  if (int32_t status = beginCollective("all_reduce", group, token))
    return status;
  if (int32_t status = checkReduction(bytes, elementType, reduction))
    return status;
  if (bytes == 0)
    return MERCURY_RT_OK;
  if (!src || !dst)
    return invalid("a tile that is not empty has no memory; pass its address");
  Communicator communicator = nullptr;
  if (int32_t status = openCollective(group, communicator))
    return status;
  Elements elements = findElements(elementType);
  MERCURY_RT_NCCL(nccl->allReduce(src, dst, bytes / elements.bytes,
                                  elements.type, findReduction(reduction),
                                  communicator, lanes.messages.stream()));
  return closeCollective(token);
}

int32_t Rank::allToAllStart(int64_t group, const void *src,
                            int64_t sendSlotBytes, const int64_t *sendBytes,
                            void *dst, int64_t recvSlotBytes,
                            const int64_t *recvBytes, int64_t *token) {
  if (int32_t status = beginCollective("all_to_all", group, token))
    return status;
  if (!sendBytes || !recvBytes)
    return invalid("no table of the members' bytes; pass one entry a member");
  int64_t self = mesh.groupRank(number, group), members = mesh.groupSize(group);
  bool isEmpty = true;
  for (int64_t member = 0; member < members; ++member) {
    int64_t sent = sendBytes[member], received = recvBytes[member];
    if (sent < 0 || sent > sendSlotBytes || received < 0 ||
        received > recvSlotBytes)
      return invalid("sends " + std::to_string(sent) + " bytes to and " +
                     std::to_string(received) + " from group rank " +
                     std::to_string(member) +
                     "; sizes go from 0 to those of a slot");
    if ((sent && !src) || (received && !dst))
      return invalid("no memory for the parts; pass the first slot's address");
    isEmpty &= sent == 0 && received == 0;
  }
  if (sendBytes[self] != recvBytes[self])
    return failWith(MERCURY_RT_MISMATCH, "sends itself " +
                                             std::to_string(sendBytes[self]) +
                                             " bytes and receives " +
                                             std::to_string(recvBytes[self]));
  if (isEmpty)
    return MERCURY_RT_OK;
  Communicator communicator = nullptr;
  if (int32_t status = openCollective(group, communicator))
    return status;
  const char *from = static_cast<const char *>(src);
  char *to = static_cast<char *>(dst);
  if (int64_t own = sendBytes[self])
    if (int32_t status =
            copyInto(lanes.messages.stream(), from + self * sendSlotBytes, own,
                     to + self * recvSlotBytes, own, own, 1))
      return status;
  MERCURY_RT_NCCL(nccl->groupStart());
  for (int64_t member = 0; member < members; ++member) {
    if (member == self)
      continue;
    if (int64_t bytes = sendBytes[member])
      MERCURY_RT_NCCL(nccl->send(from + member * sendSlotBytes, bytes,
                                 kNcclInt8, member, communicator,
                                 lanes.messages.stream()));
    if (int64_t bytes = recvBytes[member])
      MERCURY_RT_NCCL(nccl->recv(to + member * recvSlotBytes, bytes, kNcclInt8,
                                 member, communicator,
                                 lanes.messages.stream()));
  }
  MERCURY_RT_NCCL(nccl->groupEnd());
  return closeCollective(token);
}

int32_t Rank::broadcastStart(int64_t group, int64_t root, const void *src,
                             void *dst, int64_t bytes, int64_t *token) {
  if (int32_t status = beginCollective("broadcast", group, token))
    return status;
  int64_t self = mesh.groupRank(number, group);
  if (root < 0 || root >= mesh.groupSize(group))
    return invalid("there is no group rank " + std::to_string(root) +
                   "; group ranks go from 0 to " +
                   std::to_string(mesh.groupSize(group) - 1));
  if (bytes < 0 || (bytes && (!dst || (self == root && !src))))
    return invalid("cannot broadcast " + std::to_string(bytes) +
                   " bytes; sizes start at 0, and what is not empty has "
                   "memory");
  if (bytes == 0)
    return MERCURY_RT_OK;
  Communicator communicator = nullptr;
  if (int32_t status = openCollective(group, communicator))
    return status;
  MERCURY_RT_NCCL(nccl->broadcast(self == root ? src : dst, dst, bytes,
                                  kNcclInt8, root, communicator,
                                  lanes.messages.stream()));
  return closeCollective(token);
}
