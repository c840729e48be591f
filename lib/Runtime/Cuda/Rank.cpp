//===- Rank.cpp - The context of one rank on its GPU ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all operations have in common: their beginning, their token, and how a
// failure becomes that of the job.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Rank.h"

using namespace mercury::rt;
using namespace mercury::rt::cuda;

/// The ranks that differ from `rank` on local levels only.
static std::vector<int64_t> ranksOfHost(const Mesh &mesh, int64_t rank,
                                        const std::vector<bool> &isLocal) {
  std::vector<int64_t> ranks;
  for (int64_t other = 0; other < mesh.size(); ++other) {
    bool here = true;
    for (int64_t level = 0; level < mesh.levels(); ++level)
      here &= isLocal[level] ||
              mesh.groupRank(other, level) == mesh.groupRank(rank, level);
    if (here)
      ranks.push_back(other);
  }
  return ranks;
}

static std::vector<bool> localLevels(const mercury_rt_cuda_job &job) {
  std::vector<bool> isLocal(job.number_of_levels, true);
  for (int64_t level = 0; job.level_is_local && level < job.number_of_levels;
       ++level)
    isLocal[level] = job.level_is_local[level] != 0;
  return isLocal;
}

Rank::Rank(const mercury_rt_cuda_job &job, Mesh mesh, const Driver &driver,
           const Nccl *nccl)
    : mesh(std::move(mesh)), groups(this->mesh, job), number(job.rank),
      isLocal(localLevels(job)),
      deadline(job.deadline_ms ? job.deadline_ms
                               : MERCURY_RT_CUDA_DEFAULT_DEADLINE_MS),
      driver(driver), nccl(nccl),
      board(this->mesh, groups, ranksOfHost(this->mesh, number, isLocal),
            number, deadline),
      lanes(driver), peers(driver), signals(driver, groups),
      communicators(groups.count(), nullptr), openings(groups.count(), 0) {
  for (int64_t i = 0; i < job.number_of_kernels; ++i)
    kernels.emplace(job.kernels[i].name, job.kernels[i]);
}

//===----------------------------------------------------------------------===//
// Failure
//===----------------------------------------------------------------------===//

int32_t Rank::firstFailure() {
  setLastError(board.message() + left);
  return board.status();
}

int32_t Rank::failWith(int32_t code, const std::string &text) {
  board.fail(code,
             mesh.rankName(number) + ", " + describe(operation) + ": " + text);
  return firstFailure();
}

int32_t Rank::fail(int32_t code, const char *message) {
  if (code == MERCURY_RT_OK)
    return invalid("failed with status 0; fail with another one");
  return failWith(code, message ? message : "no message");
}

/// "driver.streamWaitEvent(lane, ...)" is told as "streamWaitEvent".
static std::string functionOf(const char *call) {
  std::string text = call;
  text = text.substr(0, text.find('('));
  return text.substr(text.find_last_of(".>") + 1);
}

int32_t Rank::deviceFailure(Result result, const char *call) {
  const char *name = nullptr, *text = nullptr;
  driver.getErrorName(result, &name);
  driver.getErrorString(result, &text);
  return failWith(result == kOutOfMemory ? MERCURY_RT_RESOURCE
                                         : MERCURY_RT_DEVICE,
                  "CUDA failed in " + functionOf(call) + ": " +
                      (name ? name : std::to_string(result)) + ", " +
                      (text ? text : "unknown error"));
}

int32_t Rank::ncclFailure(NcclResult result, const char *call) {
  return failWith(MERCURY_RT_DEVICE, "NCCL failed in " + functionOf(call) +
                                         ": " + nccl->getErrorString(result));
}

