// Sorting on the device.
#pragma once

#include <cstdint>

namespace taeda::cuda {

// Sorts n < 2^31 keys below 2^bits, and their values with them; equal keys keep their order.
void sort_pairs(int64_t n, int bits, const uint32_t* keys, uint32_t* sorted_keys,
                const uint32_t* values, uint32_t* sorted_values);

}  // namespace taeda::cuda
