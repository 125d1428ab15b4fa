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

// What products of T are summed in, and what they are stored as. Bytes and 16-bit integers only
// need the low 16 bits of a sum, since their products wrap around; half precision gives float32.
template <class T> struct GemmTypes {
  using Sum = T;
  using Out = T;
};
template <class T, class O> struct GemmTypesOf {
  using Sum = T;
  using Out = O;
};
template <> struct GemmTypes<Half> : GemmTypesOf<float, float> {};
template <> struct GemmTypes<BFloat16> : GemmTypesOf<float, float> {};
template <> struct GemmTypes<int8_t> : GemmTypesOf<uint16_t, int8_t> {};
template <> struct GemmTypes<uint8_t> : GemmTypesOf<uint16_t, uint8_t> {};
template <> struct GemmTypes<int16_t> : GemmTypesOf<uint16_t, int16_t> {};
template <> struct GemmTypes<int32_t> : GemmTypesOf<uint32_t, int32_t> {};
template <> struct GemmTypes<int64_t> : GemmTypesOf<uint64_t, int64_t> {};
template <class T> using SumOf = typename GemmTypes<T>::Sum;
template <class T> using OutOf = typename GemmTypes<T>::Out;

// What becomes of a sum s of row r and column j: alpha * s + (bias ? bias[j] : row_bias ?
// row_bias[r] : beta * c[r, j]). c is not read where beta is 0.
template <class S> struct Epilogue {
  S alpha = S(1), beta = S(0);
  const S* bias = nullptr;
  const S* row_bias = nullptr;
};

// op(X)[i, j] = data[i * row + j * col]; the next matrix of a batch begins `next` elements on.
template <class T> struct Strided {
  const T* data;
  int64_t row, col, next = 0;
};

// c (m x n, rows `ldc` apart) = epilogue(a (m x k) b (k x n)), of plain memory. Complex numbers
// have alpha 1 and no bias.
template <class T> struct SmallProduct {
  int64_t m, n, k;
  Strided<T> a, b;
  OutOf<T>* c;
  int64_t ldc, c_next = 0;
  Epilogue<SumOf<T>> epilogue = {};
  bool conjugate_a = false, conjugate_b = false;
};

// A right side whose rows are not contiguous is transposed first: at most so many elements of it.
constexpr int64_t kSmallTransposed = 2048;
// Rows of b that a single row of a is multiplied by at a time, where b does not stay in the caches.
constexpr int64_t kRowsTogether = 8;

template <class T> struct ProductKernels {
  using S = SumOf<T>;

  int64_t rows;   // of the largest tile
  int64_t lanes;  // columns of a register; a tile has one or two of them

  // `count` products, read where they are, row by row of b. Either b.col is 1, or n is 1, or b.row
  // is 1 and n * k at most kSmallTransposed.
  void (*small)(int64_t count, const SmallProduct<T>& x);
  // Inner products of contiguous rows of a with contiguous columns of b: a.col and b.row are 1.
  void (*dots)(const SmallProduct<T>& x);
  // One tile of m <= rows times n <= 2 * lanes results: the sum over p < k of a[r * a_row + p *
  // a_step] times b[p * b_row + j]. Whole registers of b are read.
  void (*tile)(int64_t k, int64_t m, int64_t n, const S* a, int64_t a_row, int64_t a_step,
               const S* b, int64_t b_row, const Epilogue<S>& epilogue, OutOf<T>* c, int64_t ldc);
  // Panels of `width` columns, one after the other: to[(j / width * k + p) * width + j % width] =
  // x[p * row + j * col] for p < k and j < n, and 0 up to the last panel's end. row or col is 1.
  void (*pack)(int64_t k, int64_t n, int64_t width, const T* x, int64_t row, int64_t col, S* to);
  // to[i * to_row + p] = x[i * row + p], i < m and p < k.
  void (*convert_rows)(int64_t m, int64_t k, const T* x, int64_t row, S* to, int64_t to_row);
};

// Of complex numbers the small product alone.
template <class T> struct SmallKernels {
  void (*small)(int64_t count, const SmallProduct<T>& x);
};

// Pairs of bfloat16 numbers along the sum, multiplied by one instruction; null where there is none.
// A pair is an element of b, packed; of a it is read where it is, or packed too.
typedef uint32_t Bf16Pair __attribute__((aligned(2), may_alias));
struct Bf16Kernels {
  int64_t rows, lanes;
  void (*tile)(int64_t k, int64_t m, int64_t n, const Bf16Pair* a, int64_t a_row, int64_t a_step,
               const Bf16Pair* b, int64_t b_row, const Epilogue<float>& epilogue, float* c,
               int64_t ldc);
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
  ProductKernels<int8_t> i8;
  ProductKernels<uint8_t> u8;
  ProductKernels<int16_t> i16;
  ProductKernels<int32_t> i32;
  ProductKernels<int64_t> i64;
  SmallKernels<std::complex<float>> c32;
  SmallKernels<std::complex<double>> c64;
};

TAEDA_TABLES(GemmTable, gemm_table)
TAEDA_TABLES(Bf16Kernels, bf16_kernels)

}  // namespace taeda::cpu::simd
