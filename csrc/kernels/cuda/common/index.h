// From the index of an element to its place in strided memory.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

// Division by what kernels do not know when they are compiled: by a product where both are below
// 2^31.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(int64_t d) : large_(d >= int64_t{1} << 31 ? d : 0) {
    if (large_ == 0) *this = Divisor(static_cast<uint32_t>(d == 0 ? 1 : d));  // of no elements
  }
  explicit Divisor(uint32_t d)
      : d_(d),
        shift_(static_cast<uint32_t>(std::bit_width(d_ - 1))),
        magic_(static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - d_)) / d_ +
                                     1)) {}
  // n becomes the quotient; returns the remainder. Of numbers below 2^31.
  __device__ uint32_t divide(uint32_t& n) const {
    const auto high = static_cast<uint32_t>((uint64_t{n} * magic_) >> 32);
    const uint32_t quotient = (high + n) >> shift_, rest = n - quotient * d_;
    n = quotient;
    return rest;
  }
  // The same of any, slower from 2^31 on.
  __device__ int64_t divide(int64_t& n) const {
    if (n < int64_t{1} << 31 && large_ == 0) {
      auto low = static_cast<uint32_t>(n);
      const uint32_t rest = divide(low);
      n = low;
      return rest;
    }
    const int64_t d = large_ ? large_ : d_, rest = n % d;
    n /= d;
    return rest;
  }

 private:
  uint32_t d_ = 1, shift_ = 0, magic_ = 1;
  int64_t large_ = 0;  // the divisor, from 2^31 on
};

// Dimensions of one kernel, the fastest first; more of them are loops of the host.
inline constexpr int kMostDims = 8;
inline constexpr int64_t kMostElements = int64_t{1} << 31;

}  // namespace taeda::cuda
