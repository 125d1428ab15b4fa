#include "kernels/cpu/simd/pool.h"

#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T>
FN void keep_larger_by(const T* x, int64_t step, int64_t n, int32_t first, T* __restrict best,
                       int32_t* __restrict at) {
  const auto stride = static_cast<int32_t>(step);
  for (int32_t i = 0; i < static_cast<int32_t>(n); ++i) {
    const T v = x[i * step], b = best[i];
    const bool larger = (v > b) | (v != v);
    best[i] = larger ? v : b;
    at[i] = larger ? first + i * stride : at[i];
  }
}
template <class T>
void keep_larger(const T* x, int64_t step, int64_t n, int32_t first, T* best, int32_t* at) {
  if (step == 1) keep_larger_by(x, 1, n, first, best, at);
  else if (step == 2) keep_larger_by(x, 2, n, first, best, at);
  else keep_larger_by(x, step, n, first, best, at);
}

template <class T> FN void add_by(const T* x, int64_t step, int64_t n, T* __restrict sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i * step];
}
template <class T> void add(const T* x, int64_t step, int64_t n, T* sum) {
  if (step == 1) add_by(x, 1, n, sum);
  else if (step == 2) add_by(x, 2, n, sum);
  else add_by(x, step, n, sum);
}

}  // namespace

extern constinit const PoolKernels pool_kernels = {{keep_larger<float>, add<float>},
                                                   {keep_larger<double>, add<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
