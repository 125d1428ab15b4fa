#include "kernels/cpu/pointwise/simd/transpose.h"

#include <utility>

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// What fills one register; 16 bytes where elements are shorter.
constexpr int64_t kBytes = kRegisterBytes;
// Pairs of 16-bit numbers are moved as 32 bits, and may begin at any two bytes.
typedef Vec<uint32_t> Row4 __attribute__((aligned(2), may_alias));
using Row8 = VecOf<uint64_t, kLanes<uint64_t>>::unaligned;
using Row1 = VecOf<uint8_t, 16>::unaligned;
using Row2 = VecOf<uint16_t, 8>::unaligned;
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

// Elements of two rows by Index, a function of the element's place; those of b follow those of a.
template <auto Index, class Row, size_t... I> FN Row pick(Row a, Row b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, Index(I)...);
}
template <auto Index, class Row> FN Row pick(Row a, Row b) {
  return pick<Index>(a, b, std::make_index_sequence<sizeof(Row) / sizeof(a[0])>());
}

// Interleaves a and b within each 16 bytes, from the lower or the upper half.
template <bool Upper, class Row> FN Row interleave(Row a, Row b) {
  constexpr auto index = [](size_t i) {
    constexpr size_t all = sizeof(Row) / sizeof(Row{}[0]), each = 16 / sizeof(Row{}[0]);
    return i / each * each + i % each / 2 + (Upper ? each / 2 : 0) + i % 2 * all;
  };
  return pick<index>(a, b);
}

// Of each row every `Step`th of its pieces of 16 bytes, or, if 0, one half of them.
template <size_t Step, bool Odd, class Row> FN Row pieces(Row a, Row b) {
  constexpr auto index = [](size_t i) {
    constexpr size_t all = sizeof(Row) / sizeof(Row{}[0]), each = 16 / sizeof(Row{}[0]);
    const size_t row = 2 * i / all, piece = (i - row * all / 2) / each;
    const size_t from = Step ? Step * piece + Odd : piece + (Odd ? all / each / 2 : 0);
    return row * all + from * each + i % each;
  };
  return pick<index>(a, b);
}

// A square of registers, transposed in place: first each 16 bytes with those of the neighbouring
// rows, then these pieces.
template <class Row> FN void transpose_near(Row (&r)[2]) {
  const Row a = r[0];
  r[0] = interleave<false>(a, r[1]);
  r[1] = interleave<true>(a, r[1]);
}
FN void transpose_near(Row4 (&r)[4]) {
  const auto pair = [](Row4 v) { return reinterpret_cast<Row8>(v); };
  const Row8 a = pair(interleave<false>(r[0], r[1])), b = pair(interleave<true>(r[0], r[1]));
  const Row8 c = pair(interleave<false>(r[2], r[3])), d = pair(interleave<true>(r[2], r[3]));
  r[0] = reinterpret_cast<Row4>(interleave<false>(a, c));
  r[1] = reinterpret_cast<Row4>(interleave<true>(a, c));
  r[2] = reinterpret_cast<Row4>(interleave<false>(b, d));
  r[3] = reinterpret_cast<Row4>(interleave<true>(b, d));
}
template <class Row> FN void transpose_far(Row (&)[1]) {}
template <class Row> FN void transpose_far(Row (&r)[2]) {
  const Row a = r[0];
  r[0] = pieces<0, false>(a, r[1]);
  r[1] = pieces<0, true>(a, r[1]);
}
template <class Row> FN void transpose_far(Row (&r)[4]) {
  const Row a = pieces<0, false>(r[0], r[1]), b = pieces<0, true>(r[0], r[1]);
  const Row c = pieces<0, false>(r[2], r[3]), d = pieces<0, true>(r[2], r[3]);
  r[0] = pieces<2, false>(a, c);
  r[1] = pieces<2, true>(a, c);
  r[2] = pieces<2, false>(b, d);
  r[3] = pieces<2, true>(b, d);
}
template <class Row, int N> FN void transpose_in_registers(Row (&r)[N]) {
  constexpr int near = 16 / sizeof(r[0][0]), far = N / near;
  for (int i = 0; i < N; i += near) {
    Row some[near];
    for (int k = 0; k < near; ++k) some[k] = r[i + k];
    transpose_near(some);
    for (int k = 0; k < near; ++k) r[i + k] = some[k];
  }
  for (int k = 0; k < near; ++k) {
    Row some[far];
    for (int i = 0; i < far; ++i) some[i] = r[i * near + k];
    transpose_far(some);
    for (int i = 0; i < far; ++i) r[i * near + k] = some[i];
  }
}

// Of short elements: two rows are interleaved as often as it takes for each to meet all others.
template <size_t Start, class Row, size_t... I>
FN Row interleave_all(Row a, Row b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (Start + I / 2 + I % 2 * sizeof...(I))...);
}
template <class Row, int N> FN void transpose_short(Row (&r)[N]) {
  constexpr auto all = std::make_index_sequence<N>();
  for (int times = 1; times < N; times *= 2) {
    Row next[N];
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = interleave_all<0>(r[i], r[i + N / 2], all);
      next[2 * i + 1] = interleave_all<N / 2>(r[i], r[i + N / 2], all);
    }
    for (int i = 0; i < N; ++i) r[i] = next[i];
  }
}
FN void transpose_in_registers(Row1 (&r)[16]) { transpose_short(r); }
FN void transpose_in_registers(Row2 (&r)[8]) { transpose_short(r); }

