// Largest and smallest elements, their indices, and the logical any and all.
#include "kernels/cpu/reduce/simd/reduce_impl.h"
#include "kernels/cpu/reduce/simd/rows.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> using OrderType = std::conditional_t<is_half<T>, float, T>;

template <bool Largest, class C> constexpr C worst() {
  if constexpr (is_float<C>) {
    return static_cast<C>(Largest ? -__builtin_inf() : __builtin_inf());
  } else {
    constexpr C lowest = C(-1) > C(0) ? C(0) : static_cast<C>(C(1) << (sizeof(C) * 8 - 1));
    return Largest ? lowest : static_cast<C>(~lowest);
  }
}
// For numbers and for vectors, whose comparisons are masks.
template <bool Largest, class V> FN auto is_better(V a, V than) {
  return Largest ? a > than : a < than;
}

// The largest or smallest element, or absolute value. NaN wins over every number.
template <class Element, bool Largest, bool Absolute = false> struct Extreme {
  using T = Element;
  using C = OrderType<T>;
  using A = C;
  static constexpr int64_t kFlush = 4096;
  static C identity() { return Absolute && Largest ? C(0) : worst<Largest, C>(); }
  static C start() { return identity(); }
  template <class V> FN static V map(V x) {
    if constexpr (Absolute) return x < V{} ? -x : x;
    else return x;
  }
  template <class V> FN static V op(V a, V b) {  // a NaN in `a` stays
    return is_better<Largest>(b, a) | (b != b) ? b : a;
  }
  template <class V>
  FN static V quick(V a, V b)
    requires(kIsFloat<T>)
  {
    return is_better<Largest>(b, a) ? b : a;
  }
  static A merge(A a, A b) { return op(a, b); }
  static const ReduceKernel& kernel() { return kKernel<Extreme>; }
};
template <class T> using Max = Extreme<T, true>;
template <class T> using Min = Extreme<T, false>;
template <class T> using AbsMax = Extreme<T, true, true>;
template <class T> using AbsMin = Extreme<T, false, true>;

// ---- the index of an extreme element: the first of equal ones ----

