#include "kernels/cpu/nn/simd/pool.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Offsets are counted in integers as wide as the elements, which comparisons select alike.
template <class T> using Offset = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class V, int... I> FN V even_lanes(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...);
}
template <class V, int... I> FN V odd_lanes(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I + 1)...);
}
// The even elements of a, followed by the odd ones of b.
template <class V, int... I> FN V every_other(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int lanes = sizeof...(I);
  return __builtin_shufflevector(a, b, (2 * I < lanes ? 2 * I : 2 * I + 1)...);
}

// x[0], x[step], ...; nothing after the last of them is read. Step is 0 where it is not known.
template <int64_t L, int Step, class T> FN Vec<T, L> load_strided(const T* x, int64_t step) {
  if constexpr (Step == 1) {
    return load<L>(x);
  } else if constexpr (Step == 2) {
    return every_other(load<L>(x), load<L>(x + L - 1), std::make_integer_sequence<int, L>{});
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
// ones overlap those before.
template <int64_t L, int Step, class T>
FN void maxima_by(const T* x, int32_t first, const int32_t* taps, int64_t count, int64_t step,
                  int64_t n, T* y, int64_t* at) {
  using V = Vec<T, L>;
  using I = Vec<Offset<T>, L>;
  constexpr auto sequence = std::make_integer_sequence<int, L>{};
  if constexpr (Step != 0) step = Step;
  for (int64_t next = 0; next < n; next += 2 * L) {
    const int64_t i[2] = {next + L <= n ? next : n - L, next + 2 * L <= n ? next + L : n - L};
    V best[2];
    I tap_of[2];
    for (int p = 0; p < 2; ++p) {
      best[p] = broadcast<V>(-static_cast<T>(__builtin_inf()));
      tap_of[p] = broadcast<I>(taps[0]);
    }
    const auto offer = [&](V v, int p, int32_t tap) {
      const I larger = (v > best[p]) | (v != v);
      best[p] = larger ? v : best[p];
      tap_of[p] = larger ? broadcast<I>(tap) : tap_of[p];
    };
    for (int64_t t = 0; t < count; ++t) {
      if (Step == 2 && t + 1 < count &&
          taps[t + 1] == taps[t] + 1) {  // neighbours: loaded together
        for (int p = 0; p < 2; ++p) {
          const T* from = x + i[p] * step + taps[t];
          const V a = load<L>(from), b = load<L>(from + L);
          offer(even_lanes(a, b, sequence), p, taps[t]);
          offer(odd_lanes(a, b, sequence), p, taps[t + 1]);
        }
        ++t;
        continue;
      }
      for (int p = 0; p < 2; ++p)
        offer(load_strided<L, Step>(x + i[p] * step + taps[t], step), p, taps[t]);
    }
    for (int p = 0; p < 2; ++p) {
      const auto start = static_cast<Offset<T>>(first + i[p] * step);
      const I offset = tap_of[p] + iota<I>() * static_cast<Offset<T>>(step) + start;
      store(y + i[p], best[p]);
      store_offsets(at + i[p], offset);
    }
  }
}

template <int64_t L, class T>
FN void maxima_of(const T* x, int32_t first, const int32_t* taps, int64_t count, int64_t step,
                  int64_t n, T* y, int64_t* at) {
  if (n >= L) {
    if (step == 1) maxima_by<L, 1>(x, first, taps, count, step, n, y, at);
    else if (step == 2) maxima_by<L, 2>(x, first, taps, count, step, n, y, at);
    else maxima_by<L, 0>(x, first, taps, count, step, n, y, at);
  } else if constexpr (L * sizeof(T) > 16) {
    maxima_of<L / 2>(x, first, taps, count, step, n, y, at);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T best = -static_cast<T>(__builtin_inf());
      int64_t tap = taps[0];
      for (int64_t t = 0; t < count; ++t) {
        const T v = x[taps[t] + i * step];
        const bool larger = (v > best) | (v != v);
        best = larger ? v : best;
        tap = larger ? taps[t] : tap;
      }
      y[i] = best;
      at[i] = first + tap + i * step;
    }
  }
}
template <class T>
void maxima(const T* x, int32_t first, const int32_t* taps, int64_t count, int64_t step, int64_t n,
            T* y, int64_t* at) {
  maxima_of<kLanes<T>>(x + first, first, taps, count, step, n, y, at);
}

template <class T> FN void add_by(const T* x, int64_t step, int64_t n, T* __restrict sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i * step];
}
template <class T> void add(const T* x, int64_t step, int64_t n, T* sum) {
  if (step == 1) add_by(x, 1, n, sum);
  else if (step == 2) add_by(x, 2, n, sum);
  else add_by(x, step, n, sum);
}

