#include "kernels/cpu/simd/conv.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// The outputs [first, last) along dimension d for which tap k falls inside of the input.
struct Range {
  int64_t first, last;
  int64_t start;  // where output 0 falls

  Range(const Window& w, int d, int64_t k) : start(k * w.dilation[d] - w.padding[d]) {
    const int64_t s = w.stride[d];
    first = start >= 0 ? 0 : (-start + s - 1) / s;
    const int64_t room = w.in[d] - 1 - start;
    last = room < 0 ? 0 : least(w.out[d], room / s + 1);
    first = least(first, w.out[d]);
    last = most(last, first);
  }
};

// Calls f(row of x or null, first column, columns) for each stretch of one output row within [begin, end), in order.
template <class P, class F>
void each_stretch(const Window& w, int64_t kd, int64_t kh, P* x, int64_t begin, int64_t end, F&& f) {
  int64_t ow = begin % w.out[2], row = begin / w.out[2];
  int64_t oh = row % w.out[1], od = row / w.out[1];
  for (int64_t p = begin; p < end;) {
    const int64_t count = least(w.out[2] - ow, end - p);
    const int64_t id = od * w.stride[0] - w.padding[0] + kd * w.dilation[0];
    const int64_t ih = oh * w.stride[1] - w.padding[1] + kh * w.dilation[1];
    const bool inside = id >= 0 && id < w.in[0] && ih >= 0 && ih < w.in[1];
    f(inside ? x + (id * w.in[1] + ih) * w.in[2] : nullptr, ow, count);
    p += count;
    ow = 0;
    if (++oh == w.out[1]) {
      oh = 0;
      ++od;
    }
  }
}

template <class T>
void im2col(const Window& w, int64_t channels, const T* x, int64_t begin, int64_t end, T* col, int64_t ld) {
  const int64_t plane = w.in[0] * w.in[1] * w.in[2], stride = w.stride[2];
  for (int64_t c = 0; c < channels; ++c, x += plane) {
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, col += ld) {
          const Range range(w, 2, kw);
          T* to = col;
          each_stretch(w, kd, kh, x, begin, end, [&](const T* row, int64_t ow, int64_t count) {
            const int64_t last = ow + count;
            const int64_t from = row ? least(most(range.first, ow), last) : last;
            const int64_t until = row ? most(least(range.last, last), from) : last;
            int64_t j = ow;
            for (; j < from; ++j) *to++ = T(0);
            if (stride == 1) {
              const T* source = row + range.start;
              for (; j < until; ++j) *to++ = source[j];
            } else {
              for (; j < until; ++j) *to++ = row[range.start + j * stride];
            }
            for (; j < last; ++j) *to++ = T(0);
          });
        }
      }
    }
  }
}

template <class T>
void col2im(const Window& w, int64_t channels, const T* col, int64_t ld, int64_t begin, int64_t end, T* x) {
  const int64_t plane = w.in[0] * w.in[1] * w.in[2], stride = w.stride[2];
  for (int64_t c = 0; c < channels; ++c, x += plane) {
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, col += ld) {
          const Range range(w, 2, kw);
          const T* from = col;
          each_stretch(w, kd, kh, x, begin, end, [&](T* row, int64_t ow, int64_t count) {
            if (row != nullptr) {
              const int64_t first = most(range.first, ow), last = least(range.last, ow + count);
              const T* __restrict source = from - ow;
              T* __restrict to = row + range.start;
              if (stride == 1) {
                for (int64_t j = first; j < last; ++j) to[j] += source[j];
              } else {
                for (int64_t j = first; j < last; ++j) to[j * stride] += source[j];
              }
            }
            from += count;
          });
        }
      }
    }
  }
}

// Calls f(output row, input row, weight index, columns' range) for every pair of rows that a tap joins, so that all taps
// of one output row follow each other.
template <class F>
void each_row(const Window& w, F&& f) {
  for (int64_t od = 0; od < w.out[0]; ++od) {
    for (int64_t oh = 0; oh < w.out[1]; ++oh) {
      for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
        const int64_t id = od * w.stride[0] - w.padding[0] + kd * w.dilation[0];
        if (id < 0 || id >= w.in[0]) continue;
        for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
          const int64_t ih = oh * w.stride[1] - w.padding[1] + kh * w.dilation[1];
          if (ih < 0 || ih >= w.in[1]) continue;
          f((od * w.out[1] + oh) * w.out[2], (id * w.in[1] + ih) * w.in[2], (kd * w.kernel[1] + kh) * w.kernel[2]);
        }
      }
    }
  }
}

template <class T>
void plane(const Window& w, const T* x, const T* weight, T bias, T* y) {
  const int64_t total = w.out[0] * w.out[1] * w.out[2], stride = w.stride[2];
  for (int64_t i = 0; i < total; ++i) y[i] = bias;
  each_row(w, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
      const Range r(w, 2, kw);
      const T a = weight[tap + kw];
      T* __restrict to = y + out;
      const T* __restrict from = x + in + r.start;
      if (stride == 1) {
        for (int64_t j = r.first; j < r.last; ++j) to[j] += a * from[j];
      } else if (stride == 2) {
        for (int64_t j = r.first; j < r.last; ++j) to[j] += a * from[j * 2];
      } else {
        for (int64_t j = r.first; j < r.last; ++j) to[j] += a * from[j * stride];
      }
    }
  });
}

template <class T>
void plane_grad_input(const Window& w, const T* gy, const T* weight, T* gx) {
  const int64_t stride = w.stride[2];
  each_row(w, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
      const Range r(w, 2, kw);
      const T a = weight[tap + kw];
      const T* __restrict from = gy + out;
      T* __restrict to = gx + in + r.start;
      if (stride == 1) {
        for (int64_t j = r.first; j < r.last; ++j) to[j] += a * from[j];
      } else {
        for (int64_t j = r.first; j < r.last; ++j) to[j * stride] += a * from[j];
      }
    }
  });
}

// In a fixed number of lanes, so that the order of the sum does not depend on the instruction set's width.
template <class T>
T dot(const T* a, const T* b, int64_t step, int64_t n) {
  constexpr int64_t lanes = 16;
  T sum[lanes] = {};
  int64_t j = 0;
  if (step == 1) {
    for (; j + lanes <= n; j += lanes) {
      for (int64_t i = 0; i < lanes; ++i) sum[i] += a[j + i] * b[j + i];
    }
  }
  for (; j < n; ++j) sum[j % lanes] += a[j] * b[j * step];
  T total = 0;
  for (int64_t i = 0; i < lanes; ++i) total += sum[i];
  return total;
}

template <class T>
void plane_grad_weight(const Window& w, const T* x, const T* gy, T* gw) {
  each_row(w, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
      const Range r(w, 2, kw);
      if (r.last <= r.first) continue;
      gw[tap + kw] +=
          dot(gy + out + r.first, x + in + r.start + r.first * w.stride[2], w.stride[2], r.last - r.first);
    }
  });
}

}  // namespace

extern const ConvKernels conv_kernels = {
    {im2col<float>, col2im<float>, plane<float>, plane_grad_input<float>, plane_grad_weight<float>},
    {im2col<double>, col2im<double>, plane<double>, plane_grad_input<double>, plane_grad_weight<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
