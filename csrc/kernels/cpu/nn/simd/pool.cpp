#include "kernels/cpu/nn/simd/pool.h"

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> struct Int;
template <> struct Int<float> {
  using type = int32_t;
};
template <> struct Int<double> {
  using type = int64_t;
};

// L elements and, of the same width, L numbers.
template <class T, int L> struct Pack {
  typedef T type __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
  typedef typename Int<T>::type ints __attribute__((vector_size(L * sizeof(T))));
  typedef int64_t indices __attribute__((vector_size(L * sizeof(int64_t)), aligned(8), may_alias));
};

// x[0], x[step], ... for one pack. Nothing is read after the last of them: where every other
// element is taken of two registers, the second begins with the first one's last.
template <class T, int L> FN typename Pack<T, L>::type every(const T* x, int64_t step) {
  using V = typename Pack<T, L>::type;
  if (step == 1) return *reinterpret_cast<const V*>(x);
  if (step == 2) {
    const V a = *reinterpret_cast<const V*>(x), b = *reinterpret_cast<const V*>(x + L - 1);
    if constexpr (L == 16) {
      return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29,
                                     31);
    } else if constexpr (L == 8) {
      return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
    } else if constexpr (L == 4) {
      return __builtin_shufflevector(a, b, 0, 2, 5, 7);
    } else {
      return __builtin_shufflevector(a, b, 0, 3);
    }
  }
  V v;
  for (int i = 0; i < L; ++i) v[i] = x[i * step];
  return v;
}

// The second elements of pairs: a and b are what begins at x and at x + L.
template <class T, int L>
FN typename Pack<T, L>::type odd_ones(typename Pack<T, L>::type a, typename Pack<T, L>::type b,
                                      bool odd) {
  using I = typename Pack<T, L>::ints;
  I even;
  for (int i = 0; i < L; ++i) even[i] = 2 * i;
  return __builtin_shuffle(a, b, odd ? even + 1 : even);
}

template <class T, int L, bool Nan>
FN void maxima_of(const T* x, int32_t first, const int32_t* taps, int64_t many, int64_t step,
                  int64_t n, T* y, int64_t* at) {
  using V = typename Pack<T, L>::type;
  using I = typename Pack<T, L>::ints;
  using Index = typename Pack<T, L>::indices;
  using Number = typename Int<T>::type;
  I steps;
  for (int i = 0; i < L; ++i) steps[i] = static_cast<Number>(i * step);
  // Two packs at a time, as each waits for its comparisons. The last ones overlap those before.
  for (int64_t next = 0; next < n; next += 2 * L) {
    const int64_t i[2] = {next + L <= n ? next : n - L, next + 2 * L <= n ? next + L : n - L};
    V best[2];
    I where[2];
    for (int p = 0; p < 2; ++p) {
      best[p] = V{} - static_cast<T>(__builtin_inf());
      where[p] = I{} + static_cast<Number>(taps[0]);
    }
    auto offer = [&](V v, int p, int32_t tap) {
      I larger = v > best[p];
      if constexpr (Nan) larger |= v != v;
      best[p] = larger ? v : best[p];
      where[p] = larger ? I{} + static_cast<Number>(tap) : where[p];
    };
    for (int64_t t = 0; t < many; ++t) {
      if (step == 2 && t + 1 < many && taps[t + 1] == taps[t] + 1) {  // neighbours, loaded together
        for (int p = 0; p < 2; ++p) {
          const T* from = x + i[p] * step + taps[t];
          const V a = *reinterpret_cast<const V*>(from), b = *reinterpret_cast<const V*>(from + L);
          offer(odd_ones<T, L>(a, b, false), p, taps[t]);
          offer(odd_ones<T, L>(a, b, true), p, taps[t + 1]);
        }
        ++t;
        continue;
      }
      for (int p = 0; p < 2; ++p) offer(every<T, L>(x + i[p] * step + taps[t], step), p, taps[t]);
    }
    for (int p = 0; p < 2; ++p) {
      where[p] += steps + static_cast<Number>(first + i[p] * step);
      *reinterpret_cast<V*>(y + i[p]) = best[p];
      *reinterpret_cast<Index*>(at + i[p]) = __builtin_convertvector(where[p], Index);
    }
  }
}

