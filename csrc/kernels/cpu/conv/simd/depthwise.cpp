// Planes are summed in strips: some rows of outputs, one register wide. All sums and a column of
// the kernel stay in registers, so that what is read of the input is read once for all outputs that
// it reaches.
#include "kernels/cpu/conv/simd/depthwise.h"

#include "kernels/cpu/conv/simd/strided_load.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <int... I> using Ints = std::integer_sequence<int, I...>;

// ---- zeros around a plane ----

template <class T> constexpr int64_t kBeyond = 2 * kLanes<T>;

template <class T> void pad(const PaddedPlane& p, const T* x, bool fresh, T* to) {
  const int64_t total = p.elements() + kBeyond<T>, step = p.step;
  for (int64_t i = 0; fresh && i < total; ++i) to[i] = 0;
  // The columns [left, end) hold those of x from `first` on.
  const int64_t left = least(most(p.before[2], 0), p.size[2]), first = left - p.before[2];
  const int64_t columns = least(p.size[2], p.before[2] + p.in[2]) - left;
  const auto at = [&](int64_t column) { return to + column % step * p.part + column / step; };
  for (int64_t d = -p.before[0]; d < p.size[0] - p.before[0]; ++d) {
    for (int64_t h = -p.before[1]; h < p.size[1] - p.before[1]; ++h, to += p.row()) {
      if (d < 0 || d >= p.in[0] || h < 0 || h >= p.in[1] || columns <= 0) continue;
      const T* from = x + (d * p.in[1] + h) * p.in[2] + first;
      if (step == 1) {
        copy_row(from, columns, to + left);
      } else {
        for (int64_t r = 0; r < least(step, columns); ++r)
          load_strided(from + r, step, (columns - r + step - 1) / step, at(left + r));
      }
    }
  }
}

template <class T>
void join(int64_t rows, int64_t cols, int64_t step, int64_t part, const T* x, T* y) {
  for (int64_t i = 0; i < rows; ++i, x += step * part, y += cols) {
    if (step == 2) interleave(x, x + part, cols, y);
    for (int64_t j = 0; step != 2 && j < cols; ++j) y[j] = x[j % step * part + j / step];
  }
}

// ---- strips ----

constexpr int64_t kMostRows = kRegisters == 32 ? 16 : 8;

// x: what the first output reads; before: a register of sums for each row that there are already,
// or null.
template <class T>
using Strip = void (*)(const PlaneTaps& taps, const T* x, const T* weight, T start, const T* before,
                       T* y, int64_t y_row);

