//===- Job.h - One run on the embedded backend ------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the ranks of one run share: the messages still looking for their other
// end, the leases, the first failure, and the knowledge of who waits for whom.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_SIM_JOB_H
#define LIB_RUNTIME_SIM_JOB_H

#include "lib/Runtime/Mesh.h"
#include "lib/Runtime/Sim/Lease.h"
#include "lib/Runtime/Sim/Rank.h"
#include "lib/Runtime/Sim/Wire.h"
#include "mercury-rt/sim.h"
#include <deque>
#include <memory>
#include <tuple>

namespace mercury::rt::sim {

class Job {
public:
  explicit Job(const mercury_rt_sim_job &description);

  /// Runs every rank to its end. Called once.
  int32_t run();
  void fill(mercury_rt_sim_report &report) const;

  /// Posts one end of a message that rank `sender` sends to rank `receiver`.
  /// May fail the job.
  void post(Lock &lock, int64_t sender, int64_t receiver, bool sends,
            const Post &post);

  /// Sends a message of which both ends are known.
  void pull(const Message &message);

  /// What the group of `rank` knows of its lease of this number.
  Lease &getLease(int64_t rank, int64_t group, int64_t number);

  /// One of the things the operation waits for has happened.
  void finishOne(Operation &operation);

  /// Blocks the operation's rank until it is complete or the job has failed.
  int32_t wait(Lock &lock, Operation &operation);

  /// Records the job's failure unless there is one already, ends every wait and
  /// every copy, and returns the status of the first failure.
  int32_t fail(Lock &lock, int64_t rank, int32_t code, std::string text);
  int32_t fail(Lock &lock, const Operation &operation, int32_t code,
               const std::string &text);
  bool failed() const { return status != MERCURY_RT_OK; }

  /// What every call returns once the job has failed: the first failure. No
  /// copy is under way any more.
  int32_t firstFailure(Lock &lock);

  /// Says that the job is alive; moves the deadline.
  void progress() { lastProgress = Clock::now(); }

  const mercury_rt_sim_job &description;
  const Mesh mesh;
  std::mutex mutex; // guards all that follows, and the ranks

private:
  /// The ends that came first and wait for the other, oldest first.
  struct Channel {
    std::deque<Post> sends, receives;
  };

  void runRank(Rank &rank);
  /// Judges what the program returned, and how it left its operations.
  void endRank(Lock &lock, Rank &rank, int32_t result);
  /// Returns when the programs of all ranks have; looks whether to cancel.
  void awaitRanks(Lock &lock, int64_t started);
  void deliver(const Message &message);
  bool isStuck() const;
  int32_t failBlocked(Lock &lock, int32_t code, const std::string &why);
  std::string describe(const Operation &operation) const;

  std::vector<std::unique_ptr<Rank>> ranks;
  std::map<std::tuple<int64_t, int64_t, int64_t>, Channel> channels;
  std::map<std::tuple<int64_t, int64_t, int64_t>, Lease> leases;
  std::vector<int64_t> bytesSent, messages;
  int64_t returned = 0; // ranks whose program has
  std::condition_variable allReturned;
  Clock::time_point lastProgress = Clock::now();

  int32_t status = MERCURY_RT_OK;
  int64_t failingRank = -1;
  std::string message;

  Wire wire; // last: its thread ends before what it touches
};

} // namespace mercury::rt::sim

#endif // LIB_RUNTIME_SIM_JOB_H
