#include "kernels/cpu/pointwise/simd/transpose.h"

#include <utility>

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// A register of T; 16 bytes where elements are shorter than 4.
template <class T> using Row = Vec<T, (sizeof(T) < 4 ? 16 : kRegisterBytes) / sizeof(T)>;
using Row4 = Row<uint32_t>;
using Row8 = Row<uint64_t>;

// Elements may begin anywhere: pairs of 16-bit numbers are moved as 32 bits.
template <class T> FN Row<T> load_row(const char* p) { return (Row<T>)load<sizeof(Row<T>)>(p); }
template <class V> FN void store_row(char* p, V v) { store(p, (Vec<char, sizeof(V)>)v); }

// Interleaves a and b within each 16 bytes, from the lower or the upper half.
template <bool Upper, class V> FN V interleave(V a, V b) {
  constexpr int all = kLanesOf<V>, each = 16 * all / sizeof(V);
  return shuffle(a, b, [](int i) {
    return i / each * each + i % each / 2 + (Upper ? each / 2 : 0) + i % 2 * all;
  });
}

// Of each row every `Step`th of its pieces of 16 bytes, or, if 0, one half of them.
template <int Step, bool Odd, class V> FN V pieces(V a, V b) {
  constexpr int all = kLanesOf<V>, each = 16 * all / sizeof(V);
  return shuffle(a, b, [](int i) {
    const int row = 2 * i / all, piece = (i - row * all / 2) / each;
    const int from = Step ? Step * piece + Odd : piece + (Odd ? all / each / 2 : 0);
    return row * all + from * each + i % each;
  });
}

// A square of registers, transposed in place: first each 16 bytes with those of the neighbouring
// rows, then these pieces.
template <class V> FN void transpose_near(V (&r)[2]) {
  const V a = r[0];
  r[0] = interleave<false>(a, r[1]);
  r[1] = interleave<true>(a, r[1]);
}
FN void transpose_near(Row4 (&r)[4]) {
  const auto pair = [](Row4 v) { return (Row8)v; };
  const Row8 a = pair(interleave<false>(r[0], r[1])), b = pair(interleave<true>(r[0], r[1]));
  const Row8 c = pair(interleave<false>(r[2], r[3])), d = pair(interleave<true>(r[2], r[3]));
  r[0] = (Row4)interleave<false>(a, c);
  r[1] = (Row4)interleave<true>(a, c);
  r[2] = (Row4)interleave<false>(b, d);
  r[3] = (Row4)interleave<true>(b, d);
}
template <class V> FN void transpose_far(V (&)[1]) {}
template <class V> FN void transpose_far(V (&r)[2]) {
  const V a = r[0];
  r[0] = pieces<0, false>(a, r[1]);
  r[1] = pieces<0, true>(a, r[1]);
}
template <class V> FN void transpose_far(V (&r)[4]) {
  const V a = pieces<0, false>(r[0], r[1]), b = pieces<0, true>(r[0], r[1]);
  const V c = pieces<0, false>(r[2], r[3]), d = pieces<0, true>(r[2], r[3]);
  r[0] = pieces<2, false>(a, c);
  r[1] = pieces<2, true>(a, c);
  r[2] = pieces<2, false>(b, d);
  r[3] = pieces<2, true>(b, d);
}
template <class V, int N> FN void transpose_in_registers(V (&r)[N]) {
  constexpr int near = 16 / sizeof(r[0][0]), far = N / near;
  for (int i = 0; i < N; i += near) {
    V some[near];
    for (int k = 0; k < near; ++k) some[k] = r[i + k];
    transpose_near(some);
    for (int k = 0; k < near; ++k) r[i + k] = some[k];
  }
  for (int k = 0; k < near; ++k) {
    V some[far];
    for (int i = 0; i < far; ++i) some[i] = r[i * near + k];
    transpose_far(some);
    for (int i = 0; i < far; ++i) r[i * near + k] = some[i];
  }
}

// Of short elements: two rows are interleaved as often as it takes for each to meet all others.
template <int Start, class V> FN V interleave_all(V a, V b) {
  return shuffle(a, b, [](int i) { return Start + i / 2 + i % 2 * static_cast<int>(kLanesOf<V>); });
}
template <class V, int N> FN void transpose_short(V (&r)[N]) {
  for (int times = 1; times < N; times *= 2) {
    V next[N];
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = interleave_all<0>(r[i], r[i + N / 2]);
      next[2 * i + 1] = interleave_all<N / 2>(r[i], r[i + N / 2]);
    }
    for (int i = 0; i < N; ++i) r[i] = next[i];
  }
}
FN void transpose_in_registers(Row<uint8_t> (&r)[16]) { transpose_short(r); }
FN void transpose_in_registers(Row<uint16_t> (&r)[8]) { transpose_short(r); }

