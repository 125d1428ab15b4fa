#include "kernels/cpu/conv/simd/planes.h"

#include "kernels/cpu/conv/simd/padded_plane.h"
#include "kernels/cpu/pointwise/simd/strided_load.h"
#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

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

// One row of outputs, a weighted sum of rows that begin `at` one another after `from`.
template <class T> struct RowSum {
  static constexpr int64_t most = 128;
  int64_t terms = 0;
  int64_t at[most];
  T weight[most];
};

// to[j] for j < n, n >= L, two registers at a time. The last registers overlap those before.
template <class T, int L>
FN void sum_row_by(const RowSum<T>& row, const T* from, int64_t n, T start, T* to) {
  typedef T V __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
  for (int64_t next = 0; next < n; next += 2 * L) {
    const int64_t a = least(next, n - L), b = least(next + L, n - L);
    V left = V{} + start, right = left;
    for (int64_t k = 0; k < row.terms; ++k) {
      left += row.weight[k] * *reinterpret_cast<const V*>(from + row.at[k] + a);
      right += row.weight[k] * *reinterpret_cast<const V*>(from + row.at[k] + b);
    }
    *reinterpret_cast<V*>(to + a) = left;
    *reinterpret_cast<V*>(to + b) = right;
  }
}
template <class T, int L = kLine<T>>
FN void sum_row(const RowSum<T>& row, const T* from, int64_t n, T start, T* to) {
  if (n >= L) {
    sum_row_by<T, L>(row, from, n, start, to);
  } else if constexpr (L * sizeof(T) > 16) {
    sum_row<T, L / 2>(row, from, n, start, to);
  } else {
    for (int64_t j = 0; j < n; ++j) {
      T sum = start;
      for (int64_t k = 0; k < row.terms; ++k) sum += row.weight[k] * from[row.at[k] + j];
      to[j] = sum;
    }
  }
}

// ---- steps of two along a row ----
// Longer steps are no faster with sorted rows.

template <class T> bool sorts_rows(const Window& w) {
  const int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  return w.stride[2] == kStep && taps <= RowSum<T>::most;
}

template <class T>
void plane_in_steps(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh,
                    T* y) {
  const Sorted<T> seen(w, x, memory, fresh);
  const int64_t size[3] = {seen.size[0], seen.size[1], seen.size[2]}, part = seen.part,
                row = part * kStep;
  RowSum<T> sum;
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw, ++sum.terms) {
        const int64_t column = kw * w.dilation[2];
        sum.weight[sum.terms] = weight[sum.terms];
        sum.at[sum.terms] = (kd * w.dilation[0] * size[1] + kh * w.dilation[1]) * row +
                            column % kStep * part + column / kStep;
      }
    }
  }
  for (int64_t od = 0; od < w.out[0]; ++od) {
    for (int64_t oh = 0; oh < w.out[1]; ++oh, y += w.out[2]) {
      const int64_t first = od * w.stride[0] * size[1] + oh * w.stride[1];
      sum_row(sum, memory + first * row, w.out[2], start, y);
    }
  }
}

// What the inputs r, r + stride, ... of a dimension are summed of: from the taps that reach them,
// the outputs `shift`, shift + 1, ...
struct Reaching {
  int64_t taps = 0;
  int64_t tap[RowSum<float>::most], shift[RowSum<float>::most];

  Reaching(const Window& w, int d, int64_t r) {
    for (int64_t k = 0; k < w.kernel[d]; ++k) {
      const int64_t distance = r + w.padding[d] - k * w.dilation[d];
      if (distance % w.stride[d] != 0) continue;
      tap[taps] = k;
      shift[taps++] = distance / w.stride[d];
    }
  }
};

