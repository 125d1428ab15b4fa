// Products of any size by packed panels: columns of b are copied in the order in which a tile of
// results reads them.
#pragma once

#include <cstddef>

#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/sizes.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/tuning.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {

// c (m x n, rows `ldc` apart) = epilogue(op(a) op(b)).
template <class T> struct Product {
  int64_t m, n, k;
  MatrixRef<T> a, b;
  simd::Epilogue<simd::SumOf<T>> epilogue;
  simd::SumOf<T>* c;
  int64_t ldc;
};

template <class T> const auto& product_kernels() {
  const simd::GemmTable& table = TAEDA_PICK(gemm_table);
  if constexpr (std::is_same_v<T, float>) return table.f32;
  else if constexpr (std::is_same_v<T, double>) return table.f64;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return table.c32;
  else if constexpr (std::is_same_v<T, std::complex<double>>) return table.c64;
  else if constexpr (std::is_same_v<T, Half>) return table.f16;
  else if constexpr (std::is_same_v<T, BFloat16>) return table.bf16;
  else if constexpr (std::is_same_v<T, uint8_t>) return table.u8;
  else if constexpr (std::is_same_v<T, uint16_t>) return table.u16;
  else if constexpr (std::is_same_v<T, uint32_t>) return table.u32;
  else return table.u64;
}

// T: float, double, half precision, unsigned integers; k > 0.
template <class T> void packed_gemm(const Product<T>& x);
template <class T> GemmWork packed_work(const Product<T>& x);

// T: std::complex<float> or std::complex<double>; k > 0. As products of real matrices.
template <class T> void real_gemm(const Product<T>& x);
template <class T> GemmWork real_work(const Product<T>& x);
// Whether the transposed product, c' = op(b)' op(a)', is the one to compute: few rows or columns
// are copied then, and many read where they are.
template <class T> bool is_transposed(const Product<T>& x);
template <class T> void transposed_gemm(const Product<T>& x);

// A right side op(b) (k x n), packed once for many products. T: float, double.
template <class T> class PackedMatrix {
 public:
  PackedMatrix(int64_t k, int64_t n, MatrixRef<T> b);

  // Rows of a tile of results.
  static int64_t tile_rows() { return product_kernels<T>().rows; }
  const T* data() const { return panels_.data(); }
  size_t bytes() const { return static_cast<size_t>(k_ * n_) * sizeof(T); }

  // c (m x n) = alpha * a (m x k) op(b) + beta * c, with the first n columns of op(b).
  void multiply(int64_t m, int64_t n, T alpha, const T* a, int64_t lda, T beta, T* c,
                int64_t ldc) const;

 private:
  int64_t k_, n_;
  Scratch<T> panels_;
};

}  // namespace taeda::cpu
