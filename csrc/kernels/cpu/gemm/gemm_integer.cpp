// Products of integers: both sides are copied into the order in which a kernel of vectors reads
// them.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/blas.h"
#include "kernels/cpu/gemm/simd/gemm_integer.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace {

using simd::Wrapping;

constexpr int64_t kTaskWork = 1 << 18;  // multiplications that are worth another thread

constexpr int64_t kLong = 32;  // bytes that are worth being read along a register's lanes

const simd::IntegerKernels& kernels() {
  using namespace simd;
  return TAEDA_PICK(integer_kernels);
}
template <class U> const simd::IntegerLoops<U>& loops() {
  if constexpr (sizeof(U) == 2) return kernels().u16;
  else if constexpr (sizeof(U) == 4) return kernels().u32;
  else return kernels().u64;
}
template <class T> auto dot() {
  if constexpr (std::is_same_v<T, int8_t>) return kernels().dot_i8;
  else if constexpr (std::is_same_v<T, uint8_t>) return kernels().dot_u8;
  else if constexpr (std::is_same_v<T, int16_t>) return kernels().dot_i16;
  else if constexpr (std::is_same_v<T, int32_t>) return kernels().dot_i32;
  else return kernels().dot_i64;
}

template <class T> auto row() {
  if constexpr (std::is_same_v<T, int8_t>) return kernels().row_i8;
  else if constexpr (std::is_same_v<T, uint8_t>) return kernels().row_u8;
  else if constexpr (std::is_same_v<T, int16_t>) return kernels().row_i16;
  else if constexpr (std::is_same_v<T, int32_t>) return kernels().row_i32;
  else return kernels().row_i64;
}

template <class T, class U> void copy_row(const T* from, int64_t n, U* to) {
  if constexpr (sizeof(T) == sizeof(U)) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    constexpr int64_t some = 16;
    int64_t j = 0;
    for (; j + some <= n; j += some) {
      std::array<T, some> part;
      std::copy_n(from + j, some, part.begin());
      for (int64_t i = 0; i < some; ++i) to[j + i] = static_cast<U>(part[i]);
    }
    for (; j < n; ++j) to[j] = static_cast<U>(from[j]);
  }
}

// Element (i, j) of op(x) is data[i * row + j * col].
template <class T> struct Elements {
  const T* data;
  int64_t row, col;

  explicit Elements(const MatrixRef<T>& x)
      : data(x.data),
        row(x.trans == Trans::No ? x.stride : 1),
        col(x.trans == Trans::No ? 1 : x.stride) {}

  // Copies `count` rows of n elements from row `first` on, each `width` long in `to`; what is left
  // of it is zero.
  template <class U>
  void copy_rows(int64_t first, int64_t count, int64_t start, int64_t n, int64_t width,
                 U* to) const {
    for (int64_t i = 0; i < count; ++i, to += width) {
      const T* from = data + (first + i) * row + start * col;
      if (col == 1) {
        copy_row(from, n, to);
      } else {
        for (int64_t j = 0; j < n; ++j) to[j] = static_cast<U>(from[j * col]);
      }
      std::fill(to + n, to + width, U(0));
    }
  }
};

// One column, or few, of results: sums along rows that lie as they are read.
template <class T>
void few_columns(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, Elements<T> b, T* c,
                 int64_t ldc) {
  Scratch<T> columns(n * std::max<int64_t>(k, 1));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) columns.data()[j * k + p] = b.data[p * b.row + j * b.col];
  }
  const int64_t grain = std::max<int64_t>(1, kTaskWork / std::max<int64_t>(n * k, 1));
  parallel_for(m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < n; ++j)
        c[i * ldc + j] = static_cast<T>(dot<T>()(k, a + i * lda, columns.data() + j * k));
    }
  });
}

// Few rows, or short sums: the right side is read where it lies.
template <class T>
void few_rows(int64_t m, int64_t n, int64_t k, Elements<T> a, const T* b, int64_t ldb, T* c,
              int64_t ldc) {
  constexpr int64_t strip = 512;
  const int64_t strips = (n + strip - 1) / strip;
  const int64_t work = std::max<int64_t>(std::min(n, strip) * k, 1);
  parallel_for(m * strips, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / strips, j = t % strips * strip;
      row<T>()(k, std::min(strip, n - j), a.data + i * a.row, a.col, b + j, ldb, c + i * ldc + j);
    }
  });
}

