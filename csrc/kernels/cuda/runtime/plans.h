// How what NVIDIA's libraries have planned is found again.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace taeda::cuda {

// The largest power of two, at most `most`, that divides an address.
inline int64_t alignment(const void* p, int64_t most) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return address == 0 ? most : std::min(most, int64_t{1} << std::countr_zero(address));
}

// Of a struct of 64-bit words without padding.
struct KeyHash {
  template <class Key> size_t operator()(const Key& key) const {
    const auto words = std::bit_cast<std::array<uint64_t, sizeof(Key) / 8>>(key);
    uint64_t hash = 0;
    for (const uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
  }
};

}  // namespace taeda::cuda
