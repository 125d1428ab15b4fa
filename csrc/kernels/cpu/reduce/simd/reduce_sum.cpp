// Sums, products and moments.
#include "kernels/cpu/reduce/simd/reduce_impl.h"
#include "kernels/cpu/reduce/simd/rows.h"
#include "kernels/functors/reduction.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using namespace taeda::TAEDA_ISA;

// Sums of floats are taken in float64 (blocks of them in the elements' own type), those of integers
// in int64. Bytes and their squares are added in 32 bits, which a block of them does not exceed.
template <class T> struct SumTypes {
  using A = std::conditional_t<kIsFloat<T>, double, int64_t>;
  using C = std::conditional_t<kIsFloat<T>, std::conditional_t<same_type<T, double>, double, float>,
                               std::conditional_t<sizeof(T) == 1, int32_t, int64_t>>;
};

// Integers wrap around: V with unsigned lanes.
template <class V>
using Wrapping =
    Vec<std::conditional_t<sizeof(ElementOf<V>) == 4, uint32_t, uint64_t>, kLanesOf<V>>;
template <class V> FN V plus(V a, V b) {
  if constexpr (is_float<ElementOf<V>>) return a + b;
  else return (V)((Wrapping<V>)a + (Wrapping<V>)b);
}
template <class V> FN V times(V a, V b) {
  if constexpr (is_float<ElementOf<V>>) return a * b;
  else return (V)((Wrapping<V>)a * (Wrapping<V>)b);
}
template <class Element> struct SumBase {
  using T = Element;
  using C = typename SumTypes<T>::C;
  using A = typename SumTypes<T>::A;
  static constexpr int64_t kFlush = 64;
  static C identity() { return 0; }
  static A start() { return 0; }
  template <class V> FN static V op(V a, V b) { return plus(a, b); }
  static A merge(A a, A b) { return plus(a, b); }
  FN static A total(Vec<C> v) {
    if constexpr (kIsFloat<T>) return reduce_add<A>(v);
    else return reduce(v, [](auto a, auto b) { return plus(a, b); });
  }
};

// The reduction of a functor, whose values are added up.
template <class F> struct SumOf {
  template <class T> struct Of : SumBase<T> {
    template <class V> FN static V map(V x) { return F::f(x); }
    static const ReduceKernel& kernel() { return kKernel<Of>; }
  };
  static const ReduceKernel* find(Element e) {
    if constexpr ((F::dtypes & kInts) != 0) return for_reals<Of>(e);
    else return for_floats<Of>(e);
  }
};
template <class T> using PlainSum = typename SumOf<Sum>::template Of<T>;

template <class Element> struct Prod {
  using T = Element;
  using A = typename SumTypes<T>::A;
  using C = A;
  static constexpr int64_t kFlush = 1024;
  static C identity() { return 1; }
  static A start() { return 1; }
  template <class V> FN static V map(V x) { return x; }
  template <class V> FN static V op(V a, V b) { return times(a, b); }
  static A merge(A a, A b) { return times(a, b); }
  static const ReduceKernel& kernel() { return kKernel<Prod>; }
};

// ---- moments: of blocks, which are then put together (Chan et al., 1979) ----

// What depends on the numbers of elements alone, which most columns share: it takes divisions.
struct MergeWeights {
  double before, count, total, part, both;
  MergeWeights(double had, double gets)
      : before(had),
        count(gets),
        total(had + gets),
        part(total > 0 ? gets / total : 0),
        both(had * part) {}
  void operator()(double& mean, double& m2, double their_mean, double their_m2) const {
    const double delta = their_mean - mean;
    m2 += their_m2 + delta * delta * both;
    mean += delta * part;
  }
  void operator()(Moments& a, double mean, double m2) const {
    (*this)(a.mean, a.m2, mean, m2);
    a.count = total;
  }
};

