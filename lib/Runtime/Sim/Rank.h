//===- Rank.h - The context of one simulated rank ---------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of one rank: checks what the program asks for, then posts the
// messages it is made of.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_SIM_RANK_H
#define LIB_RUNTIME_SIM_RANK_H

#include "lib/Runtime/Context.h"
#include "lib/Runtime/Sim/Operation.h"
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace mercury::rt::sim {

class Job;

class Rank final : public mercury_rt_context {
public:
  Rank(Job &job, int64_t number);

  int64_t groupRank(int64_t group) override;
  int64_t groupSize(int64_t group) override;
  void *localArena() override { return local.get(); }
  void *symmetricArena() override { return symmetric.get(); }
  int32_t exchangeStart(int64_t group, int64_t sendTo, const void *src,
                        int64_t sendBytes, int64_t recvFrom, void *dst,
                        int64_t recvBytes, int64_t *token) override;
  int32_t putStart(int64_t group, int64_t sendTo, const void *src,
                   int64_t sendBytes, int64_t recvFrom, void *dst,
                   int64_t recvBytes, int64_t *token) override;
  int32_t allGatherStart(int64_t group, const void *src, int64_t sendBytes,
                         void *dst, int64_t slotBytes,
                         const int64_t *bytesOfMember, int64_t *token) override;
  int32_t reduceScatterStart(int64_t group, void *src, int64_t slotBytes,
                             void *dst, const int64_t *bytesOfMember,
                             int32_t elementType, int32_t reduction,
                             int64_t *token) override;
  int32_t allReduceStart(int64_t group, const void *src, void *dst,
                         int64_t bytes, int32_t elementType, int32_t reduction,
                         int64_t *token) override;
  int32_t allToAllStart(int64_t group, const void *src, int64_t sendSlotBytes,
                        const int64_t *sendBytes, void *dst,
                        int64_t recvSlotBytes, const int64_t *recvBytes,
                        int64_t *token) override;
  int32_t broadcastStart(int64_t group, int64_t root, const void *src,
                         void *dst, int64_t bytes, int64_t *token) override;
  int32_t wait(int64_t token) override;
  int32_t leaseOpen(int64_t group, const void *base, int64_t bytes,
                    int64_t *lease) override;
  int32_t leaseAddress(int64_t lease, int64_t peer, const void **base) override;
  int32_t pullStart(int64_t lease, int64_t peer, const void *src,
                    int64_t srcPitch, void *dst, int64_t dstPitch,
                    int64_t rowBytes, int64_t rows, int64_t *token) override;
  int32_t leaseClose(int64_t lease) override;
  int32_t launch(const char *name,
                 const mercury_rt_launch_arguments *arguments) override;
  int32_t fail(int32_t code, const char *message) override;

  Job &job;
  const int64_t number; // its global rank

  // Guarded by the job's mutex. A deque, as messages point into it.
  std::deque<Operation> operations;
  Operation *waitingFor = nullptr;
  bool ended = false;
  std::condition_variable wake;

  bool isBlocked() const { return waitingFor && !waitingFor->complete(); }

  /// The operation that opened a lease which is open still, or null.
  const Operation *findOpenLease() const;

private:
  /// Counts one more operation, whose answer goes to `result`; null if it may
  /// not start, the job then failed.
  Operation *begin(std::unique_lock<std::mutex> &lock, std::string_view kind,
                   int64_t group, const void *result);
  /// As begin, for one on a lease that this rank has opened and not closed, in
  /// `operation->lease`.
  Operation *beginOnLease(std::unique_lock<std::mutex> &lock,
                          std::string_view kind, int64_t lease,
                          const void *result);
  /// Whether the operation's group has such a member; fails the job if not.
  bool checkPeer(std::unique_lock<std::mutex> &lock, const Operation &operation,
                 int64_t peer);
  /// Posts the ends of a message of `operation` to and from a group member; of
  /// a put, with its place.
  void send(std::unique_lock<std::mutex> &lock, Operation &operation,
            int64_t member, const void *src, int64_t bytes, int64_t place = -1);
  void receive(std::unique_lock<std::mutex> &lock, Operation &operation,
               int64_t member, void *dst, int64_t bytes, int64_t place = -1);
  /// Starts an exchange, by puts if `kind` says so.
  int32_t startExchange(std::string_view kind, int64_t group, int64_t sendTo,
                        const void *src, int64_t sendBytes, int64_t recvFrom,
                        void *dst, int64_t recvBytes, int64_t *token);
  /// Where memory lies in the symmetric arena; negative if outside.
  int64_t findPlace(const void *memory, int64_t bytes) const;
  /// What start returns: the token, or the status of a failed job.
  int32_t finishStart(std::unique_lock<std::mutex> &lock, Operation &operation,
                      int64_t *token);

  using Arena = std::unique_ptr<void, decltype(&std::free)>;
  static Arena makeArena(int64_t bytes);
  bool liesInLocalArena(const void *base) const;

  const int64_t localBytes;
  const Arena local, symmetric;
  std::map<int64_t, int64_t> leasesOpened; // of each level
};

} // namespace mercury::rt::sim

#endif // LIB_RUNTIME_SIM_RANK_H
