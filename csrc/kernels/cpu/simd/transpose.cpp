#include "kernels/cpu/simd/transpose.h"

#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

typedef uint32_t Row4 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint64_t Row8 __attribute__((vector_size(32), aligned(8), may_alias));
// A template argument would lose the alignment, and with it the right to lie anywhere.
template <class T> struct RowOf;
template <> struct RowOf<uint32_t> {
  using type = Row4;
};
template <> struct RowOf<uint64_t> {
  using type = Row8;
};

// A square of registers, transposed in place: neighbours, then pairs, then halves change places.
FN void turn(Row4 (&r)[8]) {
  for (int i = 0; i < 8; i += 2) {
    const Row4 a = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    const Row4 b = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    r[i] = a;
    r[i + 1] = b;
  }
  for (int half = 0; half < 8; half += 4) {
    for (int i = half; i < half + 2; ++i) {
      const Row4 a = __builtin_shufflevector(r[i], r[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      const Row4 b = __builtin_shufflevector(r[i], r[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      r[i] = a;
      r[i + 2] = b;
    }
  }
  for (int i = 0; i < 4; ++i) {
    const Row4 a = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    const Row4 b = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    r[i] = a;
    r[i + 4] = b;
  }
}
FN void turn(Row8 (&r)[4]) {
  for (int i = 0; i < 4; i += 2) {
    const Row8 a = __builtin_shufflevector(r[i], r[i + 1], 0, 4, 2, 6);
    const Row8 b = __builtin_shufflevector(r[i], r[i + 1], 1, 5, 3, 7);
    r[i] = a;
    r[i + 1] = b;
  }
  for (int i = 0; i < 2; ++i) {
    const Row8 a = __builtin_shufflevector(r[i], r[i + 2], 0, 1, 4, 5);
    const Row8 b = __builtin_shufflevector(r[i], r[i + 2], 2, 3, 6, 7);
    r[i] = a;
    r[i + 2] = b;
  }
}

// Squares of one cache line by one: every line is read once and written once.
template <class T>
void transpose(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n,
               int64_t m) {
  using Row = typename RowOf<T>::type;
  constexpr int64_t line = 64 / int64_t(sizeof(T)), lanes = line / 2;
  auto one = [&](int64_t i, int64_t j) {
    *reinterpret_cast<T*>(dst + j * dst_step + i * int64_t(sizeof(T))) =
        *reinterpret_cast<const T*>(src + i * src_step + j * int64_t(sizeof(T)));
  };
  int64_t j = 0;
  for (; j + line <= m; j += line) {
    int64_t i = 0;
    for (; i + line <= n; i += line) {
      // The next square's lines lie in other pages, which no hardware foresees.
      const char* ahead = src + (i + line) * src_step + j * int64_t(sizeof(T));
      for (int64_t k = 0; k < line && i + line + k < n; ++k)
        __builtin_prefetch(ahead + k * src_step);
      for (int64_t a = 0; a < line; a += lanes) {
        for (int64_t b = 0; b < line; b += lanes) {
          Row r[lanes];
          const char* from = src + (i + b) * src_step + (j + a) * int64_t(sizeof(T));
          for (int k = 0; k < lanes; ++k) r[k] = *reinterpret_cast<const Row*>(from + k * src_step);
          turn(r);
          char* to = dst + (j + a) * dst_step + (i + b) * int64_t(sizeof(T));
          for (int k = 0; k < lanes; ++k) *reinterpret_cast<Row*>(to + k * dst_step) = r[k];
        }
      }
    }
    for (; i < n; ++i) {
      for (int64_t k = j; k < j + line; ++k) one(i, k);
    }
  }
  for (; j < m; ++j) {
    for (int64_t i = 0; i < n; ++i) one(i, j);
  }
}

}  // namespace

extern constinit const TransposeKernels transpose_kernels = {transpose<uint32_t>,
                                                             transpose<uint64_t>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
