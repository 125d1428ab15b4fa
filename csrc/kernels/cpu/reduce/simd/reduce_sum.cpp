// Sums, products and moments.
#include "kernels/cpu/reduce/simd/reduce_impl.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <bool Float, bool Double> struct SumTypes {
  using C = int64_t;
  using A = int64_t;
};
template <> struct SumTypes<true, false> {
  using C = float;
  using A = double;
};
template <> struct SumTypes<true, true> {
  using C = double;
  using A = double;
};

// Integers wrap around.
template <class V> V plus(V a, V b) {
  if constexpr (__is_same(V, int64_t))
    return static_cast<V>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}
template <class V> V times(V a, V b) {
  if constexpr (__is_same(V, int64_t))
    return static_cast<V>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else return a * b;
}

// Bytes and their squares are summed up in 32 bits, of which a block's elements leave no more.
template <class T, class C> struct SumIn {
  using type = C;
};
template <class C> struct SumIn<uint8_t, C> {
  using type = int32_t;
};
template <class C> struct SumIn<int8_t, C> {
  using type = int32_t;
};

template <class Element> struct SumBase {
  using T = Element;
  using Types = SumTypes<kIsFloat<T>, __is_same(T, double)>;
  using C = typename SumIn<T, typename Types::C>::type;
  using A = typename Types::A;
  static constexpr int64_t kFlush = 64, kVector = 64;
  static C identity() { return 0; }
  static A start() { return 0; }
  template <class V> static V op(V a, V b) { return plus(a, b); }
  static A merge(A a, A b) { return plus(a, b); }
  static A total(typename Narrow<C, kVector / sizeof(C)>::type v) {
    constexpr int64_t lanes = kVector / sizeof(C);
    if constexpr (kIsFloat<T>) return add_lanes<A, C, lanes>(v);
    else return fold_lanes<C, lanes>(v, [](auto a, auto b) { return plus(a, b); });
  }
};

template <class T> struct Sum : SumBase<T> {
  template <class V> static V map(V x) { return x; }
  static const ReduceKernel& kernel() { return kKernel<Sum>; }
};
template <class T> struct NanSum : SumBase<T> {
  template <class V> static V map(V x) { return x == x ? x : V{}; }
  static const ReduceKernel& kernel() { return kKernel<NanSum>; }
};
template <class T> struct SumSquares : SumBase<T> {
  template <class V> static V map(V x) { return times(x, x); }
  static const ReduceKernel& kernel() { return kKernel<SumSquares>; }
};
template <class T> struct SumAbs : SumBase<T> {
  template <class V> static V map(V x) { return x < V{} ? times(x, V{} - 1) : x; }
  static const ReduceKernel& kernel() { return kKernel<SumAbs>; }
};
template <class T> struct CountNonzero : SumBase<T> {
  template <class V> static V map(V x) { return x == V{} ? V{} : V{} + 1; }
  static const ReduceKernel& kernel() { return kKernel<CountNonzero>; }
};

