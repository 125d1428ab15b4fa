#include "kernels/frexp.h"

#include <cmath>

namespace taeda::cpu {
namespace {
template <class T> void frexp(int64_t n, const T* x, T* mantissa, int32_t* power) {
  for (int64_t i = 0; i < n; ++i) {
    int e = 0;
    mantissa[i] = std::frexp(x[i], &e);
    power[i] = std::isfinite(x[i]) ? e : 0;
  }
}
}  // namespace
}  // namespace taeda::cpu

namespace taeda {
template <class T> const FrexpKernels<T> FrexpKernels<T>::cpu = {cpu::frexp<T>};
template struct FrexpKernels<float>;
template struct FrexpKernels<double>;
}  // namespace taeda
