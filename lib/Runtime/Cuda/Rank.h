//===- Rank.h - The context of one rank on its GPU --------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of one rank, each put into its lane: Lease.cpp has those that
// read a peer's memory, Message.cpp, Put.cpp and Collectives.cpp those of NCCL,
// Launch.cpp the kernels, and Run.cpp runs, captures and their end.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_RANK_H
#define LIB_RUNTIME_CUDA_RANK_H

#include "lib/Runtime/Context.h"
#include "lib/Runtime/Cuda/Aborts.h"
#include "lib/Runtime/Cuda/Board.h"
#include "lib/Runtime/Cuda/Lanes.h"
#include "lib/Runtime/Cuda/Peers.h"
#include "lib/Runtime/Cuda/Signals.h"
#include <deque>
#include <memory>
#include <optional>

struct mercury_rt_cuda_graph {
  mercury::rt::cuda::GraphExec exec; // of a context that failed, its to end
};

namespace mercury::rt::cuda {

using Clock = std::chrono::steady_clock;

/// Calls the driver from a method of a rank, and returns if that failed.
#define MERCURY_RT_CUDA(call)                                                  \
  if (Result result_ = (call))                                                 \
  return deviceFailure(result_, #call)

/// The same of NCCL.
#define MERCURY_RT_NCCL(call)                                                  \
  if (NcclResult result_ = (call); result_ && result_ != kNcclInProgress)      \
  return ncclFailure(result_, #call)

class Rank final : public mercury_rt_context {
public:
  Rank(const mercury_rt_cuda_job &job, Mesh mesh, const Driver &driver,
       const Nccl *nccl);
  ~Rank() override;

  /// Comes to the other ranks. What is wrong is returned with its status.
  int32_t open(const mercury_rt_cuda_job &job);

  int64_t groupRank(int64_t group) override;
  int64_t groupSize(int64_t group) override;
  void *localArena() override { return reinterpret_cast<void *>(local.base); }
  void *symmetricArena() override {
    return reinterpret_cast<void *>(symmetric.base);
  }
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
  int32_t fail(int32_t code, const char *message) override;
  Stream stream();
  int32_t useLane(int64_t lane) override;
  int32_t markLane(int64_t *token) override;
  int32_t copy(const void *src, int64_t srcPitch, void *dst, int64_t dstPitch,
               int64_t rowBytes, int64_t rows) override;
  int32_t launch(const char *name,
                 const mercury_rt_launch_arguments *arguments) override;
  int32_t deviceLaunch(const mercury_rt_device_kernel &kernel) override;

  int32_t run(mercury_rt_entry entry, void *const *buffers, Stream caller);
  int32_t capture(mercury_rt_entry entry, void *const *buffers,
                  mercury_rt_cuda_graph **graph);
  int32_t replay(const mercury_rt_cuda_graph &graph, Stream caller);
  void free(mercury_rt_cuda_graph *graph);
  int32_t synchronize();

private:
  /// A start that was not waited for yet.
  struct Token {
    Mark mark;
    int64_t lease; // that it reads under, or 0
  };

  /// What a message says was under way: made up only where there is one.
  struct Operation {
    std::string kind;
    std::optional<int64_t> number = std::nullopt; // in its run
    std::optional<int64_t> group = std::nullopt;
    std::string kernel = "";
    bool isAfter = false; // the operation of this number
  };

  struct Started {
    Event mark; // of its end
    Operation operation;
  };

  struct Lease {
    int64_t group;        // as runtime.h names it
    int64_t index;        // the group's, among those of the job
    int64_t slot, number; // its opening in the group, from 1
    const char *base;
    int64_t bytes;
    std::vector<const char *> addresses; // of each member's memory, if known
    std::vector<bool> isKnown;
  };

  struct Arena {
    DevicePtr base = 0;
    int64_t bytes = 0;

    DevicePtr offsetOf(const void *address) const {
      return reinterpret_cast<DevicePtr>(address) - base;
    }
    bool contains(const void *address, int64_t length = 1) const {
      DevicePtr offset = offsetOf(address), end = bytes;
      return offset < end && static_cast<DevicePtr>(length) <= end - offset;
    }
  };

  /// One start of a message each way. A side of no bytes is not used.
  struct Exchange {
    int64_t group, to, from;
    const void *src;
    void *dst;
    int64_t sent, received; // bytes
    bool isCopy = false;    // within this rank

    bool sends() const { return sent != 0; }
    bool receives() const { return received != 0; }
    bool isEmpty() const { return !sends() && !receives(); }
  };

  struct LoadedFunction {
    Function function = nullptr;
    int64_t sharedBytes = 0; // that it may use
  };

  struct LoadedImage {
    std::string image;
    Module module = nullptr;
    bool compared = false; // in this run
    std::map<std::string, LoadedFunction, std::less<>> functions;
  };

  // How every operation begins and ends.
  int32_t begin(std::string_view kind, int64_t group);
  /// Ends a start in this lane, after what it put there.
  int32_t start(Lane &lane, int64_t lease, int64_t *token);
  std::string describe(const Operation &operation) const;
  int32_t invalid(const std::string &text) {
    return failWith(MERCURY_RT_INVALID, text);
  }
  bool isLocalGroup(int64_t group) const;
  int32_t failWith(int32_t code, const std::string &text);
  int32_t deviceFailure(Result result, const char *call);
  int32_t ncclFailure(NcclResult result, const char *call);
  int32_t firstFailure();

  int32_t copyInto(Stream lane, const void *src, int64_t srcPitch, void *dst,
                   int64_t dstPitch, int64_t rowBytes, int64_t rows);
  int32_t checkLease(int64_t lease, int64_t peer, std::string_view kind);
  /// Waits until a peer's host has opened the lease too, and finds its memory.
  int32_t know(Lease &lease, int64_t peer);
  int32_t findPullLane(int64_t owner, Lane *&lane);
  /// Puts what waits for its like into the lanes.
  int32_t joinAwaited();
  int32_t sendOpened();
  int32_t finishClosed();
  int32_t flush();
  int32_t waitForReaders(LeaseRecord &record, int64_t others);
  int32_t findCommunicator(int64_t group, Communicator &found);
  int32_t beginExchange(std::string_view kind, Exchange &exchange,
                        int64_t *token);
  int32_t startExchange(const Exchange &exchange, bool puts, int64_t *token);
  int32_t message(const Exchange &exchange);
  int32_t put(const Exchange &exchange);
  int32_t signal(int64_t member, Communicator communicator);
  int32_t waitForSignal(int64_t member, Communicator communicator);
  int32_t openWindow();
  int32_t openCommunicators(const mercury_rt_cuda_job &job);
  int32_t beginCollective(std::string_view kind, int64_t group, int64_t *token);
  int32_t checkReduction(int64_t bytes, int32_t elementType, int32_t reduction);
  int32_t openCollective(int64_t group, Communicator &communicator);
  int32_t closeCollective(int64_t *token);
  int32_t findFunction(const mercury_rt_device_kernel &kernel,
                       LoadedFunction *&found);

  int32_t callEntry(mercury_rt_entry entry, void *const *buffers);
  int32_t enter(Stream caller);
  int32_t leave(Stream caller, Event mark);
  int32_t openDevice(const mercury_rt_cuda_job &job);
  int32_t openArena(int64_t bytes, bool isPutInto, Arena &arena);
  int32_t openSignals();
  Result queryLanes();
  int32_t pollLanes(bool &idle);
  void forgetStarted();
  std::string describeStarted();
  std::string describeWaits();
  bool drain();
  void abortCommunicators();
  void endGraphs();

  const Mesh mesh;
  const Groups groups;
  const int64_t number;            // its global rank
  const std::vector<bool> isLocal; // of each level
  const std::chrono::milliseconds deadline;
  const Driver &driver;
  const Nccl *const nccl; // null if no group has a communicator

  Device device = 0;
  Context deviceContext = nullptr;
  Arena local, symmetric;
  Board board;
  Lanes lanes;
  Peers peers;
  Signals signals;
  std::vector<Communicator> communicators; // of each group; null for none
  Window window = nullptr; // the symmetric arena, of the group that puts
  bool capturing = false;
  std::vector<int64_t> ownCommunicators; // of which groups they were made here
  Aborts aborts;
  Clock::time_point abortsEnd;
  std::vector<GraphExec> graphs; // not destroyed yet
  std::string left;              // after a failure, as its message tells
  std::map<std::pair<const void *, int64_t>, LoadedImage> images;
  std::map<std::string, mercury_rt_kernel, std::less<>> kernels;

  // Signals of calls in a row go together, and so do waits: each costs some
  // microseconds.
  using Sent = std::vector<std::pair<int64_t, Signals::Word>>;
  Sent opened;                                           // to tell a rank
  std::map<int64_t, std::vector<Signals::Word>> awaited; // before its pulls
  std::map<int64_t, Sent> read;      // to tell an owner, after its pulls
  std::vector<Signals::Word> closed; // to receive
  std::vector<Mark> joined;          // to wait for, the last one first

  int64_t operations = 0;
  Operation operation; // under way
  std::map<int64_t, Token> tokens;
  std::vector<Started> started; // in the last run, unless it is a replay
  std::map<int64_t, Lease> leases;
  std::vector<int64_t> openings; // of leases, in each group
  Stream lastCaller = nullptr;
  std::deque<Event> runs; // the marks of their ends, until seen; oldest first
  Clock::time_point lastProgress;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_RANK_H
