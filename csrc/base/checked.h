// Arithmetic on sizes that come from a caller: what does not fit in an int64 is an error, never a
// small number that passes the checks behind it.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace taeda {

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) [[unlikely]]
    fail("integer overflow: ", a, " + ", b, " does not fit in 64 bits");
  return r;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) [[unlikely]]
    fail("integer overflow: ", a, " * ", b, " does not fit in 64 bits");
  return r;
}

// Extent of n elements spaced `step` apart, from the first to the last: step * (n - 1) + 1.
inline int64_t checked_reach(int64_t n, int64_t step) {
  return checked_add(checked_mul(checked_add(n, -1), step), 1);
}

}  // namespace taeda
