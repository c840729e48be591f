//===- Groups.h - Whom the programs of a job name ---------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The groups of a job, numbered in its order: what a rank has for each, from
// signals to a communicator, is found by that number.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDA_GROUPS_H
#define LIB_RUNTIME_CUDA_GROUPS_H

#include "lib/Runtime/Mesh.h"
#include "mercury-rt/cuda.h"

namespace mercury::rt::cuda {

class Groups {
public:
  Groups(const Mesh &mesh, const mercury_rt_cuda_job &job) : mesh(mesh) {
    for (int64_t i = 0; i < job.number_of_groups; ++i) {
      names.push_back(job.groups[i].group);
      if (job.groups[i].puts)
        putting = i;
    }
  }

  int64_t count() const { return static_cast<int64_t>(names.size()); }
  /// As runtime.h names it.
  int64_t name(int64_t number) const { return names[number]; }
  int64_t size(int64_t number) const { return mesh.groupSize(names[number]); }

  /// The number of the group with these levels; count() if there is none.
  int64_t find(int64_t group) const {
    int64_t number = 0;
    while (number < count() &&
           mesh.levelsOf(names[number]) != mesh.levelsOf(group))
      ++number;
    return number;
  }

  /// The number of the group whose members put; negative if there is none.
  int64_t findPutting() const { return putting; }

private:
  const Mesh &mesh;
  std::vector<int64_t> names;
  int64_t putting = -1;
};

} // namespace mercury::rt::cuda

#endif // LIB_RUNTIME_CUDA_GROUPS_H
