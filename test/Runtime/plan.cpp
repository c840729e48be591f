//===- plan.cpp - Runs a plan that was compiled ahead of time -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   plan JOB BUFFERS RESULTS FIRST LAST DELAY
//
// JOB says in words: the levels (their number, then name and size of each), the
// bytes of the local and of the symmetric arena, the number of buffers, and the
// bytes of each on each rank, rank after rank. BUFFERS holds their first
// contents one after the other, RESULTS gets them as the run of seed FIRST
// leaves them. The runs of all seeds up to LAST, with delays up to so many
// microseconds, must leave the same. run_plans.py compiles, and links the
// plan's entry as `mercury_plan`, its malloc and free as `mercury_plan_malloc`
// and `mercury_plan_free`. Prints the most bytes that a rank held of these.
//
//===----------------------------------------------------------------------===//

#include "SimJob.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <malloc.h>
#include <memory>

// A rank is a thread, and frees what it allocates.
static thread_local int64_t held = 0;
static std::atomic<int64_t> mostHeld{0};

extern "C" int32_t mercury_plan(mercury_rt_context *context,
                                void *const *buffers);

extern "C" void *mercury_plan_malloc(size_t bytes) {
  void *memory = std::malloc(bytes);
  held += malloc_usable_size(memory);
  int64_t most = mostHeld;
  while (held > most && !mostHeld.compare_exchange_weak(most, held))
    continue;
  return memory;
}

extern "C" void mercury_plan_free(void *memory) {
  held -= malloc_usable_size(memory);
  std::free(memory);
}

int main(int argc, char **argv) {
  EXPECT(argc == 7);
  std::ifstream words(argv[1]);
  int64_t count = 0, buffers = 0;
  words >> count;
  std::vector<std::string> names(count);
  std::vector<Level> levels;
  for (std::string &name : names) {
    int64_t size = 0;
    words >> name >> size;
    levels.push_back({name.c_str(), size});
  }
  SimJob job(levels, mercury_plan);
  words >> job.localBytes >> job.symmetricBytes >> buffers;
  job.description.max_delay_us = std::stoll(argv[6]);

  // Each in memory of its own, so that a step beyond its end is seen.
  std::vector<int64_t> sizes(job.ranks * buffers);
  std::vector<std::unique_ptr<char[]>> memory;
  for (int64_t &size : sizes) {
    words >> size;
    memory.emplace_back(new char[size]);
  }
  EXPECT(words);
  std::ifstream file(argv[2], std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(file)), {});

  std::string expected;
  for (uint64_t seed = std::stoull(argv[4]); seed <= std::stoull(argv[5]);
       ++seed) {
    const char *from = contents.data();
    for (size_t i = 0; i < sizes.size(); from += sizes[i++]) {
      if (sizes[i])
        std::memcpy(memory[i].get(), from, sizes[i]);
      std::vector<void *> &table = job.buffers[i / buffers];
      table.resize(buffers);
      table[i % buffers] = memory[i].get();
    }
    EXPECT(from == contents.data() + contents.size());
    job.description.seed = seed;
    EXPECT(job.run() == 0);
    std::string left;
    for (size_t i = 0; i < sizes.size(); ++i)
      left.append(memory[i].get(), sizes[i]);
    if (expected.empty()) {
      expected = left;
      std::ofstream(argv[3], std::ios::binary) << left;
    }
    EXPECT(left == expected);
  }
  std::printf("%lld\n", static_cast<long long>(mostHeld.load()));
}