// Products that take less time than copying their sides.
constexpr int64_t kTiny = 128;
template <class T>
void tiny_product(int64_t m, int64_t n, int64_t k, Elements<T> a, Elements<T> b, T* c,
                  int64_t ldc) {
  using U = Wrapping<T>;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      U sum = 0;
      const T *x = a.data + i * a.row, *y = b.data + j * b.col;
      for (int64_t p = 0; p < k; ++p, x += a.col, y += b.row)
        sum = static_cast<U>(sum + static_cast<U>(*x) * static_cast<U>(*y));
      c[i * ldc + j] = static_cast<T>(sum);
    }
  }
}

}  // namespace

template <class T>
void gemm_integer(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, T* c,
                  int64_t ldc) {
  using U = Wrapping<T>;
  if (m <= 0 || n <= 0) return;
  const Elements<T> left(a), right(b);
  if (m * n * k <= kTiny) return tiny_product(m, n, k, left, right, c, ldc);
  const auto& loop = loops<U>();
  if (left.col == 1 && n <= loop.cols / 8 && k * int64_t{sizeof(T)} >= kLong)
    return few_columns(m, n, k, a.data, left.row, right, c, ldc);
  constexpr int64_t few = 2;
  if (right.col == 1 && m <= few) return few_rows(m, n, k, left, b.data, right.row, c, ldc);
  const int64_t panels = (n + loop.cols - 1) / loop.cols, blocks = (m + loop.rows - 1) / loop.rows;
  Scratch<U> memory(panels * loop.cols * std::max<int64_t>(k, 1));
  for (int64_t s = 0; s < panels; ++s) {
    const int64_t first = s * loop.cols;
    right.copy_rows(0, k, first, std::min(loop.cols, n - first), loop.cols,
                    memory.data() + first * k);
  }
  const int64_t work = std::max<int64_t>(loop.rows * n * k, 1);
  parallel_for(blocks, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
    Scratch<U> space(loop.rows * (k + loop.cols));
    U *rows = space.data(), *sums = rows + loop.rows * k;
    const Elements<T> turned({a.data, a.stride, a.trans == Trans::No ? Trans::Yes : Trans::No});
    for (int64_t i = begin * loop.rows; i < std::min(end * loop.rows, m); i += loop.rows) {
      const int64_t tall = std::min(loop.rows, m - i);
      turned.copy_rows(0, k, i, tall, loop.rows, rows);
      for (int64_t j = 0; j < n; j += loop.cols) {
        loop.product(k, rows, memory.data() + j * k, sums);
        const int64_t wide = std::min(loop.cols, n - j);
        for (int64_t r = 0; r < tall; ++r) {
          const U* from = sums + r * loop.cols;
          T* to = c + (i + r) * ldc + j;
          for (int64_t w = 0; w < wide; ++w) to[w] = static_cast<T>(from[w]);
        }
      }
    }
  });
}

template void gemm_integer<int8_t>(int64_t, int64_t, int64_t, MatrixRef<int8_t>, MatrixRef<int8_t>,
                                   int8_t*, int64_t);
template void gemm_integer<uint8_t>(int64_t, int64_t, int64_t, MatrixRef<uint8_t>,
                                    MatrixRef<uint8_t>, uint8_t*, int64_t);
template void gemm_integer<int16_t>(int64_t, int64_t, int64_t, MatrixRef<int16_t>,
                                    MatrixRef<int16_t>, int16_t*, int64_t);
template void gemm_integer<int32_t>(int64_t, int64_t, int64_t, MatrixRef<int32_t>,
                                    MatrixRef<int32_t>, int32_t*, int64_t);
template void gemm_integer<int64_t>(int64_t, int64_t, int64_t, MatrixRef<int64_t>,
                                    MatrixRef<int64_t>, int64_t*, int64_t);

}  // namespace taeda::cpu
