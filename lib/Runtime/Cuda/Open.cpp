//===- Open.cpp - Entry to the backend for GPUs ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Refuses a job that makes no sense, opens one that does, and hands the C
// functions over to its context.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"
#include <new>

using namespace mercury::rt;
using namespace mercury::rt::cuda;

/// Longer than any run, and small enough for all arithmetic on times.
static constexpr int64_t kDayMs = 24 * 60 * 60 * 1000;
static constexpr int64_t kMaxRanks = 1 << 20;

/// What is wrong with the job; empty if nothing is.
static std::string check(const mercury_rt_cuda_job &job) {
  if (job.abi_version != MERCURY_RT_ABI_VERSION)
    return "it was made for version " + std::to_string(job.abi_version) +
           " of the runtime's ABI and this is version " +
           std::to_string(MERCURY_RT_ABI_VERSION) + "; rebuild its caller";
  if (job.number_of_levels < 0)
    return "its mesh has " + std::to_string(job.number_of_levels) + " levels";
  if (job.number_of_levels > 0 && (!job.level_sizes || !job.level_names))
    return "its mesh has levels without sizes or names";
  int64_t ranks = 1;
  for (int64_t level = 0; level < job.number_of_levels; ++level) {
    int64_t size = job.level_sizes[level];
    if (!job.level_names[level])
      return "level number " + std::to_string(level) + " has no name";
    if (size < 1 || size > kMaxRanks / ranks)
      return "level '" + std::string(job.level_names[level]) + "' has size " +
             std::to_string(size) + "; sizes start at 1";
    ranks *= size;
  }
  if (job.rank < 0 || job.rank >= ranks)
    return "there is no rank " + std::to_string(job.rank) +
           "; ranks go from 0 to " + std::to_string(ranks - 1);
  if (job.local_bytes < 0 || job.symmetric_bytes < 0)
    return "its arenas have " + std::to_string(job.local_bytes) + " and " +
           std::to_string(job.symmetric_bytes) + " bytes";
  if (job.deadline_ms < 0 || job.deadline_ms > kDayMs)
    return "the deadline of " + std::to_string(job.deadline_ms) +
           " ms is not within a day";
  if (job.number_of_kernels < 0 || (job.number_of_kernels && !job.kernels))
    return "it has " + std::to_string(job.number_of_kernels) +
           " kernels and no table of them";
  for (int64_t i = 0; i < job.number_of_kernels; ++i)
    if (!job.kernels[i].name || !job.kernels[i].function)
      return "kernel number " + std::to_string(i) +
             " has no name or no function";
  if (job.number_of_groups < 0 || (job.number_of_groups && !job.groups))
    return "it has " + std::to_string(job.number_of_groups) +
           " groups and no table of them";
  if (!job.rendezvous || !*job.rendezvous)
    return "it names no rendezvous file; give the same new path to every rank";
  return "";
}

/// The same of its groups, for which there must be a mesh.
static std::string checkGroups(const mercury_rt_cuda_job &job,
                               const Mesh &mesh) {
  Groups groups(mesh, job);
  for (int64_t index = 0; index < groups.count(); ++index) {
    int64_t group = groups.name(index);
    if (!mesh.hasGroup(group))
      return "its mesh has no group " + std::to_string(group) +
             "; levels are numbered from 0 to " +
             std::to_string(mesh.levels() - 1);
    if (groups.find(group) != index)
      return "it lists " + mesh.groupName(group) + " twice";
    // NCCL takes memory that is put into once.
    if (job.groups[index].puts && index != groups.findPutting())
      return mesh.groupName(group) + " puts, and so does " +
             mesh.groupName(groups.name(groups.findPutting())) +
             "; let the members of one group put";
  }
  if (groups.findPutting() >= 0 && job.symmetric_bytes == 0)
    return "it puts and has no symmetric arena; give that its bytes";
  return "";
}

/// Why the libraries cannot put; empty if they can.
static std::string checkPuts(const Driver &driver, const Nccl &nccl) {
  std::string without = " or later, or use a plan without the transport rma";
  if (nccl.version < kOldestPuts)
    return "it puts into the memory of peers, and NCCL is " +
           describeNccl(nccl.version) + "; install NCCL " +
           describeNccl(kOldestPuts) + without;
  if (driver.version < kOldestDriverOfPuts)
    return "it puts into the memory of peers, and the driver is of CUDA " +
           describeDriver(driver.version) + "; install CUDA " +
           describeDriver(kOldestDriverOfPuts) + without;
  return "";
}

static int32_t refuse(int32_t status, const std::string &problem) {
  setLastError("cannot open the CUDA backend: " + problem);
  return status;
}

int32_t Rank::openArena(int64_t bytes, bool isPutInto, Arena &arena) {
  if (bytes == 0)
    return MERCURY_RT_OK;
  if (isPutInto) {
    void *memory = nullptr;
    MERCURY_RT_NCCL(nccl->memAlloc(&memory, bytes));
    arena.base = reinterpret_cast<DevicePtr>(memory);
  } else {
    MERCURY_RT_CUDA(driver.memAlloc(&arena.base, bytes));
  }
  arena.bytes = bytes;
  // All ones is NaN in every float type: what was never written shows.
  MERCURY_RT_CUDA(
      driver.memsetD8Async(arena.base, 0xFF, bytes, lanes.first.stream()));
  return MERCURY_RT_OK;
}

