// Planes are summed in strips: some rows of outputs, one register wide. All sums and a column of
// the kernel stay in registers, so that what is read of the input is read once for all outputs that
// it reaches.
#include "kernels/cpu/conv/simd/depthwise.h"

#include "kernels/cpu/conv/simd/depthwise_weight.h"
#include "kernels/cpu/conv/simd/padded_plane.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kMostRows = kRegisters == 32 ? 16 : 8;
constexpr int64_t kMostTaps = 1024;  // columns of taps of one call

// What the outputs of a plane are sums of: columns of `height` taps, whose weights are weight_row
// apart, and which read rows of x that follow each other.
template <class T> struct Taps {
  int64_t height, columns = 0;
  int64_t step = 1;  // rows of x from one output to the next
  int64_t x_row;     // from one row of x to the next
  int64_t weight_row;
  T start;                    // what sums begin with
  int64_t at[kMostTaps];      // where each column begins in x ...
  int64_t weight[kMostTaps];  // ... and in the weights
};

// x: what the first output reads; before: sums that there are already, `before_row` apart, or null.
template <class T>
using StripLoop = void (*)(const Taps<T>& taps, const T* x, const T* weight, const T* before,
                           int64_t before_row, T* y, int64_t y_row);

// `Height` rows of taps, with outputs `Step` rows of x after one another.
template <class T, int Height, int Step, int Rows>
void strip(const Taps<T>& taps, const T* x, const T* weight, const T* before, int64_t before_row,
           T* y, int64_t y_row) {
  using V = Vec<T>;
  V sum[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
    sum[r] = before ? load(before + r * before_row) : broadcast<V>(taps.start);
  const int64_t x_row = taps.x_row, weight_row = taps.weight_row;
  for (int64_t k = 0; k < taps.columns; ++k) {
    const T* w = weight + taps.weight[k];
    V factor[Height];
#pragma GCC unroll 8
    for (int h = 0; h < Height; ++h) {
      factor[h] = broadcast<V>(w[h * weight_row]);
      if constexpr (Height + Rows < kRegisters) pin(factor[h]);
    }
    const T* from = x + taps.at[k];
#pragma GCC unroll 64
    for (int i = 0; i < (Rows - 1) * Step + Height; ++i, from += x_row) {
      V seen = load(from);
      pin(seen);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const int h = i - r * Step;
        if (h >= 0 && h < Height) sum[r] += factor[h] * seen;
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) store(y + r * y_row, sum[r]);
}

// How many of `rows` go into one strip: as many as make the fewest steps of all.
int64_t rows_together(int64_t rows) {
  int64_t best = 1, steps = rows * 3;
  constexpr int64_t there[] = {16, 14, 8, 7, 4};
  for (const int64_t r : there) {
    if (r > kMostRows || r > rows) continue;
    const int64_t all = ceil_div(rows, r) * (r + 2);
    if (all < steps) best = r;
    steps = least(steps, all);
  }
  return best;
}

// The most rows of taps, of those that are left, that a strip takes at once.
int64_t taps_together(int64_t left, int64_t step) {
  const int64_t parts = (left + 6) / 7, some = (left + parts - 1) / parts;
  if (step > 1) return some % 2 != 0 ? some : some > 1 ? some - 1 : 1;
  return some != 6 ? some : left == 6 ? 3 : 7;
}

template <class T, int Height, int Step> StripLoop<T> loop_of(int64_t rows) {
  if constexpr (kMostRows >= 16) {
    if (rows == 16) return strip<T, Height, Step, 16>;
    if (rows == 14) return strip<T, Height, Step, 14>;
  }
  switch (rows) {
    case 8: return strip<T, Height, Step, 8>;
    case 7: return strip<T, Height, Step, 7>;
    case 4: return strip<T, Height, Step, 4>;
    default: return strip<T, Height, Step, 1>;
  }
}
template <class T> StripLoop<T> loop_for(int64_t height, int64_t step, int64_t rows) {
  if (step == 2) {
    switch (height) {
      case 1: return loop_of<T, 1, 2>(rows);
      case 3: return loop_of<T, 3, 2>(rows);
      case 5: return loop_of<T, 5, 2>(rows);
      default: return loop_of<T, 7, 2>(rows);
    }
  }
  switch (height) {
    case 1: return loop_of<T, 1, 1>(rows);
    case 2: return loop_of<T, 2, 1>(rows);
    case 3: return loop_of<T, 3, 1>(rows);
    case 4: return loop_of<T, 4, 1>(rows);
    case 5: return loop_of<T, 5, 1>(rows);
    default: return loop_of<T, 7, 1>(rows);
  }
}

// A strip of all rows of taps, some at a time.
template <class T>
FN void sum_strip(const Taps<T>& taps, int64_t rows, const T* x, const T* weight, T* y,
                  int64_t y_row) {
  T sums[kMostRows * kLanes<T>];
  const T* before = nullptr;
  for (int64_t left = taps.height;;) {
    const int64_t some = taps_together(left, taps.step);
    const StripLoop<T> loop = loop_for<T>(some, taps.step, rows);
    if (some == left) return loop(taps, x, weight, before, kLanes<T>, y, y_row);
    loop(taps, x, weight, before, kLanes<T>, sums, kLanes<T>);
    before = sums;
    x += some * taps.x_row;
    weight += some * taps.weight_row;
    left -= some;
  }
}

// The outputs y[r * y_row + c], r < rows and c < cols. May read kBeyond elements after x.
template <class T>
void sum_plane(const Taps<T>& taps, const T* x, const T* weight, T* y, int64_t y_row, int64_t rows,
               int64_t cols) {
  constexpr int64_t lanes = kLanes<T>;
  if (taps.height * taps.columns == 0) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) y[r * y_row + c] = taps.start;
    }
    return;
  }
  const int64_t together = rows_together(rows);
  const FirstLanes<T> inside(cols);
  for (int64_t next = 0; next < rows; next += together) {
    const int64_t row = least(next, rows - together);
    T* to = y + row * y_row;
    const T* from = x + row * taps.step * taps.x_row;
    if (cols < lanes) {
      T sums[kMostRows * lanes];
      sum_strip(taps, together, from, weight, sums, lanes);
      for (int64_t r = 0; r < together; ++r) inside.store(to + r * y_row, load(sums + r * lanes));
    }
    for (int64_t col = 0; cols >= lanes && col < cols; col += lanes) {
      const int64_t c = least(col, cols - lanes);
      sum_strip(taps, together, from + c, weight, to + c, y_row);
    }
  }
}