std::string Rank::describe(const Operation &operation) const {
  std::string text = operation.isAfter ? "after " : "";
  if (operation.number)
    text += "operation " + std::to_string(*operation.number) + ", ";
  text += operation.kind;
  if (!operation.kernel.empty())
    text += " '" + operation.kernel + "'";
  if (operation.group)
    text += " on " + mesh.groupName(*operation.group);
  return text;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool Rank::isLocalGroup(int64_t group) const {
  for (int64_t level = 0; level < mesh.levels(); ++level)
    if (mesh.levelsOf(group) >> level & 1 && !isLocal[level])
      return false;
  return true;
}

int64_t Rank::groupRank(int64_t group) {
  if (mesh.hasGroup(group))
    return mesh.groupRank(number, group);
  invalid("the mesh has no such group; levels are numbered from 0 to " +
          std::to_string(mesh.levels() - 1));
  return -1;
}

int64_t Rank::groupSize(int64_t group) {
  return groupRank(group) < 0 ? -1 : mesh.groupSize(group);
}

int32_t Rank::begin(std::string_view kind, int64_t group) {
  if (board.failed())
    return firstFailure();
  operation = {std::string(kind), ++operations, group};
  if (int32_t status = joinAwaited())
    return status;
  if (kind != "lease.open")
    if (int32_t status = sendOpened())
      return status;
  if (kind != "lease.close")
    if (int32_t status = finishClosed())
      return status;
  if (groupRank(group) < 0)
    return firstFailure();
  if (groups.find(group) == groups.count())
    return invalid("the job was opened without this group; list every group "
                   "that its programs name");
  return MERCURY_RT_OK;
}

int32_t Rank::start(Lane &lane, int64_t lease, int64_t *token) {
  Mark mark = {};
  MERCURY_RT_CUDA(lanes.mark(lane, mark));
  started.push_back({mark.event, operation});
  tokens[operations] = {std::move(mark), lease};
  *token = operations;
  return MERCURY_RT_OK;
}

int32_t Rank::wait(int64_t token) {
  if (board.failed())
    return firstFailure();
  if (token == 0)
    return MERCURY_RT_OK;
  auto found = tokens.find(token);
  if (found == tokens.end())
    return failWith(MERCURY_RT_TOKEN,
                    "wait: no open operation has token " +
                        std::to_string(token) +
                        "; wait once for each that a start call has set");
  // Before the wait: a peer may need the signals to get to what it is for.
  if (int32_t status = sendOpened())
    return status;
  if (int32_t status = finishClosed())
    return status;
  joined.push_back(std::move(found->second.mark));
  tokens.erase(found);
  return MERCURY_RT_OK;
}

/// The last that was started comes after others of its lane, for which the
/// wait for it is enough.
int32_t Rank::joinAwaited() {
  for (; !joined.empty(); joined.pop_back())
    MERCURY_RT_CUDA(lanes.join(joined.back()));
  return MERCURY_RT_OK;
}

int32_t Rank::flush() {
  if (int32_t status = joinAwaited())
    return status;
  if (int32_t status = sendOpened())
    return status;
  return finishClosed();
}

int32_t Rank::copyInto(Stream lane, const void *src, int64_t srcPitch,
                       void *dst, int64_t dstPitch, int64_t rowBytes,
                       int64_t rows) {
  auto from = reinterpret_cast<DevicePtr>(src);
  auto to = reinterpret_cast<DevicePtr>(dst);
  bool isDense = srcPitch == rowBytes && dstPitch == rowBytes;
  if (rows == 1 || isDense) {
    MERCURY_RT_CUDA(driver.memcpyDtoDAsync(to, from, rowBytes * rows, lane));
    return MERCURY_RT_OK;
  }
  Memcpy2D copy = {};
  copy.srcType = copy.dstType = kMemoryTypeDevice;
  copy.srcDevice = from;
  copy.srcPitch = srcPitch;
  copy.dstDevice = to;
  copy.dstPitch = dstPitch;
  copy.width = rowBytes;
  copy.height = rows;
  MERCURY_RT_CUDA(driver.memcpy2DAsync(&copy, lane));
  return MERCURY_RT_OK;
}

int32_t Rank::copy(const void *src, int64_t srcPitch, void *dst,
                   int64_t dstPitch, int64_t rowBytes, int64_t rows) {
  if (board.failed())
    return firstFailure();
  if (rowBytes == 0 || rows == 0)
    return MERCURY_RT_OK;
  if (int32_t status = flush())
    return status;
  return copyInto(lanes.current->stream(), src, srcPitch, dst, dstPitch,
                  rowBytes, rows);
}

Stream Rank::stream() {
  flush(); // a failure is the job's; the next call returns it
  return lanes.current->stream();
}

int32_t Rank::useLane(int64_t lane) {
  if (board.failed())
    return firstFailure();
  if (lane < 0 || lane >= MERCURY_RT_MAX_LANES)
    return invalid("there is no lane " + std::to_string(lane) +
                   "; lanes go from 0 to " +
                   std::to_string(MERCURY_RT_MAX_LANES - 1));
  if (int32_t status = flush())
    return status;
  MERCURY_RT_CUDA(lanes.use(lane));
  return MERCURY_RT_OK;
}

int32_t Rank::markLane(int64_t *token) {
  if (board.failed())
    return firstFailure();
  operation = {"mark of a lane", ++operations};
  if (!token)
    return invalid("no place for the token; pass a pointer to one");
  if (int32_t status = flush())
    return status;
  return start(*lanes.current, 0, token);
}
