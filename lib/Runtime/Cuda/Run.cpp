//===- Run.cpp - Runs, captures, and the end of both ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"
#include <algorithm>
#include <thread>
#include <utility>

using namespace mercury::rt;
using namespace mercury::rt::cuda;

/// How long the lanes may take to end once their waits were ended.
static constexpr std::chrono::milliseconds kDrainTime(2000);
/// How long NCCL may take to abort communicators, if the deadline is no less.
static constexpr std::chrono::milliseconds kAbortTime(10000);
/// As many runs are told apart when the GPU is asked how far it came.
static constexpr size_t kMostRuns = 256;

int32_t Rank::enter(Stream caller) {
  if (board.failed())
    return firstFailure();
  operations = 0;
  operation = {"start of a run"};
  forgetStarted();
  for (auto &[key, loaded] : images)
    loaded.compared = false;
  MERCURY_RT_CUDA(driver.ctxSetCurrent(deviceContext));
  // Runs are in one order, whoever asks for them.
  if (!runs.empty() && caller != lastCaller)
    MERCURY_RT_CUDA(driver.streamWaitEvent(caller, runs.back(), 0));
  return MERCURY_RT_OK;
}

/// `mark` is of the end of what was put into the lanes for this caller.
int32_t Rank::leave(Stream caller, Event mark) {
  runs.push_back(mark);
  if (runs.size() > kMostRuns) {
    lanes.release(runs.front());
    runs.pop_front();
  }
  lastCaller = caller;
  return MERCURY_RT_OK;
}

int32_t Rank::callEntry(mercury_rt_entry entry, void *const *buffers) {
  lanes.begin();
  int32_t status = entry(this, buffers);
  if (board.failed())
    return firstFailure();
  if (status == MERCURY_RT_OK)
    status = flush();
  MERCURY_RT_CUDA(lanes.joinAll());
  if (status != MERCURY_RT_OK)
    return failWith(status, "the program returned this status");
  if (!tokens.empty())
    return failWith(MERCURY_RT_TOKEN,
                    "the program returned without waiting for token " +
                        std::to_string(tokens.begin()->first) +
                        "; wait once for each");
  if (!leases.empty())
    return failWith(MERCURY_RT_LEASE,
                    "the program returned without closing "
                    "lease " +
                        std::to_string(leases.begin()->first) +
                        "; close each once");
  return MERCURY_RT_OK;
}

int32_t Rank::run(mercury_rt_entry entry, void *const *buffers, Stream caller) {
  if (int32_t status = enter(caller))
    return status;
  MERCURY_RT_CUDA(lanes.enter(caller));
  if (int32_t status = callEntry(entry, buffers))
    return status;
  Event mark = nullptr;
  MERCURY_RT_CUDA(lanes.leave(caller, mark));
  return leave(caller, mark);
}

int32_t Rank::capture(mercury_rt_entry entry, void *const *buffers,
                      mercury_rt_cuda_graph **graph) {
  if (board.failed())
    return firstFailure();
  operations = 0;
  operation = {"capture"};
  forgetStarted();
  MERCURY_RT_CUDA(driver.ctxSetCurrent(deviceContext));
  // Relaxed: a kernel of a library may allocate while it is captured.
  MERCURY_RT_CUDA(
      driver.streamBeginCapture(lanes.first.stream(), kCaptureModeRelaxed));
  capturing = true;
  int32_t status = callEntry(entry, buffers);
  capturing = false;
  forgetStarted(); // a mark within a graph cannot be asked for
  Graph captured = nullptr;
  Result ended = driver.streamEndCapture(lanes.first.stream(), &captured);
  if (status != MERCURY_RT_OK) {
    if (captured)
      driver.graphDestroy(captured);
    return status;
  }
  operation = {"end of a capture"};
  MERCURY_RT_CUDA(ended);
  GraphExec exec = nullptr;
  Result made = driver.graphInstantiate(&exec, captured, 0);
  driver.graphDestroy(captured);
  MERCURY_RT_CUDA(made);
  graphs.push_back(exec);
  *graph = new mercury_rt_cuda_graph{exec};
  return MERCURY_RT_OK;
}

int32_t Rank::replay(const mercury_rt_cuda_graph &graph, Stream caller) {
  if (int32_t status = enter(caller))
    return status;
  operation = {"replay"};
  // In the caller's own stream: two more marks would cost some microseconds.
  MERCURY_RT_CUDA(driver.graphLaunch(graph.exec, caller));
  Event mark = nullptr;
  MERCURY_RT_CUDA(lanes.mark(caller, mark));
  return leave(caller, mark);
}

