#include "kernels/cpu/index/simd/select.h"

#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

bool group_maxima(const float* x, int64_t n, float sign, float* best) {
  typedef float V __attribute__((vector_size(64), aligned(4), may_alias));
  typedef int32_t I __attribute__((vector_size(64)));
  constexpr int parts = kSelectGroups / 16;
  V m[parts];
  I nan{};
  auto take = [&](const float* p, int k) {
    const V v = *reinterpret_cast<const V*>(p) * sign;
    m[k] = v > m[k] ? v : m[k];
    nan |= v != v;
  };
  for (int k = 0; k < parts; ++k) {
    m[k] = *reinterpret_cast<const V*>(x + 16 * k) * sign;
    nan |= m[k] != m[k];
  }
  int64_t i = kSelectGroups;
  for (; i + kSelectGroups <= n; i += kSelectGroups) {
    for (int k = 0; k < parts; ++k) take(x + i + 16 * k, k);
  }
  for (int k = 0; k < parts; ++k) *reinterpret_cast<V*>(best + 16 * k) = m[k];
  int32_t any = 0;
  for (int j = 0; j < 16; ++j) any |= nan[j];
  for (int64_t j = 0; i < n; ++i, ++j) {
    const float v = x[i] * sign;
    best[j] = v > best[j] ? v : best[j];
    any |= v != v;
  }
  return any == 0;
}

}  // namespace

extern constinit const SelectKernels select_kernels = {group_maxima};

}  // namespace taeda::cpu::simd::TAEDA_ISA
