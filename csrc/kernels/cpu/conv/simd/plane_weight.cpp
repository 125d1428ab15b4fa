// The gradient of a plane's weights in strips: the outputs' gradients of some rows and all sums of
// some columns of taps stay in registers, while x is read once.
#include "kernels/cpu/conv/simd/padded_plane.h"
#include "kernels/cpu/conv/simd/planes.h"
#include "kernels/cpu/conv/simd/strips.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kMostWidth = 32;

// sums[column][row], a register each, += the products at `Rows` rows of places, which are summed by
// themselves first: long sums of few lanes would lose more. x: what the first
// of them reads; g: their gradients, g_row after one another. Places from `kept` on, whose
// gradients are 0, are no places unless all are: what lies there may not be finite.
template <class T, int Height, int Columns, int Step, int Rows, bool All>
void add_strip(const T* x, int64_t x_row, const int64_t* at_column, const T* g, int64_t g_row,
               [[maybe_unused]] int64_t kept, T* sums) {
  using V = typename Vector<T>::type;
  constexpr int64_t lanes = kLanes<T>;
  V grad[Rows], sum[Columns][Height];
  [[maybe_unused]] decltype(V{} > V{}) there;
  if constexpr (!All) {
    for (int64_t i = 0; i < lanes; ++i) there[i] = i < kept ? -1 : 0;
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    grad[r] = at(g + r * g_row);
    if constexpr (Rows + Columns * (Height + 1) < kMostRegisters) keep(grad[r]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < Columns * Height; ++i) sum[i / Height][i % Height] = V{};
#pragma GCC unroll 64
  for (int i = 0; i < (Rows - 1) * Step + Height; ++i, x += x_row) {
#pragma GCC unroll 4
    for (int k = 0; k < Columns; ++k) {
      V seen = at(x + at_column[k]);
      if constexpr (!All) seen = there ? seen : V{};
      keep(seen);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const int h = i - r * Step;
        if (h >= 0 && h < Height) sum[k][h] += grad[r] * seen;
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Columns * Height; ++i) at(sums + i * lanes) += sum[i / Height][i % Height];
}

template <class T>
using AddStrip = void (*)(const T* x, int64_t x_row, const int64_t* at_column, const T* g,
                          int64_t g_row, int64_t kept, T* sums);

// As many columns as give sums enough not to wait for one another.
template <int Height> constexpr int kColumns = Height == 3 ? 3 : Height == 5 ? 2 : 1;
constexpr int64_t kMostRows = kBytes == 64 ? 14 : 4;

template <class T, int Height, int Columns, int Step, bool All> AddStrip<T> of_rows(int64_t rows) {
  if constexpr (kMostRows >= 14) {
    if (rows == 14) return add_strip<T, Height, Columns, Step, 14, All>;
    if (rows == 8) return add_strip<T, Height, Columns, Step, 8, All>;
  }
  if (rows == 4) return add_strip<T, Height, Columns, Step, 4, All>;
  if (rows == 2) return add_strip<T, Height, Columns, Step, 2, All>;
  return add_strip<T, Height, Columns, Step, 1, All>;
}
// The rows of the next strip of those that are left.
int64_t rows_of_strip(int64_t left) {
  constexpr int64_t there[] = {14, 8, 4, 2, 1};
  for (const int64_t r : there) {
    if (r <= kMostRows && r <= left) return r;
  }
  return 0;
}

template <class T, int Height, int Step>
void add_plane(const T* x, int64_t x_row, const int64_t* at_column, int64_t width, const T* g,
               int64_t g_row, int64_t rows, int64_t cols, T* sums) {
  constexpr int64_t lanes = kLanes<T>, together = kColumns<Height>;
  for (int64_t row = 0; row < rows;) {
    const int64_t some = rows_of_strip(rows - row);
    for (int64_t col = 0; col < cols; col += lanes) {
      const bool all = cols - col >= lanes;
      const AddStrip<T> wide = all ? of_rows<T, Height, together, Step, true>(some)
                                   : of_rows<T, Height, together, Step, false>(some);
      const AddStrip<T> single =
          all ? of_rows<T, Height, 1, Step, true>(some) : of_rows<T, Height, 1, Step, false>(some);
      const T* from = x + row * Step * x_row + col;
      const T* grads = g + row * g_row + col;
      for (int64_t k = 0; k < width;) {
        const bool fits = k + together <= width;
        (fits ? wide : single)(from, x_row, at_column + k, grads, g_row, cols - col,
                               sums + k * Height * lanes);
        k += fits ? together : 1;
      }
    }
    row += some;
  }
}

}  // namespace

template <class T> bool fits_plane_weight(const Window& w) {
  const int64_t height = w.kernel[1], step = w.stride[1];
  return w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.stride[0] == 1 &&
         w.padding[0] == 0 && (height == 3 || height == 5 || height == 7) &&
         w.kernel[2] <= kMostWidth && w.dilation[1] == 1 && step <= kStep && w.stride[2] == step &&
         w.out[1] >= 4 && 2 * w.out[2] >= kLanes<T>;
}

template <class T>
void plane_grad_weight(const Window& w, const T* x, const T* gy, T* memory, bool fresh, T* sums) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t cols = (w.out[2] + lanes - 1) / lanes * lanes;
  int64_t at_column[kMostWidth], x_row, used;
  const T* seen;
  if (w.stride[2] == 1) {
    const Padded<T> padded(w, x, memory, fresh, lanes);
    seen = padded.data;
    x_row = padded.size[2];
    used = padded.size[1] * x_row;
    for (int64_t k = 0; k < w.kernel[2]; ++k) at_column[k] = k * w.dilation[2];
  } else {
    const Sorted<T> sorted(w, x, memory, fresh, lanes);
    seen = sorted.data;
    x_row = sorted.part * kStep;
    used = sorted.size[1] * x_row;
    for (int64_t k = 0; k < w.kernel[2]; ++k) {
      const int64_t distance = k * w.dilation[2];
      at_column[k] = distance % kStep * sorted.part + distance / kStep;
    }
  }
  const T* g = gy;  // with zeros to the right, for rows that end inside of a register
  if (cols != w.out[2]) {
    T* grads = memory + used + lanes;
    for (int64_t i = 0; fresh && i < w.out[1] * cols; ++i) grads[i] = 0;
    copy_rows(gy, w.out[2], w.out[1], w.out[2], grads, cols);
    g = grads;
  }
  const auto add = [&](auto f) {
    f(seen, x_row, at_column, w.kernel[2], g, cols, w.out[1], w.out[2], sums);
  };
  const bool step = w.stride[1] == kStep;
  switch (w.kernel[1]) {
    case 3: return add(step ? add_plane<T, 3, 2> : add_plane<T, 3, 1>);
    case 5: return add(step ? add_plane<T, 5, 2> : add_plane<T, 5, 1>);
    default: return add(step ? add_plane<T, 7, 2> : add_plane<T, 7, 1>);
  }
}

#define TAEDA_PLANE_WEIGHT(T)                        \
  template bool fits_plane_weight<T>(const Window&); \
  template void plane_grad_weight(const Window&, const T*, const T*, T*, bool, T*);
TAEDA_PLANE_WEIGHT(float)
TAEDA_PLANE_WEIGHT(double)

}  // namespace taeda::cpu::simd::TAEDA_ISA
