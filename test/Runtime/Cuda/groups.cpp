//===- groups.cpp - Groups of any levels, on the fake driver --------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operation in every group of a mesh, of one level and of several, all of
// them under way at once, run and replayed.
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "CudaJob.h"
#include <algorithm>
#include <memory>

static constexpr int64_t kMost = 8; // elements of a part

/// The part of each member is of another size.
static int64_t countOf(int64_t member) { return kMost - member; }

static float valueOf(int64_t rank, int64_t part, int64_t i) {
  return static_cast<float>(100 * rank + 10 * part + i);
}

namespace {
/// The ranks of one group, as a rank sees it, and its memory: for each
/// operation as many floats as all parts have.
struct Group {
  Group(const std::vector<Level> &levels, int64_t set, int64_t rank)
      : name(MERCURY_RT_LEVELS(set)) {
    members.push_back(rank);
    int64_t stride = 1;
    for (int64_t level = levels.size(); level-- > 0;) {
      int64_t size = levels[level].size, here = rank / stride % size;
      std::vector<int64_t> found;
      for (int64_t at = 0; set >> level & 1 && at < size; ++at)
        for (int64_t member : members)
          found.push_back(member + (at - here) * stride);
      if (!found.empty())
        members = found;
      stride *= size;
    }
    self = std::find(members.begin(), members.end(), rank) - members.begin();
    bytes = std::make_unique<Bytes>(kSections * floats() * sizeof(float));
  }

  enum Section { Src, Added, Gathered, Own, Most, Dealt, Root, Ring, Read };
  static constexpr int64_t kSections = 9;

  int64_t size() const { return static_cast<int64_t>(members.size()); }
  int64_t floats() const { return size() * kMost; }
  float *at(Section section, int64_t part = 0) const {
    return static_cast<float *>(bytes->data) + section * floats() +
           part * kMost;
  }
  int64_t after(int64_t hops) const { return (self + hops) % size(); }

  void fill(int64_t round) {
    for (int64_t i = 0; i < kSections * floats(); ++i)
      at(Src)[i] = -1;
    for (Section section : {Src, Added})
      for (int64_t part = 0; part < size(); ++part)
        for (int64_t i = 0; i < countOf(part); ++i)
          at(section, part)[i] = valueOf(members[self], part, i) + round;
  }

  int64_t name, self;
  std::vector<int64_t> members; // global ranks
  std::unique_ptr<Bytes> bytes;
};
using Groups = std::vector<Group>;
} // namespace

/// Starts everything in a group; returns what to wait for, and the lease.
static int32_t begin(mercury_rt_context *context, const Group &group,
                     std::vector<int64_t> &tokens, int64_t &lease) {
  int64_t size = group.size(), self = group.self;
  EXPECT(mercury_rt_group_rank(context, group.name) == self);
  EXPECT(mercury_rt_group_size(context, group.name) == size);
  const int64_t slot = kMost * sizeof(float), whole = size * slot;
  std::vector<int64_t> parts, own;
  for (int64_t member = 0; member < size; ++member) {
    parts.push_back(countOf(member) * sizeof(float));
    own.push_back(countOf(self) * sizeof(float));
  }
  tokens.resize(tokens.size() + 7);
  int64_t *token = tokens.data() + tokens.size() - 7;
  const void *there;
  CHECK(mercury_rt_lease_open(context, group.name, group.at(Group::Src), whole,
                              &lease));
  CHECK(mercury_rt_all_gather_start(
      context, group.name, group.at(Group::Src, self), parts[self],
      group.at(Group::Gathered), slot, parts.data(), token));
  CHECK(mercury_rt_reduce_scatter_start(
      context, group.name, group.at(Group::Added), slot, group.at(Group::Own),
      parts.data(), MERCURY_RT_F32, MERCURY_RT_SUM, token + 1));
  CHECK(mercury_rt_all_reduce_start(context, group.name, group.at(Group::Src),
                                    group.at(Group::Most), whole,
                                    MERCURY_RT_F32, MERCURY_RT_MAX, token + 2));
  CHECK(mercury_rt_all_to_all_start(context, group.name, group.at(Group::Src),
                                    slot, parts.data(), group.at(Group::Dealt),
                                    slot, own.data(), token + 3));
  CHECK(mercury_rt_broadcast_start(context, group.name, size - 1,
                                   group.at(Group::Src), group.at(Group::Root),
                                   whole, token + 4));
  CHECK(mercury_rt_exchange_start(
      context, group.name, group.after(1), group.at(Group::Src), slot,
      group.after(size - 1), group.at(Group::Ring), slot, token + 5));
  CHECK(mercury_rt_lease_address(context, lease, group.after(1), &there));
  return mercury_rt_pull_start(context, lease, group.after(1), there, slot,
                               group.at(Group::Read), slot, slot, 1, token + 6);
}

