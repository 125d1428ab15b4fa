#include "kernels/cpu/simd/gemm.h"

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

// Every other element of two registers, the second of which begins with the first one's last: so
// nothing is read after the last element that counts.
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
FN void every_other(const float* from, float* to) {
  const auto a = *reinterpret_cast<const Eight*>(from);
  const auto b = *reinterpret_cast<const Eight*>(from + 7);
  *reinterpret_cast<Eight*>(to) = __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
}
FN void every_other(const double* from, double* to) {
  const auto a = *reinterpret_cast<const Four*>(from);
  const auto b = *reinterpret_cast<const Four*>(from + 3);
  *reinterpret_cast<Four*>(to) = __builtin_shufflevector(a, b, 0, 2, 5, 7);
}

template <class T> void every(const T* from, int64_t step, int64_t n, T* to) {
  constexpr int64_t together = 32 / sizeof(T);
  if (step == 2 && n >= together) {
    for (int64_t i = 0; i + together < n; i += together) every_other(from + 2 * i, to + i);
    every_other(from + 2 * (n - together), to + n - together);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[step * i];
  }
}

template <class T>
constexpr GemmLoops<T> gemm_loops = {kRows, 2 * kLanes<T>, product<T>, gather<T>, every<T>};

}  // namespace

extern constinit const GemmKernels gemm_kernels = {gemm_loops<float>, gemm_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
