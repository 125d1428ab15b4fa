// Whole cache lines written past the caches, and short rows.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// Both copy `lines` times 64 bytes to where a cache line begins. Before another thread reads them,
// this one calls fence().
struct Stream {
  void (*store)(void* to, const void* from, int64_t lines);  // from a cache
  void (*copy)(void* to, const void* from, int64_t lines);   // from memory
  void (*fence)();
  // Rows of at least 16 bytes, d and s bytes apart, written to the caches.
  void (*rows)(char* to, int64_t d, const char* from, int64_t s, int64_t bytes, int64_t rows);
};

namespace v2 {
extern const Stream stream;
}
namespace v3 {
extern const Stream stream;
}
namespace v4 {
extern const Stream stream;
}
namespace base {
extern const Stream stream;
}

}  // namespace taeda::cpu::simd
