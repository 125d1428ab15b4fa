// Copies of whole cache lines by non-temporal stores, and of short rows.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// store and copy move `lines` times 64 bytes to the beginning of a cache line. The thread calls
// fence() before another one reads them.
struct Stream {
  void (*store)(void* to, const void* from, int64_t lines);  // from a cache
  void (*copy)(void* to, const void* from, int64_t lines);   // from memory, with prefetching
  void (*fence)();
  // Rows of at least 16 bytes, d and s bytes apart, by ordinary stores.
  void (*rows)(char* to, int64_t d, const char* from, int64_t s, int64_t bytes, int64_t rows);
};

TAEDA_TABLES(Stream, stream_kernels)

}  // namespace taeda::cpu::simd
