// The shapes of pooling over one, two or three spatial dimensions, of elements chosen
// (max_pool.cpp) and of means (avg_pool.cpp).
#pragma once

#include "autograd/backward.h"
#include "kernels/pool.h"
#include "ops/nn/channels_last.h"

namespace taeda::pooling {

// The layout of a pool over n dimensions: channels_last of (N, C, H, W) alone.
inline ChannelLayout layout_of(const Tensor& x, int64_t n) {
  return {n == 2 && x.dim() == 4 && is_channels_last(x)};
}
// Of an input (N, C, *spatial) or (C, *spatial), whose leading dimensions are flattened into
// planes. In channels_last: of planes (H, W, C).
PoolShape plane_shape(const Tensor& x, DimsRef out, int64_t n, ChannelLayout layout);
Dims with_spatial(const Tensor& x, const Dims& spatial);  // the sizes of x with other spatial ones

struct Pool {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode;
};
// With one number for each dimension. The stride is that of the kernel where it is empty.
Pool expanded(const char* what, int64_t n, const Dims& kernel, const Dims& stride,
              const Dims& padding, const Dims& dilation, bool ceil_mode);
void check_input(const char* what, const Tensor& x, int64_t n, bool channels = true);
Dims output_sizes(const char* what, const Tensor& x, const Pool& p);
PoolShape windows(const Tensor& x, const Dims& out, const Pool& p, ChannelLayout layout);
// All sizes of the result of adaptive pooling.
Dims adaptive_sizes(const char* what, const Tensor& self, const Dims& out, int64_t n,
                    bool channels = true);

// Integers are pooled exactly, as int64.
template <class F> void visit_pooled(DType d, const char* what, F&& f) {
  if (d == DType::Int64) return f(Tag<int64_t>{});
  visit_floating(d, what, std::forward<F>(f));
}

// ---- rows of the tables ----

// Only the one-dimensional ones are public in taeda itself.
template <int N> inline constexpr const char* home = N == 1 ? "" : "nn.functional";

inline constexpr Traits kComposite{.forms = kFunction, .composite = true};

}  // namespace taeda::pooling