// A block is walked once, for the sums of the distances from a center and of their squares. The
// center is the mean of what came before, at first that of a few elements. Wherever it lies, what
// is lost to rounding is little beside the squares that the center's own elements bring in.
template <class T> struct MomentsOf {
  using C = typename SumTypes<T>::C;
  using V = Vec<C>;
  static constexpr int64_t w = kLanes<C>;
  static constexpr int64_t kRow = 2048, kFirst = 64;                       // elements of a row
  static constexpr int64_t kGroup = 256, kFirstGroup = 32, kTogether = 8;  // rows
  static constexpr int64_t kStrip = 1024;  // columns: what belongs to them stays in the first cache

  static void merge(Moments& a, double center, double sum, double squares, double count) {
    const double shift = sum / count, m2 = squares - sum * shift;
    MergeWeights(a.count, count)(a, center + shift, m2 < 0 ? 0 : m2);
  }

  static void row_part(const T* x, int64_t n, Moments& acc) {
    const int64_t few = n < kFirst ? n : kFirst;
    const C center =
        static_cast<C>(acc.count > 0 ? acc.mean
                                     : static_cast<double>(row_block<PlainSum<T>>(x, few)) /
                                           static_cast<double>(few));
    double sums[2];
    sums_over<C, 2>(n, sums, [&](int64_t i, auto lanes, auto* term) {
      term[0] = load_as<C, lanes>(x + i) - center;
      term[1] = term[0] * term[0];
    });
    merge(acc, center, sums[0], sums[1], static_cast<double>(n));
  }

  static void strided_part(const T* x, int64_t n, int64_t stride, Moments& acc) {
    const double center = acc.count > 0 ? acc.mean : static_cast<double>(to<C>(x[0]));
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double d = static_cast<double>(to<C>(x[j * stride])) - center;
      sum += d;
      squares += d * d;
    }
    merge(acc, center, sum, squares, static_cast<double>(n));
  }

  static void rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   int64_t, bool, void* accs) {
    auto* x = static_cast<const T*>(data);
    auto* acc = static_cast<Moments*>(accs);
    for (int64_t r = 0; r < rows; ++r, x += row_stride) {
      for (int64_t i = 0; i < n; i += kRow) {
        const int64_t m = n - i < kRow ? n - i : kRow;
        if (stride == 1) row_part(x + i, m, acc[r]);
        else strided_part(x + i * stride, m, stride, acc[r]);
      }
    }
  }

  // sum[c] and squares[c] get element c of each of G rows.
  template <int64_t G>
  static void some_rows(const T* x, int64_t stride, int64_t cols, const C* center, C* sum,
                        C* squares) {
    int64_t c = 0;
    for (; c + w <= cols; c += w) {
      const V mid = load(center + c);
      V s[2] = {}, q[2] = {load(squares + c), V{}};
#pragma GCC unroll 8
      for (int64_t r = 0; r < G; ++r) {
        const T* p = x + r * stride + c;
        const V d = load_as<C>(p) - mid;
        s[r % 2] += d;
        q[r % 2] += d * d;
      }
      store(sum + c, load(sum + c) + (s[0] + s[1]));
      store(squares + c, q[0] + q[1]);
    }
    for (; c < cols; ++c) {
      for (int64_t r = 0; r < G; ++r) {
        const C d = to<C>(x[r * stride + c]) - center[c];
        sum[c] += d;
        squares[c] += d * d;
      }
    }
  }

  static void cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t, void* accs) {
    auto* acc = static_cast<Moments*>(accs);
    auto* x = static_cast<const T*>(data);
    for (int64_t c = 0; c < cols; c += kStrip)
      strip(x + c, n, stride, cols - c < kStrip ? cols - c : kStrip, acc + c);
  }

  // All columns have as many elements as one another.
  static void strip(const T* data, int64_t n, int64_t stride, int64_t cols, Moments* acc) {
    alignas(kCacheLine) C center[kStrip], sum[kStrip], squares[kStrip];
    alignas(kCacheLine) double mean[kStrip], m2[kStrip];
    double count = acc[0].count;
    for (int64_t c = 0; c < cols; ++c) {
      mean[c] = acc[c].mean;
      m2[c] = acc[c].m2;
    }
    for (int64_t r0 = 0, m; r0 < n; r0 += m) {
      const int64_t group = count > 0 ? kGroup : kFirstGroup;
      m = n - r0 < group ? n - r0 : group;
      const T* x = data + r0 * stride;
      if (count > 0) {
        for (int64_t c = 0; c < cols; ++c) center[c] = static_cast<C>(mean[c]);
      } else {
        const int64_t few = m < kTogether ? m : kTogether;
        for (int64_t c = 0; c < cols; ++c) center[c] = 0;
        for (int64_t r = 0; r < few; ++r)
          add_rows<PlainSum<T>, 1>(x + r * stride, stride, cols, center);
        for (int64_t c = 0; c < cols; ++c) center[c] /= static_cast<C>(few);
      }
      for (int64_t c = 0; c < cols; ++c) sum[c] = squares[c] = 0;
      int64_t r = 0;
      for (; r + kTogether <= m; r += kTogether)
        some_rows<kTogether>(x + r * stride, stride, cols, center, sum, squares);
      for (; r < m; ++r) some_rows<1>(x + r * stride, stride, cols, center, sum, squares);
      const MergeWeights put(count, static_cast<double>(m));
      const double share = 1 / static_cast<double>(m);
      for (int64_t c = 0; c < cols; ++c) {
        const double shift = sum[c] * share, here = squares[c] - sum[c] * shift;
        put(mean[c], m2[c], center[c] + shift, here < 0 ? 0 : here);
      }
      count = put.total;
    }
    for (int64_t c = 0; c < cols; ++c) acc[c] = {mean[c], m2[c], count};
  }

  static void init(void* accs, int64_t n) {
    auto* acc = static_cast<Moments*>(accs);
    for (int64_t i = 0; i < n; ++i) acc[i] = {0, 0, 0};
  }
  static void combine(void* accs, const void* others, int64_t n) {
    auto* acc = static_cast<Moments*>(accs);
    auto* o = static_cast<const Moments*>(others);
    for (int64_t i = 0, end; i < n; i = end) {  // those of as many elements together
      const double had = acc[i].count, gets = o[i].count;
      for (end = i + 1; end < n && acc[end].count == had && o[end].count == gets;) ++end;
      if (gets == 0) continue;
      const MergeWeights put(had, gets);
      for (int64_t k = i; k < end; ++k) put(acc[k], o[k].mean, o[k].m2);
    }
  }
  static const ReduceKernel& kernel() {
    static constexpr ReduceKernel k{rows, cols, init, combine, sizeof(Moments)};
    return k;
  }
};

