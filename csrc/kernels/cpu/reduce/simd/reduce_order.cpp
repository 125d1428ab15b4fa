// Largest and smallest elements, where they stand, and the logical any and all.
#include "kernels/cpu/reduce/simd/reduce_impl.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> struct OrderType {
  using type = T;
};
template <> struct OrderType<F16> {
  using type = float;
};
template <> struct OrderType<BF16> {
  using type = float;
};

template <class C> constexpr C lowest() {
  if constexpr (__is_same(C, float) || __is_same(C, double))
    return -static_cast<C>(__builtin_inff());
  else if constexpr (C(-1) > C(0)) return 0;
  else return static_cast<C>(C(1) << (sizeof(C) * 8 - 1));
}
template <class C> constexpr C highest() {
  if constexpr (__is_same(C, float) || __is_same(C, double))
    return static_cast<C>(__builtin_inff());
  else return static_cast<C>(~lowest<C>());
}

// NaN wins over every number. Written so that a NaN accumulator stays.
template <class V> V larger(V a, V b) {
  auto wins = (b > a) | (b != b);
  return wins ? b : a;
}
template <class V> V smaller(V a, V b) {
  auto wins = (b < a) | (b != b);
  return wins ? b : a;
}

template <class Element> struct OrderBase {
  using T = Element;
  using C = typename OrderType<T>::type;
  static constexpr bool kNan = kIsFloat<T>;
  using A = C;
  static constexpr int64_t kFlush = 4096, kVector = kRegister;
};

template <class T> struct Max : OrderBase<T> {
  using C = typename OrderBase<T>::C;
  static C identity() { return lowest<C>(); }
  static C start() { return lowest<C>(); }
  template <class V> static V map(V x) { return x; }
  template <class V> static V op(V a, V b) { return larger<V>(a, b); }
  template <class V>
  static V quick(V a, V b)
    requires(OrderBase<T>::kNan)
  {
    return b > a ? b : a;
  }
  static C merge(C a, C b) { return larger<C>(a, b); }
  static const ReduceKernel& kernel() { return kKernel<Max>; }
};
template <class T> struct Min : OrderBase<T> {
  using C = typename OrderBase<T>::C;
  static C identity() { return highest<C>(); }
  static C start() { return highest<C>(); }
  template <class V> static V map(V x) { return x; }
  template <class V> static V op(V a, V b) { return smaller<V>(a, b); }
  template <class V>
  static V quick(V a, V b)
    requires(OrderBase<T>::kNan)
  {
    return b < a ? b : a;
  }
  static C merge(C a, C b) { return smaller<C>(a, b); }
  static const ReduceKernel& kernel() { return kKernel<Min>; }
};
template <class T> struct AbsMax : Max<T> {
  using C = typename OrderBase<T>::C;
  static C identity() { return 0; }
  static C start() { return 0; }
  template <class V> static V map(V x) { return x < V{} ? -x : x; }
  static const ReduceKernel& kernel() { return kKernel<AbsMax>; }
};
template <class T> struct AbsMin : Min<T> {
  template <class V> static V map(V x) { return x < V{} ? -x : x; }
  static const ReduceKernel& kernel() { return kKernel<AbsMin>; }
};

// ---- places ----

template <bool Largest, class T> struct Extreme {
  using type = Max<T>;
};
template <class T> struct Extreme<false, T> {
  using type = Min<T>;
};

