// Copies of long results past the caches: their lines are written whole, so that none is read
// first, and what is in the caches stays there.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cpu/common/simd/stream.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {

// Whether a result is too long for what reads it next to find it in a cache.
constexpr bool is_streamed(int64_t bytes) { return bytes >= (int64_t{16} << 20); }

namespace simd {
inline const Stream& streams() { return TAEDA_PICK(stream); }
}  // namespace simd

// Like memcpy, by one of those kernels. Before another thread reads what was written, the writing
// one calls stream_fence().
inline void stream_bytes(decltype(simd::Stream::copy) lines, void* dst, const void* src,
                         size_t bytes) {
  auto* to = static_cast<char*>(dst);
  auto* from = static_cast<const char*>(src);
  const size_t head = -reinterpret_cast<uintptr_t>(to) & 63;
  if (bytes >= head + 64) {
    std::memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    lines(to, from, static_cast<int64_t>(bytes / 64));
    to += bytes / 64 * 64;
    from += bytes / 64 * 64;
    bytes %= 64;
  }
  std::memcpy(to, from, bytes);
}
// From one stretch of memory, and from what has been asked for before.
inline void stream_copy(void* dst, const void* src, size_t bytes) {
  stream_bytes(simd::streams().copy, dst, src, bytes);
}
inline void stream_near(void* dst, const void* src, size_t bytes) {
  stream_bytes(simd::streams().store, dst, src, bytes);
}
inline void stream_fence() { simd::streams().fence(); }

}  // namespace taeda::cpu