// f(row) for each row of a window, in order.
template <class T, class F> FN void each_row(const T* x, const PoolWindow& w, F&& f) {
  for (int64_t d = 0; d < w.depth; ++d) {
    for (int64_t h = 0; h < w.height; ++h) f(x + d * w.depth_step + h * w.height_step);
  }
}

template <class T> bool maximum(const T* x, const PoolWindow& window, T* y, int64_t* at) {
  constexpr int64_t L = (kRegisterBytes < 32 ? kRegisterBytes : 32) / sizeof(T);
  using V = Vec<T, L>;
  using I = Vec<Offset<T>, L>;
  T best = *x;
  int64_t offset = 0;
  bool nan = false;
  if (window.width < L) {
    each_row(x, window, [&](const T* row) {
      for (int64_t i = 0; i < window.width; ++i) {
        const bool larger = row[i] > best;
        nan |= row[i] != row[i];
        best = larger ? row[i] : best;
        offset = larger ? row + i - x : offset;
      }
    });
  } else {
    // In each lane its first largest element, and where the register that held it began. The last
    // register of a row overlaps the one before.
    V bests = load<L>(x);
    I starts{}, nans{};
    each_row(x, window, [&](const T* row) {
      for (int64_t i = 0; i < window.width; i += L) {
        const T* from = row + (i + L <= window.width ? i : window.width - L);
        const V v = load<L>(from);
        const I larger = v > bests;
        nans |= v != v;
        bests = larger ? v : bests;
        starts = larger ? broadcast<I>(static_cast<Offset<T>>(from - x)) : starts;
      }
    });
    best = bests[0];
    offset = starts[0];
    nan = nans[0] != 0;
    for (int64_t j = 1; j < L; ++j) {
      const int64_t here = starts[j] + j;
      const bool better = bests[j] > best || (bests[j] == best && here < offset);
      nan |= nans[j] != 0;
      best = better ? bests[j] : best;
      offset = better ? here : offset;
    }
  }
  if (nan) return false;
  *y = x[offset];
  *at = offset;
  return true;
}

template <class T> T sum(const T* x, const PoolWindow& window) {
  constexpr int64_t lanes = kLanes<T>;
  const FirstLanes<T> tail(window.width % lanes);
  Vec<T> total{};
  each_row(x, window, [&](const T* row) {
    int64_t i = 0;
    for (; i + lanes <= window.width; i += lanes) total += load(row + i);
    if (i < window.width) total += tail.load(row + i);
  });
  return reduce_add(total);
}

template <class T> double plane_sum(const T* x, int64_t n) {
  constexpr int64_t lanes = kLanes<T>, block = 512;
  double total = 0;
  for (int64_t first = 0; first < n; first += block) {
    const int64_t last = first + block < n ? first + block : n;
    Vec<T> part[4] = {};
    int64_t i = first;
    for (; i + 4 * lanes <= last; i += 4 * lanes) {
      for (int k = 0; k < 4; ++k) part[k] += load(x + i + k * lanes);
    }
    for (; i + lanes <= last; i += lanes) part[0] += load(x + i);
    total += reduce_add<double>((part[0] + part[1]) + (part[2] + part[3]));
    for (; i < last; ++i) total += x[i];
  }
  return total;
}

template <class T>
constexpr PoolLoops<T> kLoops{maxima<T>, add<T>, maximum<T>, sum<T>, plane_sum<T>};

}  // namespace

extern constinit const PoolKernels pool_kernels = {kLoops<float>, kLoops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
