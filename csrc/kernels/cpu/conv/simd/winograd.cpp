#include "kernels/cpu/conv/simd/winograd.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using V = Vec<float>;
constexpr int64_t kBlock = kWinogradBlock, kStep = kLanes<float>;

// ---- the transforms ----
// With polynomials as what a convolution multiplies: `input` (transposed) interpolates through some
// points and infinity, `weight` and `output` evaluate there. Two-dimensional tiles are transformed
// along both dimensions.

template <int Size, int Taps> struct Points;

template <> struct Points<2, 3> {  // 0, 1, -1
  static constexpr float input[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}};
  static constexpr float weight[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
  static constexpr float output[2][4] = {{1, 1, 1, 0}, {0, 1, -1, 1}};
};

// 0, a, -a, b, -b. Of the points whose powers are exact, these lose the least: the mean error is
// half of that with 1 and 2.
template <> struct Points<4, 3> {
  static constexpr double a = .75, b = 1.5, a2 = a * a, b2 = b * b, both = a2 * b2, sum = a2 + b2;
  static constexpr double one = 1 / both, fa = 1 / (2 * a2 * (a2 - b2)),
                          fb = 1 / (2 * b2 * (b2 - a2));
  static constexpr float input[6][6] = {{both, 0, -sum, 0, 1, 0},   {0, -a * b2, -b2, a, 1, 0},
                                        {0, a * b2, -b2, -a, 1, 0}, {0, -a2 * b, -a2, b, 1, 0},
                                        {0, a2 * b, -a2, -b, 1, 0}, {0, both, 0, -sum, 0, 1}};
  static constexpr float weight[6][3] = {
      {one, 0, 0},           {fa, fa * a, fa * a2},  {fa, -fa * a, fa * a2},
      {fb, fb * b, fb * b2}, {fb, -fb * b, fb * b2}, {0, 0, 1}};
  static constexpr float output[4][6] = {{1, 1, 1, 1, 1, 0},
                                         {0, a, -a, b, -b, 0},
                                         {0, a2, a2, b2, b2, 0},
                                         {0, a2 * a, -a2 * a, b2 * b, -b2 * b, 1}};
};

// 0, -1, 1/2, 2: again the least error, twice that of plain sums.
template <> struct Points<4, 2> {
  static constexpr float input[5][5] = {{1, -1.5, -1.5, 1, 0},
                                        {0, 1, -2.5, 1, 0},
                                        {0, -2, -1, 1, 0},
                                        {0, -.5, .5, 1, 0},
                                        {0, 1, -1.5, -1.5, 1}};
  static constexpr double ninth = 1 / 9.0;
  static constexpr float weight[5][2] = {
      {1, 0}, {-2 * ninth, 2 * ninth}, {-8 * ninth, -4 * ninth}, {ninth, 2 * ninth}, {0, 1}};
  static constexpr float output[4][5] = {
      {1, 1, 1, 1, 0}, {0, -1, .5, 2, 0}, {0, 1, .25, 4, 0}, {0, -1, .125, 8, 1}};
};

template <auto& Table> struct Matrix {
  static constexpr int rows = sizeof(Table) / sizeof(Table[0]);
  static constexpr int cols = sizeof(Table[0]) / sizeof(Table[0][0]);
  static constexpr float at(int i, int j) { return Table[i][j]; }
};
template <int Size, int Taps> using Input = Matrix<Points<Size, Taps>::input>;
template <int Size, int Taps> using Weight = Matrix<Points<Size, Taps>::weight>;
template <int Size, int Taps> using Output = Matrix<Points<Size, Taps>::output>;
template <class M> struct Transposed {
  static constexpr int rows = M::cols, cols = M::rows;
  static constexpr float at(int i, int j) { return M::at(j, i); }
};

// to[i] = the sum of M(i, j) from[j], without the products with 0. `Any`: one has been taken.
template <class M, int I = 0, int J = 0, bool Any = false> FN void apply(const V* from, V* to) {
  if constexpr (J < M::cols) {
    constexpr float factor = M::at(I, J);
    if constexpr (factor != 0 && Any) to[I] += factor * from[J];
    if constexpr (factor != 0 && !Any) to[I] = factor * from[J];
    apply<M, I, J + 1, Any || factor != 0>(from, to);
  } else if constexpr (I + 1 < M::rows) {
    apply<M, I + 1>(from, to);
  }
}