// A single row, of which stretches of a register are taken as rows, if the kernel has one row.
template <class T> void sum_row(Taps<T>& taps, const T* x, const T* weight, T* y, int64_t cols) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t rows = cols / lanes, done = rows * lanes, x_row = taps.x_row;
  if (taps.height != 1 || rows < 4) return sum_plane(taps, x, weight, y, cols, 1, cols);
  taps.x_row = lanes;
  sum_plane(taps, x, weight, y, lanes, rows, lanes);
  if (done < cols) sum_plane(taps, x + cols - lanes, weight, y + cols - lanes, lanes, 1, lanes);
  taps.x_row = x_row;
}

// One dimension's taps: where each reads, and its number in the kernel.
struct AxisTaps {
  int64_t count = 0;
  int64_t at[kMostTaps], number[kMostTaps];

  FN void add(int64_t position, int64_t tap) {
    at[count] = position;
    number[count++] = tap;
  }
  // Whether the taps read rows that follow each other.
  FN bool consecutive() const {
    for (int64_t i = 1; i < count; ++i) {
      if (at[i] != at[i - 1] + 1) return false;
    }
    return true;
  }
};

// y = start + x * weight, of `y` outputs `y_step` apart in planes and rows of y; the taps of each
// dimension are given.
struct Outputs {
  int64_t planes, rows, cols;
  int64_t plane_step, row_step;  // in y
  int64_t x_planes, x_rows;      // steps in x
};
template <class T>
void sum(const Padded<T>& x, const AxisTaps& d, const AxisTaps& h, const AxisTaps& w,
         const Window& window, const T* weight, T start, const Outputs& o, T* y) {
  Taps<T> taps;
  const bool tall = h.consecutive() && o.x_rows <= 2;
  taps.height = tall ? h.count : h.count > 0;
  taps.step = tall ? o.x_rows : 1;
  taps.x_row = tall ? x.size[2] : o.x_rows * x.size[2];
  const int64_t row = window.kernel[2], plane = window.kernel[1] * row;
  taps.weight_row = tall && h.count > 1 ? (h.number[1] - h.number[0]) * row : 0;
  taps.start = start;
  for (int64_t i = 0; i < d.count; ++i) {
    for (int64_t j = 0; j < (tall ? least(h.count, 1) : h.count); ++j) {
      for (int64_t k = 0; k < w.count; ++k, ++taps.columns) {
        taps.at[taps.columns] = (d.at[i] * x.size[1] + h.at[j]) * x.size[2] + w.at[k];
        taps.weight[taps.columns] = d.number[i] * plane + h.number[j] * row + w.number[k];
      }
    }
  }
  for (int64_t p = 0; p < o.planes; ++p) {
    const T* from = x.data + p * o.x_planes * x.size[1] * x.size[2];
    T* to = y + p * o.plane_step;
    if (o.rows == 1) sum_row(taps, from, weight, to, o.cols);
    else sum_plane(taps, from, weight, to, o.row_step, o.rows, o.cols);
  }
}