template <class T, bool Largest> struct Arg {
  using C = typename OrderType<T>::type;
  using R = typename Extreme<Largest, T>::type;
  using B = Best<C>;
  // A place within a row or column, as wide as C where that has 4 bytes or more.
  template <size_t Size, class Dummy = void> struct PlaceOf {
    using type = int32_t;
  };
  template <class Dummy> struct PlaceOf<8, Dummy> {
    using type = int64_t;
  };
  using Place = typename PlaceOf<sizeof(C)>::type;
  static constexpr int64_t kSearched = 1024, kBlocks = 32, w = kLanesOf<R>;
  static constexpr int64_t kTogether = 8, kNext = 1024;  // rows, and bytes to ask for ahead
  static constexpr int64_t kGrouped = 1024;              // rows for which groups are worth it

  static bool better(C x, C than) {
    return (Largest ? x > than : x < than) | ((x != x) & (than == than));
  }
  static void offer(B& acc, C value, int64_t index) {
    if (acc.index < 0 || better(value, acc.value)) acc = {value, index};
  }
  // The first place of a value that is there.
  static int64_t find(const T* x, int64_t n, C value) {
    int64_t i = 0;
    if (value != value) {
      while (load<C>(x[i]) == load<C>(x[i])) ++i;
      return i;
    }
    constexpr int64_t line = 128;
    for (; i + line <= n; i += line) {
      Place hits = 0;
      for (int64_t j = 0; j < line; ++j) hits |= static_cast<Place>(load<C>(x[i + j]) == value);
      if (hits) break;
    }
    while (load<C>(x[i]) != value) ++i;
    return i;
  }

  // The places are found with the values, in lanes; false where a NaN may be the best. n: at least
  // four vectors.
  static bool offer_lanes(B& acc, const T* x, int64_t n, int64_t first, bool far) {
    using V = VecFor<R>;
    using P = typename Narrow<Place, w>::type;
    V best[4], sum[4] = {};
    P at[4] = {}, turn{};  // element turn * 4 w + k w + lane
    for (int k = 0; k < 4; ++k) best[k] = load_vec<C, w>(x + k * w);
    auto take = [&](int64_t i, int k) {
      const V v = load_vec<C, w>(x + i);
      const P wins = Largest ? v > best[k] : v < best[k];
      best[k] = wins ? v : best[k];
      at[k] = wins ? turn : at[k];
      if constexpr (kIsFloat<T>) sum[k] += v;
    };
    int64_t i = 0;
    for (; i + 4 * w <= n; i += 4 * w, turn += 1) {
      ask_for<3>(far, reinterpret_cast<const char*>(x + i) + kAhead, 4 * w * sizeof(*x));
      for (int k = 0; k < 4; ++k) take(i + k * w, k);
    }
    for (int k = 0; i + w <= n; i += w, ++k) take(i, k);
    if constexpr (kIsFloat<T>) {
      if (may_have_nan<R>((sum[0] + sum[1]) + (sum[2] + sum[3]))) return false;
    }
    const V some = R::op(R::op(best[0], best[1]), R::op(best[2], best[3]));
    C most = fold_lanes<C, w>(some, [](auto a, auto b) { return R::op(a, b); });
    P place = splat<P>(static_cast<Place>(n)), lane;
    for (int64_t j = 0; j < w; ++j) lane[j] = static_cast<Place>(j);
    for (int k = 0; k < 4; ++k) {
      const P here = at[k] * static_cast<Place>(4 * w) + static_cast<Place>(k * w) + lane;
      place = (best[k] == most) & (here < place) ? here : place;
    }
    auto least = fold_lanes<Place, w>(place, [](auto a, auto b) { return b < a ? b : a; });
    for (; i < n; ++i) {
      const C v = load<C>(x[i]);
      if (v != v) return false;
      if (better(v, most)) {
        most = v;
        least = static_cast<Place>(i);
      }
    }
    offer(acc, load<C>(x[least]), first + least);
    return true;
  }

  // The best of every block first, then its place in the best block: a branch on each block would
  // wait for memory.
  static void offer_row(B& acc, const T* x, int64_t n, int64_t first, bool far) {
    C best[kBlocks];
    auto size = [&](int64_t b) {
      return n - b * kSearched < kSearched ? n - b * kSearched : kSearched;
    };
    const int64_t blocks = (n + kSearched - 1) / kSearched;
    for (int64_t b = 0; b < blocks; ++b) best[b] = row_block<R>(x + b * kSearched, size(b), far);
    int64_t at = 0;
    for (int64_t b = 1; b < blocks; ++b) at = better(best[b], best[at]) ? b : at;
    const int64_t place = at * kSearched;
    offer(acc, best[at], first + place + find(x + place, size(at), best[at]));
  }

  static void rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   int64_t first, bool far, void* accs) {
    auto* x = static_cast<const T*>(data);
    auto* acc = static_cast<B*>(accs);
    if (n == 0) return;
    for (int64_t r = 0; r < rows; ++r, x += row_stride) {
      if (stride == 1 && n >= 64) {
        for (int64_t i = 0; i < n; i += kBlocks * kSearched) {
          const int64_t m = n - i < kBlocks * kSearched ? n - i : kBlocks * kSearched;
          if constexpr (sizeof(C) == sizeof(Place)) {
            if (m >= 4 * w && offer_lanes(acc[r], x + i, m, first + i, far)) continue;
          }
          offer_row(acc[r], x + i, m, first + i, far);
        }
        continue;
      }
      for (int64_t i = 0; i < n; ++i) offer(acc[r], load<C>(x[i * stride]), first + i);
    }
  }

  // Rows r to r + n of columns [c, cols), one by one. Doing some twice does not change anything.
  static void careful(const T* x, int64_t r, int64_t n, int64_t stride, int64_t c, int64_t cols,
                      C* value, Place* place) {
    for (int64_t k = r; k < r + n; ++k) {
      const T* p = x + k * stride;
      const auto here = static_cast<Place>(k);
      for (int64_t i = c; i < cols; ++i) {
        const C v = load<C>(p[i]), old = value[i];
        const bool wins = (Largest ? v > old : v < old) | ((v != v) & (old == old));
        value[i] = wins ? v : old;
        place[i] = wins ? here : place[i];
      }
    }
  }

  // Rows from r on, NaN passed over; true where there may be one.
  static bool quick(const T* x, int64_t r, int64_t stride, int64_t cols, C* value, Place* place) {
    using V = VecFor<R>;
    using P = typename Narrow<Place, w>::type;
    const T* p = x + r * stride;
    V sums{};
    for (int64_t c = 0; c + w <= cols; c += w) {
      V best = load_vec<C, w>(value + c), sum{};
      P at;
      __builtin_memcpy(&at, place + c, sizeof at);
      for (int64_t k = 0; k < kTogether; ++k) {
        __builtin_prefetch(reinterpret_cast<const char*>(p + k * stride + c) + kNext);
        const V v = load_vec<C, w>(p + k * stride + c);
        const P wins = Largest ? v > best : v < best;
        best = wins ? v : best;
        at = wins ? splat<P>(static_cast<Place>(r + k)) : at;
        if constexpr (kIsFloat<T>) sum += v;
      }
      __builtin_memcpy(value + c, &best, sizeof best);
      __builtin_memcpy(place + c, &at, sizeof at);
      if constexpr (kIsFloat<T>) sums += sum;
    }
    if constexpr (kIsFloat<T>) return may_have_nan<R>(sums);
    else return false;
  }

  // Of every kTogether rows the best values, and which rows those are: half the instructions of
  // finding places at once. False where there may be a NaN.
  static bool best_groups(const T* x, int64_t n, int64_t stride, int64_t cols, C* value,
                          Place* group) {
    using V = VecFor<R>;
    using P = typename Narrow<Place, w>::type;
    NanWatch<R> watch;
    for (int64_t r = 0; r + kTogether <= n; r += kTogether, x += kTogether * stride) {
      const P here = splat<P>(static_cast<Place>(r));
      for (int64_t c = 0; c + w <= cols; c += w) {
        auto row = [&](int64_t k) {
          const V v = load_vec<C, w>(x + k * stride + c);
          if constexpr (kIsFloat<T>) watch.see(v);
          return v;
        };
        V most = row(0);
        for (int64_t k = 1; k < kTogether; ++k) most = op_of<R, HasQuick<R>>(row(k), most);
        V best = load_vec<C, w>(value + c);
        P at;
        __builtin_memcpy(&at, group + c, sizeof at);
        const P wins = Largest ? most > best : most < best;
        best = wins ? most : best;
        at = wins ? here : at;
        __builtin_memcpy(value + c, &best, sizeof best);
        __builtin_memcpy(group + c, &at, sizeof at);
      }
    }
    return !watch.has_seen() || !kIsFloat<T>;
  }
  // The first of those rows that has the value. Without branches, which nothing foresees.
  static void places_in_groups(const T* x, int64_t stride, int64_t cols, C* value, Place* group) {
    for (int64_t c = 0; c < cols; ++c) {
      const T* p = x + group[c] * stride + c;
      int64_t k = kTogether - 1;
      for (int64_t r = kTogether - 2; r >= 0; --r) k = load<C>(p[r * stride]) == value[c] ? r : k;
      value[c] = load<C>(p[k * stride]);  // a zero's sign
      group[c] += static_cast<Place>(k);
    }
  }

  static void start(const T* x, int64_t cols, C* value, Place* place) {
    for (int64_t c = 0; c < cols; ++c) {
      value[c] = load<C>(x[c]);
      place[c] = 0;
    }
  }
  // Whole vectors of columns; returns how many rows are done.
  static int64_t whole_cols(const T* x, int64_t n, int64_t stride, int64_t cols, C* value,
                            Place* place) {
    if (n >= kGrouped) {
      if (best_groups(x, n, stride, cols, value, place)) {
        places_in_groups(x, stride, cols, value, place);
        return n / kTogether * kTogether;
      }
      start(x, cols, value, place);
    }
    int64_t r = 1;
    for (; r + kTogether <= n; r += kTogether) {
      if (quick(x, r, stride, cols, value, place))
        careful(x, r, kTogether, stride, 0, cols, value, place);
    }
    return r;
  }

  static void cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t first,
                   void* accs) {
    auto* acc = static_cast<B*>(accs);
    alignas(64) C value[kMaxColumns];
    alignas(64) Place place[kMaxColumns];
    constexpr int64_t most = 1 << 30;
    for (int64_t r0 = 0; r0 < n; r0 += most) {
      const T* x = static_cast<const T*>(data) + r0 * stride;
      const int64_t m = n - r0 < most ? n - r0 : most;
      start(x, cols, value, place);
      int64_t whole = 0;
      if constexpr (sizeof(C) == sizeof(Place)) {
        whole = cols / w * w;
        const int64_t r = whole_cols(x, m, stride, whole, value, place);
        careful(x, r, m - r, stride, 0, whole, value, place);
      }
      careful(x, 1, m - 1, stride, whole, cols, value, place);
      for (int64_t c = 0; c < cols; ++c) offer(acc[c], value[c], first + r0 + place[c]);
    }
  }

  static void init(void* accs, int64_t n) {
    auto* acc = static_cast<B*>(accs);
    for (int64_t i = 0; i < n; ++i) acc[i] = {C(0), -1};
  }
  static void combine(void* accs, const void* others, int64_t n) {
    auto* acc = static_cast<B*>(accs);
    auto* o = static_cast<const B*>(others);
    for (int64_t i = 0; i < n; ++i) {  // without branches, which nothing foresees
      const bool wins = (o[i].index >= 0) & ((acc[i].index < 0) | better(o[i].value, acc[i].value));
      acc[i].value = wins ? o[i].value : acc[i].value;
      acc[i].index = wins ? o[i].index : acc[i].index;
    }
  }
  static const ReduceKernel& kernel() {
    static constexpr ReduceKernel k{rows, cols, init, combine, sizeof(B)};
    return k;
  }
};
template <class T> struct ArgMax : Arg<T, true> {};
template <class T> struct ArgMin : Arg<T, false> {};

