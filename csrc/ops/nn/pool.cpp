#include "ops/nn/pool.h"

#include <algorithm>

#include "base/checked.h"

namespace taeda::pooling {

PoolShape plane_shape(const Tensor& x, DimsRef out, int64_t n, ChannelLayout layout) {
  PoolShape s{};
  s.adaptive = true;
  s.spatial = static_cast<int>(n);
  s.planes = 1;
  for (int64_t d = 0; d < (layout.last ? 1 : x.dim() - n); ++d) s.planes *= x.size(d);
  for (int64_t d = 0; d < n; ++d) {
    s.in[d] = x.size(x.dim() - n + d);
    s.out[d] = out[static_cast<size_t>(d)];
  }
  if (layout.last) {
    const int c = s.spatial++;
    s.in[c] = s.out[c] = x.size(1);
    s.kernel[c] = s.stride[c] = s.dilation[c] = 1;
    s.channels_last = true;
  }
  return s;
}

Dims with_spatial(const Tensor& x, const Dims& spatial) {
  Dims sizes(x.sizes().first(x.sizes().size() - spatial.size()));
  for (int64_t v : spatial) sizes.push_back(v);
  return sizes;
}

Pool expanded(const char* what, int64_t n, const Dims& kernel, const Dims& stride,
              const Dims& padding, const Dims& dilation, bool ceil_mode) {
  auto spread = [&](const Dims& d, const char* argument) {
    check(d.size() == 1 || static_cast<int64_t>(d.size()) == n, what, "(): ", argument,
          " must either be a single int, "
          "or a tuple of ",
          n, " ints, got ", to_string(d));
    return d.size() == 1 ? Dims(static_cast<size_t>(n), d[0]) : d;
  };
  Pool p{spread(kernel, "kernel_size"),
         {},
         spread(padding, "padding"),
         spread(dilation, "dilation"),
         ceil_mode};
  p.stride = stride.empty() ? p.kernel : spread(stride, "stride");
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    check(p.kernel[i] > 0, what, "(): kernel size should be greater than zero, but got ",
          to_string(p.kernel));
    check(p.stride[i] > 0, what, "(): stride should not be zero, but got ", to_string(p.stride));
    check(p.dilation[i] > 0, what, "(): dilation should be greater than zero, but got ",
          to_string(p.dilation));
    check(p.padding[i] >= 0, what, "(): pad must be non-negative, but got pad: ", p.padding[i]);
    check(p.padding[i] <= checked_reach(p.kernel[i], p.dilation[i]) / 2, what,
          "(): pad should be at most half of effective kernel size, but got pad=", p.padding[i],
          ", kernel_size=", p.kernel[i], " and dilation=", p.dilation[i]);
  }
  return p;
}

void check_input(const char* what, const Tensor& x, int64_t n, bool channels) {
  check(x.dim() == n + 1 || x.dim() == n + 2, what, "(): Expected ", n + 1, "D or ", n + 2,
        "D (batch mode) tensor for input, but got: ", to_string(x.sizes()));
  for (int64_t d = !channels ? x.dim() - n : x.dim() == n + 2 ? 1 : 0; d < x.dim(); ++d) {
    check(
        x.size(d) > 0, what,
        "(): Expected input's non-batch dimensions to have positive length, but input has a shape "
        "of ",
        to_string(x.sizes()));
  }
}

Dims output_sizes(const char* what, const Tensor& x, const Pool& p) {
  Dims out;
  auto n = static_cast<int64_t>(p.kernel.size());
  for (int64_t d = 0; d < n; ++d) {
    auto i = static_cast<size_t>(d);
    int64_t in = x.size(x.dim() - n + d), reach = checked_reach(p.kernel[i], p.dilation[i]);
    int64_t padded = checked_add(in, checked_mul(2, p.padding[i]));
    int64_t span = checked_add(padded - reach, p.ceil_mode ? p.stride[i] - 1 : 0);
    int64_t size = (span >= 0 ? span / p.stride[i] : -1) + 1;
    // The last window must start inside the input or its left padding.
    if (p.ceil_mode && (size - 1) * p.stride[i] >= in + p.padding[i]) --size;
    check(size >= 1, what, "(): Given input size: ", to_string(x.sizes()),
          ". Calculated output size is too small at "
          "spatial dimension ",
          d, " (", size, ") for kernel_size ", to_string(p.kernel));
    out.push_back(size);
  }
  return out;
}

PoolShape windows(const Tensor& x, const Dims& out, const Pool& p, ChannelLayout layout) {
  auto s = plane_shape(x, out, static_cast<int64_t>(out.size()), layout);
  s.adaptive = false;
  for (size_t d = 0; d < out.size(); ++d) {
    // With ceil_mode a kernel may reach beyond the padded input, where nothing counts.
    const int64_t padded = s.in[d] + 2 * p.padding[d];
    s.kernel[d] = std::min(p.kernel[d], (padded - 1) / p.dilation[d] + 1);
    s.stride[d] = p.stride[d];
    s.padding[d] = p.padding[d];
    s.dilation[d] = p.dilation[d];
  }
  return s;
}

Dims adaptive_sizes(const char* what, const Tensor& self, const Dims& out, int64_t n,
                    bool channels) {
  check_input(what, self, n, channels);
  check(static_cast<int64_t>(out.size()) == n, what, "(): output_size must be ", n, " ints, got ",
        to_string(out));
  for (int64_t v : out) {
    check(v >= 0, what, "(): elements of output_size must be greater than or equal to 0, got ",
          to_string(out));
  }
  return with_spatial(self, out);
}

}  // namespace taeda::pooling
