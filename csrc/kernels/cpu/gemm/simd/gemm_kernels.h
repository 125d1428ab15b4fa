// The inner loops of matrix products. All of them compute one tile of results in registers; they
// differ in how many tiles one call takes and in where the operands are read from.
#pragma once

#include <complex>
#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda {
struct Half;
struct BFloat16;
}  // namespace taeda

namespace taeda::cpu::simd {

// What products of T are summed in and stored as. Integers are unsigned here: products wrap around,
// so the low bits are right for either sign. Bytes are summed in 16 bits.
template <class T> struct SumType {
  using type = T;
};
template <> struct SumType<Half> {
  using type = float;
};
template <> struct SumType<BFloat16> {
  using type = float;
};
template <> struct SumType<uint8_t> {
  using type = uint16_t;
};
template <class T> using SumOf = typename SumType<T>::type;

// What becomes of a sum s of row r and column j: alpha * s + beta * from[r * from_row + j *
// from_col]. `from` is c itself, a bias of columns (from_row is 0) or a bias of rows (from_col is
// 0, else 1). It is not read where beta is 0.
template <class S> struct Epilogue {
  S alpha = S(1), beta = S(0);
  const S* from = nullptr;
  int64_t from_row = 0, from_col = 1;

  Epilogue at(int64_t row, int64_t col) const {
    return {alpha, beta, from ? from + row * from_row + col * from_col : nullptr, from_row,
            from_col};
  }
};

// c[r * ldc + j] = epilogue(the sum, over runs i < runs and p < k, of
// a[a_at[i] + r * a_row + p * a_step] * b[b_at[i] + p * b_row + j]); null stands for offsets of 0.
template <class S, class E = S> struct TileProduct {
  int64_t k;
  const E* a;
  int64_t a_row, a_step;
  const E* b;
  int64_t b_row;
  S* c;
  int64_t ldc;
  Epilogue<S> epilogue = {};
  int64_t runs = 1;
  const int64_t *a_at = nullptr, *b_at = nullptr;
};

// op(X)[i, j] = data[i * row + j * col]; the next matrix of a batch begins `next` elements on.
template <class T> struct Strided {
  const T* data;
  int64_t row, col, next = 0;
};

// c (m x n, rows `ldc` apart) = epilogue(a (m x k) b (k x n)), of plain memory. Complex numbers
// have alpha 1, and beta 0 or 1.
template <class T> struct SmallProduct {
  int64_t m, n, k;
  Strided<T> a, b;
  SumOf<T>* c;
  int64_t ldc, c_next = 0;
  Epilogue<SumOf<T>> epilogue = {};
  bool conjugate_a = false, conjugate_b = false;
};

// A right side whose rows are not contiguous is transposed first: at most so many elements of it.
constexpr int64_t kSmallTransposed = 2048;
constexpr int64_t kSmallDepth = 512;  // k of a small product at most
// Rows of b that a single row of a is multiplied by at a time, where b does not stay in the caches.
constexpr int64_t kRowsTogether = 8;

// `T` is read, S summed.
template <class T> struct ProductKernels {
  using S = SumOf<T>;

  int64_t rows, narrow_rows;  // of the largest tile, and of the largest one register wide
  int64_t lanes;              // columns of a register; a tile has one or two of them

  // One tile of m results down, at most `rows` or, where n <= lanes, `narrow_rows`, and n <= 2 *
  // lanes across. Of b whole registers are read, or, where n <= narrow, `narrow` elements.
  void (*tile)(int64_t m, int64_t n, const TileProduct<S>& x);
  int64_t narrow;
  // Panels of `width` columns, one after the other: to[(j / width * k + p) * width + j % width] =
  // x[p * row + j * col] for p < k and j < n, and 0 up to the last panel's end. row or col is 1.
  void (*pack)(int64_t k, int64_t n, int64_t width, const T* x, int64_t row, int64_t col, S* to);
  // to[i * to_row + p] = x[i * row + p], i < m and p < k.
  void (*convert_rows)(int64_t m, int64_t k, const T* x, int64_t row, S* to, int64_t to_row);

  // Not of integers: `count` products, read where they are, row by row of b. Either b.col is 1, or
  // n is 1, or b.row is 1 and n * k at most kSmallTransposed.
  void (*small)(int64_t count, const SmallProduct<T>& x) = nullptr;
  // Inner products of contiguous rows of a with contiguous columns of b: a.col and b.row are 1.
  void (*dots)(const SmallProduct<T>& x) = nullptr;
};

// Of complex numbers: the small product, and what makes others real ones.
template <class T> struct ComplexKernels {
  void (*small)(int64_t count, const SmallProduct<T>& x);
  // n numbers v, and after them n numbers iv; v: scale * x, or scale * conj(x).
  void (*expand)(int64_t n, const T* x, T scale, bool conjugate, T* to);
};

// Pairs of bfloat16 numbers along the sum, multiplied by one instruction; null where there is none.
// A pair is an element of b, packed; of a it is read where it is, or packed too.
struct [[gnu::packed, gnu::aligned(2), gnu::may_alias]] Bf16Pair {
  uint32_t bits;
};
struct Bf16Kernels {
  int64_t rows, narrow_rows, lanes;
  void (*tile)(int64_t m, int64_t n, const TileProduct<float, Bf16Pair>& x);
  // As ProductKernels' pack, of pairs: k counts elements, of which an odd last one is followed by
  // 0.
  void (*pack)(int64_t k, int64_t n, int64_t width, const BFloat16* x, int64_t row, int64_t col,
               Bf16Pair* to);
};

struct GemmTable {
  ProductKernels<float> f32;
  ProductKernels<double> f64;
  ProductKernels<Half> f16;
  ProductKernels<BFloat16> bf16;
  ProductKernels<uint8_t> u8;
  ProductKernels<uint16_t> u16;
  ProductKernels<uint32_t> u32;
  ProductKernels<uint64_t> u64;
  ComplexKernels<std::complex<float>> c32;
  ComplexKernels<std::complex<double>> c64;
};

TAEDA_TABLES(GemmTable, gemm_table)
TAEDA_TABLES(Bf16Kernels, bf16_kernels)

}  // namespace taeda::cpu::simd