int32_t Rank::openDevice(const mercury_rt_cuda_job &job) {
  int devices = 0;
  MERCURY_RT_CUDA(driver.deviceGetCount(&devices));
  if (job.device < 0 || job.device >= devices)
    return invalid("there is no GPU " + std::to_string(job.device) +
                   "; this process sees " + std::to_string(devices));
  MERCURY_RT_CUDA(driver.deviceGet(&device, job.device));
  // The context that PyTorch and every other library use too.
  MERCURY_RT_CUDA(driver.primaryCtxRetain(&deviceContext, device));
  MERCURY_RT_CUDA(driver.ctxSetCurrent(deviceContext));
  MERCURY_RT_CUDA(lanes.open());
  if (int32_t status = openArena(job.local_bytes, /*isPutInto=*/false, local))
    return status;
  return openArena(job.symmetric_bytes, groups.findPutting() >= 0, symmetric);
}

int32_t Rank::openSignals() {
  operation = {"meeting the other ranks"};
  MERCURY_RT_CUDA(signals.open(lanes.control));
  Exported own = {};
  uint64_t offset = 0;
  if (board.ranks.size() > 1)
    MERCURY_RT_CUDA(peers.share(signals.memory(), own, offset));
  // The allocation is the driver's whole one, so nothing lies before.
  if (std::string problem = board.attach(own); !problem.empty())
    return board.failed() ? firstFailure()
                          : failWith(MERCURY_RT_DEADLINE, problem);
  for (int64_t rank : board.ranks) {
    DevicePtr words = 0;
    if (rank == number)
      continue;
    MERCURY_RT_CUDA(peers.map(rank, board.signals(rank), words));
    signals.addPeer(rank, words);
  }
  return MERCURY_RT_OK;
}

int32_t Rank::open(const mercury_rt_cuda_job &job) {
  if (std::string problem = board.map(job.rendezvous, job.symmetric_bytes);
      !problem.empty())
    return refuse(MERCURY_RT_INVALID, problem);
  operation = {"opening GPU " + std::to_string(job.device)};
  if (int32_t status = openDevice(job))
    return status;
  if (int32_t status = openSignals())
    return status;
  return openCommunicators(job);
}

int32_t mercury_rt_cuda_open(const mercury_rt_cuda_job *job,
                             mercury_rt_context **context) {
  std::string problem = !job ? "there is no job" : check(*job);
  Mesh mesh;
  for (int64_t level = 0; problem.empty() && level < job->number_of_levels;
       ++level) {
    mesh.names.push_back(job->level_names[level]);
    mesh.sizes.push_back(job->level_sizes[level]);
  }
  if (problem.empty())
    problem = checkGroups(*job, mesh);
  if (!problem.empty() || !context)
    return refuse(MERCURY_RT_INVALID,
                  problem.empty() ? "no place for the context" : problem);
  const Driver *driver =
      openDriver(job->cuda_library ? job->cuda_library : "", problem);
  if (!driver)
    return refuse(MERCURY_RT_DEVICE, problem);
  bool needsNccl = false;
  bool puts = false;
  for (int64_t i = 0; i < job->number_of_groups; ++i) {
    puts |= job->groups[i].puts != 0;
    needsNccl |= job->groups[i].sends || job->groups[i].communicator || puts;
  }
  const Nccl *nccl = nullptr;
  if (needsNccl &&
      !(nccl = openNccl(job->nccl_library ? job->nccl_library : "", problem)))
    return refuse(MERCURY_RT_DEVICE, problem);
  if (puts && !(problem = checkPuts(*driver, *nccl)).empty())
    return refuse(MERCURY_RT_UNSUPPORTED, problem);

  try {
    auto rank = std::make_unique<Rank>(*job, std::move(mesh), *driver, nccl);
    if (int32_t status = rank->open(*job))
      return status;
    *context = rank.release();
    return MERCURY_RT_OK;
  } catch (const std::bad_alloc &) {
    return refuse(MERCURY_RT_RESOURCE, "no memory on the host");
  }
}

void mercury_rt_cuda_close(mercury_rt_context *context) { delete context; }

void *mercury_rt_cuda_stream(mercury_rt_context *context) {
  return static_cast<Rank *>(context)->stream();
}

int32_t mercury_rt_cuda_run(mercury_rt_context *context, mercury_rt_entry entry,
                            void *const *buffers, void *caller) {
  return static_cast<Rank *>(context)->run(entry, buffers,
                                           static_cast<Stream>(caller));
}

int32_t mercury_rt_cuda_capture(mercury_rt_context *context,
                                mercury_rt_entry entry, void *const *buffers,
                                mercury_rt_cuda_graph **graph) {
  return static_cast<Rank *>(context)->capture(entry, buffers, graph);
}

int32_t mercury_rt_cuda_replay(mercury_rt_context *context,
                               mercury_rt_cuda_graph *graph, void *caller) {
  return static_cast<Rank *>(context)->replay(*graph,
                                              static_cast<Stream>(caller));
}

void mercury_rt_cuda_graph_free(mercury_rt_context *context,
                                mercury_rt_cuda_graph *graph) {
  if (graph)
    static_cast<Rank *>(context)->free(graph);
}

int32_t mercury_rt_cuda_synchronize(mercury_rt_context *context) {
  return static_cast<Rank *>(context)->synchronize();
}
