//===- Lease.cpp - Reading the memory of other ranks ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host tells its peers where the memory is; the devices tell each other
// when it may be read. The slot of a lease is the number of its opening, so
// both ends know it without a word.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"

using namespace mercury::rt;
using namespace mercury::rt::cuda;

int32_t Rank::waitForReaders(LeaseRecord &record, int64_t others) {
  if (record.number.load(std::memory_order_relaxed) == 0)
    return MERCURY_RT_OK; // the slot is new
  auto closed = [&] {
    return record.readers.load(std::memory_order_acquire) == others;
  };
  if (board.waitUntil(closed))
    return MERCURY_RT_OK;
  return failWith(MERCURY_RT_DEADLINE,
                  "a peer has not closed the lease that was opened " +
                      std::to_string(MERCURY_RT_CUDA_MAX_LEASES) +
                      " openings before, within " +
                      std::to_string(deadline.count()) + " ms");
}

int32_t Rank::leaseOpen(int64_t group, const void *base, int64_t bytes,
                        int64_t *lease) {
  if (int32_t status = begin("lease.open", group))
    return status;
  if (!lease)
    return invalid("no place for the lease; pass a pointer to one");
  if (bytes < 0 || (bytes > 0 && !base))
    return invalid("cannot lend " + std::to_string(bytes) +
                   " bytes at no address; pass an address and a size from 0");
  if (bytes > 0 && local.contains(base))
    return invalid("lends memory of the local arena, which no peer maps; lend "
                   "what lies in the symmetric arena");
  if (bytes > 0 && groups.findPutting() >= 0 && symmetric.contains(base))
    return invalid(
        "lends memory that peers put into, which is NCCL's and which "
        "no peer maps; lend memory of the caller's");
  if (!isLocalGroup(group))
    return failWith(MERCURY_RT_UNSUPPORTED,
                    "the ranks of this group are on several hosts and cannot "
                    "read each other's memory; use a schedule that sends");
  int64_t index = groups.find(group), opening = openings[index]++;
  Lease opened;
  opened.group = group;
  opened.index = index;
  opened.slot = opening % MERCURY_RT_CUDA_MAX_LEASES;
  opened.number = opening + 1;
  opened.base = static_cast<const char *>(base);
  opened.bytes = bytes;
  for (const auto &[other, open] : leases)
    if (open.index == index && open.slot == opened.slot)
      return invalid("more than " + std::to_string(MERCURY_RT_CUDA_MAX_LEASES) +
                     " leases would be open at once; close some before");

  int64_t self = mesh.groupRank(number, group), members = mesh.groupSize(group);
  opened.addresses.resize(members, nullptr);
  opened.isKnown.resize(members, false);
  opened.addresses[self] = opened.base;
  opened.isKnown[self] = true;

  LeaseRecord &record = board.lease(number, index, opened.slot);
  if (int32_t status = waitForReaders(record, members - 1))
    return status;
  if (bytes > 0)
    MERCURY_RT_CUDA(peers.share(reinterpret_cast<DevicePtr>(base),
                                record.memory, record.offset));
  record.bytes = bytes;
  record.readers.store(0, std::memory_order_relaxed);
  record.number.store(opened.number, std::memory_order_release);

  for (int64_t member = 0; member < members; ++member)
    if (member != self)
      this->opened.push_back({mesh.memberOfGroup(number, group, member),
                              {index, opened.slot, self, Signal::Ready}});
  *lease = operations;
  leases.emplace(operations, std::move(opened));
  return MERCURY_RT_OK;
}

int32_t Rank::checkLease(int64_t lease, int64_t peer, std::string_view kind) {
  auto found = leases.find(lease);
  if (board.failed())
    return firstFailure();
  if (found == leases.end()) {
    operation = {std::string(kind), operations};
    operation.isAfter = true;
    return failWith(MERCURY_RT_LEASE, "there is no open lease " +
                                          std::to_string(lease) +
                                          "; open it, and close it once");
  }
  if (int32_t status = begin(kind, found->second.group))
    return status;
  int64_t members = groups.size(found->second.index);
  if (peer < 0 || peer >= members)
    return invalid("there is no group rank " + std::to_string(peer) +
                   "; group ranks go from 0 to " + std::to_string(members - 1));
  return MERCURY_RT_OK;
}

int32_t Rank::leaseAddress(int64_t number, int64_t peer, const void **base) {
  if (int32_t status = checkLease(number, peer, "lease.memory"))
    return status;
  if (!base)
    return invalid("no place for the address; pass a pointer to one");
  Lease &lease = leases.at(number);
  if (int32_t status = know(lease, peer))
    return status;
  *base = lease.addresses[peer];
  return MERCURY_RT_OK;
}