// A square of one cache line by one. Not inlined: the compiler would keep the addresses of all rows
// for the next square, in memory.
template <class T, bool Streamed>
[[gnu::noinline]] void square(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  constexpr int bytes = sizeof(Row<T>), lanes = bytes / sizeof(T), parts = kCacheLine / bytes;
  for (int a = 0; a < parts; ++a) {
    Row<T> r[parts][lanes];
    for (int b = 0; b < parts; ++b) {
      for (int k = 0; k < lanes; ++k)
        r[b][k] = load_row<T>(src + (b * lanes + k) * src_step + a * bytes);
      transpose_in_registers(r[b]);
    }
    for (int k = 0; k < lanes; ++k) {
      for (int b = 0; b < parts; ++b) {
        char* to = dst + (a * lanes + k) * dst_step + b * bytes;
        if constexpr (Streamed) stream(reinterpret_cast<T*>(to), r[b][k]);
        else store_row(to, r[b][k]);
      }
    }
  }
}

// A square of one register by one.
template <class T>
FN void small_square(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  constexpr int lanes = kLanesOf<Row<T>>;
  Row<T> r[lanes];
  for (int k = 0; k < lanes; ++k) r[k] = load_row<T>(src + k * src_step);
  transpose_in_registers(r);
  for (int k = 0; k < lanes; ++k) store_row(dst + k * dst_step, r[k]);
}

// A block of n rows and m columns, narrower or lower than such a square: others are neither read
// nor written.
template <class T>
[[gnu::noinline]] void part_of_square(char* dst, int64_t dst_step, const char* src,
                                      int64_t src_step, int64_t n, int64_t m) {
  constexpr int lanes = kLanesOf<Row<T>>;
  const FirstLanes<T> read(m), written(n);
  Row<T> r[lanes];
  for (int64_t k = 0; k < lanes; ++k)
    r[k] = read.load(reinterpret_cast<const T*>(src + (k < n ? k : n - 1) * src_step));
  transpose_in_registers(r);
  for (int64_t k = 0; k < lanes && k < m; ++k)
    written.store(reinterpret_cast<T*>(dst + k * dst_step), r[k]);
}

// What is narrower than a cache line. Not inlined: the loop over whole lines needs all registers.
template <class T>
[[gnu::noinline]] void rest(char* dst, int64_t dst_step, const char* src, int64_t src_step,
                            int64_t n, int64_t m) {
  constexpr int64_t bytes = sizeof(Row<T>), item = sizeof(T), lanes = bytes / item;
  int64_t i = 0;
  if constexpr (bytes == 64) {  // whose lanes have masks
    for (; i < n; i += lanes, src += lanes * src_step, dst += bytes) {
      const int64_t rows = n - i < lanes ? n - i : lanes;
      for (int64_t j = 0; j < m; j += lanes) {
        part_of_square<T>(dst + j * dst_step, dst_step, src + j * item, src_step, rows,
                          m - j < lanes ? m - j : lanes);
      }
    }
    return;
  }
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
// lines ahead in each row is as far as the caches hold what is prefetched, however many rows lie a
// power of two apart.
template <class T, bool Streamed, bool Prefetch>
FN void band(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, int64_t m) {
  constexpr int64_t item = sizeof(T), line = 64 / item;
  const int64_t whole = n / line * line;
  int64_t j = 0;
  for (; j + line <= m; j += line, src += 64, dst += line * dst_step) {
    for (int64_t i = 0; i < whole; i += line) {
      const char* from = src + i * src_step;
      if constexpr (Prefetch) {
        for (int64_t k = 0; k < line; ++k) __builtin_prefetch(from + k * src_step + 128, 0, 2);
      }
      square<T, Streamed>(dst + i * item, dst_step, from, src_step);
    }
    if (whole < n)
      rest<T>(dst + whole * item, dst_step, src + whole * src_step, src_step, n - whole, line);
  }
  if (j < m) rest<T>(dst, dst_step, src, src_step, n, m - j);
}

constexpr int64_t kNear = 1 << 16;  // bytes that are not prefetched: a cache may have them

template <class T, bool Streamed>
void transpose(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n,
               int64_t m) {
  constexpr int64_t item = sizeof(T), rows = transpose_rows(item);
  const bool far = Streamed || n * m * item > kNear;
  for (int64_t i = 0; i < n; i += rows, src += rows * src_step, dst += rows * item) {
    const int64_t some = n - i < rows ? n - i : rows;
    if (far) band<T, Streamed, true>(dst, dst_step, src, src_step, some, m);
    else if constexpr (!Streamed) band<T, false, false>(dst, dst_step, src, src_step, some, m);
  }
  if constexpr (Streamed) stream_fence();
}

}  // namespace

extern constinit const TransposeKernels transpose_kernels = {
    {{transpose<uint8_t, false>, transpose<uint16_t, false>, transpose<uint32_t, false>,
      transpose<uint64_t, false>},
     {transpose<uint8_t, true>, transpose<uint16_t, true>, transpose<uint32_t, true>,
      transpose<uint64_t, true>}}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
