#include "kernels/cpu/simd/transpose.h"

#include <utility>

#include "kernels/functors_scalar.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// What fills one register; 16 bytes where elements are shorter.
#if defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
// Pairs of 16-bit numbers are moved as 32 bits, and may begin at any two bytes.
typedef uint32_t Row4 __attribute__((vector_size(kBytes), aligned(2), may_alias));
typedef uint64_t Row8 __attribute__((vector_size(kBytes), aligned(8), may_alias));
typedef uint8_t Row1 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t Row2 __attribute__((vector_size(16), aligned(2), may_alias));
// A template argument would lose the alignment, and with it the right to lie anywhere.
template <class T> struct RowOf;
template <> struct RowOf<uint8_t> {
  using type = Row1;
};
template <> struct RowOf<uint16_t> {
  using type = Row2;
};
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

// Of short elements: those of two rows in turns, as often as it takes for each to meet all others.
template <size_t Start, class Row, size_t... I>
FN Row in_turns(Row a, Row b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (Start + I / 2 + I % 2 * sizeof...(I))...);
}
template <class Row, int N> FN void turn_short(Row (&r)[N]) {
  constexpr auto all = std::make_index_sequence<N>();
  for (int times = 1; times < N; times *= 2) {
    Row next[N];
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = in_turns<0>(r[i], r[i + N / 2], all);
      next[2 * i + 1] = in_turns<N / 2>(r[i], r[i + N / 2], all);
    }
    for (int i = 0; i < N; ++i) r[i] = next[i];
  }
}
FN void turn(Row1 (&r)[16]) { turn_short(r); }
FN void turn(Row2 (&r)[8]) { turn_short(r); }

// Past the caches.
template <class Row> FN void stream(char* to, Row v) {
#if defined(__AVX__)
  if constexpr (sizeof(Row) == 32)
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(v));
#endif
#if defined(__x86_64__)
  if constexpr (sizeof(Row) == 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(v));
#else
  __builtin_memcpy(to, &v, sizeof v);
#endif
}

// A square of one cache line by one.
template <class T, bool Streamed>
FN void square(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  using Row = typename RowOf<T>::type;
  constexpr int bytes = sizeof(Row), lanes = bytes / sizeof(T), parts = 64 / bytes;
  for (int a = 0; a < parts; ++a) {
    Row r[parts][lanes];
    for (int b = 0; b < parts; ++b) {
      for (int k = 0; k < lanes; ++k)
        r[b][k] = *reinterpret_cast<const Row*>(src + (b * lanes + k) * src_step + a * bytes);
      turn(r[b]);
    }
    for (int k = 0; k < lanes; ++k) {
      char* to = dst + (a * lanes + k) * dst_step;
      for (int b = 0; b < parts; ++b) {
        if constexpr (Streamed) stream(to + b * bytes, r[b][k]);
        else *reinterpret_cast<Row*>(to + b * bytes) = r[b][k];
      }
    }
  }
}

// A square of one register by one.
template <class T>
FN void small_square(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  using Row = typename RowOf<T>::type;
  constexpr int lanes = sizeof(Row) / sizeof(T);
  Row r[lanes];
  for (int k = 0; k < lanes; ++k) r[k] = *reinterpret_cast<const Row*>(src + k * src_step);
  turn(r);
  for (int k = 0; k < lanes; ++k) *reinterpret_cast<Row*>(dst + k * dst_step) = r[k];
}

// What is narrower than a cache line.
template <class T>
FN void rest(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, int64_t m) {
  constexpr int64_t bytes = sizeof(typename RowOf<T>::type), item = sizeof(T), lanes = bytes / item;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes, src += lanes * src_step, dst += bytes) {
    int64_t j = 0;
    for (; j + lanes <= m; j += lanes)
      small_square<T>(dst + j * dst_step, dst_step, src + j * item, src_step);
    for (; j < m; ++j) {
      T column[lanes];
      for (int64_t k = 0; k < lanes; ++k)
        __builtin_memcpy(column + k, src + k * src_step + j * item, item);
      __builtin_memcpy(dst + j * dst_step, column, bytes);
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
    transpose<uint8_t, false>,  transpose<uint16_t, false>, transpose<uint32_t, false>,
    transpose<uint64_t, false>, transpose<uint8_t, true>,   transpose<uint16_t, true>,
    transpose<uint32_t, true>,  transpose<uint64_t, true>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