// `Height` rows of taps, with outputs `Step` rows of x after one another.
template <class T, int Height, int Step, int Rows>
void strip(const PlaneTaps& taps, const T* x, const T* weight, T start, const T* before, T* y,
           int64_t y_row) {
  using V = Vec<T>;
  V sum[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
    sum[r] = before ? load(before + r * kLanes<T>) : broadcast<V>(start);
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

// The numbers of rows, and of taps with outputs `step` rows of x apart, that there are strips for.
using Rows = std::conditional_t<kRegisters == 32, Ints<16, 14, 8, 7, 4, 1>, Ints<8, 7, 4, 1>>;
template <class T> struct Strips {
  Strip<T> of[2][8][kMostRows + 1] = {};  // [step - 1][taps][rows]

  constexpr Strips() {
    add<1>(Ints<1, 2, 3, 4, 5, 7>());
    add<2>(Ints<1, 3, 5, 7>());
  }
  template <int Step, int... Height> constexpr void add(Ints<Height...>) {
    (add_height<Step, Height>(Rows()), ...);
  }
  template <int Step, int Height, int... Row> constexpr void add_height(Ints<Row...>) {
    ((of[Step - 1][Height][Row] = strip<T, Height, Step, Row>), ...);
  }
};
template <class T> constexpr Strips<T> strips;

// How many of `rows` go into one strip: as many as make the fewest steps of all.
int64_t rows_together(int64_t rows) {
  int64_t best = 1, steps = rows * 3;
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

// A strip of all rows of taps, some at a time.
template <class T>
FN void sum_strip(const PlaneTaps& taps, int64_t rows, const T* x, const T* weight, T start, T* y,
                  int64_t y_row) {
  T sums[kMostRows * kLanes<T>];
  const T* before = nullptr;
  for (int64_t left = taps.height;;) {
    const int64_t some = taps_together(left, taps.step);
    const Strip<T> loop = strips<T>.of[taps.step - 1][some][rows];
    if (some == left) return loop(taps, x, weight, start, before, y, y_row);
    loop(taps, x, weight, start, before, sums, kLanes<T>);
    before = sums;
    x += some * taps.x_row;
    weight += some * taps.weight_row;
    left -= some;
  }
}

// The outputs y[r * y_row + c], r < rows and c < cols.
template <class T>
void sum_plane(const PlaneTaps& taps, int64_t rows, int64_t cols, const T* x, const T* weight,
               T start, T* y, int64_t y_row) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t together = rows_together(rows);
  const FirstLanes<T> inside(cols);
  for (int64_t next = 0; next < rows; next += together) {
    const int64_t row = least(next, rows - together);
    T* to = y + row * y_row;
    const T* from = x + row * taps.step * taps.x_row;
    if (cols < lanes) {
      T sums[kMostRows * lanes];
      sum_strip(taps, together, from, weight, start, sums, lanes);
      for (int64_t r = 0; r < together; ++r) inside.store(to + r * y_row, load(sums + r * lanes));
    }
    for (int64_t col = 0; cols >= lanes && col < cols; col += lanes) {
      const int64_t c = least(col, cols - lanes);
      sum_strip(taps, together, from + c, weight, start, to + c, y_row);
    }
  }
}

template <class T> void sum(const PlaneTaps& taps, const T* x, const T* weight, T start, T* y) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t rows = taps.cols / lanes, done = rows * lanes, rest = taps.cols - lanes;
  for (int64_t p = 0; p < taps.planes; ++p, x += taps.x_plane, y += taps.y_plane) {
    if (taps.height * taps.columns == 0) {
      for (int64_t r = 0; r < taps.rows; ++r) {
        for (int64_t c = 0; c < taps.cols; ++c) y[r * taps.y_row + c] = start;
      }
    } else if (taps.rows == 1 && taps.height == 1 && rows >= 4) {
      // A single row, of which stretches of a register are taken as rows.
      PlaneTaps folded = taps;
      folded.x_row = lanes;
      sum_plane(folded, rows, lanes, x, weight, start, y, lanes);
      if (done < taps.cols) sum_plane(folded, 1, lanes, x + rest, weight, start, y + rest, lanes);
    } else {
      sum_plane(taps, taps.rows, taps.cols, x, weight, start, y, taps.y_row);
    }
  }
}

// ---- the gradient of the weights ----
// The outputs' gradients of some rows and all sums of some columns of taps stay in registers, while
// x is read once.

// sums += the products at some strips of `Rows` rows of outputs and `Together` columns of `Height`
// taps, which are summed by themselves first: long sums of few lanes would lose more. x: what the
// first of them reads; g: their gradients, g_row after one another. Outputs from `kept` on, whose
// gradients are 0, do not count unless all do: what lies there may not be finite.
template <class T, int Height, int Together, int Step, int Rows, bool All>
void add_strips(int64_t strips, const T* x, int64_t x_row, const int64_t* at, const int64_t* tap,
                int64_t tap_row, const T* g, int64_t g_row, [[maybe_unused]] int64_t kept,
                T* sums) {
  using V = Vec<T>;
  using I = Vec<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  V grad[Rows], sum[Together][Height];
  [[maybe_unused]] I there;
  if constexpr (!All) there = iota<I>() < broadcast<I>(static_cast<ElementOf<I>>(kept));
#pragma GCC unroll 16
  for (int i = 0; i < Together * Height; ++i) sum[i / Height][i % Height] = V{};
  for (; strips > 0; --strips, x += Rows * Step * x_row, g += Rows * g_row) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      grad[r] = load(g + r * g_row);
      if constexpr (Rows + Together * (Height + 1) < kRegisters) pin(grad[r]);
    }
    const T* from = x;
#pragma GCC unroll 64
    for (int i = 0; i < (Rows - 1) * Step + Height; ++i, from += x_row) {
#pragma GCC unroll 4
      for (int k = 0; k < Together; ++k) {
        V seen = load(from + at[k]);
        if constexpr (!All) seen = there ? seen : V{};
        pin(seen);
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
          const int h = i - r * Step;
          if (h >= 0 && h < Height) sum[k][h] += grad[r] * seen;
        }
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

// As many columns as give sums enough not to wait for one another.
template <int Height>
constexpr int kTogether = Height == 1   ? 4
                          : Height == 3 ? 3
                          : Height == 5 ? 2
                                        : 1;

template <class T, int Height, int Step, int Rows>
void add_rows(const PlaneTaps& taps, int64_t strips, const T* x, const T* g, T* sums) {
  constexpr int64_t lanes = kLanes<T>;
  constexpr int together = kTogether<Height>;
  for (int64_t col = 0; col < taps.cols; col += lanes, x += lanes, g += lanes) {
    const auto add = [&](auto f, int64_t k) {
      f(strips, x, taps.x_row, taps.at + k, taps.weight + k, taps.weight_row, g, taps.y_row,
        taps.cols - col, sums);
    };
    const bool all = taps.cols - col >= lanes;
    int64_t k = 0;
    for (; k + together <= taps.columns; k += together) {
      add(all ? add_strips<T, Height, together, Step, Rows, true>
              : add_strips<T, Height, together, Step, Rows, false>,
          k);
    }
    for (; k < taps.columns; ++k) {
      add(all ? add_strips<T, Height, 1, Step, Rows, true>
              : add_strips<T, Height, 1, Step, Rows, false>,
          k);
    }
  }
}

template <class T, int Height, int Step>
void add_plane(const PlaneTaps& taps, const T* x, const T* g, T* sums) {
  constexpr int64_t together = 64;  // rows
  int64_t row = 0;
  const auto add = [&]<int... Rows>(Ints<Rows...>) {
    const auto strips = [&]<int Some>(Ints<Some>) {
      while (row + Some <= taps.rows) {
        const int64_t some = least(taps.rows - row, together) / Some;
        add_rows<T, Height, Step, Some>(taps, some, x + row * Step * taps.x_row,
                                        g + row * taps.y_row, sums);
        row += some * Some;
      }
    };
    (strips(Ints<Rows>()), ...);
  };
  if constexpr (kRegisters == 32) add(Ints<14, 8, 4, 1>());
  else add(Ints<4, 2, 1>());
}

template <class T> void add(const PlaneTaps& taps, const T* x, const T* gy, T* sums) {
  const bool two = taps.step == 2;
  const auto plane = taps.height == 7   ? two ? add_plane<T, 7, 2> : add_plane<T, 7, 1>
                     : taps.height == 5 ? two ? add_plane<T, 5, 2> : add_plane<T, 5, 1>
                     : taps.height == 3 ? two ? add_plane<T, 3, 2> : add_plane<T, 3, 1>
                                        : add_plane<T, 1, 1>;
  for (int64_t d = 0; d < taps.planes; ++d)
    plane(taps, x + d * taps.x_plane, gy + d * taps.y_plane, sums);
}

// ---- channels across the registers ----

// Registers of a block, and results that are summed at once: enough to hide the latency of an FMA.
constexpr int kAcross = kRegisters == 32 ? 2 : 4, kResults = kRegisters == 32 ? 4 : 2;

// `Results` neighbours of a run share what is loaded of a. A single one of few registers is summed
// in two halves, which do not wait for each other.
template <int Results, class T>
FN void sum_results(const PairSums& s, int64_t rd, int64_t rh, const PairRun& run, const T* a,
                    const T* b, const T* start, T* y) {
  constexpr int64_t lanes = kLanes<T>;
  constexpr int apart = Results * kAcross < 4 ? 2 : 1;
  Vec<T> acc[apart][Results][kAcross] = {};
#pragma GCC unroll 4
  for (int r = 0; r < Results; ++r)
    for (int v = 0; v < kAcross; ++v)
      acc[0][r][v] = load((start ? start : y + r * run.y_step) + v * lanes);
  const int64_t b_step = run.b_step;
  for (int64_t i = s.d.first[rd]; i < s.d.first[rd + 1]; ++i) {
    for (int64_t j = s.h.first[rh]; j < s.h.first[rh + 1]; ++j) {
      const T *a_row = a + s.d.a[i] + s.h.a[j], *b_row = b + s.d.b[i] + s.h.b[j];
      const auto add = [&](int64_t k, auto& to) {
        const T *p = a_row + s.w.a[k], *q = b_row + s.w.b[k];
        Vec<T> factor[kAcross];
        for (int v = 0; v < kAcross; ++v) factor[v] = load(p + v * lanes);
#pragma GCC unroll 4
        for (int r = 0; r < Results; ++r)
          for (int v = 0; v < kAcross; ++v)
            to[r][v] += factor[v] * load(q + r * b_step + v * lanes);
      };
      int64_t k = run.first;
      for (; k + apart <= run.last; k += apart)
        for (int u = 0; u < apart; ++u) add(k + u, acc[u]);
      if (k < run.last) add(k, acc[0]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Results; ++r)
    for (int v = 0; v < kAcross; ++v) {
      if constexpr (apart == 2) acc[0][r][v] += acc[1][r][v];
      store(y + r * run.y_step + v * lanes, acc[0][r][v]);
    }
}

template <class T>
void sum_pairs(const PairSums& s, int64_t first, int64_t last, const T* a, const T* b,
               const T* start, T* y) {
  for (int64_t row = first; row < last; ++row) {
    for (const PairRun* run = s.runs; run < s.runs + s.many; ++run) {
      const auto sum = [&]<int Results>(int64_t r) {
        sum_results<Results>(s, row / s.h.results, row % s.h.results, *run, a, b + r * run->b_step,
                             start, y + row * s.y_row + run->y + r * run->y_step);
      };
      int64_t r = 0;
      for (; r + kResults <= run->results; r += kResults) sum.template operator()<kResults>(r);
      switch (run->results - r) {
        case 3: sum.template operator()<3>(r); break;
        case 2: sum.template operator()<2>(r); break;
        case 1: sum.template operator()<1>(r); break;
        default: break;
      }
    }
  }
}

template <class T>
constexpr DepthwiseLoops<T> depthwise_loops = {
    kLanes<T>, kBeyond<T>, pad<T>, sum<T>, add<T>, join<T>, kAcross * kLanes<T>, sum_pairs<T>};

}  // namespace

extern const ForFloats<DepthwiseLoops> depthwise_kernels = {depthwise_loops<float>,
                                                            depthwise_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
