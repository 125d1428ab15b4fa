#include "kernels/cpu/nn/simd/pool.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Offsets are counted in integers as wide as the elements, which comparisons select alike.
template <class T> using Offset = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// x[0], x[step], ...; nothing after the last of them is read. Step is 0 where it is not known.
template <int64_t L, int Step, class T> FN Vec<T, L> load_strided(const T* x, int64_t step) {
  if constexpr (Step == 1) {
    return load<L>(x);
  } else if constexpr (Step == 2) {
    return load_every_other<L>(x);
  } else {
    Vec<T, L> v{};
    for (int64_t i = 0; i < L; ++i) v[i] = x[i * step];
    return v;
  }
}

FN void store_offsets(int64_t* to, auto v) {
  constexpr int64_t lanes = kLanesOf<decltype(v)>;
  if constexpr (lanes * 8 > kRegisterBytes) {
    store_offsets(to, low_half(v));
    store_offsets(to + lanes / 2, high_half(v));
  } else {
    store(to, convert<int64_t>(v));
  }
}

// L outputs in a register, two registers at a time, as each waits for its comparisons. The last
// ones overlap those before. Quick: without regard to NaN, which a sum of all elements tells; false
// where there is one.
template <int64_t L, int Step, bool Quick, class T>
FN bool maxima_by(const T* x, const PoolTaps& window, int64_t n, T* y, int64_t* at) {
  using V = Vec<T, L>;
  using I = Vec<Offset<T>, L>;
  const int64_t step = Step != 0 ? Step : window.step, count = window.count;
  const int32_t *taps = window.offsets, *indices = window.indices;
  V sum[2] = {};
  for (int64_t next = 0; next < n; next += 2 * L) {
    const int64_t i[2] = {next + L <= n ? next : n - L, next + 2 * L <= n ? next + L : n - L};
    V best[2];
    I found[2];
    const auto offer = [&](V v, int p, int64_t t) {
      I larger = v > best[p];
      if constexpr (Quick) sum[p] += v;
      else larger |= v != v;
      best[p] = larger ? v : best[p];
      found[p] = larger ? broadcast<I>(indices[t]) : found[p];
    };
    for (int p = 0; p < 2; ++p) {
      best[p] = load_strided<L, Step>(x + i[p] * step + taps[0], step);
      found[p] = broadcast<I>(indices[0]);
      if constexpr (Quick) sum[p] += best[p];
    }
    for (int64_t t = 1; t < count; ++t) {
      if (Step == 2 && t + 1 < count && taps[t + 1] == taps[t] + 1) {
        for (int p = 0; p < 2; ++p) {  // neighbours: loaded together
          const T* from = x + i[p] * step + taps[t];
          const V a = load<L>(from), b = load<L>(from + L);
          offer(even_lanes(a, b), p, t);
          offer(odd_lanes(a, b), p, t + 1);
        }
        ++t;
        continue;
      }
      for (int p = 0; p < 2; ++p)
        offer(load_strided<L, Step>(x + i[p] * step + taps[t], step), p, t);
    }
    for (int p = 0; p < 2; ++p) {
      const auto by = static_cast<Offset<T>>(window.index_step);
      const auto first = static_cast<Offset<T>>(window.start + i[p] * window.index_step);
      store(y + i[p], best[p]);
      store_offsets(at + i[p], found[p] + iota<I>() * by + first);
    }
  }
  if constexpr (!Quick) return true;
  const T total = reduce_add(sum[0] + sum[1]);
  return total == total;
}

template <int64_t L, bool Quick, class T>
FN bool maxima_of(const T* x, const PoolTaps& taps, int64_t n, T* y, int64_t* at) {
  if constexpr (L * sizeof(T) > 16) {
    if (n < L) return maxima_of<L / 2, Quick>(x, taps, n, y, at);
  }
  if (taps.step == 1) return maxima_by<L, 1, Quick>(x, taps, n, y, at);
  if (taps.step == 2) return maxima_by<L, 2, Quick>(x, taps, n, y, at);
  return maxima_by<L, 0, Quick>(x, taps, n, y, at);
}
template <class T> void maxima(const T* x, const PoolTaps& taps, int64_t n, T* y, int64_t* at) {
  constexpr int64_t L = kLanes<T>;
  if (is_float<T> && maxima_of<L, true>(x, taps, n, y, at)) return;
  maxima_of<L, false>(x, taps, n, y, at);
}

template <class T> FN void add_by(const T* x, int64_t step, int64_t n, T* __restrict sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i * step];
}
template <class T> void add(const T* x, int64_t step, int64_t n, T* sum) {
  if (step == 1) add_by(x, 1, n, sum);
  else if (step == 2) add_by(x, 2, n, sum);
  else add_by(x, step, n, sum);
}
template <class T> void spread(const T* x, int64_t step, int64_t n, T* __restrict sum) {
  for (int64_t i = 0; i < n; ++i) sum[i * step] += x[i];
}

template <class T> void divide(const T* x, const T* counts, T factor, int64_t n, T* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (counts[i] * factor);
}

// f(row) for each row of a window, in order.
template <class T, class F> FN void each_row(const T* x, const PoolWindow& w, F&& f) {
  for (int64_t d = 0; d < w.depth; ++d) {
    for (int64_t h = 0; h < w.height; ++h) f(x + d * w.depth_step + h * w.height_step);
  }
}

// Of a window whose rows fill a register; false where there is a NaN. In each lane its first
// largest element, and where the register that held it began. The last register of a row overlaps
// the one before.
template <int64_t L, class T>
FN bool wide_maximum(const T* x, const PoolWindow& window, T* y, int64_t* at) {
  using I = Vec<Offset<T>, L>;
  auto bests = load<L>(x);
  I starts{}, nans{};
  each_row(x, window, [&](const T* row) {
    for (int64_t i = 0; i < window.width; i += L) {
      const T* from = row + (i + L <= window.width ? i : window.width - L);
      const auto v = load<L>(from);
      const I larger = v > bests;
      nans |= v != v;
      bests = larger ? v : bests;
      starts = larger ? broadcast<I>(static_cast<Offset<T>>(from - x)) : starts;
    }
  });
  T best = bests[0];
  int64_t offset = starts[0];
  bool nan = nans[0] != 0;
  for (int64_t j = 1; j < L; ++j) {
    const int64_t here = starts[j] + j;
    const bool better = bests[j] > best || (bests[j] == best && here < offset);
    nan |= nans[j] != 0;
    best = better ? bests[j] : best;
    offset = better ? here : offset;
  }
  *y = x[offset];
  *at = offset;
  return !nan;
}

template <class T> void maximum(const T* x, const PoolWindow& window, T* y, int64_t* at) {
  constexpr int64_t L = (kRegisterBytes < 32 ? kRegisterBytes : 32) / sizeof(T);
  if (window.width >= L && window.width_step == 1 && wide_maximum<L>(x, window, y, at)) return;
  T best = *x;
  int64_t offset = 0;
  each_row(x, window, [&](const T* row) {
    for (int64_t i = 0; i < window.width; ++i, row += window.width_step) {
      const bool larger = (*row > best) | (*row != *row);
      best = larger ? *row : best;
      offset = larger ? row - x : offset;
    }
  });
  *y = best;
  *at = offset;
}

template <class T>
constexpr PoolLoops<T> kLoops{maxima<T>, maximum<T>, add<T>, spread<T>, divide<T>};

}  // namespace

extern constinit const PoolKernels pool_kernels = {kLoops<float>, kLoops<double>, kLoops<int64_t>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
