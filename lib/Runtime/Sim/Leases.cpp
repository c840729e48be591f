//===- Leases.cpp - Reading the memory of another rank --------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lease is named on its rank by the number of the operation that opened it.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Sim/Job.h"

using namespace mercury::rt;
using namespace mercury::rt::sim;

int32_t Rank::leaseOpen(int64_t group, const void *base, int64_t bytes,
                        int64_t *lease) {
  Lock lock(job.mutex);
  Operation *operation = begin(lock, "lease_open", group, lease);
  if (!operation)
    return job.firstFailure(lock);
  operation->waited = true;
  if (bytes < 0)
    return job.fail(lock, *operation, MERCURY_RT_INVALID,
                    "cannot lend " + std::to_string(bytes) +
                        " bytes; sizes start at 0");
  if (base && bytes > 0 && liesInLocalArena(base))
    return job.fail(lock, *operation, MERCURY_RT_INVALID,
                    "lends memory of the local arena, which no peer reaches; "
                    "lend what lies in the symmetric arena");

  Lease &opened = job.getLease(number, group, ++leasesOpened[group]);
  operation->lease = &opened;
  Lease::Member &own = opened.members[groupRank(group)];
  own.opening = operation;
  own.base = static_cast<const char *>(base);
  own.bytes = base ? bytes : 0;
  for (Operation *waiting : own.awaiting)
    job.finishOne(*waiting);
  own.awaiting.clear();
  *lease = operation->number;
  return MERCURY_RT_OK;
}

Operation *Rank::beginOnLease(Lock &lock, std::string_view kind, int64_t lease,
                              const void *result) {
  int64_t count = static_cast<int64_t>(operations.size());
  Operation *opening =
      lease > 0 && lease <= count ? &operations[lease - 1] : nullptr;
  Lease *known = opening ? opening->lease : nullptr;
  Lease::Member *own =
      known ? &known->members[groupRank(known->group)] : nullptr;
  if (!own || own->opening != opening) {
    if (!job.failed())
      job.fail(lock, number, MERCURY_RT_LEASE,
               job.mesh.rankName(number) + ", " + std::string(kind) +
                   ": there is no lease " + std::to_string(lease) +
                   "; pass what mercury_rt_lease_open has set");
    return nullptr;
  }
  Operation *operation = begin(lock, kind, known->group, result);
  if (!operation)
    return nullptr;
  operation->lease = known;
  operation->waited = true;
  if (!own->closing)
    return operation;
  job.fail(lock, *operation, MERCURY_RT_LEASE,
           "its lease, opened by operation " + std::to_string(lease) +
               ", was closed before by operation " +
               std::to_string(own->closing->number) +
               "; close it after its last use, once");
  return nullptr;
}

int32_t Rank::leaseAddress(int64_t lease, int64_t peer, const void **base) {
  Lock lock(job.mutex);
  Operation *operation = beginOnLease(lock, "lease_address", lease, base);
  if (!operation || !checkPeer(lock, *operation, peer))
    return job.firstFailure(lock);

  Lease::Member &member = operation->lease->members[peer];
  if (!member.opening) {
    operation->outstanding = 1;
    operation->awaits = peer;
    member.awaiting.push_back(operation);
    if (int32_t status = job.wait(lock, *operation))
      return status;
  }
  *base = member.base;
  return MERCURY_RT_OK;
}

/// The bytes from the first of some rows to the last; -1 if rows overlap or
/// there are more than addresses.
static int64_t spanOf(int64_t rowBytes, int64_t rows, int64_t pitch) {
  int64_t span = 0;
  if (rows > 1 && pitch < rowBytes)
    return -1;
  if (__builtin_mul_overflow(rows - 1, rows > 1 ? pitch : 0, &span) ||
      __builtin_add_overflow(span, rowBytes, &span))
    return -1;
  return span;
}

