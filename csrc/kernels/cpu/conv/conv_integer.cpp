// Convolution of integers, straight from the definition: exact, in the type itself (overflow wraps
// around).
#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {
namespace {

struct Sizes {
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];

  explicit Sizes(const ConvShape& s) {
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - s.spatial);
      const bool used = from >= 0;
      in[d] = used ? s.in[from] : 1;
      kernel[d] = used ? s.kernel[from] : 1;
      out[d] = used ? s.out[from] : 1;
      stride[d] = used ? s.stride[from] : 1;
      padding[d] = used ? s.padding[from] : 0;
      dilation[d] = used ? s.dilation[from] : 1;
    }
  }
  static int64_t volume(const int64_t (&v)[3]) { return v[0] * v[1] * v[2]; }
};

// Calls f(output element, input element, tap) for all that meet within one plane.
template <class F> void each_meeting(const Sizes& s, F&& f) {
  int64_t out = 0;
  for (int64_t od = 0; od < s.out[0]; ++od) {
    for (int64_t oh = 0; oh < s.out[1]; ++oh) {
      for (int64_t ow = 0; ow < s.out[2]; ++ow, ++out) {
        int64_t tap = 0;
        for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
          const int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
          for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
            const int64_t ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            for (int64_t kw = 0; kw < s.kernel[2]; ++kw, ++tap) {
              const int64_t iw = ow * s.stride[2] - s.padding[2] + kw * s.dilation[2];
              const bool inside =
                  id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1] && iw >= 0 && iw < s.in[2];
              if (inside) f(out, (id * s.in[1] + ih) * s.in[2] + iw, tap);
            }
          }
        }
      }
    }
  }
}

template <class T> void add_product(T& sum, T a, T b) {
  sum = static_cast<T>(static_cast<uint64_t>(sum) +
                       static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

template <class T> void conv_forward_integer(const ConvShape& s, const T* x, const T* w, T* y) {
  const Sizes z(s);
  const int64_t in = Sizes::volume(z.in), out = Sizes::volume(z.out),
                taps = Sizes::volume(z.kernel);
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  parallel_for(s.batch * s.out_channels, 1, [&](int64_t begin, int64_t end) {
    std::fill(y + begin * out, y + end * out, T(0));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / s.out_channels, channel = i % s.out_channels;
      const int64_t first = channel / group_out * group_in;
      for (int64_t c = 0; c < group_in; ++c) {
        const T* plane = x + (image * s.in_channels + first + c) * in;
        const T* kernel = w + (channel * group_in + c) * taps;
        each_meeting(z, [&](int64_t o, int64_t e, int64_t tap) {
          add_product(y[i * out + o], plane[e], kernel[tap]);
        });
      }
    }
  });
}

template <class T>
void conv_grad_input_integer(const ConvShape& s, const T* gy, const T* w, T* gx) {
  const Sizes z(s);
  const int64_t in = Sizes::volume(z.in), out = Sizes::volume(z.out),
                taps = Sizes::volume(z.kernel);
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  parallel_for(s.batch * s.in_channels, 1, [&](int64_t begin, int64_t end) {
    std::fill(gx + begin * in, gx + end * in, T(0));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / s.in_channels, channel = i % s.in_channels;
      const int64_t first = channel / group_in * group_out;
      for (int64_t c = first; c < first + group_out; ++c) {
        const T* plane = gy + (image * s.out_channels + c) * out;
        const T* kernel = w + (c * group_in + channel % group_in) * taps;
        each_meeting(z, [&](int64_t o, int64_t e, int64_t tap) {
          add_product(gx[i * in + e], plane[o], kernel[tap]);
        });
      }
    }
  });
}

#define TAEDA_CONV_INTEGER(T)                                                      \
  template void conv_forward_integer<T>(const ConvShape&, const T*, const T*, T*); \
  template void conv_grad_input_integer<T>(const ConvShape&, const T*, const T*, T*);
TAEDA_CONV_INTEGER(uint8_t)
TAEDA_CONV_INTEGER(int8_t)
TAEDA_CONV_INTEGER(int16_t)
TAEDA_CONV_INTEGER(int32_t)
TAEDA_CONV_INTEGER(int64_t)

}  // namespace taeda::cpu