// put(i, j, .) the elements of M x M', where get(i, j) are those of x.
template <class M, class Load, class Store> FN void transform(Load&& get, Store&& put) {
  V half[M::cols][M::rows];  // M x, by columns
  for (int j = 0; j < M::cols; ++j) {
    V column[M::cols];
#pragma GCC unroll 8
    for (int i = 0; i < M::cols; ++i) column[i] = get(i, j);
    apply<M>(column, half[j]);
  }
  for (int i = 0; i < M::rows; ++i) {
    V row[M::cols], result[M::rows];
#pragma GCC unroll 8
    for (int j = 0; j < M::cols; ++j) row[j] = half[j][i];
    apply<M>(row, result);
#pragma GCC unroll 8
    for (int j = 0; j < M::rows; ++j) put(i, j, result[j]);
  }
}

// Tiles of M::cols pixels each way, `Step` apart, `advance` pixels after one another.
template <class M, int Advance, int Step = 1>
void spread(const TileRow& row, float* to, int64_t step) {
  constexpr int64_t reach = (M::cols - 1) * Step + 1;
  const int64_t line = row.width * kBlock, across = Step * row.dilation;
  const float* first = row.pixels + (row.row - row.first) * line;
  for (int64_t t = 0; t < row.tiles; ++t, to += kBlock) {
    const int64_t column = row.column + t * Advance * row.dilation;
    const bool whole = row.row >= row.first && row.row + reach <= row.last && column >= 0 &&
                       column + (M::cols - 1) * across < row.width;
    for (int64_t part = 0; part < kBlock; part += kStep) {
      auto put = [&](int i, int j, V v) { store(to + (i * M::rows + j) * step + part, v); };
      if (whole) {
        const float* from = first + column * kBlock + part;
        transform<M>(
            [&](int i, int j) { return load(from + i * Step * line + j * across * kBlock); }, put);
        continue;
      }
      auto edge = [&](int i, int j) {
        const int64_t y = row.row + i * Step, x = column + j * across;
        if (y < row.first || y >= row.last || x < 0 || x >= row.width) return V{};
        return load(row.pixels + (y - row.first) * line + x * kBlock + part);
      };
      transform<M>(edge, put);
    }
  }
}

// Of sums of what is 0 where it is finite.
FN bool all_zero(const V& rest) {
  bool zero = true;
  for (int64_t i = 0; i < kStep; ++i) zero &= rest[i] == 0;
  return zero;
}

template <int Size, int Taps>
bool output(const float* sums, int64_t step, const float* bias, const TileRow& row) {
  using M = Output<Size, Taps>;
  V rest{};  // 0 for as long as all is finite
  for (int64_t t = 0; t < row.tiles; ++t, sums += kBlock) {
    const int64_t column = row.column + t * Size * row.dilation;
    for (int64_t part = 0; part < kBlock; part += kStep) {
      const V shift = load(bias + part);
      auto get = [&](int i, int j) { return load(sums + (i * M::cols + j) * step + part); };
      transform<M>(get, [&](int i, int j, V v) {
        v += shift;
        rest += v * 0;
        const int64_t x = column + j * row.dilation;
        if (i < row.last && x < row.width)
          store(row.pixels + (i * row.width + x) * kBlock + part, v);
      });
    }
  }
  return all_zero(rest);
}

template <int Size, int Taps> void weight(const float* weights, float* to, int64_t step) {
  using M = Weight<Size, Taps>;
  for (int64_t part = 0; part < kBlock; part += kStep) {
    transform<M>([&](int i, int j) { return load(weights + (i * Taps + j) * kBlock + part); },
                 [&](int i, int j, V v) { store(to + (i * M::rows + j) * step + part, v); });
  }
}

template <int Size, int Taps> bool weight_gradient(const float* sums, int64_t step, float* to) {
  using M = Transposed<Weight<Size, Taps>>;
  V rest{};
  for (int64_t part = 0; part < kBlock; part += kStep) {
    transform<M>([&](int i, int j) { return load(sums + (i * M::cols + j) * step + part); },
                 [&](int i, int j, V v) {
                   rest += v * 0;
                   store(to + (i * Taps + j) * kBlock + part, v);
                 });
  }
  return all_zero(rest);
}

template <int Size, int Taps, int Stride>
constexpr WinogradTile tile = {Size,
                               Taps,
                               Stride,
                               spread<Input<Size, Taps>, Size * Stride, Stride>,
                               spread<Transposed<Output<Size, Taps>>, Size>,
                               output<Size, Taps>,
                               weight<Size, Taps>,
                               weight_gradient<Size, Taps>};

}  // namespace

extern constinit const WinogradKernels winograd_kernels = {tile<2, 3, 1>, tile<4, 3, 1>,
                                                           tile<4, 2, 2>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