static int32_t program(mercury_rt_context *context, void *const *buffers) {
  const auto &groups = *static_cast<const Groups *>(buffers[0]);
  std::vector<int64_t> tokens, leases(groups.size());
  for (size_t i = 0; i < groups.size(); ++i)
    CHECK(begin(context, groups[i], tokens, leases[i]));
  for (int64_t token : tokens)
    CHECK(mercury_rt_wait(context, token));
  for (int64_t lease : leases)
    CHECK(mercury_rt_lease_close(context, lease));
  return 0;
}

static void check(const Group &group, int64_t round) {
  const std::vector<int64_t> &members = group.members;
  int64_t self = group.self, last = group.size() - 1;
  auto value = [&](int64_t member, int64_t part, int64_t i) {
    return i < countOf(part) ? valueOf(members[member], part, i) + round : -1;
  };
  for (int64_t i = 0; i < kMost; ++i) {
    float sum = 0;
    for (int64_t member = 0; member <= last; ++member) {
      sum += value(member, self, i);
      float most = -1;
      for (int64_t other = 0; other <= last; ++other)
        most = std::max(most, value(other, member, i));
      EXPECT(group.at(Group::Gathered, member)[i] == value(member, member, i));
      EXPECT(group.at(Group::Most, member)[i] == most);
      EXPECT(group.at(Group::Dealt, member)[i] == value(member, self, i));
      EXPECT(group.at(Group::Root, member)[i] == value(last, member, i));
    }
    EXPECT(group.at(Group::Own)[i] == (i < countOf(self) ? sum : -1));
    EXPECT(group.at(Group::Ring)[i] == value(group.after(last), 0, i));
    EXPECT(group.at(Group::Read)[i] == value(group.after(1), 0, i));
  }
}

static void testGroups(const std::vector<Level> &levels) {
  CudaJob job(levels);
  job.makeCommunicators();
  job.run([&](mercury_rt_context *context, int64_t rank) {
    Groups groups;
    for (int64_t set = 1; set < 1 << levels.size(); ++set)
      groups.emplace_back(levels, set, rank);
    void *buffers[] = {&groups};
    mercury_rt_cuda_graph *graph = nullptr;
    for (int round = 0; round < 5; ++round) {
      for (Group &group : groups)
        group.fill(round);
      if (round == 1)
        CHECK(mercury_rt_cuda_capture(context, program, buffers, &graph));
      CHECK(round == 0 ? mercury_rt_cuda_run(context, program, buffers, nullptr)
                       : mercury_rt_cuda_replay(context, graph, nullptr));
      CHECK(mercury_rt_cuda_synchronize(context));
      for (const Group &group : groups)
        check(group, round);
    }
    mercury_rt_cuda_graph_free(context, graph);
    return 0;
  });
  job.expectSuccess();
}

/// A group that the job does not list is refused, by its levels.
static void testUnlisted() {
  CudaJob job({{"node", 2}, {"gpu", 2}});
  job.description.number_of_groups = 2;
  job.run([](mercury_rt_context *context, int64_t) {
    auto entry = [](mercury_rt_context *context, void *const *) {
      int64_t lease;
      return mercury_rt_lease_open(context, MERCURY_RT_LEVELS(3), nullptr, 0,
                                   &lease);
    };
    return mercury_rt_cuda_run(context, entry, nullptr, nullptr);
  });
  job.expectFailure(MERCURY_RT_INVALID,
                    "lease.open on levels 'node', 'gpu': the job was opened "
                    "without this group; list every group");
}

/// Of several hosts, a group of which is local on none of its levels alone.
static void testHosts() {
  int32_t isLocal[] = {0, 1};
  CudaJob job({{"node", 2}, {"gpu", 1}});
  job.makeCommunicators();
  job.description.level_is_local = isLocal;
  job.run([](mercury_rt_context *, int64_t) { return 0; });
  job.expectFailure(MERCURY_RT_UNSUPPORTED,
                    "communicator of level 'node': its ranks are on several "
                    "hosts; pass a communicator");
}

int main() {
  int64_t before = fake_cuda_count_objects();
  testGroups({{"node", 2}, {"gpu", 2}});
  testGroups({{"node", 2}, {"gpu", 3}});
  testGroups({{"rack", 2}, {"node", 2}, {"gpu", 2}});
  testUnlisted();
  testHosts();
  EXPECT(fake_cuda_count_objects() == before);
}