int32_t Rank::pullStart(int64_t lease, int64_t peer, const void *src,
                        int64_t srcPitch, void *dst, int64_t dstPitch,
                        int64_t rowBytes, int64_t rows, int64_t *token) {
  Lock lock(job.mutex);
  Operation *operation = beginOnLease(lock, "pull", lease, token);
  if (!operation || !checkPeer(lock, *operation, peer))
    return job.firstFailure(lock);
  auto invalid = [&](const std::string &text) {
    return job.fail(lock, *operation, MERCURY_RT_INVALID, text);
  };

  if (rowBytes < 0 || rows < 0)
    return invalid("cannot read " + std::to_string(rows) + " rows of " +
                   std::to_string(rowBytes) + " bytes; sizes start at 0");
  operation->pulls = true;
  operation->empty = rowBytes == 0 || rows == 0;
  if (operation->empty)
    return finishStart(lock, *operation, token);

  int64_t span = spanOf(rowBytes, rows, srcPitch);
  if (span < 0 || spanOf(rowBytes, rows, dstPitch) < 0)
    return invalid(
        "its " + std::to_string(rows) + " rows of " + std::to_string(rowBytes) +
        " bytes lie " + std::to_string(srcPitch) +
        " bytes apart in the source and " + std::to_string(dstPitch) +
        " in the destination; rows must not overlap");
  if (!dst)
    return invalid("no memory for what it reads; pass the destination");
  const Lease::Member &lender = operation->lease->members[peer];
  if (!lender.opening)
    return invalid("group rank " + std::to_string(peer) +
                   " has not opened the lease yet; reckon the source from "
                   "mercury_rt_lease_address, which waits for it");
  auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(src) -
                                     reinterpret_cast<uintptr_t>(lender.base));
  if (offset < 0 || span > lender.bytes || offset > lender.bytes - span)
    return invalid("reads bytes " + std::to_string(offset) + " to " +
                   std::to_string(offset + span) + " of the " +
                   std::to_string(lender.bytes) + " that group rank " +
                   std::to_string(peer) + " lent; stay within them");

  operation->waited = false;
  ++operation->lease->members[groupRank(operation->group)].pulls;
  char *from = const_cast<char *>(static_cast<const char *>(src));
  int64_t owner = job.mesh.memberOfGroup(number, operation->group, peer);
  job.pull({{operation, owner, from, rowBytes, srcPitch},
            {operation, number, static_cast<char *>(dst), rowBytes, dstPitch},
            rows});
  return finishStart(lock, *operation, token);
}

bool Rank::checkPeer(Lock &lock, const Operation &operation, int64_t peer) {
  int64_t members = job.mesh.groupSize(operation.group);
  if (peer >= 0 && peer < members)
    return true;
  job.fail(lock, operation, MERCURY_RT_INVALID,
           "there is no group rank " + std::to_string(peer) +
               "; group ranks go from 0 to " + std::to_string(members - 1));
  return false;
}

int32_t Rank::leaseClose(int64_t lease) {
  Lock lock(job.mutex);
  // Its result is that it returns.
  Operation *operation = beginOnLease(lock, "lease_close", lease, this);
  if (!operation)
    return job.firstFailure(lock);
  Lease &closed = *operation->lease;
  Lease::Member &own = closed.members[groupRank(operation->group)];
  if (own.pulls)
    for (const Operation &open : operations)
      if (open.lease == &closed && open.pulls && !open.waited)
        return job.fail(lock, *operation, MERCURY_RT_LEASE,
                        "its pull, operation " + std::to_string(open.number) +
                            ", was not waited for; wait for every pull of a "
                            "lease before closing it");

  own.closing = operation;
  for (Lease::Member &member : closed.members)
    if (!member.closing)
      ++operation->outstanding;
    else if (member.closing != operation)
      job.finishOne(*member.closing);
  return operation->complete() ? MERCURY_RT_OK : job.wait(lock, *operation);
}

const Operation *Rank::findOpenLease() const {
  for (const Operation &operation : operations) {
    if (!operation.lease)
      continue;
    const Lease &lease = *operation.lease;
    const Lease::Member &own =
        lease.members[job.mesh.groupRank(number, lease.group)];
    if (own.opening == &operation && !own.closing)
      return &operation;
  }
  return nullptr;
}
