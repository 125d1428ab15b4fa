#include "kernels/cpu/common/simd/stream.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Bytes ahead of the loads: the hardware prefetcher stops at the end of every page.
constexpr int64_t kPrefetchAhead = 8192;
// Loads from memory are faster beside non-temporal stores of 32 bytes than of 64 or 16.
constexpr int64_t kStoreBytes = kRegisterBytes < 32 ? kRegisterBytes : 32;

template <bool Prefetch> void copy_lines(void* to, const void* from, int64_t lines) {
  auto* target = static_cast<char*>(to);
  auto* source = static_cast<const char*>(from);
  for (int64_t i = 0; i < lines * kCacheLine; i += kCacheLine) {
    if constexpr (Prefetch) prefetch<3>(source + i + kPrefetchAhead);
    for (int64_t k = i; k < i + kCacheLine; k += kStoreBytes)
      stream(target + k, load<kStoreBytes>(source + k));
  }
}

template <int64_t N> FN void move(char* to, const char* from) { store(to, load<N>(from)); }

// The last vector of a row may overlap the one before.
template <class Bytes>
inline void rows_of(Bytes bytes, char* to, int64_t d, const char* from, int64_t s, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, to += d, from += s) {
    int64_t k = 0;
    for (; k + kRegisterBytes <= bytes; k += kRegisterBytes) move<kRegisterBytes>(to + k, from + k);
    if (k == bytes) continue;
    if (k > 0) {
      move<kRegisterBytes>(to + bytes - kRegisterBytes, from + bytes - kRegisterBytes);
      continue;
    }
    for (; k + 16 <= bytes; k += 16) move<16>(to + k, from + k);
    move<16>(to + bytes - 16, from + bytes - 16);
  }
}
template <int64_t N> struct Fixed {
  constexpr operator int64_t() const { return N; }
};
void copy_rows(char* to, int64_t d, const char* from, int64_t s, int64_t bytes, int64_t rows) {
  switch (bytes) {
    case 32: return rows_of(Fixed<32>{}, to, d, from, s, rows);
    case 64: return rows_of(Fixed<64>{}, to, d, from, s, rows);
    case 128: return rows_of(Fixed<128>{}, to, d, from, s, rows);
    default: return rows_of(bytes, to, d, from, s, rows);
  }
}

void fence() { stream_fence(); }

}  // namespace

extern const Stream stream_kernels{copy_lines<false>, copy_lines<true>, fence, copy_rows};

}  // namespace taeda::cpu::simd::TAEDA_ISA
