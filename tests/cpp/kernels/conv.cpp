// Convolution by each algorithm, in all three passes, against sums in float64: small shapes with
// strides, padding, dilation and groups.
#include <array>

#include "kernels.h"
#include "kernels/cpu/conv/conv.h"

namespace taeda::test {
namespace {

using namespace cpu;

int64_t size_of(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

ConvShape shape(int64_t batch, int64_t in, int64_t out, int64_t groups, int spatial, int64_t size,
                int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  ConvShape s{{}, batch, groups, in, out};
  for (int d = 3 - spatial; d < 3; ++d) {
    s.in[d] = size + d;  // sides of different lengths
    s.kernel[d] = kernel;
    s.stride[d] = stride;
    s.padding[d] = padding;
    s.dilation[d] = dilation;
    s.out[d] = (s.in[d] + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
  return s;
}

// Calls f(element of x, of w, of y) for all that meet.
template <class F> void each_meeting(const ConvShape& s, F&& f) {
  const int64_t in = size_of(s.in), out = size_of(s.out), taps = size_of(s.kernel);
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t at = 0, step = 1, rest_o = o, rest_t = tap;
      bool inside = true;
      for (int d = 2; d >= 0; --d) {
        const int64_t i =
            rest_o % s.out[d] * s.stride[d] - s.padding[d] + rest_t % s.kernel[d] * s.dilation[d];
        inside = inside && i >= 0 && i < s.in[d];
        at += i * step;
        step *= s.in[d];
        rest_o /= s.out[d];
        rest_t /= s.kernel[d];
      }
      if (!inside) continue;
      for (int64_t n = 0; n < s.batch; ++n) {
        for (int64_t m = 0; m < s.out_channels; ++m) {
          for (int64_t c = 0; c < group_in; ++c) {
            f((n * s.in_channels + m / group_out * group_in + c) * in + at,
              (m * group_in + c) * taps + tap, (n * s.out_channels + m) * out + o);
          }
        }
      }
    }
  }
}

template <class T> std::vector<T> numbers(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) {
    if constexpr (std::is_integral_v<T>) v = static_cast<T>(random());
    else v = static_cast<T>(uniform(random));
  }
  return x;
}

// Operands, and results by the definition.
template <class T, class Sum> struct Reference {
  std::vector<T> x, w, gy, bias;
  std::vector<Sum> y, gx, gw;

  explicit Reference(const ConvShape& s)
      : x(numbers<T>(s.batch * s.in_channels * size_of(s.in), 1)),
        w(numbers<T>(s.out_channels * (s.in_channels / s.groups) * size_of(s.kernel), 2)),
        gy(numbers<T>(s.batch * s.out_channels * size_of(s.out), 3)),
        bias(numbers<T>(s.out_channels, 4)),
        y(gy.size()),
        gx(x.size()),
        gw(w.size()) {
    each_meeting(s, [&](int64_t in, int64_t weight, int64_t out) {
      const auto i = static_cast<size_t>(in), k = static_cast<size_t>(weight),
                 o = static_cast<size_t>(out);
      y[o] += static_cast<Sum>(x[i]) * static_cast<Sum>(w[k]);
      gx[i] += static_cast<Sum>(gy[o]) * static_cast<Sum>(w[k]);
      gw[k] += static_cast<Sum>(gy[o]) * static_cast<Sum>(x[i]);
    });
  }
};

template <class T, class Sum>
void compare(const std::string& name, const std::vector<T>& got, const std::vector<Sum>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    bool equal;
    if constexpr (std::is_integral_v<T>) equal = got[i] == static_cast<T>(want[i]);
    else equal = std::abs(got[i] - want[i]) <= 2e-4 * std::max(1.0, std::abs(want[i]));
    expect(equal, str(name, ": result ", i, " is ", static_cast<double>(got[i]), ", not ",
                      static_cast<double>(want[i])));
  }
}

template <class T> void check_passes(const std::string& name, const ConvShape& s) {
  Reference<T, double> r(s);
  std::vector<T> y(r.y.size()), gx(r.gx.size()), gw(r.gw.size());
  ConvKernels<T>::cpu.forward(s, r.x.data(), r.w.data(), nullptr, y.data());
  compare(name + ", forward", y, r.y);
  ConvKernels<T>::cpu.grad_input(s, r.gy.data(), r.w.data(), gx.data());
  compare(name + ", gradient of the input", gx, r.gx);
  ConvKernels<T>::cpu.grad_weight(s, r.x.data(), r.gy.data(), gw.data());
  compare(name + ", gradient of the weights", gw, r.gw);
  ConvKernels<T>::cpu.forward(s, r.x.data(), r.w.data(), r.bias.data(), y.data());
  const int64_t out = size_of(s.out);
  for (size_t i = 0; i < r.y.size(); ++i)
    r.y[i] += static_cast<double>(r.bias[i / static_cast<size_t>(out) % r.bias.size()]);
  compare(name + ", forward with bias", y, r.y);
}

template <class T> void check_integers(const ConvShape& s) {
  const Reference<T, uint64_t> r(s);
  std::vector<T> y(r.y.size()), gx(r.gx.size());
  IntegerConvKernels<T>::cpu.forward(s, r.x.data(), r.w.data(), y.data());
  compare("integers, forward", y, r.y);
  IntegerConvKernels<T>::cpu.grad_input(s, r.gy.data(), r.w.data(), gx.data());
  compare("integers, gradient of the input", gx, r.gx);
}

std::vector<ConvShape> shapes() {
  return {
      shape(2, 3, 5, 1, 2, 9, 3, 1, 1, 1),     shape(2, 3, 5, 1, 2, 9, 3, 2, 0, 1),
      shape(1, 4, 6, 2, 2, 8, 3, 1, 2, 2),     shape(3, 6, 4, 2, 1, 20, 4, 3, 1, 1),
      shape(1, 2, 3, 1, 3, 5, 2, 2, 1, 1),     shape(2, 5, 7, 1, 2, 6, 1, 1, 0, 1),
      shape(2, 3, 4, 1, 2, 6, 1, 2, 1, 1),     shape(2, 8, 8, 8, 2, 7, 3, 1, 1, 1),
      shape(2, 8, 16, 8, 2, 11, 5, 2, 2, 1),   shape(1, 3, 3, 3, 2, 19, 3, 1, 3, 3),
      shape(1, 20, 20, 20, 1, 70, 9, 1, 4, 1), shape(1, 2, 2, 2, 3, 6, 3, 1, 1, 1),
      shape(2, 16, 16, 1, 2, 9, 3, 1, 1, 1),   shape(1, 35, 18, 1, 2, 13, 3, 1, 0, 1),
      shape(2, 33, 40, 1, 2, 10, 3, 2, 1, 1),  shape(1, 32, 32, 2, 2, 12, 3, 1, 1, 1),
      shape(1, 17, 34, 1, 2, 14, 3, 1, 2, 2),  shape(1, 16, 20, 1, 2, 11, 3, 1, 1, 3),
      shape(3, 2, 4, 1, 2, 4, 4, 1, 0, 1),     shape(2, 6, 3, 1, 2, 5, 5, 1, 4, 1),
  };
}

void check_algorithms() {
  for (const ConvShape& s : shapes()) {
    for (const char* name : {"im2col", "nhwc", "winograd", "depthwise", ""}) {
      expect(force_conv_algorithm(*name ? name : nullptr), name);
      const std::string of = str(*name ? name : "the chosen algorithm", ", ", s.in_channels, " to ",
                                 s.out_channels, " channels, kernel ", s.kernel[2], ", stride ",
                                 s.stride[2], ", dilation ", s.dilation[2]);
      check_passes<float>(of, s);
      check_passes<double>(of, s);
    }
    check_integers<uint8_t>(s);
    check_integers<int8_t>(s);
    check_integers<int16_t>(s);
    check_integers<int32_t>(s);
    check_integers<int64_t>(s);
  }
}

// For timing alone: each algorithm where it is at home.
std::vector<Kernel> passes() {
  struct Home {
    const char* algorithm;
    ConvShape shape;
  };
  static const Home homes[] = {{"im2col", shape(1, 64, 64, 1, 2, 14, 1, 1, 0, 1)},
                               {"nhwc", shape(1, 32, 32, 1, 2, 14, 5, 1, 2, 1)},
                               {"winograd", shape(1, 64, 64, 1, 2, 14, 3, 1, 1, 1)},
                               {"depthwise", shape(1, 64, 64, 64, 2, 28, 3, 1, 1, 1)}};
  std::vector<Kernel> list;
  for (const Home& home : homes) {
    auto data = std::make_shared<std::array<std::vector<float>, 3>>();
    list.push_back({str("conv ", home.algorithm), [] {},
                    [data, &home](int64_t) {
                      const Reference<float, double> r(home.shape);
                      *data = {r.x, r.w, r.gy};
                    },
                    [data, &home] {
                      auto& [x, w, y] = *data;
                      force_conv_algorithm(home.algorithm);
                      ConvKernels<float>::cpu.forward(home.shape, x.data(), w.data(), nullptr,
                                                      y.data());
                      force_conv_algorithm(nullptr);
                    }});
  }
  return list;
}

const RegisterFamily family("conv", passes);
const Register tests[] = {{"conv: each algorithm, pass and element type", check_algorithms}};

}  // namespace
}  // namespace taeda::test
