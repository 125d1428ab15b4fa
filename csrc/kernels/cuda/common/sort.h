// Sorting on the device.
#pragma once

#include <cstdint>

namespace taeda::cuda {

// Sorts n < 2^31 keys below 2^bits, and their values with them; equal keys keep their order. Of
// uint32_t both, or of uint64_t and int64_t.
template <class K, class V>
void sort_pairs(int64_t n, int bits, const K* keys, K* sorted_keys, const V* values,
                V* sorted_values);

}  // namespace taeda::cuda
