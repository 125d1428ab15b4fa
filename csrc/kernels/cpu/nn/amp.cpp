#include "kernels/amp.h"

#include <atomic>
#include <cmath>

#include "base/half.h"
#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kUnscaleGrain = 1 << 15;

// Whether all were finite.
template <class S, class T> bool multiply_all(S* data, int64_t n, T factor) {
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<T>(data[i]);
    finite &= std::isfinite(v);
    data[i] = static_cast<S>(v * factor);
  }
  return finite;
}

template <class S, class T>
bool multiply(const ScaledGradient& g, int64_t begin, int64_t end, T factor) {
  return multiply_all(static_cast<S*>(g.data) + begin, end - begin, factor);
}
bool multiply(const ScaledGradient& g, int64_t begin, int64_t end, float factor) {
  switch (g.dtype) {
    case DType::Float16: return multiply<Half>(g, begin, end, factor);
    case DType::BFloat16: return multiply<BFloat16>(g, begin, end, factor);
    case DType::Float64: return multiply<double>(g, begin, end, double{factor});
    default: return multiply<float>(g, begin, end, factor);
  }
}

void unscale(std::span<const ScaledGradient> grads, const float* factor, float* found) {
  std::atomic<bool> finite = true;
  for (const ScaledGradient& g : grads) {
    parallel_for(g.n, kUnscaleGrain, [&](int64_t begin, int64_t end) {
      if (!multiply(g, begin, end, *factor)) finite = false;
    });
  }
  if (!finite) *found = 1;
}

void update(float* scale, int32_t* tracker, const float* found, const ScaleRule& rule) {
  plain::update_scale(scale, tracker, *found, rule);
}

}  // namespace
}  // namespace taeda::cpu

const taeda::AmpKernels taeda::AmpKernels::cpu = {cpu::unscale, cpu::update};
