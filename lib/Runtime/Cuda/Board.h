//===- Board.h - What the ranks of one host tell each other -----*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file that every rank of the host maps: which allocation each lease lies in,
// and the job's first failure. It is the host's side only; what the devices
// wait for are words in their own memory.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_BOARD_H
#define LIB_RUNTIME_CUDA_BOARD_H

#include "lib/Runtime/Cuda/DriverTypes.h"
#include "lib/Runtime/Cuda/Groups.h"
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace mercury::rt::cuda {

/// An allocation that other processes can map.
struct Exported {
  IpcMemHandle handle;
  uint64_t buffer; // the owner's name for it, never used twice
};

/// One opening of a lease, as its owner posts it.
struct LeaseRecord {
  std::atomic<int64_t> number;  // of the opening in its group, from 1
  std::atomic<int64_t> readers; // members that have closed it
  Exported memory;
  uint64_t offset; // of the leased bytes in the allocation
  int64_t bytes;
};

/// Groups are told by their numbers.
class Board {
public:
  Board(const Mesh &mesh, const Groups &groups, std::vector<int64_t> ranks,
        int64_t self, std::chrono::milliseconds deadline);
  ~Board();
  Board(const Board &) = delete;

  /// Maps the file. What is wrong is returned; empty if nothing is.
  std::string map(const std::string &path);
  /// Posts this rank's signals and waits for those of every other rank here.
  std::string attach(const Exported &signals);
  const Exported &signals(int64_t rank) const;
  /// Says that no work of this rank is left nor will come, and that it maps no
  /// memory of others.
  void detach();
  /// Waits until all have said so: no allocation may be freed before. False if
  /// some have not within `time`.
  bool waitForDetached(std::chrono::milliseconds time) const;

  LeaseRecord &lease(int64_t rank, int64_t group, int64_t slot) const;

  /// A communicator's name, from the first member of a group to the others.
  std::string passUniqueId(int64_t group, NcclUniqueId &id);

  /// Waits until `done`, the job has failed, or the deadline; true for the
  /// first.
  bool waitUntil(const std::function<bool()> &done) const;

  bool failed() const;
  /// Records the job's failure unless there is one already.
  void fail(int32_t code, const std::string &message);
  int32_t status() const;
  std::string message() const;

  const std::vector<int64_t> ranks; // of this host

private:
  struct Header;
  struct Entry;
  struct GroupEntry;
  Entry &entry(int64_t rank) const;
  GroupEntry &entry(int64_t rank, int64_t group) const;

  const Mesh &mesh;
  const Groups &groups;
  const int64_t self;
  const std::chrono::milliseconds deadline;
  std::string path;
  char *memory = nullptr;
  size_t entryBytes, bytes;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_BOARD_H
