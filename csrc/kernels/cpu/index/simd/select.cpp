#include "kernels/cpu/index/simd/select.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

bool group_maxima(const float* x, int64_t n, float sign, float* best) {
  using V = Vec<float>;
  using I = Vec<int32_t>;
  constexpr int64_t lanes = kLanes<float>;
  // As many maxima at once as leave registers for what is compared with them.
  constexpr int64_t together = kSelectGroups / lanes < 8 ? kSelectGroups / lanes : 8;
  const V factor = broadcast<V>(sign);
  const int64_t whole = n / kSelectGroups * kSelectGroups;
  I nan{};
  for (int64_t g = 0; g < kSelectGroups; g += together * lanes) {
    V largest[together];
    for (int k = 0; k < together; ++k) {
      largest[k] = load(x + g + k * lanes) * factor;
      nan |= largest[k] != largest[k];
    }
    for (int64_t i = g + kSelectGroups; i < whole; i += kSelectGroups) {
      for (int k = 0; k < together; ++k) {
        const V v = load(x + i + k * lanes) * factor;
        largest[k] = max(v, largest[k]);
        nan |= v != v;
      }
    }
    for (int k = 0; k < together; ++k) store(best + g + k * lanes, largest[k]);
  }
  int32_t any = reduce(nan, [](auto a, auto b) { return a | b; });
  for (int64_t i = whole; i < n; ++i) {
    const float v = x[i] * sign;
    float& group = best[i - whole];
    group = v > group ? v : group;
    any |= v != v;
  }
  return any == 0;
}

}  // namespace

extern constinit const SelectKernels select_kernels = {group_maxima};

}  // namespace taeda::cpu::simd::TAEDA_ISA