// A square of one cache line by one. Not inlined: the compiler would keep the addresses of all rows
// for the next square, in memory.
template <class T, bool Streamed>
[[gnu::noinline]] void square(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  using Row = typename RowOf<T>::type;
  constexpr int bytes = sizeof(Row), lanes = bytes / sizeof(T), parts = 64 / bytes;
  for (int a = 0; a < parts; ++a) {
    Row r[parts][lanes];
    for (int b = 0; b < parts; ++b) {
      for (int k = 0; k < lanes; ++k)
        r[b][k] = *reinterpret_cast<const Row*>(src + (b * lanes + k) * src_step + a * bytes);
      transpose_in_registers(r[b]);
    }
    for (int k = 0; k < lanes; ++k) {
      char* to = dst + (a * lanes + k) * dst_step;
      for (int b = 0; b < parts; ++b) {
        if constexpr (Streamed) stream(reinterpret_cast<T*>(to + b * bytes), r[b][k]);
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
  transpose_in_registers(r);
  for (int k = 0; k < lanes; ++k) *reinterpret_cast<Row*>(dst + k * dst_step) = r[k];
}

#if defined(__AVX512F__)
// A block narrower or lower than a square of registers: other rows and columns are neither read nor
// written.
template <class T>
[[gnu::noinline]] void some_of_square(char* dst, int64_t dst_step, const char* src,
                                      int64_t src_step, int64_t n, int64_t m) {
  using Row = typename RowOf<T>::type;
  constexpr int lanes = sizeof(Row) / sizeof(T);
  const auto read = (1U << m) - 1, written = (1U << n) - 1;
  Row r[lanes];
  for (int64_t k = 0; k < lanes; ++k) {
    const char* from = src + (k < n ? k : n - 1) * src_step;
    if constexpr (sizeof(T) == 4)
      r[k] = reinterpret_cast<Row>(_mm512_maskz_loadu_epi32(read, from));
    else r[k] = reinterpret_cast<Row>(_mm512_maskz_loadu_epi64(read, from));
  }
  transpose_in_registers(r);
  for (int64_t k = 0; k < lanes; ++k, dst += dst_step) {
    if (k == m) return;
    const auto v = reinterpret_cast<__m512i>(r[k]);
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(dst, written, v);
    else _mm512_mask_storeu_epi64(dst, written, v);
  }
}
#endif

// What is narrower than a cache line. Not inlined: the loop over whole lines needs all registers.
template <class T>
[[gnu::noinline]] void rest(char* dst, int64_t dst_step, const char* src, int64_t src_step,
                            int64_t n, int64_t m) {
  constexpr int64_t bytes = sizeof(typename RowOf<T>::type), item = sizeof(T), lanes = bytes / item;
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (bytes == kBytes) {
    for (; i < n; i += lanes, src += lanes * src_step, dst += bytes) {
      const int64_t rows = n - i < lanes ? n - i : lanes;
      for (int64_t j = 0; j < m; j += lanes) {
        some_of_square<T>(dst + j * dst_step, dst_step, src + j * item, src_step, rows,
                          m - j < lanes ? m - j : lanes);
      }
    }
    return;
  }
#endif
  for (; i + lanes <= n; i += lanes, src += lanes * src_step, dst += bytes) {
    const char* from = src;
    char* to = dst;
    int64_t left = m;
    for (; left >= lanes; left -= lanes, from += bytes, to += lanes * dst_step)
      small_square<T>(to, dst_step, from, src_step);
    for (; left > 0; --left, from += item, to += dst_step) {
      T column[lanes];
      for (int64_t k = 0; k < lanes; ++k) __builtin_memcpy(column + k, from + k * src_step, item);
      __builtin_memcpy(to, column, bytes);
    }
  }
  for (; i < n; ++i, src += src_step, dst += item) {
    for (int64_t j = 0; j < m; ++j) __builtin_memcpy(dst + j * dst_step, src + j * item, item);
  }
}

// Rows of src from left to right, square by square: every line is read once and written once. Two
// lines ahead in each row is as far as the caches hold what is asked for, however many rows lie a
// power of two apart.
template <class T, bool Streamed, bool Asks>
FN void band(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, int64_t m) {
  constexpr int64_t item = sizeof(T), line = 64 / item;
  const int64_t whole = n / line * line;
  int64_t j = 0;
  for (; j + line <= m; j += line, src += 64, dst += line * dst_step) {
    for (int64_t i = 0; i < whole; i += line) {
      const char* from = src + i * src_step;
      if constexpr (Asks) {
        for (int64_t k = 0; k < line; ++k) __builtin_prefetch(from + k * src_step + 128, 0, 2);
      }
      square<T, Streamed>(dst + i * item, dst_step, from, src_step);
    }
    if (whole < n)
      rest<T>(dst + whole * item, dst_step, src + whole * src_step, src_step, n - whole, line);
  }
  if (j < m) rest<T>(dst, dst_step, src, src_step, n, m - j);
}

constexpr int64_t kNear = 1 << 16;  // bytes that need not be asked for: a cache may have them

template <class T, bool Streamed>
void transpose(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n,
               int64_t m) {
  constexpr int64_t item = sizeof(T), rows = transpose_rows(item);
  const bool asks = Streamed || n * m * item > kNear;
  for (int64_t i = 0; i < n; i += rows, src += rows * src_step, dst += rows * item) {
    const int64_t some = n - i < rows ? n - i : rows;
    if (asks) band<T, Streamed, true>(dst, dst_step, src, src_step, some, m);
    else if constexpr (!Streamed) band<T, false, false>(dst, dst_step, src, src_step, some, m);
  }
  if constexpr (Streamed) stream_fence();
}

}  // namespace

extern constinit const TransposeKernels transpose_kernels = {
    transpose<uint8_t, false>,  transpose<uint16_t, false>, transpose<uint32_t, false>,
    transpose<uint64_t, false>, transpose<uint8_t, true>,   transpose<uint16_t, true>,
    transpose<uint32_t, true>,  transpose<uint64_t, true>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
