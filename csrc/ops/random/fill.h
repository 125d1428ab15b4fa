// Random fills, and what new random tensors and samples (draw.cpp) take from them.
#pragma once

#include "autograd/backward.h"
#include "base/device_runtime.h"
#include "kernels/random.h"
#include "ops/core/half.h"
#include "ops/random/generator.h"

namespace taeda {

using Gen = std::optional<Generator>;

template <class T>
constexpr bool floating = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                          std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

inline void need_floating(const char* what, const Tensor& t) {
  if (!is_floating(t.dtype())) unsupported_dtype(what, t.dtype());
}

// The ops of these names.
Tensor uniform_(const Tensor& self, double from, double to, Gen generator);
Tensor normal_(const Tensor& self, double mean, double std, Gen generator);
Tensor exponential_(const Tensor& self, double lambd, Gen generator);
// With integers of [low, high), or up to what the dtype holds.
Tensor random_range_(const Tensor& self, int64_t low, std::optional<int64_t> high, Gen generator);

// A random fill overwrites the previous values: their gradient is zero.
inline void no_gradient(Backward& b) { b.set(0, zeros(b.sizes(0), b.options(0))); }

}  // namespace taeda