template <class... F> const ReduceKernel* find_sum(ReduceOp op, Element e, List<F...>) {
  const ReduceKernel* found = nullptr;
  ((found = op == sum_of<F> ? SumOf<F>::find(e) : found), ...);
  return found;
}

const ReduceKernel* find(ReduceOp op, Element e) {
  switch (op) {
    case ReduceOp::Prod: return for_reals<Prod>(e);
    case ReduceOp::Moments: return for_floats<MomentsOf>(e);
    case ReduceOp::Sum:
      if (e == Element::Bool) op = sum_of<CountNonzero>;
      [[fallthrough]];
    default: return find_sum(op, e, SumOps{});
  }
}

template <class T> void sum_rows(const T* x, int64_t n, int64_t stride, int64_t columns, T* y) {
  constexpr int64_t w = kLanes<T>;
  int64_t c = 0;
  for (; c + 4 * w <= columns; c += 4 * w) {
    Vec<T> sum[4] = {};
    for (int64_t r = 0; r < n; ++r) {
      for (int k = 0; k < 4; ++k) sum[k] += load(x + r * stride + c + k * w);
    }
    for (int k = 0; k < 4; ++k) store(y + c + k * w, sum[k]);
  }
  for (; c < columns; c += w) {
    const FirstLanes<T> lanes(columns - c < w ? columns - c : w);
    Vec<T> sum[4] = {};  // four accumulators hide the latency of the additions
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) {
      for (int k = 0; k < 4; ++k) sum[k] += lanes.load(x + (r + k) * stride + c);
    }
    for (; r < n; ++r) sum[0] += lanes.load(x + r * stride + c);
    lanes.store(y + c, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

}  // namespace

extern constinit const FindReduce find_reduce_sum = find;
extern const ForFloats<RowSums> row_sums{sum_rows<float>, sum_rows<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