template <class T>
void plane_grad_in_steps(const Window& w, const T* gy, const T* weight, T* memory, bool fresh,
                         T* gx) {
  const Window read = what_inputs_reach(w);
  const Padded<T> seen(read, gy, memory, fresh);
  T* parts = memory + seen.size[0] * seen.size[1] * seen.size[2];
  RowSum<T> sum[kStep];
  const int64_t steps = least(kStep, w.in[2]);
  for (int64_t rd = 0; rd < least(w.stride[0], w.in[0]); ++rd) {
    const Reaching depth(w, 0, rd);
    for (int64_t rh = 0; rh < least(w.stride[1], w.in[1]); ++rh) {
      const Reaching height(w, 1, rh);
      for (int64_t rw = 0; rw < steps; ++rw) {
        const Reaching width(w, 2, rw);
        RowSum<T>& s = sum[rw];
        s.terms = 0;
        for (int64_t d = 0; d < depth.taps; ++d) {
          for (int64_t h = 0; h < height.taps; ++h) {
            for (int64_t k = 0; k < width.taps; ++k, ++s.terms) {
              const int64_t tap = (depth.tap[d] * w.kernel[1] + height.tap[h]) * w.kernel[2];
              s.weight[s.terms] = weight[tap + width.tap[k]];
              s.at[s.terms] = ((depth.shift[d] + read.padding[0]) * seen.size[1] + height.shift[h] +
                               read.padding[1]) *
                                  seen.size[2] +
                              width.shift[k] + read.padding[2];
            }
          }
        }
      }
      for (int64_t d = rd; d < w.in[0]; d += w.stride[0]) {
        for (int64_t h = rh; h < w.in[1]; h += w.stride[1]) {
          const T* from =
              seen.data + (d / w.stride[0] * seen.size[1] + h / w.stride[1]) * seen.size[2];
          T* part = parts;
          for (int64_t rw = 0; rw < steps; ++rw) {
            const int64_t n = (w.in[2] - rw + kStep - 1) / kStep;
            sum_row(sum[rw], from, n, T(0), part);
            part += n;
          }
          weave(parts, steps, w.in[2], gx + (d * w.in[1] + h) * w.in[2]);
        }
      }
    }
  }
}

}  // namespace

// y = start + x * weight. For steps of 1 along a row all taps of some neighbouring outputs are
// summed at once, in registers.
template <class T>
void plane(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh, T* y) {
  if (strips_plane(w, x, weight, start, memory, fresh, y)) return;
  const int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  if (sorts_rows<T>(w)) return plane_in_steps(w, x, weight, start, memory, fresh, y);
  if (w.stride[2] != 1 || taps > RowSum<T>::most) {
    const int64_t total = w.out[0] * w.out[1] * w.out[2];
    for (int64_t i = 0; i < total; ++i) y[i] = start;
    return add_plane_by_taps(w, x, weight, y);
  }
  const Padded<T> seen(w, x, memory, fresh);
  RowSum<T> row;
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw, ++row.terms) {
        row.weight[row.terms] = weight[row.terms];
        row.at[row.terms] =
            (kd * w.dilation[0] * seen.size[1] + kh * w.dilation[1]) * seen.size[2] +
            kw * w.dilation[2];
      }
    }
  }
  // Short rows are summed as one, with what lies between them.
  const int64_t joined = (w.out[1] - 1) * seen.size[2] + w.out[2];
  if (w.out[2] < kLine<T> && w.out[0] == 1 && w.stride[1] == 1) {
    T* line = memory + seen.size[0] * seen.size[1] * seen.size[2];
    sum_row(row, seen.data, joined, start, line);
    return copy_rows(line, seen.size[2], w.out[1], w.out[2], y, w.out[2]);
  }
  for (int64_t od = 0; od < w.out[0]; ++od) {
    for (int64_t oh = 0; oh < w.out[1]; ++oh, y += w.out[2]) {
      const int64_t first = od * w.stride[0] * seen.size[1] + oh * w.stride[1];
      sum_row(row, seen.data + first * seen.size[2], w.out[2], start, y);
    }
  }
}

template <class T>
void plane_grad_input(const Window& w, const T* gy, const T* weight, T* memory, bool fresh, T* gx) {
  if (strips_plane_grad_input(w, gy, weight, memory, fresh, gx)) return;
  constexpr int64_t most_taps = RowSum<T>::most;
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
    return plane(back, gy, turned, T(0), memory, fresh, gx);
  }
  if (sorts_rows<T>(w)) return plane_grad_in_steps(w, gy, weight, memory, fresh, gx);
  const int64_t total = w.in[0] * w.in[1] * w.in[2], stride = w.stride[2];
  for (int64_t i = 0; i < total; ++i) gx[i] = 0;
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

template void plane(const Window&, const float*, const float*, float, float*, bool, float*);
template void plane(const Window&, const double*, const double*, double, double*, bool, double*);
template void plane_grad_input(const Window&, const float*, const float*, float*, bool, float*);
template void plane_grad_input(const Window&, const double*, const double*, double*, bool, double*);

}  // namespace taeda::cpu::simd::TAEDA_ISA
