#include "kernels/frexp.h"
#include "kernels/cpu/common/table.h"

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

TAEDA_FLOAT_KERNELS(FrexpKernels, cpu::frexp<T>)
