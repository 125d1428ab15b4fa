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

// Calls f(row of x or null, first column, columns) for each stretch of one output row within
// [begin, end), in order.
template <class P, class F>
void each_stretch(const Window& w, int64_t kd, int64_t kh, P* x, int64_t begin, int64_t end,
                  F&& f) {
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
void im2col(const Window& w, int64_t channels, const T* x, int64_t begin, int64_t end, T* col,
            int64_t ld) {
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
void col2im(const Window& w, int64_t channels, const T* col, int64_t ld, int64_t begin, int64_t end,
            T* x) {
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

// Calls f(output row, input row, weight index, columns' range) for every pair of rows that a tap
// joins, so that all taps of one output row follow each other.
template <class F> void each_row(const Window& w, F&& f) {
  for (int64_t od = 0; od < w.out[0]; ++od) {
    for (int64_t oh = 0; oh < w.out[1]; ++oh) {
      for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
        const int64_t id = od * w.stride[0] - w.padding[0] + kd * w.dilation[0];
        if (id < 0 || id >= w.in[0]) continue;
        for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
          const int64_t ih = oh * w.stride[1] - w.padding[1] + kh * w.dilation[1];
          if (ih < 0 || ih >= w.in[1]) continue;
          f((od * w.out[1] + oh) * w.out[2], (id * w.in[1] + ih) * w.in[2],
            (kd * w.kernel[1] + kh) * w.kernel[2]);
        }
      }
    }
  }
}

// Sixty-four bytes of elements; narrower instruction sets use several registers for one.
template <class T> struct Wide;
template <> struct Wide<float> {
  typedef float type __attribute__((vector_size(64), aligned(4), may_alias));
};
template <> struct Wide<double> {
  typedef double type __attribute__((vector_size(64), aligned(8), may_alias));
};
template <class T> constexpr int64_t kLanes = 64 / sizeof(T);

template <class T> const typename Wide<T>::type& wide(const T* p) {
  return *reinterpret_cast<const typename Wide<T>::type*>(p);
}
template <class T> typename Wide<T>::type& wide(T* p) {
  return *reinterpret_cast<typename Wide<T>::type*>(p);
}

// y += x * weight, by one pass over y for every tap. For steps along a row that vector loads cannot
// take.
template <class T> void add_plane_by_taps(const Window& w, const T* x, const T* weight, T* y) {
  const int64_t stride = w.stride[2];
  each_row(w, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
      const Range r(w, 2, kw);
      const T a = weight[tap + kw];
      T* __restrict to = y + out;
      const T* __restrict from = x + in + r.start;
      if (stride == 2) {
        for (int64_t j = r.first; j < r.last; ++j) to[j] += a * from[j * 2];
      } else {
        for (int64_t j = r.first; j < r.last; ++j) to[j] += a * from[j * stride];
      }
    }
  });
}

// y += x * weight for steps of 1 along a row: all taps of some neighbouring outputs at once, in
// registers.
template <class T> void add_plane(const Window& w, const T* x, const T* weight, T* y) {
  using V = typename Wide<T>::type;
  constexpr int64_t most_rows = 64, lanes = kLanes<T>;
  const int64_t taps = w.kernel[2];
  if (w.stride[2] != 1 || w.kernel[0] * w.kernel[1] > most_rows)
    return add_plane_by_taps(w, x, weight, y);
  // The outputs [lo, hi) of a row see no padding in their row.
  const Range left(w, 2, 0), right(w, 2, taps - 1);
  const int64_t lo = least(left.first, w.out[2]), hi = most(lo, least(right.last, w.out[2]));
  const T* rows[most_rows];
  const T* weights[most_rows];
  for (int64_t od = 0; od < w.out[0]; ++od) {
    for (int64_t oh = 0; oh < w.out[1]; ++oh) {
      int64_t count = 0;
      for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
        const int64_t id = od * w.stride[0] - w.padding[0] + kd * w.dilation[0];
        for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
          const int64_t ih = oh * w.stride[1] - w.padding[1] + kh * w.dilation[1];
          if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1]) continue;
          rows[count] = x + (id * w.in[1] + ih) * w.in[2] - w.padding[2];
          weights[count++] = weight + (kd * w.kernel[1] + kh) * taps;
        }
      }
      T* to = y + (od * w.out[1] + oh) * w.out[2];
      auto one = [&](int64_t j) {
        T sum = to[j];
        for (int64_t r = 0; r < count; ++r) {
          for (int64_t k = 0; k < taps; ++k) {
            const int64_t i = j - w.padding[2] + k * w.dilation[2];
            if (i >= 0 && i < w.in[2]) sum += weights[r][k] * rows[r][j + k * w.dilation[2]];
          }
        }
        to[j] = sum;
      };
      for (int64_t j = 0; j < lo; ++j) one(j);
      int64_t j = lo;
      for (; j + lanes <= hi; j += lanes) {
        V sum = wide(to + j);
        for (int64_t r = 0; r < count; ++r) {
          const T* from = rows[r] + j;
          for (int64_t k = 0; k < taps; ++k) sum += weights[r][k] * wide(from + k * w.dilation[2]);
        }
        wide(to + j) = sum;
      }
      for (; j < w.out[2]; ++j) one(j);
    }
  }
}

