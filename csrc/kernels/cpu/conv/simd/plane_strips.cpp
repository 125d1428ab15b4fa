// Planes whose rows are long enough to be summed in strips: see strips.h.
#include "kernels/cpu/conv/simd/padded_plane.h"
#include "kernels/cpu/conv/simd/planes.h"
#include "kernels/cpu/conv/simd/strips.h"
#include "kernels/cpu/pointwise/simd/strided_load.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kMostTaps = 1024, kLeastRows = 4;
constexpr int64_t kMostRows = kBytes == 64 ? 16 : kBytes == 32 ? 8 : 4;
constexpr int64_t kMostLanes = 16;

// How many of `rows` go into one strip: as many as make the fewest steps of all.
int64_t rows_together(int64_t rows) {
  int64_t best = kLeastRows, steps = INT64_MAX;
  constexpr int64_t there[] = {16, 14, 8, 7, 4};
  for (const int64_t r : there) {
    if (r > kMostRows || r > rows) continue;
    const int64_t all = (rows + r - 1) / r * (r + 2);
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
  if constexpr (kMostRows >= 8) {
    if (rows == 8) return strip<T, Height, Step, 8>;
    if (rows == 7) return strip<T, Height, Step, 7>;
  }
  return strip<T, Height, Step, 4>;
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

// Outputs y[r * y_row + c], r < rows and c < cols.
template <class T>
void sum(const Taps<T>& taps, const T* x, const T* weight, T* y, int64_t y_row, int64_t rows,
         int64_t cols) {
  constexpr int64_t lanes = kLanes<T>;
  if (taps.height * taps.width == 0) {
    for (int64_t i = 0; i < rows * cols; ++i) y[i / cols * y_row + i % cols] = taps.start;
    return;
  }
  const int64_t together = rows_together(rows), step = taps.step;
  const int64_t most_taps = taps_together(taps.height, step);
  const StripLoop<T> loop = loop_for<T>(most_taps, step, together);
  T sums[kMostRows * kMostLanes], edge[kMostLanes];
  const bool narrow = cols < lanes;
  for (int64_t next = 0; next < rows; next += together) {
    const int64_t row = least(next, rows - together);
    T *to = y + row * y_row, *last = to + (together - 1) * y_row;
    // What is stored beyond a row's end, the next one overwrites.
    const bool beyond = narrow && row + together == rows;
    for (int64_t col = 0; col < cols; col += lanes) {
      const int64_t c = narrow ? 0 : least(col, cols - lanes);
      const T *from = x + row * step * taps.x_row + c, *factors = weight, *before = nullptr;
      int64_t left = taps.height;
      for (int64_t some = most_taps; some < left; some = taps_together(left, step)) {
        loop_for<T>(some, step, together)(taps, from, factors, before, sums, lanes,
                                          sums + (together - 1) * lanes);
        before = sums;
        from += some * taps.x_row;
        factors += some * taps.weight_row;
        left -= some;
      }
      (left == most_taps ? loop : loop_for<T>(left, step, together))(
          taps, from, factors, before, to + c, y_row, beyond ? edge : last + c);
      for (int64_t j = 0; beyond && j < cols; ++j) last[j] = edge[j];
    }
  }
}

bool in_one_plane(const Window& w) {
  return w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.stride[0] == 1 &&
         w.padding[0] == 0 && w.kernel[1] * w.kernel[2] <= kMostTaps;
}
template <class T> bool long_enough(int64_t rows, int64_t cols) {
  return rows >= kLeastRows && 2 * cols >= kLanes<T>;
}

template <class T> bool fits(const Window& w) {
  const int64_t turns = w.dilation[1];
  return in_one_plane(w) && w.stride[1] <= 2 && w.stride[2] <= 2 &&
         (turns == 1 || (w.stride[1] == 1 && w.out[2] >= kLanes<T>)) &&
         long_enough<T>(w.out[1] / turns, w.out[2]);
}

template <class T>
void plane_by(const Window& w, const T* x, const T* weight, int64_t column, int64_t row, T start,
              T* memory, bool fresh, T* y) {
  const int64_t more = w.out[2] < kLanes<T> ? kLanes<T> : 0;
  int64_t at[kMostTaps];
  Taps<T> taps{w.kernel[1], w.kernel[2], w.stride[1], 0, at, column, row, start};
  const T* seen;
  if (w.stride[2] == 1) {
    const Padded<T> padded(w, x, memory, fresh, more);
    seen = padded.data;
    taps.x_row = padded.size[2];
    for (int64_t k = 0; k < taps.width; ++k) at[k] = k * w.dilation[2];
  } else {
    const Sorted<T> sorted(w, x, memory, fresh, more);
    seen = sorted.data;
    taps.x_row = sorted.part * kStep;
    for (int64_t k = 0; k < taps.width; ++k) {
      const int64_t distance = k * w.dilation[2];
      at[k] = distance % kStep * sorted.part + distance / kStep;
    }
  }
  // Rows that read the same rows of x, in turns.
  const int64_t turns = w.dilation[1], x_row = taps.x_row;
  taps.x_row *= turns;
  for (int64_t r = 0; r < turns; ++r) {
    sum(taps, seen + r * x_row, weight, y + r * w.out[2], turns * w.out[2],
        (w.out[1] - r + turns - 1) / turns, w.out[2]);
  }
}

// The taps that reach the inputs `first`, first + 2, ... of a dimension, in the order of what they
// read: as many as `count`, the first of them `last`, each 2 before the other.
struct Reaching {
  int64_t count = 0, last = 0, inputs;
  int64_t from[kMostTaps];  // the output that the first input reads

  Reaching(const Window& w, int d, int64_t first, int64_t lo)
      : inputs((w.in[d] - first + 1) / kStep) {
    for (int64_t k = w.kernel[d] - 1; k >= 0; --k) {
      const int64_t distance = first + w.padding[d] - k * w.dilation[d];
      if (distance % kStep != 0) continue;
      if (count == 0) last = k;
      from[count++] = distance / kStep - lo;
    }
  }
};

}  // namespace

template <class T>
bool strips_plane(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh,
                  T* y) {
  if (!fits<T>(w)) return false;
  plane_by(w, x, weight, 1, w.kernel[2], start, memory, fresh, y);
  return true;
}

template <class T>
bool strips_plane_grad_input(const Window& w, const T* gy, const T* weight, T* memory, bool fresh,
                             T* gx) {
  const int64_t height = w.kernel[1], width = w.kernel[2];
  if (!in_one_plane(w)) return false;
  if (w.stride[1] == 1 && w.stride[2] == 1) {
    // The convolution of gy with the kernel turned around.
    Window back = w;
    for (int d = 0; d < 3; ++d) {
      back.in[d] = w.out[d];
      back.out[d] = w.in[d];
      back.padding[d] = w.dilation[d] * (w.kernel[d] - 1) - w.padding[d];
    }
    if (!fits<T>(back)) return false;
    plane_by(back, gy, weight + height * width - 1, -1, -width, T(0), memory, fresh, gx);
    return true;
  }
  // Dilated kernels would leave out taps, or reach inputs by all of them.
  if (w.stride[1] != kStep || w.stride[2] != kStep || w.dilation[1] != 1 || w.dilation[2] != 1 ||
      !long_enough<T>(w.in[1] / kStep, w.in[2] / kStep))
    return false;
  const Window read = what_inputs_reach(w);
  const int64_t lanes = kLanes<T>;
  const Padded<T> seen(read, gy, memory, fresh, 2 * lanes);
  T* parts = memory + seen.size[1] * seen.size[2] + 2 * lanes;
  for (int64_t rh = 0; rh < kStep; ++rh) {
    const Reaching down(w, 1, rh, -read.padding[1]);
    const int64_t row = ((w.in[2] + 1) / kStep + lanes - 1) / lanes * lanes;
    for (int64_t rw = 0; rw < kStep; ++rw) {
      const Reaching across(w, 2, rw, -read.padding[2]);
      const Taps<T> taps{down.count, across.count,   1,   seen.size[2], across.from,
                         -kStep,     -kStep * width, T(0)};
      sum(taps, seen.data + (down.count ? down.from[0] * seen.size[2] : 0),
          weight + down.last * width + across.last, parts + rw * row, 2 * row, down.inputs, row);
    }
    for (int64_t h = 0; h < down.inputs; ++h) {
      weave_two(parts + 2 * h * row, parts + (2 * h + 1) * row, w.in[2],
                gx + (2 * h + rh) * w.in[2]);
    }
  }
  return true;
}

#define TAEDA_STRIPS(T)                                                           \
  template bool strips_plane(const Window&, const T*, const T*, T, T*, bool, T*); \
  template bool strips_plane_grad_input(const Window&, const T*, const T*, T*, bool, T*);
TAEDA_STRIPS(float)
TAEDA_STRIPS(double)

}  // namespace taeda::cpu::simd::TAEDA_ISA
