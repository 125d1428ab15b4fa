#include "kernels/cpu/simd/conv.h"

#include "kernels/cpu/simd/every.h"
#include "kernels/cpu/simd/registers.h"
#include "kernels/functors_scalar.h"

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
              for (; j < until; ++j) *to++ = row[range.start + j];
            } else if (j < until) {
              every(row + range.start + j * stride, stride, until - j, to);
              to += until - j;
              j = until;
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

template <class T> constexpr int kLine = 64 / sizeof(T);

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

// to[j] = from[j] for j < n. The last register overlaps the one before.
template <class T, int L = kLine<T>> FN void copy_row(const T* from, int64_t n, T* to) {
  typedef T V __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
  if (n >= L) {
    for (int64_t j = 0; j < n; j += L) {
      const int64_t at = least(j, n - L);
      *reinterpret_cast<V*>(to + at) = *reinterpret_cast<const V*>(from + at);
    }
  } else if constexpr (L * sizeof(T) > 16) {
    copy_row<T, L / 2>(from, n, to);
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = from[j];
  }
}

// x as the kernel sees it, with zeros around it: windows never leave what `data` holds.
template <class T> struct Padded {
  const T* data;
  int64_t size[3];

  Padded(const Window& w, const T* x, T* memory) : data(memory) {
    bool same = true;
    for (int d = 0; d < 3; ++d) {
      size[d] = (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
      same = same && w.padding[d] == 0 && size[d] == w.in[d];
    }
    if (same) {
      data = x;
      return;
    }
    for (int64_t i = 0; i < size[0] * size[1] * size[2]; ++i) memory[i] = 0;
    const int64_t left = least(most(w.padding[2], 0), size[2]);
    const int64_t end = most(left, least(size[2], w.padding[2] + w.in[2]));
    for (int64_t d = 0; d < size[0]; ++d) {
      for (int64_t h = 0; h < size[1]; ++h, memory += size[2]) {
        const int64_t id = d - w.padding[0], ih = h - w.padding[1];
        if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1]) continue;
        const T* row = x + (id * w.in[1] + ih) * w.in[2] - w.padding[2];
        copy_row(row + left, end - left, memory + left);
      }
    }
  }
};

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

// Some rows of outputs at once, so that what is read serves several of them: kRowsTogether, for
// kernels of at least as many rows whose taps and steps are neighbours down a column.
constexpr int kRowsTogether = 4;

template <class T> struct RowsSum {
  const T* x;       // what the first output reads
  int64_t x_row;    // from one row of it to the next
  const T* weight;  // columns of `height` taps; they are `width`, `dilation` apart in x
  int64_t height, width, dilation;
  T start;
  T* y;
  int64_t y_row;
};

// The columns from a and from b on, a register of each.
template <class T, int L> FN void sum_rows_at(const RowsSum<T>& s, int64_t a, int64_t b) {
  typedef T V __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
  V left[kRowsTogether], right[kRowsTogether];
  for (int r = 0; r < kRowsTogether; ++r) left[r] = right[r] = V{} + s.start;
  // What one row of x adds to the outputs [First, Last).
  auto add = [&]<int First, int Last>(int64_t row) {
    const T *from = s.x + row * s.x_row, *weight = s.weight + row;
    for (int64_t k = 0; k < s.width; ++k, from += s.dilation, weight += s.height) {
      const V seen_left = *reinterpret_cast<const V*>(from + a);
      const V seen_right = *reinterpret_cast<const V*>(from + b);
#pragma GCC unroll 4
      for (int r = First; r < Last; ++r) {
        left[r] += weight[-r] * seen_left;
        right[r] += weight[-r] * seen_right;
      }
    }
  };
  static_assert(kRowsTogether == 4);
  add.template operator()<0, 1>(0);
  add.template operator()<0, 2>(1);
  add.template operator()<0, 3>(2);
  for (int64_t row = 3; row < s.height; ++row) add.template operator()<0, 4>(row);
  add.template operator()<1, 4>(s.height);
  add.template operator()<2, 4>(s.height + 1);
  add.template operator()<3, 4>(s.height + 2);
  for (int r = 0; r < kRowsTogether; ++r) {
    *reinterpret_cast<V*>(s.y + r * s.y_row + a) = left[r];
    *reinterpret_cast<V*>(s.y + r * s.y_row + b) = right[r];
  }
}
template <class T, int L = kLanes<T>> void sum_rows(const RowsSum<T>& s, int64_t n) {
  if constexpr (L * sizeof(T) > 16) {
    if (n < L) return sum_rows<T, L / 2>(s, n);
  }
  for (int64_t j = 0; j < n; j += 2 * L) sum_rows_at<T, L>(s, least(j, n - L), least(j + L, n - L));
}

// ---- steps of two along a row ----
// Rows are sorted by their columns' remainders, one remainder after another: then outputs next to
// each other read elements next to each other, for every tap. Longer steps are no faster so.

constexpr int64_t kStep = 2;

template <class T> bool sorts_rows(const Window& w) {
  const int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  return w.stride[2] == kStep && taps <= RowSum<T>::most;
}