// ---- any and all: on the bits, where a float's sign does not count ----

template <class T, bool IsAny> struct Logical {
  static constexpr bool kFloat = kIsFloat<T>;
  template <size_t Size, class Dummy = void> struct Bits {
    using type = uint64_t;
  };
  template <class Dummy> struct Bits<1, Dummy> {
    using type = uint8_t;
  };
  template <class Dummy> struct Bits<2, Dummy> {
    using type = uint16_t;
  };
  template <class Dummy> struct Bits<4, Dummy> {
    using type = uint32_t;
  };
  using U = typename Bits<sizeof(T)>::type;
  static constexpr U kMask = kFloat ? static_cast<U>(U(~U(0)) >> 1) : static_cast<U>(~U(0));

  // 1 where the elements decide: a true one for any, a false one for all.
  static bool decided(const U* x, int64_t n, int64_t stride) {
    if (stride == 1) {
      constexpr int64_t line = 1024;
      for (int64_t i = 0; i < n; i += line) {
        int64_t m = n - i < line ? n - i : line;
        U hit = 0;
        for (int64_t j = 0; j < m; ++j) {
          U v = static_cast<U>(x[i + j] & kMask);
          hit = static_cast<U>(hit | (IsAny ? v : static_cast<U>(v == 0)));
        }
        if (hit) return true;
      }
      return false;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (((x[i * stride] & kMask) != 0) == IsAny) return true;
    }
    return false;
  }
  static void rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   int64_t, bool, void* accs) {
    auto* x = static_cast<const U*>(data);
    auto* acc = static_cast<uint8_t*>(accs);
    for (int64_t r = 0; r < rows; ++r, x += row_stride) {
      if (acc[r] != IsAny && decided(x, n, stride)) acc[r] = IsAny;
    }
  }
  static void cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t, void* accs) {
    auto* x = static_cast<const U*>(data);
    auto* acc = static_cast<uint8_t*>(accs);
    alignas(64) U hit[kMaxColumns];
    for (int64_t c = 0; c < cols; ++c) hit[c] = 0;
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        U v = static_cast<U>(x[r * stride + c] & kMask);
        hit[c] = static_cast<U>(hit[c] | (IsAny ? v : static_cast<U>(v == 0)));
      }
    }
    for (int64_t c = 0; c < cols; ++c) {
      if (hit[c]) acc[c] = IsAny;
    }
  }
  static void init(void* accs, int64_t n) {
    __builtin_memset(accs, !IsAny, static_cast<size_t>(n));
  }
  static void combine(void* accs, const void* others, int64_t n) {
    auto* acc = static_cast<uint8_t*>(accs);
    auto* o = static_cast<const uint8_t*>(others);
    for (int64_t i = 0; i < n; ++i) acc[i] = IsAny ? acc[i] | o[i] : acc[i] & o[i];
  }
  static const ReduceKernel& kernel() {
    static constexpr ReduceKernel k{rows, cols, init, combine, 1};
    return k;
  }
};
template <class T> struct Any : Logical<T, true> {};
template <class T> struct All : Logical<T, false> {};

}  // namespace

const ReduceKernel* find_reduce_order(ReduceOp op, Element e) {
  switch (op) {
    case ReduceOp::Max: return for_reals<Max>(e);
    case ReduceOp::Min: return for_reals<Min>(e);
    case ReduceOp::AbsMax: return for_floats<AbsMax>(e);
    case ReduceOp::AbsMin: return for_floats<AbsMin>(e);
    case ReduceOp::Any: return for_reals<Any>(e);
    case ReduceOp::All: return for_reals<All>(e);
    case ReduceOp::ArgMax: return for_reals<ArgMax>(e);
    case ReduceOp::ArgMin: return for_reals<ArgMin>(e);
    default: return nullptr;
  }
}

}  // namespace taeda::cpu::simd::TAEDA_ISA
