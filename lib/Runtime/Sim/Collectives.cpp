//===- Collectives.cpp - What a whole group does, by messages -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every member sends to every other. Those that reduce keep what comes apart,
// and merge it in the order of the ranks when their wait ends: the same bits
// whatever the order of arrival.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Elements.h"
#include "lib/Runtime/Sim/Job.h"
#include <cstring>

using namespace mercury::rt;
using namespace mercury::rt::sim;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// What is wrong with a reduction of `bytes` bytes; empty if nothing.
static std::string whyNotReduced(int64_t bytes, int32_t type,
                                 int32_t reduction) {
  int64_t size = elementBytes(type);
  if (size == 0)
    return "cannot reduce elements of type " + std::to_string(type) +
           "; types go from 1 to 4";
  if (reduction != MERCURY_RT_SUM && reduction != MERCURY_RT_MAX)
    return "there is no reduction " + std::to_string(reduction) +
           "; sum is 0 and max is 1";
  if (bytes < 0 || bytes % size != 0)
    return "cannot reduce " + std::to_string(bytes) +
           " bytes; give a whole number of elements of " + std::to_string(size);
  return "";
}

int32_t Rank::reduceScatterStart(int64_t group, void *src, int64_t slotBytes,
                                 void *dst, const int64_t *bytesOfMember,
                                 int32_t elementType, int32_t reduction,
                                 int64_t *token) {
  Lock lock(job.mutex);
  Operation *operation = begin(lock, "reduce_scatter", group, token);
  if (!operation)
    return job.firstFailure(lock);
  auto invalid = [&](const std::string &text) {
    return job.fail(lock, *operation, MERCURY_RT_INVALID, text);
  };
  int64_t self = groupRank(group), members = job.mesh.groupSize(group);
  if (!bytesOfMember)
    return invalid("no table of the members' bytes; pass one entry a member");
  for (int64_t member = 0; member < members; ++member) {
    int64_t bytes = bytesOfMember[member];
    if (std::string why = whyNotReduced(bytes, elementType, reduction);
        !why.empty())
      return invalid(why);
    if (bytes > slotBytes)
      return invalid("the part of group rank " + std::to_string(member) +
                     " is of " + std::to_string(bytes) +
                     " bytes; sizes go from 0 to those of a slot, " +
                     std::to_string(slotBytes));
    if (bytes && !src)
      return invalid("no memory for the parts; pass the first slot's address");
  }
  int64_t own = bytesOfMember[self];
  if (own && !dst)
    return invalid("a part that is not empty has no memory; pass its address");

  char *slots = static_cast<char *>(src);
  operation->scratch.resize(own * members);
  std::vector<const char *> parts;
  for (int64_t member = 0; member < members; ++member) {
    char *part = operation->scratch.data() + member * own;
    parts.push_back(part);
    send(lock, *operation, member, slots + member * slotBytes,
         bytesOfMember[member]);
    receive(lock, *operation, member, part, own);
  }
  operation->finish = [=] {
    reduce(parts, static_cast<char *>(dst), own, elementType, reduction);
  };
  return finishStart(lock, *operation, token);
}

int32_t Rank::allReduceStart(int64_t group, const void *src, void *dst,
                             int64_t bytes, int32_t elementType,
                             int32_t reduction, int64_t *token) {
  Lock lock(job.mutex);
  Operation *operation = begin(lock, "all_reduce", group, token);
  if (!operation)
    return job.firstFailure(lock);
  std::string why = whyNotReduced(bytes, elementType, reduction);
  if (why.empty() && bytes && (!src || !dst))
    why = "a tile that is not empty has no memory; pass its address";
  if (!why.empty())
    return job.fail(lock, *operation, MERCURY_RT_INVALID, why);

  int64_t members = job.mesh.groupSize(group);
  operation->scratch.resize(bytes * members);
  std::vector<const char *> parts;
  for (int64_t member = 0; member < members; ++member) {
    char *part = operation->scratch.data() + member * bytes;
    parts.push_back(part);
    send(lock, *operation, member, src, bytes);
    receive(lock, *operation, member, part, bytes);
  }
  operation->finish = [=] {
    reduce(parts, static_cast<char *>(dst), bytes, elementType, reduction);
  };
  return finishStart(lock, *operation, token);
}

int32_t Rank::allToAllStart(int64_t group, const void *src,
                            int64_t sendSlotBytes, const int64_t *sendBytes,
                            void *dst, int64_t recvSlotBytes,
                            const int64_t *recvBytes, int64_t *token) {
  Lock lock(job.mutex);
  Operation *operation = begin(lock, "all_to_all", group, token);
  if (!operation)
    return job.firstFailure(lock);
  auto invalid = [&](const std::string &text) {
    return job.fail(lock, *operation, MERCURY_RT_INVALID, text);
  };
  int64_t members = job.mesh.groupSize(group);
  if (!sendBytes || !recvBytes)
    return invalid("no table of the members' bytes; pass one entry a member");
  for (int64_t member = 0; member < members; ++member)
    for (auto [bytes, slot, data] :
         {std::tuple(sendBytes[member], sendSlotBytes, src),
          {recvBytes[member], recvSlotBytes, dst}}) {
      if (bytes < 0 || bytes > slot)
        return invalid("the part of group rank " + std::to_string(member) +
                       " is of " + std::to_string(bytes) +
                       " bytes; sizes go from 0 to those of a slot, " +
                       std::to_string(slot));
      if (bytes && !data)
        return invalid("no memory for the parts; pass the first slot's "
                       "address");
    }
  const char *from = static_cast<const char *>(src);
  char *to = static_cast<char *>(dst);
  // Empty parts are posted too, so that every disagreement is found.
  for (int64_t member = 0; member < members; ++member) {
    send(lock, *operation, member, from + member * sendSlotBytes,
         sendBytes[member]);
    receive(lock, *operation, member, to + member * recvSlotBytes,
            recvBytes[member]);
  }
  return finishStart(lock, *operation, token);
}

int32_t Rank::broadcastStart(int64_t group, int64_t root, const void *src,
                             void *dst, int64_t bytes, int64_t *token) {
  Lock lock(job.mutex);
  Operation *operation = begin(lock, "broadcast", group, token);
  if (!operation || !checkPeer(lock, *operation, root))
    return job.firstFailure(lock);
  int64_t self = groupRank(group), members = job.mesh.groupSize(group);
  if (bytes < 0 || (bytes && (!dst || (self == root && !src))))
    return job.fail(lock, *operation, MERCURY_RT_INVALID,
                    "cannot broadcast " + std::to_string(bytes) +
                        " bytes; sizes start at 0, and what is not empty has "
                        "memory");
  for (int64_t member = 0; self == root && member < members; ++member)
    if (member != self || src != dst)
      send(lock, *operation, member, src, bytes);
  if (self != root || src != dst)
    receive(lock, *operation, root, dst, bytes);
  return finishStart(lock, *operation, token);
}