void Rank::free(mercury_rt_cuda_graph *graph) {
  // One of a job that failed may run yet: drain() ends it.
  if (!board.failed()) {
    driver.ctxSetCurrent(deviceContext);
    driver.graphExecDestroy(graph->exec);
    graphs.erase(std::find(graphs.begin(), graphs.end(), graph->exec));
  }
  delete graph;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Every run is joined into the first lane or into the caller's stream.
Result Rank::queryLanes() {
  while (!runs.empty()) {
    if (Result result = driver.eventQuery(runs.front()))
      return result;
    lanes.release(runs.front());
    runs.pop_front();
    lastProgress = Clock::now();
  }
  return driver.streamQuery(lanes.first.stream());
}

int32_t Rank::pollLanes(bool &idle) {
  Result result = queryLanes();
  idle = result == kSuccess;
  if (result != kSuccess && result != kNotReady)
    return deviceFailure(result, "a run");
  for (int64_t index = 0; index < groups.count(); ++index) {
    NcclResult error = 0;
    if (communicators[index] &&
        nccl->commGetAsyncError(communicators[index], &error) == 0 && error &&
        error != kNcclInProgress)
      return failWith(MERCURY_RT_DEVICE,
                      "NCCL failed in a message on " +
                          mesh.groupName(groups.name(index)) + ": " +
                          nccl->getErrorString(error) + describeStarted());
  }
  return MERCURY_RT_OK;
}

int32_t Rank::synchronize() {
  operation = {"synchronize"};
  lastProgress = Clock::now();
  bool idle = false;
  for (int64_t round = 0;; ++round) {
    if (int32_t status = pollLanes(idle))
      return status;
    if (idle && !board.failed())
      return MERCURY_RT_OK;
    if (board.failed()) {
      drain();
      return firstFailure();
    }
    if (Clock::now() > lastProgress + deadline) {
      failWith(MERCURY_RT_DEADLINE,
               "no run ended within " + std::to_string(deadline.count()) +
                   " ms" + describeStarted() + describeWaits());
      drain();
      return firstFailure();
    }
    if (round > 1000)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// The marks are those of the run before, of which every wait is in its lane.
void Rank::forgetStarted() {
  for (const Started &each : started)
    lanes.release(each.mark);
  started.clear();
}

/// Where the last run stands.
std::string Rank::describeStarted() {
  for (const Started &each : started)
    if (driver.eventQuery(each.mark) == kNotReady)
      return "; " + describe(each.operation) + ", is not over";
  return "";
}

/// Which signals have not come, of the slots in which any is awaited.
std::string Rank::describeWaits() {
  std::vector<uint32_t> values;
  if (signals.read(lanes.control, values) != kSuccess)
    return "";
  std::string text;
  for (int64_t group = 0; group < groups.count(); ++group) {
    // The slot of the last lease: its words are 0 where a peer was not heard.
    if (openings[group] == 0)
      continue;
    int64_t slot = (openings[group] - 1) % MERCURY_RT_CUDA_MAX_LEASES;
    for (int64_t member = 0; member < groups.size(group); ++member) {
      if (member == mesh.groupRank(number, groups.name(group)))
        continue;
      bool ready = values[signals.at({group, slot, member, Signal::Ready})];
      bool done = values[signals.at({group, slot, member, Signal::Done})];
      if (!ready && !done)
        text += "; not heard from group rank " + std::to_string(member) +
                " on " + mesh.groupName(groups.name(group)) +
                " about its last lease";
    }
  }
  return text + "; look for a rank that ended, failed, or is late";
}

/// Ends this rank's own waits until nothing is left in its lanes, then what was
/// captured, which the driver would wait for. Only for a context that will get
/// no more work: one that failed or is closed.
bool Rank::drain() {
  if (board.failed())
    abortCommunicators();
  auto end = Clock::now() + kDrainTime;
  left.clear();
  // A run that failed has left lanes that nothing joined.
  while (queryLanes() == kNotReady || lanes.query() == kNotReady) {
    if (Clock::now() > end) {
      left =
          "; work that never ends is left on the GPU, and so are its memory, "
          "graphs and communicators; end what it waits for (a communicator "
          "that was given to the job: abort it), or the process";
      return false;
    }
    signals.poison(lanes.control);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  endGraphs();
  if (std::string names = aborts.wait(abortsEnd); !names.empty())
    left = "; NCCL did not abort the communicator of " + names + " within " +
           std::to_string(std::min(kAbortTime, deadline).count()) +
           " ms, and this rank's memory is left to it; end the process";
  peers.close();
  board.detach();
  return left.empty();
}

/// Those made here: messages of theirs end by this alone, in a graph too.
void Rank::abortCommunicators() {
  if (!ownCommunicators.empty())
    abortsEnd = Clock::now() + std::min(kAbortTime, deadline);
  for (int64_t index : std::exchange(ownCommunicators, {}))
    aborts.raise(driver, deviceContext, *nccl,
                 std::exchange(communicators[index], nullptr),
                 mesh.groupName(groups.name(index)));
}

void Rank::endGraphs() {
  for (GraphExec exec : std::exchange(graphs, {}))
    driver.graphExecDestroy(exec);
}

Rank::~Rank() {
  if (!deviceContext)
    return;
  driver.ctxSetCurrent(deviceContext);
  if (!board.failed())
    synchronize();
  bool idle = drain();
  if (window && !board.failed()) // a communicator that fails takes its windows
    nccl->windowDeregister(communicators[groups.findPutting()], window);
  // No graph has messages of theirs any more, for which NCCL would wait. A peer
  // that failed by now takes no part in the end of one.
  for (int64_t index : ownCommunicators)
    board.failed() ? nccl->commAbort(communicators[index])
                   : nccl->commDestroy(communicators[index]);
  lanes.close(idle);
  // Work that never ended still reads and writes: its memory is left to it.
  if (idle) {
    for (auto &[key, loaded] : images)
      if (loaded.module)
        driver.moduleUnload(loaded.module);
    if (board.waitForDetached(board.failed() ? kDrainTime : deadline)) {
      signals.close();
      if (local.base)
        driver.memFree(local.base);
      if (symmetric.base && groups.findPutting() >= 0)
        nccl->memFree(symmetricArena());
      else if (symmetric.base)
        driver.memFree(symmetric.base);
    }
    driver.primaryCtxRelease(device);
  }
}
