// The gradient of a plane's weights in strips: the outputs' gradients of some rows and all sums of
// some columns of taps stay in registers, while x is read once.
#include "kernels/cpu/conv/simd/depthwise_weight.h"

#include "kernels/cpu/conv/simd/padded_plane.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kMostColumns = 1024;

// Columns of taps: where each begins in x and, among the taps, in the sums; within a column taps
// are `tap_row` apart there.
struct Columns {
  int64_t count = 0, tap_row = 0;
  int64_t at[kMostColumns], tap[kMostColumns];
};

// sums += the products at `Rows` rows of outputs and `Together` columns of `Height` taps, which are
// summed by themselves first: long sums of few lanes would lose more. x: what the first of them
// reads; g: their gradients, g_row after one another. Outputs from `kept` on, whose gradients are
// 0, do not count unless all do: what lies there may not be finite.
template <class T, int Height, int Together, int Step, int Rows, bool All>
void add_strip(const T* x, int64_t x_row, const int64_t* at, const int64_t* tap, int64_t tap_row,
               const T* g, int64_t g_row, [[maybe_unused]] int64_t kept, T* sums) {
  using V = Vec<T>;
  using I = Vec<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  V grad[Rows], sum[Together][Height];
  [[maybe_unused]] I there;
  if constexpr (!All) there = iota<I>() < broadcast<I>(static_cast<ElementOf<I>>(kept));
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    grad[r] = load(g + r * g_row);
    if constexpr (Rows + Together * (Height + 1) < kRegisters) pin(grad[r]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < Together * Height; ++i) sum[i / Height][i % Height] = V{};
#pragma GCC unroll 64
  for (int i = 0; i < (Rows - 1) * Step + Height; ++i, x += x_row) {
#pragma GCC unroll 4
    for (int k = 0; k < Together; ++k) {
      V seen = load(x + at[k]);
      if constexpr (!All) seen = there ? seen : V{};
      pin(seen);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const int h = i - r * Step;
        if (h >= 0 && h < Height) sum[k][h] += grad[r] * seen;
      }
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < Together; ++k) {
#pragma GCC unroll 8
    for (int h = 0; h < Height; ++h) {
      T* to = sums + (tap[k] + h * tap_row) * kLanes<T>;
      store(to, load(to) + sum[k][h]);
    }
  }
}

template <class T>
using AddStrip = void (*)(const T* x, int64_t x_row, const int64_t* at, const int64_t* tap,
                          int64_t tap_row, const T* g, int64_t g_row, int64_t kept, T* sums);

// As many columns as give sums enough not to wait for one another.
template <int Height>
constexpr int kTogether = Height == 1   ? 4
                          : Height == 3 ? 3
                          : Height == 5 ? 2
                                        : 1;
// The rows of the next strip of those that are left.
FN int64_t rows_of_strip(int64_t left) {
  constexpr int64_t there[] = {14, 8, 4};
  for (const int64_t rows : there) {
    if (rows <= left && (kRegisters == 32 || rows == 4)) return rows;
  }
  return 1;
}

template <class T, int Height, int Together, int Step, bool All> AddStrip<T> of_rows(int64_t rows) {
  if constexpr (kRegisters == 32) {
    if (rows == 14) return add_strip<T, Height, Together, Step, 14, All>;
    if (rows == 8) return add_strip<T, Height, Together, Step, 8, All>;
  }
  if (rows == 4) return add_strip<T, Height, Together, Step, 4, All>;
  return add_strip<T, Height, Together, Step, 1, All>;
}

template <class T, int Height, int Step>
void add_plane(const T* x, int64_t x_row, const Columns& columns, const T* g, int64_t g_row,
               int64_t rows, int64_t cols, T* sums) {
  constexpr int64_t lanes = kLanes<T>, together = kTogether<Height>;
  for (int64_t row = 0, some; row < rows; row += some) {
    some = rows_of_strip(rows - row);
    for (int64_t col = 0; col < cols; col += lanes) {
      const bool all = cols - col >= lanes;
      const AddStrip<T> wide = all ? of_rows<T, Height, together, Step, true>(some)
                                   : of_rows<T, Height, together, Step, false>(some);
      const AddStrip<T> single =
          all ? of_rows<T, Height, 1, Step, true>(some) : of_rows<T, Height, 1, Step, false>(some);
      const T* from = x + row * Step * x_row + col;
      const T* grads = g + row * g_row + col;
      for (int64_t k = 0; k < columns.count;) {
        const bool fits = k + together <= columns.count;
        (fits ? wide : single)(from, x_row, columns.at + k, columns.tap + k, columns.tap_row, grads,
                               g_row, cols - col, sums);
        k += fits ? together : 1;
      }
    }
  }
}

}  // namespace

template <class T>
void plane_grad_weight(const Window& w, const T* x, const T* gy, T* memory, bool fresh, T* sums) {
  const Padded<T> padded(w, x, memory, fresh);
  const int64_t height = w.kernel[1], width = w.kernel[2], step = w.stride[1];
  const bool tall = (height == 3 || height == 5 || height == 7) && w.dilation[1] == 1 && step <= 2;
  Columns columns;
  columns.tap_row = width;
  for (int64_t d = 0; d < w.kernel[0]; ++d) {
    for (int64_t h = 0; h < (tall ? 1 : height); ++h) {
      for (int64_t k = 0; k < width; ++k, ++columns.count) {
        columns.at[columns.count] =
            (d * w.dilation[0] * padded.size[1] + h * w.dilation[1]) * padded.size[2] +
            padded.at(k * w.dilation[2]);
        columns.tap[columns.count] = (d * height + h) * width + k;
      }
    }
  }
  // The gradients with zeros to the right, for rows that end inside of a register.
  const int64_t cols = ceil_div(w.out[2], kLanes<T>) * kLanes<T>, rows = w.out[0] * w.out[1];
  const T* g = gy;
  if (cols != w.out[2]) {
    T* grads = memory + Padded<T>::elements(w);
    for (int64_t i = 0; fresh && i < rows * cols; ++i) grads[i] = 0;
    for (int64_t r = 0; r < rows; ++r) copy_row(gy + r * w.out[2], w.out[2], grads + r * cols);
    g = grads;
  }
  const int64_t x_row = tall ? padded.size[2] : step * padded.size[2];
  for (int64_t d = 0; d < w.out[0]; ++d) {
    const T* from = padded.data + d * w.stride[0] * padded.size[1] * padded.size[2];
    const auto add = [&](auto f) {
      f(from, x_row, columns, g + d * w.out[1] * cols, cols, w.out[1], w.out[2], sums);
    };
    if (!tall) add(add_plane<T, 1, 1>);
    else if (height == 3) add(step == 2 ? add_plane<T, 3, 2> : add_plane<T, 3, 1>);
    else if (height == 5) add(step == 2 ? add_plane<T, 5, 2> : add_plane<T, 5, 1>);
    else add(step == 2 ? add_plane<T, 7, 2> : add_plane<T, 7, 1>);
  }
}

template void plane_grad_weight(const Window&, const float*, const float*, float*, bool, float*);
template void plane_grad_weight(const Window&, const double*, const double*, double*, bool,
                                double*);

}  // namespace taeda::cpu::simd::TAEDA_ISA