template <class T, bool Largest> struct Arg {
  using R = Extreme<T, Largest>;
  using C = typename R::C;
  using Found = ValueIndex<C>;
  // Indices within a row or column in vectors, as wide as C where that has 4 bytes or more.
  using Index = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  using V = Vec<C>;
  static constexpr bool kInVectors = sizeof(C) == sizeof(Index);
  static constexpr int64_t w = kLanes<C>, kGroup = 8;

  template <class X> FN static auto better(X x, X than) {
    return is_better<Largest>(x, than) | ((x != x) & (than == than));
  }
  static void offer(Found& acc, C value, int64_t index) {
    if (acc.index < 0 || better(value, acc.value)) acc = {value, index};
  }

  // The first index of a value that occurs.
  static int64_t find(const T* x, int64_t n, C value) {
    int64_t i = 0;
    if (value != value) {
      while (to<C>(x[i]) == to<C>(x[i])) ++i;
      return i;
    }
    const auto any = [](auto hits) { return reduce(hits, [](auto a, auto b) { return a | b; }); };
    for (; i + 8 * w <= n; i += 8 * w) {
      auto hits = load_as<C>(x + i) == value;
      for (int k = 1; k < 8; ++k) hits |= load_as<C>(x + i + k * w) == value;
      if (any(hits)) break;
    }
    while (i + w <= n && !any(load_as<C>(x + i) == value)) i += w;
    while (to<C>(x[i]) != value) ++i;
    return i;
  }

  // First the best value of every block, then its index in the best block: a branch on each block
  // would wait for memory.
  static void offer_row(Found& acc, const T* x, int64_t n, int64_t first) {
    constexpr int64_t block = 1024;
    auto size = [&](int64_t begin) { return n - begin < block ? n - begin : block; };
    C best{};
    int64_t best_begin = -1;
    for (int64_t begin = 0; begin < n; begin += block) {
      const C value = row_block<R>(x + begin, size(begin));
      const bool wins = (best_begin < 0) | better(value, best);
      best = wins ? value : best;
      best_begin = wins ? begin : best_begin;
    }
    const int64_t index = best_begin + find(x + best_begin, size(best_begin), best);
    offer(acc, to<C>(x[index]), first + index);  // a zero with its sign
  }

  static void rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   int64_t first, bool, void* accs) {
    auto* x = static_cast<const T*>(data);
    auto* acc = static_cast<Found*>(accs);
    if (n == 0) return;
    for (int64_t r = 0; r < rows; ++r, x += row_stride) {
      if (stride == 1 && n >= 64) {
        offer_row(acc[r], x, n, first);
        continue;
      }
      for (int64_t i = 0; i < n; ++i) offer(acc[r], to<C>(x[i * stride]), first + i);
    }
  }

  // Rows r to r + n, one by one.
  static void each_row(const T* x, int64_t r, int64_t n, int64_t stride, int64_t cols, C* value,
                       Index* index) {
    auto offer_at = [&](int64_t row, int64_t c, auto lanes) {
      using I = Vec<Index, lanes>;
      const auto v = load_as<C, lanes>(x + row * stride + c), best = load<lanes>(value + c);
      const auto wins = better(v, best);
      store(value + c, wins ? v : best);
      store(index + c, wins ? broadcast<I>(static_cast<Index>(row)) : load<lanes>(index + c));
    };
    for (; n > 0; ++r, --n) {
      int64_t c = 0;
      if constexpr (kInVectors) {
        for (; c + w <= cols; c += w) offer_at(r, c, Lanes<w>{});
      }
      for (; c < cols; ++c) offer_at(r, c, Lanes<1>{});
    }
  }

  // Whole vectors of columns, kGroup rows at a time: first only in which group the best value lies,
  // which takes half of the instructions, then where in the group. False where there may be a NaN.
  static bool by_groups(const T* x, int64_t n, int64_t stride, int64_t cols, C* value,
                        Index* index) {
    V sum{};
    for (int64_t r = 0; r + kGroup <= n; r += kGroup) {
      const auto here = broadcast_to<Index, w>(static_cast<Index>(r));
      for (int64_t c = 0; c < cols; c += w) {
        const V best = load(value + c);
        const V most = combine_rows<R, kGroup, HasQuick<R>>(x + r * stride + c, stride, sum);
        const auto wins = is_better<Largest>(most, best);
        store(value + c, wins ? most : best);
        store(index + c, wins ? here : load<w>(index + c));
      }
    }
    if (kIsFloat<T> && may_have_nan(sum)) return false;
    for (int64_t c = 0; c < cols; ++c) {
      const T* p = x + index[c] * stride + c;
      int64_t k = kGroup - 1;  // found without branches, which would be mispredicted
      for (int64_t r = kGroup - 2; r >= 0; --r) k = to<C>(p[r * stride]) == value[c] ? r : k;
      value[c] = to<C>(p[k * stride]);  // a zero with its sign
      index[c] += static_cast<Index>(k);
    }
    return true;
  }

  static void start(const T* x, int64_t cols, C* value, Index* index) {
    for (int64_t c = 0; c < cols; ++c) {
      value[c] = to<C>(x[c]);
      index[c] = 0;
    }
  }

  static void cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t first,
                   void* accs) {
    constexpr int64_t grouped = 256;  // rows from which on the search in the groups is little
    constexpr int64_t most = 1 << 30;
    auto* acc = static_cast<Found*>(accs);
    alignas(kCacheLine) C value[kMaxColumns];
    alignas(kCacheLine) Index index[kMaxColumns];
    for (int64_t r0 = 0; r0 < n; r0 += most) {
      const T* x = static_cast<const T*>(data) + r0 * stride;
      const int64_t m = n - r0 < most ? n - r0 : most;
      start(x, cols, value, index);
      int64_t done = 1, whole = 0;  // rows, of whole vectors of columns
      if constexpr (kInVectors) {
        if (m >= grouped) {
          whole = cols / w * w;
          if (by_groups(x, m, stride, whole, value, index)) done = m / kGroup * kGroup;
          else start(x, whole, value, index);
        }
      }
      each_row(x, done, m - done, stride, whole, value, index);
      each_row(x + whole, 1, m - 1, stride, cols - whole, value + whole, index + whole);
      for (int64_t c = 0; c < cols; ++c) offer(acc[c], value[c], first + r0 + index[c]);
    }
  }

  static void init(void* accs, int64_t n) {
    auto* acc = static_cast<Found*>(accs);
    for (int64_t i = 0; i < n; ++i) acc[i] = {C(0), -1};
  }
  static void combine(void* accs, const void* others, int64_t n) {
    auto* acc = static_cast<Found*>(accs);
    auto* o = static_cast<const Found*>(others);
    for (int64_t i = 0; i < n; ++i) {  // without branches, which would be mispredicted
      const bool wins = (o[i].index >= 0) & ((acc[i].index < 0) | better(o[i].value, acc[i].value));
      acc[i].value = wins ? o[i].value : acc[i].value;
      acc[i].index = wins ? o[i].index : acc[i].index;
    }
  }
  static const ReduceKernel& kernel() {
    static constexpr ReduceKernel k{rows, cols, init, combine, sizeof(Found)};
    return k;
  }
};
template <class T> using ArgMax = Arg<T, true>;
template <class T> using ArgMin = Arg<T, false>;

// ---- any and all: on the bits, where a float's sign does not count ----

template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// Elements are compared to zero as integers of their size, so types of one size share a kernel.
template <class Bits, bool IsFloat, bool IsAny> struct Logical {
  using T = Bits;
  using C = Bits;
  using A = uint8_t;
  static constexpr int64_t kFlush = 4096;
  static C identity() { return IsAny ? C(0) : static_cast<C>(~C(0)); }
  static A start() { return !IsAny; }
  template <class V> FN static V map(V x) {
    constexpr T mask = static_cast<T>(T(~T(0)) >> IsFloat);
    return (V)((x & mask) != 0 ? ~V{} : V{});
  }
  template <class V> FN static V op(V a, V b) { return (V)(IsAny ? a | b : a & b); }
  static A merge(A a, A b) { return IsAny ? (a | b) != 0 : (a != 0) & (b != 0); }
  static bool is_final(A a) { return (a != 0) == IsAny; }
  static const ReduceKernel& kernel() { return kKernel<Logical>; }
};
template <class T> using Any = Logical<BitsOf<T>, kIsFloat<T>, true>;
template <class T> using All = Logical<BitsOf<T>, kIsFloat<T>, false>;

const ReduceKernel* find(ReduceOp op, Element e) {
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

}  // namespace

extern constinit const FindReduce find_reduce_order = find;

}  // namespace taeda::cpu::simd::TAEDA_ISA
