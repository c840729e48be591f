//===- Bytes.h - Memory of the fake driver ----------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TEST_RUNTIME_CUDA_BYTES_H
#define TEST_RUNTIME_CUDA_BYTES_H

#include "CudaJob.h"
#include <cstring>

/// Device memory of one rank, filled with one byte.
struct Bytes {
  explicit Bytes(int64_t size, int value = 0) : size(size) {
    EXPECT(fake_cuda_allocate(&data, size) == 0);
    std::memset(data, value, size);
  }
  ~Bytes() { fake_cuda_free(data); }
  bool isAll(int64_t begin, int64_t end, int value) const {
    for (int64_t i = begin; i < end; ++i)
      if (static_cast<char *>(data)[i] != value)
        return false;
    return true;
  }
  void *data = nullptr;
  int64_t size;
};

#endif // TEST_RUNTIME_CUDA_BYTES_H
