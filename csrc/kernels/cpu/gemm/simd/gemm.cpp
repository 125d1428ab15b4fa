#include "kernels/cpu/gemm/simd/gemm.h"

#include "kernels/cpu/pointwise/simd/strided_load.h"
#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T, int M>
void product_of(int64_t k, const T* a, const T* b, const int64_t* offset, const T* start, T* c,
                int64_t ldc) {
  constexpr int64_t lanes = kLanes<T>;
  typename Vector<T>::type sum[M][2];
  for (int r = 0; r < M; ++r) {
    const typename Vector<T>::type all = {};
    sum[r][0] = start ? all + start[r] : at(c + r * ldc);
    sum[r][1] = start ? all + start[r] : at(c + r * ldc + lanes);
  }
  for (int64_t p = 0; p < k; ++p, a += M) {
    const T* row = b + offset[p];
    const auto left = at(row), right = at(row + lanes);
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      sum[r][0] += a[r] * left;
      sum[r][1] += a[r] * right;
    }
  }
  for (int r = 0; r < M; ++r) {
    at(c + r * ldc) = sum[r][0];
    at(c + r * ldc + lanes) = sum[r][1];
  }
}

template <class T, int M = kRows>
void product(int64_t k, int64_t m, const T* a, const T* b, const int64_t* offset, const T* start,
             T* c, int64_t ldc) {
  if constexpr (M > 1) {
    if (m < M) return product<T, M - 1>(k, m, a, b, offset, start, c, ldc);
  }
  product_of<T, M>(k, a, b, offset, start, c, ldc);
}

template <class T>
void gather(const Stretch* stretches, int64_t many, const int64_t* offset, int64_t rows,
            const T* laid, int64_t ld, T* to) {
  for (int64_t r = 0; r < rows; ++r, to += ld) {
    for (int64_t s = 0; s < many; ++s) {
      const T* source = laid + offset[r] + stretches[s].laid;
      T* target = to + stretches[s].from;
      for (int64_t i = 0; i < stretches[s].count; i += kLanes<T>) at(target + i) = at(source + i);
    }
  }
}

template <class T>
constexpr GemmLoops<T> gemm_loops = {kRows, 2 * kLanes<T>, product<T>, gather<T>, every<T>};

}  // namespace

extern constinit const GemmKernels gemm_kernels = {gemm_loops<float>, gemm_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