int32_t Rank::know(Lease &lease, int64_t peer) {
  if (lease.isKnown[peer])
    return MERCURY_RT_OK;
  int64_t owner = mesh.memberOfGroup(number, lease.group, peer);
  LeaseRecord &record = board.lease(owner, lease.index, lease.slot);
  auto isOpen = [&] {
    return record.number.load(std::memory_order_acquire) == lease.number;
  };
  if (!board.waitUntil(isOpen))
    return failWith(MERCURY_RT_DEADLINE,
                    "group rank " + std::to_string(peer) +
                        " did not open the same lease within " +
                        std::to_string(deadline.count()) +
                        " ms; open the same leases on every member");
  if (record.bytes > 0) {
    DevicePtr mapped = 0;
    MERCURY_RT_CUDA(peers.map(owner, record.memory, mapped));
    lease.addresses[peer] =
        reinterpret_cast<const char *>(mapped + record.offset);
  }
  lease.isKnown[peer] = true;
  awaited[owner].push_back({lease.index, lease.slot, peer, Signal::Ready});
  return MERCURY_RT_OK;
}

int32_t Rank::findPullLane(int64_t owner, Lane *&lane) {
  MERCURY_RT_CUDA(lanes.pulls(owner, lane));
  MERCURY_RT_CUDA(lanes.fork(*lane));
  std::vector<Signals::Word> &words = awaited[owner];
  if (!words.empty())
    MERCURY_RT_CUDA(signals.receive(lane->stream(), words));
  words.clear();
  return MERCURY_RT_OK;
}

int32_t Rank::sendOpened() {
  if (opened.empty())
    return MERCURY_RT_OK;
  // In a lane of their own, which never waits for a peer: no kernel and no pull
  // is in the way of a signal, nor the other way round.
  MERCURY_RT_CUDA(lanes.fork(lanes.signals));
  MERCURY_RT_CUDA(signals.send(lanes.signals.stream(), opened));
  opened.clear();
  return MERCURY_RT_OK;
}

int32_t Rank::finishClosed() {
  if (closed.empty())
    return MERCURY_RT_OK;
  for (auto &[owner, words] : read) {
    // In the lane of the pulls, so that the owner hears at once when they are
    // over, and not only when this rank's kernels have come so far. Where
    // nothing was pulled the signal is taken back all the same, or the next
    // one would be lost.
    Lane *lane = nullptr;
    MERCURY_RT_CUDA(lanes.pulls(owner, lane));
    if (!awaited[owner].empty())
      if (int32_t status = findPullLane(owner, lane))
        return status;
    MERCURY_RT_CUDA(signals.send(lane->stream(), words));
  }
  MERCURY_RT_CUDA(signals.receive(lanes.current->stream(), closed));
  read.clear();
  closed.clear();
  return MERCURY_RT_OK;
}

int32_t Rank::pullStart(int64_t number, int64_t peer, const void *src,
                        int64_t srcPitch, void *dst, int64_t dstPitch,
                        int64_t rowBytes, int64_t rows, int64_t *token) {
  if (int32_t status = checkLease(number, peer, "pull"))
    return status;
  if (!token)
    return invalid("no place for the token; pass a pointer to one");
  *token = 0;
  if (rowBytes < 0 || rows < 0)
    return invalid("cannot read " + std::to_string(rows) + " rows of " +
                   std::to_string(rowBytes) + " bytes; sizes start at 0");
  if (rowBytes == 0 || rows == 0)
    return MERCURY_RT_OK;
  Lease &lease = leases.at(number);
  int64_t owner = mesh.memberOfGroup(this->number, lease.group, peer);
  auto first = static_cast<const char *>(src);
  const char *base = lease.addresses[peer];
  int64_t bytes = owner == this->number
                      ? lease.bytes
                      : board.lease(owner, lease.index, lease.slot).bytes;
  int64_t last = (rows - 1) * srcPitch + rowBytes; // from the first on
  if (!base || !dst || srcPitch < 0 || first < base ||
      first + last > base + bytes)
    return invalid("reads outside the " + std::to_string(bytes) +
                   " bytes that group rank " + std::to_string(peer) +
                   " lent; reckon the source from mercury_rt_lease_address()");

  Lane *lane = nullptr;
  if (int32_t status = findPullLane(owner, lane))
    return status;
  if (int32_t status = copyInto(lane->stream(), src, srcPitch, dst, dstPitch,
                                rowBytes, rows))
    return status;
  return start(*lane, number, token);
}

int32_t Rank::leaseClose(int64_t number) {
  if (int32_t status = checkLease(number, 0, "lease.close"))
    return status;
  for (const auto &[token, open] : tokens)
    if (open.lease == number)
      return failWith(MERCURY_RT_LEASE, "its pull with token " +
                                            std::to_string(token) +
                                            " was not waited for; wait for "
                                            "every pull before");
  Lease lease = std::move(leases.at(number));
  leases.erase(number);
  int64_t self = mesh.groupRank(this->number, lease.group);
  for (int64_t peer = 0; peer < groups.size(lease.index); ++peer) {
    if (peer == self)
      continue;
    int64_t owner = mesh.memberOfGroup(this->number, lease.group, peer);
    if (int32_t status = know(lease, peer))
      return status;
    read[owner].push_back(
        {owner, {lease.index, lease.slot, self, Signal::Done}});
    closed.push_back({lease.index, lease.slot, peer, Signal::Done});
    board.lease(owner, lease.index, lease.slot)
        .readers.fetch_add(1, std::memory_order_acq_rel);
  }
  return MERCURY_RT_OK;
}
