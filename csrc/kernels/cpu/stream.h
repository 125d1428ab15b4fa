// Copies of long results past the caches: their lines are written whole, so that none is read
// first, and what is in the caches stays there.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace taeda::cpu {

// Whether a result is too long for what reads it next to find it in a cache.
constexpr bool is_streamed(int64_t bytes) { return bytes >= (int64_t{16} << 20); }

// Like memcpy. Before another thread reads what was written, the writing one calls stream_fence().
inline void stream_copy(void* dst, const void* src, size_t bytes) {
#if defined(__x86_64__)
  auto* to = static_cast<char*>(dst);
  auto* from = static_cast<const char*>(src);
  const size_t head = -reinterpret_cast<uintptr_t>(to) & 63;
  if (bytes >= head + 64) {
    std::memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
      __m128i part[4];
      for (int i = 0; i < 4; ++i)
        part[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
      for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, part[i]);
    }
  }
  std::memcpy(to, from, bytes);
#else
  std::memcpy(dst, src, bytes);
#endif
}

inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace taeda::cpu