template <class T>
void plane_in_steps(const Window& w, const T* x, const T* weight, T start, T* memory, T* y) {
  int64_t size[3];
  for (int d = 0; d < 3; ++d)
    size[d] = (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
  const int64_t part = (size[2] + kStep - 1) / kStep, row = part * kStep;
  for (int64_t i = 0; i < size[0] * size[1] * row; ++i) memory[i] = 0;
  T* to = memory;
  for (int64_t d = 0; d < size[0]; ++d) {
    for (int64_t h = 0; h < size[1]; ++h, to += row) {
      const int64_t id = d - w.padding[0], ih = h - w.padding[1];
      if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1]) continue;
      const T* from = x + (id * w.in[1] + ih) * w.in[2];
      for (int64_t r = 0; r < kStep; ++r) {
        const int64_t at = r - w.padding[2];  // what the first place holds
        const int64_t first = at >= 0 ? 0 : least((-at + kStep - 1) / kStep, part);
        const int64_t last = least(part, (w.in[2] - at + kStep - 1) / kStep);
        if (first < last)
          every(from + at + first * kStep, kStep, last - first, to + r * part + first);
      }
    }
  }
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
void plane_grad_in_steps(const Window& w, const T* gy, const T* weight, T* memory, T* gx) {
  // The outputs that the inputs would come from, with zeros where there are none.
  Window read = w;
  for (int d = 0; d < 3; ++d) {
    const int64_t near = w.padding[d] - (w.kernel[d] - 1) * w.dilation[d];
    const int64_t far = w.in[d] - 1 + w.padding[d], step = w.stride[d];
    const int64_t lo = near >= 0 ? near / step : -((-near) / step);
    const int64_t hi = most(lo, far >= 0 ? far / step : -((-far) / step));
    read.in[d] = w.out[d];
    read.out[d] = hi - lo + 1;
    read.padding[d] = -lo;
    read.kernel[d] = read.stride[d] = read.dilation[d] = 1;
  }
  const Padded<T> seen(read, gy, memory);
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

// y = start + x * weight. For steps of 1 along a row all taps of some neighbouring outputs are
// summed at once, in registers.
template <class T>
void plane(const Window& w, const T* x, const T* weight, T start, T* memory, T* y) {
  const int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  if (sorts_rows<T>(w)) return plane_in_steps(w, x, weight, start, memory, y);
  if (w.stride[2] != 1 || taps > RowSum<T>::most) {
    const int64_t total = w.out[0] * w.out[1] * w.out[2];
    for (int64_t i = 0; i < total; ++i) y[i] = start;
    return add_plane_by_taps(w, x, weight, y);
  }
  const Padded<T> seen(w, x, memory);
  if (w.kernel[0] == 1 && w.kernel[1] >= kRowsTogether && w.out[1] >= kRowsTogether &&
      w.stride[1] == 1 && w.dilation[1] == 1 && w.out[2] >= most(kLanes<T> / 2, 16 / sizeof(T))) {
    T columns[RowSum<T>::most];
    for (int64_t h = 0; h < w.kernel[1]; ++h) {
      for (int64_t k = 0; k < w.kernel[2]; ++k)
        columns[k * w.kernel[1] + h] = weight[h * w.kernel[2] + k];
    }
    RowsSum<T> s{seen.data,     seen.size[2], columns, w.kernel[1], w.kernel[2],
                 w.dilation[2], start,        y,       w.out[2]};
    for (int64_t od = 0; od < w.out[0]; ++od) {
      const int64_t plane = od * w.stride[0] * seen.size[1];
      for (int64_t oh = 0; oh < w.out[1]; oh += kRowsTogether) {
        const int64_t first = least(oh, w.out[1] - kRowsTogether);
        s.x = seen.data + (plane + first) * seen.size[2];
        s.y = y + (od * w.out[1] + first) * w.out[2];
        sum_rows(s, w.out[2]);
      }
    }
    return;
  }
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
    for (int64_t oh = 0; oh < w.out[1]; ++oh, line += seen.size[2], y += w.out[2])
      copy_row(line, w.out[2], y);
    return;
  }
  for (int64_t od = 0; od < w.out[0]; ++od) {
    for (int64_t oh = 0; oh < w.out[1]; ++oh, y += w.out[2]) {
      const int64_t first = od * w.stride[0] * seen.size[1] + oh * w.stride[1];
      sum_row(row, seen.data + first * seen.size[2], w.out[2], start, y);
    }
  }
}

template <class T>
void plane_grad_input(const Window& w, const T* gy, const T* weight, T* memory, T* gx) {
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
    return plane(back, gy, turned, T(0), memory, gx);
  }
  if (sorts_rows<T>(w)) return plane_grad_in_steps(w, gy, weight, memory, gx);
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

}  // namespace

extern const ConvKernels conv_kernels = {
    {im2col<float>, col2im<float>, plane<float>, plane_grad_input<float>},
    {im2col<double>, col2im<double>, plane<double>, plane_grad_input<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