template <class T, int L>
FN void maxima_by(const T* x, int32_t first, const int32_t* taps, int64_t many, int64_t step,
                  int64_t n, bool nan, T* y, int64_t* at) {
  if (n >= L) {
    if (step == 1 && nan) maxima_of<T, L, true>(x, first, taps, many, 1, n, y, at);
    else if (step == 1) maxima_of<T, L, false>(x, first, taps, many, 1, n, y, at);
    else if (step == 2 && nan) maxima_of<T, L, true>(x, first, taps, many, 2, n, y, at);
    else if (step == 2) maxima_of<T, L, false>(x, first, taps, many, 2, n, y, at);
    else maxima_of<T, L, true>(x, first, taps, many, step, n, y, at);
  } else if constexpr (L * sizeof(T) > 16) {
    maxima_by<T, L / 2>(x, first, taps, many, step, n, nan, y, at);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T best = -static_cast<T>(__builtin_inf());
      int64_t where = taps[0];
      for (int64_t t = 0; t < many; ++t) {
        const T v = x[taps[t] + i * step];
        const bool larger = (v > best) | (v != v);
        best = larger ? v : best;
        where = larger ? taps[t] : where;
      }
      y[i] = best;
      at[i] = first + where + i * step;
    }
  }
}
template <class T>
void maxima(const T* x, int32_t first, const int32_t* taps, int64_t many, int64_t step, int64_t n,
            bool nan, T* y, int64_t* at) {
  maxima_by<T, kBytes / sizeof(T)>(x + first, first, taps, many, step, n, nan, y, at);
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
template <class T, class F> FN void each_row(T* x, const PoolWindow& w, F&& f) {
  for (int64_t d = 0; d < w.depth; ++d) {
    for (int64_t h = 0; h < w.height; ++h) f(x + d * w.depth_step + h * w.height_step);
  }
}

template <class T> bool maximum(const T* x, const PoolWindow& window, T* y, int64_t* at) {
  constexpr int L = (kBytes < 32 ? kBytes : 32) / sizeof(T);
  using V = typename Pack<T, L>::type;
  using I = typename Pack<T, L>::ints;
  using Number = typename Int<T>::type;
  if (window.width < L) {
    T best = *x;
    int64_t where = 0;
    bool nan = false;
    each_row(x, window, [&](const T* row) {
      for (int64_t i = 0; i < window.width; ++i) {
        const bool larger = row[i] > best;
        nan |= row[i] != row[i];
        best = larger ? row[i] : best;
        where = larger ? row + i - x : where;
      }
    });
    if (nan) return false;
    *y = best;
    *at = where;
    return true;
  }
  // In each lane its first largest element, and where the register that held it began.
  V best = *reinterpret_cast<const V*>(x);
  I where{}, nan{};
  auto take = [&](const T* from) {
    const V v = *reinterpret_cast<const V*>(from);
    const I larger = v > best;
    nan |= v != v;
    best = larger ? v : best;
    where = larger ? I{} + static_cast<Number>(from - x) : where;
  };
  each_row(x, window, [&](const T* row) {
    int64_t i = 0;
    for (; i + L <= window.width; i += L) take(row + i);
    if (i < window.width) take(row + window.width - L);
  });
  Number any = nan[0];
  T most = best[0];
  Number place = where[0];
  for (int j = 1; j < L; ++j) {
    const Number here = where[j] + j;
    const bool better = best[j] > most || (best[j] == most && here < place);
    any |= nan[j];
    most = better ? best[j] : most;
    place = better ? here : place;
  }
  if (any) return false;
  *y = x[place];
  *at = place;
  return true;
}

// In the same lanes for every instruction set.
template <class T> T sum(const T* x, const PoolWindow& window) {
  using Eight = typename Pack<T, 8>::type;
  using Four = typename Pack<T, 4>::type;
  Eight eight{};
  Four four{};
  T rest = 0;
  each_row(x, window, [&](const T* row) {
    int64_t i = 0;
    for (; i + 8 <= window.width; i += 8) eight += *reinterpret_cast<const Eight*>(row + i);
    for (; i + 4 <= window.width; i += 4) four += *reinterpret_cast<const Four*>(row + i);
    for (; i < window.width; ++i) rest += row[i];
  });
  for (int j = 0; j < 4; ++j) four[j] += eight[j] + eight[j + 4];
  return rest + ((four[0] + four[2]) + (four[1] + four[3]));
}

template <class T> void add_to_all(T* x, const PoolWindow& window, T share) {
  each_row(x, window, [&](T* row) {
    for (int64_t i = 0; i < window.width; ++i) row[i] += share;
  });
}

template <class T>
constexpr PoolLoops<T> kLoops{maxima<T>, add<T>, maximum<T>, sum<T>, add_to_all<T>};

}  // namespace

extern constinit const PoolKernels pool_kernels = {kLoops<float>, kLoops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
