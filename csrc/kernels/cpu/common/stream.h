// When to bypass the caches, for all kernels, and copies that do.
//
// A non-temporal store writes a whole cache line to memory without reading it first, which saves a
// third of a copy's traffic, and evicts nothing. It loses where the next kernel would have found
// the result in a cache.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/cpu_features.h"
#include "kernels/cpu/common/simd/stream.h"

namespace taeda::cpu {

// Whether a result of so many bytes is written by non-temporal stores: from half of the last-level
// cache on, which then cannot hold the result beside what it was computed from.
inline bool is_streamed(int64_t bytes) { return bytes >= caches().l3 / 2; }

// Whether results that wait for arithmetic are, too. Ordinary stores make 16M sigmoids with AVX2
// take 10.3 instead of 5.4 ms on Intel's processors (Sapphire Rapids), and 5.2 instead of 7.4 on
// AMD's (Zen 4).
inline bool is_streamed_beside_arithmetic() { return is_intel(); }

// Whether operands of so many bytes are worth prefetching: only what the last-level cache cannot
// hold. (Prefetching what it holds costs about 10 %.)
inline bool is_prefetched(int64_t bytes) { return bytes > caches().l3; }

namespace simd {
inline const Stream& streams() { return TAEDA_PICK(stream_kernels); }
}  // namespace simd

// Like memcpy, by one of those kernels. The writing thread calls stream_fence() before another one
// reads what was written.
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
// stream_copy prefetches its source, which lies in memory; stream_near takes it from a cache.
inline void stream_copy(void* dst, const void* src, size_t bytes) {
  stream_bytes(simd::streams().copy, dst, src, bytes);
}
inline void stream_near(void* dst, const void* src, size_t bytes) {
  stream_bytes(simd::streams().store, dst, src, bytes);
}
inline void stream_fence() { simd::streams().fence(); }

}  // namespace taeda::cpu