template <class T>
void forward(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh, T* y) {
  const Padded<T> padded(w, x, memory, fresh);
  AxisTaps taps[3];
  for (int d = 0; d < 3; ++d) {
    for (int64_t k = 0; k < w.kernel[d]; ++k)
      taps[d].add(d == 2 ? padded.at(k * w.dilation[d]) : k * w.dilation[d], k);
  }
  sum(padded, taps[0], taps[1], taps[2], w, weight, start,
      {w.out[0], w.out[1], w.out[2], w.out[1] * w.out[2], w.out[2], w.stride[0], w.stride[1]}, y);
}

// The outputs that inputs reach, in steps of one, with zeros where there are none.
FN Window what_inputs_reach(const Window& w) {
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
  return read;
}

// The taps that reach the inputs `first`, first + stride, ... of a dimension, in the order of the
// outputs that they read.
FN void reaching(const Window& w, const Window& read, int d, int64_t first, AxisTaps& taps) {
  for (int64_t k = w.kernel[d] - 1; k >= 0; --k) {
    const int64_t distance = first + w.padding[d] - k * w.dilation[d];
    if (distance % w.stride[d] == 0) taps.add(distance / w.stride[d] + read.padding[d], k);
  }
}

// A row of each remainder of the columns, rounded up to registers.
template <class T> FN int64_t part_of(const Window& w) {
  return ceil_div(ceil_div(w.in[2], w.stride[2]), kLanes<T>) * kLanes<T>;
}

template <class T>
void grad_input(const Window& w, const T* gy, const T* weight, T* memory, bool fresh, T* gx) {
  const Window read = what_inputs_reach(w);
  const Padded<T> seen(read, gy, memory, fresh);
  T* parts = memory + Padded<T>::elements(read);
  const int64_t step = w.stride[2], part = part_of<T>(w), row = step * part;
  for (int64_t rd = 0; rd < least(w.stride[0], w.in[0]); ++rd) {
    AxisTaps down_d;
    reaching(w, read, 0, rd, down_d);
    const int64_t planes = ceil_div(w.in[0] - rd, w.stride[0]);
    for (int64_t rh = 0; rh < least(w.stride[1], w.in[1]); ++rh) {
      AxisTaps down;
      reaching(w, read, 1, rh, down);
      const int64_t rows = ceil_div(w.in[1] - rh, w.stride[1]);
      T* to = gx + (rd * w.in[1] + rh) * w.in[2];
      const int64_t to_plane = w.stride[0] * w.in[1] * w.in[2], to_row = w.stride[1] * w.in[2];
      for (int64_t rw = 0; rw < least(step, w.in[2]); ++rw) {
        AxisTaps across;
        reaching(w, read, 2, rw, across);
        if (step == 1) {
          sum(seen, down_d, down, across, w, weight, T(0),
              {planes, rows, w.in[2], to_plane, to_row, 1, 1}, to);
        } else {
          sum(seen, down_d, down, across, w, weight, T(0),
              {planes, rows, ceil_div(w.in[2] - rw, step), rows * row, row, 1, 1},
              parts + rw * part);
        }
      }
      for (int64_t i = 0; step > 1 && i < planes * rows; ++i) {
        T* line = to + i / rows * to_plane + i % rows * to_row;
        const T* from = parts + i * row;
        if (step == 2) interleave(from, from + part, w.in[2], line);
        for (int64_t j = 0; step > 2 && j < w.in[2]; ++j)
          line[j] = from[j % step * part + j / step];
      }
    }
  }
}

template <class T> int64_t memory(const Window& w) {
  const int64_t rows = ceil_div(w.in[0], w.stride[0]) * ceil_div(w.in[1], w.stride[1]);
  const int64_t grads = ceil_div(w.out[2], kLanes<T>) * kLanes<T> * w.out[0] * w.out[1];
  return most(Padded<T>::elements(what_inputs_reach(w)) + rows * w.stride[2] * part_of<T>(w),
              Padded<T>::elements(w) + grads);
}

template <class T>
constexpr PlaneLoops<T> plane_loops = {kLanes<T>, memory<T>, forward<T>, grad_input<T>,
                                       plane_grad_weight<T>};

}  // namespace

extern const PlaneKernels plane_kernels = {plane_loops<float>, plane_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
