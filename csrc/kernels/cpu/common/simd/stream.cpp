#include "kernels/cpu/common/simd/stream.h"

#include "kernels/cpu/reduce/simd/lanes.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kAhead = 8192;  // bytes: the machine's own prefetching stops at every page

// Two operands are read faster beside stores of 32 bytes than of 64 or 16.
template <bool Ahead> void copy_lines(void* to, const void* from, int64_t lines) {
  typedef char Line __attribute__((vector_size(kLine)));
  auto* target = static_cast<char*>(to);
  auto* source = static_cast<const char*>(from);
  for (int64_t i = 0; i < lines * kLine; i += kLine) {
    Line line;
    __builtin_memcpy(&line, source + i, kLine);
    if constexpr (Ahead) __builtin_prefetch(source + i + kAhead);
    store_past_caches<32>(target + i, line);
  }
}

// The last part of a row may overlap the one before.
template <class Bytes>
inline void rows_of(Bytes bytes, char* to, int64_t d, const char* from, int64_t s, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, to += d, from += s) {
    int64_t k = 0;
    for (; k + kRegister <= bytes; k += kRegister) __builtin_memcpy(to + k, from + k, kRegister);
    if (k == bytes) continue;
    if (k > 0) {
      __builtin_memcpy(to + bytes - kRegister, from + bytes - kRegister, kRegister);
      continue;
    }
    for (; k + 16 <= bytes; k += 16) __builtin_memcpy(to + k, from + k, 16);
    __builtin_memcpy(to + bytes - 16, from + bytes - 16, 16);
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

}  // namespace

extern const Stream stream{copy_lines<false>, copy_lines<true>, fence_stores, copy_rows};

}  // namespace taeda::cpu::simd::TAEDA_ISA