template <class T> void plane(const Window& w, const T* x, const T* weight, T bias, T* y) {
  const int64_t total = w.out[0] * w.out[1] * w.out[2];
  for (int64_t i = 0; i < total; ++i) y[i] = bias;
  add_plane(w, x, weight, y);
}

template <class T> void plane_grad_input(const Window& w, const T* gy, const T* weight, T* gx) {
  constexpr int64_t most_taps = 256;
  const int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  if (w.stride[0] == 1 && w.stride[1] == 1 && w.stride[2] == 1 && taps <= most_taps) {
    // The convolution of gy with the kernel turned around.
    Window back = w;
    T turned[most_taps];
    for (int64_t k = 0; k < taps; ++k) turned[k] = weight[taps - 1 - k];
    for (int d = 0; d < 3; ++d) {
      back.in[d] = w.out[d];
      back.out[d] = w.in[d];
      back.padding[d] = w.dilation[d] * (w.kernel[d] - 1) - w.padding[d];
    }
    return add_plane(back, gy, turned, gx);
  }
  const int64_t stride = w.stride[2];
  each_row(w, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
      const Range r(w, 2, kw);
      const T a = weight[tap + kw];
      const T* __restrict from = gy + out;
      T* __restrict to = gx + in + r.start;
      for (int64_t j = r.first; j < r.last; ++j) to[j * stride] += a * from[j];
    }
  });
}

template <class T> void plane_grad_weight(const Window& w, const T* x, const T* gy, T* gw) {
  using V = typename Wide<T>::type;
  constexpr int64_t lanes = kLanes<T>;
  const int64_t step = w.stride[2];
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
    const Range rd(w, 0, kd);
    for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
      const Range rh(w, 1, kh);
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
        const Range r(w, 2, kw);
        V sums = {};
        T sum = 0;
        for (int64_t od = rd.first; od < rd.last; ++od) {
          const int64_t id = rd.start + od * w.stride[0];
          for (int64_t oh = rh.first; oh < rh.last; ++oh) {
            const int64_t ih = rh.start + oh * w.stride[1];
            const T* a = gy + (od * w.out[1] + oh) * w.out[2];
            const T* b = x + (id * w.in[1] + ih) * w.in[2] + r.start;
            int64_t j = r.first;
            if (step == 1) {
              for (; j + lanes <= r.last; j += lanes) sums += wide(a + j) * wide(b + j);
            }
            for (; j < r.last; ++j) sum += a[j] * b[j * step];
          }
        }
        for (int64_t i = 0; i < lanes; ++i) sum += sums[i];
        gw[(kd * w.kernel[1] + kh) * w.kernel[2] + kw] += sum;
      }
    }
  }
}

}  // namespace

extern const ConvKernels conv_kernels = {
    {im2col<float>, col2im<float>, plane<float>, plane_grad_input<float>, plane_grad_weight<float>},
    {im2col<double>, col2im<double>, plane<double>, plane_grad_input<double>,
     plane_grad_weight<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
