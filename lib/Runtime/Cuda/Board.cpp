//===- Board.cpp - What the ranks of one host tell each other -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file starts as zeros, so its layout needs no first rank: each one writes
// into its own entry and the others look at a word that is set last.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Board.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace mercury::rt;
using namespace mercury::rt::cuda;

/// The longest message of a failure, its end included.
static constexpr size_t kMessageBytes = 2000;

struct Board::Header {
  std::atomic<uint64_t> job; // what all ranks must agree on
  std::atomic<int32_t> claimed, status;
  char message[kMessageBytes];
};

/// Followed by one GroupEntry for each group.
struct Board::Entry {
  std::atomic<int32_t> attached, detached;
  Exported signals;
};

struct Board::GroupEntry {
  std::atomic<int32_t> named; // the communicator
  NcclUniqueId id;
  LeaseRecord leases[MERCURY_RT_CUDA_MAX_LEASES];
};

static constexpr size_t align(size_t bytes) { return (bytes + 63) & ~63ul; }

/// A number that differs where two ranks would not fit together. Never 0.
static uint64_t describe(const Mesh &mesh, const Groups &groups,
                         int64_t symmetricBytes) {
  uint64_t hash = 14695981039346656037ull ^ MERCURY_RT_ABI_VERSION;
  auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 1099511628211u;
  };
  mix(symmetricBytes);
  for (int64_t level = 0; level < mesh.levels(); ++level) {
    mix(mesh.sizes[level]);
    for (char letter : mesh.names[level])
      mix(letter);
  }
  for (int64_t group = 0; group < groups.count(); ++group)
    mix(mesh.levelsOf(groups.name(group)));
  mix(groups.findPutting());
  return hash | 1;
}

Board::Board(const Mesh &mesh, const Groups &groups, std::vector<int64_t> ranks,
             int64_t self, std::chrono::milliseconds deadline)
    : ranks(std::move(ranks)), mesh(mesh), groups(groups), self(self),
      deadline(deadline),
      entryBytes(align(sizeof(Entry)) +
                 align(sizeof(GroupEntry)) * groups.count()),
      bytes(align(sizeof(Header)) + entryBytes * mesh.size()) {}

Board::~Board() {
  if (memory)
    munmap(memory, bytes);
}

std::string Board::map(const std::string &path, int64_t symmetricBytes) {
  this->path = path;
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void *mapped = MAP_FAILED;
  if (file >= 0 && ftruncate(file, bytes) == 0)
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  int error = errno;
  if (file >= 0)
    close(file);
  if (mapped == MAP_FAILED)
    return "cannot use the rendezvous file '" + path +
           "': " + std::strerror(error) + "; name one in /dev/shm or /tmp";
  memory = static_cast<char *>(mapped);

  uint64_t expected = 0, job = describe(mesh, groups, symmetricBytes);
  auto &header = *reinterpret_cast<Header *>(memory);
  if (!header.job.compare_exchange_strong(expected, job) && expected != job)
    return "the rendezvous file '" + path +
           "' is used by ranks of another mesh, other groups, another "
           "symmetric arena or another version; give each job a file of its "
           "own";
  if (entry(self).attached.load())
    return "the rendezvous file '" + path + "' already has a rank " +
           std::to_string(self) + "; give each job a file of its own";
  return "";
}

Board::Entry &Board::entry(int64_t rank) const {
  return *reinterpret_cast<Entry *>(memory + align(sizeof(Header)) +
                                    rank * entryBytes);
}

Board::GroupEntry &Board::entry(int64_t rank, int64_t group) const {
  char *first = reinterpret_cast<char *>(&entry(rank)) + align(sizeof(Entry));
  return *reinterpret_cast<GroupEntry *>(first +
                                         group * align(sizeof(GroupEntry)));
}

std::string Board::attach(const Exported &signals) {
  entry(self).signals = signals;
  entry(self).attached.store(1, std::memory_order_release);
  for (int64_t rank : ranks) {
    auto there = [&] {
      return entry(rank).attached.load(std::memory_order_acquire) != 0;
    };
    if (!waitUntil(there))
      return failed() ? message()
                      : mesh.rankName(rank) + " did not come to '" + path +
                            "' within " + std::to_string(deadline.count()) +
                            " ms; start every rank, with the same file";
  }
  // All have mapped it; removing it twice does no harm.
  unlink(path.c_str());
  return "";
}

void Board::detach() {
  entry(self).detached.store(1, std::memory_order_release);
}

bool Board::waitForDetached(std::chrono::milliseconds time) const {
  auto end = std::chrono::steady_clock::now() + time;
  for (int64_t rank : ranks)
    while (entry(rank).attached.load() && !entry(rank).detached.load()) {
      if (std::chrono::steady_clock::now() > end)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  return true;
}

const Exported &Board::signals(int64_t rank) const {
  return entry(rank).signals;
}

LeaseRecord &Board::lease(int64_t rank, int64_t group, int64_t slot) const {
  return entry(rank, group).leases[slot];
}

std::string Board::passUniqueId(int64_t group, NcclUniqueId &id) {
  int64_t first = mesh.memberOfGroup(self, groups.name(group), 0);
  GroupEntry &passed = entry(first, group);
  if (first == self) {
    passed.id = id;
    passed.named.store(1, std::memory_order_release);
    return "";
  }
  if (!waitUntil([&] { return passed.named.load(std::memory_order_acquire); }))
    return failed() ? message()
                    : mesh.rankName(first) +
                          " named no communicator within the deadline";
  id = passed.id;
  return "";
}

bool Board::waitUntil(const std::function<bool()> &done) const {
  if (done()) // mostly, and the clock is not asked
    return true;
  auto end = std::chrono::steady_clock::now() + deadline;
  for (int64_t round = 0; !done(); ++round) {
    if (failed() || std::chrono::steady_clock::now() > end)
      return false;
    // A peer is nearly always here within microseconds.
    if (round > 2000)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

bool Board::failed() const {
  return reinterpret_cast<Header *>(memory)->status.load(
             std::memory_order_acquire) != MERCURY_RT_OK;
}

void Board::fail(int32_t code, const std::string &message) {
  auto &header = *reinterpret_cast<Header *>(memory);
  int32_t expected = 0;
  if (header.claimed.compare_exchange_strong(expected, 1)) {
    std::strncpy(header.message, message.c_str(), kMessageBytes - 1);
    header.status.store(code, std::memory_order_release);
    return;
  }
  while (!failed()) // another rank is writing its message
    std::this_thread::yield();
}

int32_t Board::status() const {
  return reinterpret_cast<Header *>(memory)->status.load(
      std::memory_order_acquire);
}

std::string Board::message() const {
  return reinterpret_cast<Header *>(memory)->message;
}