// Of a row of floats, a lane multiplies some 32 in float32; what leaves its range there, or a
// number that is not finite, sends the block through float64 instead.
template <class Element> struct Prod {
  using T = Element;
  using A = typename SumTypes<kIsFloat<T>, true>::A;
  using C = A;
  static constexpr int64_t kFlush = 1024, kVector = 64;
  static C identity() { return 1; }
  static A start() { return 1; }
  template <class V> static V map(V x) { return x; }
  template <class V> static V op(V a, V b) { return times(a, b); }
  static A merge(A a, A b) { return times(a, b); }
  static A total(typename Narrow<C, kVector / sizeof(C)>::type v) {
    return fold_lanes<C, kVector / sizeof(C)>(v, [](auto a, auto b) { return times(a, b); });
  }

  // `before` times the elements of a block.
  static inline A block(A before, const T* x, int64_t n, bool far) {
    constexpr int64_t w = kLanes<float>;
    using U = typename Narrow<uint32_t, w>::type;
    using D = typename Narrow<double, w>::type;
    Vec<float> a[4];
    for (int k = 0; k < 4; ++k) a[k] = load_vec<float>(x + k * w);
    int64_t i = 4 * w;
    for (; i + 4 * w <= n; i += 4 * w) {
      ask_for(far, reinterpret_cast<const char*>(x + i) + kAhead, 4 * w * sizeof(T));
      for (int k = 0; k < 4; ++k) a[k] *= load_vec<float>(x + i + k * w);
    }
    U beside{};  // the sign bit is set where a product is less than normal or not finite
    for (int k = 0; k < 4; ++k) {
      const U over = ((U)a[k] & 0x7fffffff) - 0x00800000;
      beside |= over | (over + 0x01000000);
    }
    const auto any = fold_lanes<uint32_t, w>(beside, [](auto p, auto q) { return p | q; });
    if (any >> 31) return before * row_block<Prod>(x, n);
    const D all = (__builtin_convertvector(a[0], D) * __builtin_convertvector(a[1], D)) *
                  (__builtin_convertvector(a[2], D) * __builtin_convertvector(a[3], D));
    const A product = fold_lanes<A, w>(all, [](auto p, auto q) { return p * q; });
    return i == n ? before * product : before * product * row_block<Prod>(x + i, n - i);
  }

  static void rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   int64_t first, bool far, void* accs) {
    if (stride != 1 || n < 256)
      return reduce_rows<Prod>(data, rows, row_stride, n, stride, first, far, accs);
    auto* x = static_cast<const T*>(data);
    auto* acc = static_cast<A*>(accs);
    for (int64_t r = 0; r < rows; ++r, x += row_stride) {
      A total = acc[r];
      int64_t i = 0;
      for (; i + 64 <= n; i += kBlock)
        total = block(total, x + i, n - i < kBlock ? n - i : kBlock, far);
      if (i < n) total *= row_block<Prod>(x + i, n - i);
      acc[r] = total;
    }
  }

  static const ReduceKernel& kernel() {
    if constexpr (!kIsFloat<T> || __is_same(T, double)) {
      return kKernel<Prod>;
    } else {
      static constexpr ReduceKernel k{rows, reduce_cols<Prod>, init_acc<Prod>, combine_acc<Prod>,
                                      sizeof(A)};
      return k;
    }
  }
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
  using C = typename SumTypes<true, __is_same(T, double)>::C;
  using V = Vec<C>;
  static constexpr int64_t w = kLanes<C>;
  static constexpr int64_t kLine = 2048, kFirst = 64;                      // elements of a row
  static constexpr int64_t kGroup = 256, kFirstGroup = 32, kTogether = 8;  // rows
  static constexpr int64_t kStrip = 1024;  // columns: what belongs to them stays in the first cache

  static void merge(Moments& a, double center, double sum, double squares, double count) {
    const double shift = sum / count, m2 = squares - sum * shift;
    MergeWeights(a.count, count)(a, center + shift, m2 < 0 ? 0 : m2);
  }

  static void row_line(const T* x, int64_t n, bool far, Moments& acc) {
    const int64_t few = n < kFirst ? n : kFirst;
    const C center = static_cast<C>(acc.count > 0 ? acc.mean
                                                  : static_cast<double>(row_block<Sum<T>>(x, few)) /
                                                        static_cast<double>(few));
    const V c = splat<V>(center);
    V s[4] = {}, q[4] = {};
    auto take = [&](int64_t at, int k) {
      const V d = load_vec<C>(x + at) - c;
      s[k] += d;
      q[k] += d * d;
    };
    int64_t i = 0;
    for (; i + 4 * w <= n; i += 4 * w) {
      ask_for<3>(far, reinterpret_cast<const char*>(x + i) + kAhead, 4 * w * sizeof(*x));
      for (int k = 0; k < 4; ++k) take(i + k * w, k);
    }
    for (; i + w <= n; i += w) take(i, 0);
    double sum = add_lanes<double, C, w>((s[0] + s[1]) + (s[2] + s[3]));
    double squares = add_lanes<double, C, w>((q[0] + q[1]) + (q[2] + q[3]));
    for (; i < n; ++i) {
      const double d = static_cast<double>(load<C>(x[i])) - static_cast<double>(center);
      sum += d;
      squares += d * d;
    }
    merge(acc, center, sum, squares, static_cast<double>(n));
  }

  static void strided_line(const T* x, int64_t n, int64_t stride, Moments& acc) {
    const double center = acc.count > 0 ? acc.mean : static_cast<double>(load<C>(x[0]));
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double d = static_cast<double>(load<C>(x[j * stride])) - center;
      sum += d;
      squares += d * d;
    }
    merge(acc, center, sum, squares, static_cast<double>(n));
  }

  static void rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   int64_t, bool far, void* accs) {
    auto* x = static_cast<const T*>(data);
    auto* acc = static_cast<Moments*>(accs);
    for (int64_t r = 0; r < rows; ++r, x += row_stride) {
      for (int64_t i = 0; i < n; i += kLine) {
        const int64_t m = n - i < kLine ? n - i : kLine;
        if (stride == 1) row_line(x + i, m, far, acc[r]);
        else strided_line(x + i * stride, m, stride, acc[r]);
      }
    }
  }

  // sum[c] and squares[c] get element c of each of G rows.
  template <int64_t G>
  static void some_rows(const T* x, int64_t stride, int64_t cols, const C* center, C* sum,
                        C* squares) {
    int64_t c = 0;
    for (; c + w <= cols; c += w) {
      const V mid = load_vec<C>(center + c);
      V s[2] = {}, q[2] = {load_vec<C>(squares + c), V{}};
#pragma GCC unroll 8
      for (int64_t r = 0; r < G; ++r) {
        const T* p = x + r * stride + c;
        const V d = load_vec<C>(p) - mid;
        s[r % 2] += d;
        q[r % 2] += d * d;
      }
      s[0] = load_vec<C>(sum + c) + (s[0] + s[1]);
      q[0] += q[1];
      __builtin_memcpy(sum + c, &s[0], sizeof s[0]);
      __builtin_memcpy(squares + c, &q[0], sizeof q[0]);
    }
    for (; c < cols; ++c) {
      for (int64_t r = 0; r < G; ++r) {
        const C d = load<C>(x[r * stride + c]) - center[c];
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
    alignas(64) C center[kStrip], sum[kStrip], squares[kStrip];
    alignas(64) double mean[kStrip], m2[kStrip];
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
          rows_by_cols<Sum<T>, 1>(x + r * stride, stride, cols, center);
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

}  // namespace

const ReduceKernel* find_reduce_sum(ReduceOp op, Element e) {
  switch (op) {
    case ReduceOp::Sum: return e == Element::Bool ? for_reals<CountNonzero>(e) : for_reals<Sum>(e);
    case ReduceOp::NanSum: return for_floats<NanSum>(e);
    case ReduceOp::SumSquares: return for_floats<SumSquares>(e);
    case ReduceOp::SumAbs: return for_floats<SumAbs>(e);
    case ReduceOp::CountNonzero: return for_reals<CountNonzero>(e);
    case ReduceOp::Prod: return for_reals<Prod>(e);
    case ReduceOp::Moments: return for_floats<MomentsOf>(e);
    default: return nullptr;
  }
}

}  // namespace taeda::cpu::simd::TAEDA_ISA
