#include "kernels/cpu/simd/transpose.h"

#include "kernels/functors_scalar.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// What fills one register.
#if defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
// Pairs of 16-bit numbers are moved as 32 bits, and may begin at any two bytes.
typedef uint32_t Row4 __attribute__((vector_size(kBytes), aligned(2), may_alias));
typedef uint64_t Row8 __attribute__((vector_size(kBytes), aligned(8), may_alias));
// A template argument would lose the alignment, and with it the right to lie anywhere.
template <class T> struct RowOf;
template <> struct RowOf<uint32_t> {
  using type = Row4;
};
template <> struct RowOf<uint64_t> {
  using type = Row8;
};

// A square of registers, transposed in place: neighbours change places, then pairs, then halves.
template <class Row> FN void turn(Row (&r)[2]) {
  const Row a = __builtin_shufflevector(r[0], r[1], 0, 2);
  r[1] = __builtin_shufflevector(r[0], r[1], 1, 3);
  r[0] = a;
}
template <class Row> FN void turn(Row (&r)[4]) {
  for (int i = 0; i < 4; i += 2) {
    const Row a = __builtin_shufflevector(r[i], r[i + 1], 0, 4, 2, 6);
    r[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 5, 3, 7);
    r[i] = a;
  }
  for (int i = 0; i < 2; ++i) {
    const Row a = __builtin_shufflevector(r[i], r[i + 2], 0, 1, 4, 5);
    r[i + 2] = __builtin_shufflevector(r[i], r[i + 2], 2, 3, 6, 7);
    r[i] = a;
  }
}
template <class Row> FN void turn(Row (&r)[8]) {
  for (int i = 0; i < 8; i += 2) {
    const Row a = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    r[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    r[i] = a;
  }
  for (int half = 0; half < 8; half += 4) {
    for (int i = half; i < half + 2; ++i) {
      const Row a = __builtin_shufflevector(r[i], r[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      r[i + 2] = __builtin_shufflevector(r[i], r[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      r[i] = a;
    }
  }
  for (int i = 0; i < 4; ++i) {
    const Row a = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    r[i] = a;
  }
}

// Past the caches.
#if defined(__AVX__)
FN void stream(char* to, __m256i v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(to), v); }
using Register = __m256i;
#elif defined(__x86_64__)
FN void stream(char* to, __m128i v) { _mm_stream_si128(reinterpret_cast<__m128i*>(to), v); }
using Register = __m128i;
#else
FN void stream(char* to, Row4 v) { *reinterpret_cast<Row4*>(to) = v; }
using Register = Row4;
#endif

// A square of one cache line by one.
template <class T, bool Streamed>
FN void square(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  using Row = typename RowOf<T>::type;
  constexpr int lanes = kBytes / sizeof(T), parts = 64 / kBytes;
  for (int a = 0; a < parts; ++a) {
    Row r[parts][lanes];
    for (int b = 0; b < parts; ++b) {
      for (int k = 0; k < lanes; ++k)
        r[b][k] = *reinterpret_cast<const Row*>(src + (b * lanes + k) * src_step + a * kBytes);
      turn(r[b]);
    }
    for (int k = 0; k < lanes; ++k) {
      char* to = dst + (a * lanes + k) * dst_step;
      for (int b = 0; b < parts; ++b) {
        if constexpr (Streamed) stream(to + b * kBytes, reinterpret_cast<Register>(r[b][k]));
        else *reinterpret_cast<Row*>(to + b * kBytes) = r[b][k];
      }
    }
  }
}

// A square of one register by one.
template <class T>
FN void small_square(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  using Row = typename RowOf<T>::type;
  constexpr int lanes = kBytes / sizeof(T);
  Row r[lanes];
  for (int k = 0; k < lanes; ++k) r[k] = *reinterpret_cast<const Row*>(src + k * src_step);
  turn(r);
  for (int k = 0; k < lanes; ++k) *reinterpret_cast<Row*>(dst + k * dst_step) = r[k];
}

// What is narrower than a cache line.
template <class T>
FN void rest(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, int64_t m) {
  constexpr int64_t item = sizeof(T), lanes = kBytes / item;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes, src += lanes * src_step, dst += kBytes) {
    int64_t j = 0;
    for (; j + lanes <= m; j += lanes)
      small_square<T>(dst + j * dst_step, dst_step, src + j * item, src_step);
    for (; j < m; ++j) {
      T column[lanes];
      for (int64_t k = 0; k < lanes; ++k)
        __builtin_memcpy(column + k, src + k * src_step + j * item, item);
      __builtin_memcpy(dst + j * dst_step, column, kBytes);
    }
  }
  for (; i < n; ++i, src += src_step, dst += item) {
    for (int64_t j = 0; j < m; ++j) __builtin_memcpy(dst + j * dst_step, src + j * item, item);
  }
}

// A band of rows of src from left to right, square by square: every line is read once and written
// once. Two lines ahead in each row is as far as the caches hold what is asked for, however many
// rows lie a power of two apart.
template <class T, bool Streamed>
void transpose(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n,
               int64_t m) {
  constexpr int64_t item = sizeof(T), line = 64 / item, rows = transpose_rows(item);
  for (int64_t band = 0; band < n; band += rows) {
    const int64_t end = band + rows < n ? band + rows : n;
    int64_t j = 0;
    for (; j + line <= m; j += line) {
      int64_t i = band;
      for (; i + line <= end; i += line) {
        const char* from = src + i * src_step + j * item;
        for (int64_t k = 0; k < line; ++k) __builtin_prefetch(from + k * src_step + 128, 0, 2);
        square<T, Streamed>(dst + j * dst_step + i * item, dst_step, from, src_step);
      }
      if (i < end) {
        rest<T>(dst + j * dst_step + i * item, dst_step, src + i * src_step + j * item, src_step,
                end - i, line);
      }
    }
    if (j < m) {
      rest<T>(dst + j * dst_step + band * item, dst_step, src + band * src_step + j * item,
              src_step, end - band, m - j);
    }
  }
#if defined(__x86_64__)
  if constexpr (Streamed) _mm_sfence();
#endif
}

}  // namespace

extern constinit const TransposeKernels transpose_kernels = {
    transpose<uint32_t, false>, transpose<uint64_t, false>, transpose<uint32_t, true>,
    transpose<uint64_t, true>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
