//===- Elements.h - Reducing numbers of any type ----------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a reduction does to elements where no vendor's library does it: on
// embedded ranks, and in the tests' NCCL.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_ELEMENTS_H
#define LIB_RUNTIME_ELEMENTS_H

#include "mercury-rt/runtime.h"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mercury::rt {

inline int64_t elementBytes(int32_t type) {
  switch (type) {
  case MERCURY_RT_F16:
  case MERCURY_RT_BF16:
    return 2;
  case MERCURY_RT_F32:
    return 4;
  case MERCURY_RT_F64:
    return 8;
  default:
    return 0;
  }
}

/// A number in `exponent` and `mantissa` bits, as IEEE 754 has them.
inline double decode(uint16_t bits, int exponent, int mantissa) {
  int field = (bits >> mantissa) & ((1 << exponent) - 1);
  int fraction = bits & ((1 << mantissa) - 1);
  int bias = (1 << (exponent - 1)) - 1;
  double sign = bits >> 15 ? -1.0 : 1.0;
  if (field == (1 << exponent) - 1)
    return fraction ? std::nan("") : sign * INFINITY;
  if (field == 0)
    return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1 << mantissa), field - bias - mantissa);
}

/// The nearest such number, to even where two are.
inline uint16_t encode(double value, int exponent, int mantissa) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  int bias = (1 << (exponent - 1)) - 1, most = (1 << exponent) - 1;
  if (std::isnan(value))
    return sign | most << mantissa | 1 << (mantissa - 1);
  double size = std::fabs(value);
  int power = 0;
  std::frexp(size, &power);
  int lowest = std::max(power - 1, 1 - bias);
  double steps = std::isinf(size)
                     ? size
                     : std::nearbyint(std::ldexp(size, mantissa - lowest));
  if (steps >= std::ldexp(1.0, mantissa + 1) && !std::isinf(steps)) {
    ++lowest;
    steps /= 2;
  }
  if (std::isinf(steps) || lowest + bias >= most)
    return sign | most << mantissa;
  // Below the smallest normal number the field is 0, as the leading bit is.
  int field = steps < std::ldexp(1.0, mantissa) ? 0 : lowest + bias;
  int fraction = static_cast<int>(steps) & ((1 << mantissa) - 1);
  return sign | field << mantissa | fraction;
}

inline double load(const char *at, int32_t type) {
  uint16_t half;
  float single;
  double number;
  switch (type) {
  case MERCURY_RT_F16:
  case MERCURY_RT_BF16:
    std::memcpy(&half, at, sizeof(half));
    return type == MERCURY_RT_F16 ? decode(half, 5, 10) : decode(half, 8, 7);
  case MERCURY_RT_F32:
    std::memcpy(&single, at, sizeof(single));
    return single;
  default:
    std::memcpy(&number, at, sizeof(number));
    return number;
  }
}

inline void store(char *at, int32_t type, double number) {
  auto put = [&](auto value) { std::memcpy(at, &value, sizeof(value)); };
  switch (type) {
  case MERCURY_RT_F16:
    return put(encode(number, 5, 10));
  case MERCURY_RT_BF16:
    return put(encode(number, 8, 7));
  case MERCURY_RT_F32:
    return put(static_cast<float>(number));
  default:
    return put(number);
  }
}

/// Merges parts of `bytes` bytes in their order: in float, or in double where
/// the elements are.
inline void reduce(const std::vector<const char *> &parts, char *dst,
                   int64_t bytes, int32_t type, int32_t reduction) {
  for (int64_t at = 0; at < bytes; at += elementBytes(type)) {
    double merged = load(parts[0] + at, type);
    for (size_t i = 1; i < parts.size(); ++i) {
      double more = load(parts[i] + at, type);
      if (reduction == MERCURY_RT_MAX)
        merged = std::isnan(more) || more > merged ? more : merged;
      else if (type == MERCURY_RT_F64)
        merged += more;
      else
        merged = static_cast<float>(merged) + static_cast<float>(more);
    }
    store(dst + at, type, merged);
  }
}

} // namespace mercury::rt

#endif // LIB_RUNTIME_ELEMENTS_H
