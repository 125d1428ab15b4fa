#include "kernels/cpu/simd/stream.h"

#include "kernels/cpu/simd/lanes.h"

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

}  // namespace

extern const Stream stream{copy_lines<false>, copy_lines<true>, fence_stores};

}  // namespace taeda::cpu::simd::TAEDA_ISA
