// Sums, products and moments.
#include "kernels/cpu/simd/reduce_impl.h"

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

template <class Element> struct SumBase {
  using T = Element;
  using Types = SumTypes<kIsFloat<T>, __is_same(T, double)>;
  using C = typename Types::C;
  using A = typename Types::A;
  static constexpr int64_t kFlush = 64;
  static C identity() { return 0; }
  static A start() { return 0; }
  template <class V> static V op(V a, V b) { return plus(a, b); }
  static A merge(A a, A b) { return plus(a, b); }
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

template <class Element> struct Prod {
  using T = Element;
  using A = typename SumTypes<kIsFloat<T>, true>::A;
  using C = A;
  static constexpr int64_t kFlush = 1024;
  static C identity() { return 1; }
  static A start() { return 1; }
  template <class V> static V map(V x) { return x; }
  template <class V> static V op(V a, V b) { return times(a, b); }
  static A merge(A a, A b) { return times(a, b); }
  static const ReduceKernel& kernel() { return kKernel<Prod>; }
};

// ---- moments: each block's mean first, then the distances from it, then the blocks together (Chan
// et al., 1979) ----

void merge_moments(Moments& a, double mean, double m2, double count) {
  if (count == 0) return;
  double total = a.count + count, delta = mean - a.mean;
  a.m2 += m2 + delta * delta * (a.count * count / total);
  a.mean += delta * (count / total);
  a.count = total;
}

// Sums over a block give the moments: `sum` and `squares` are of distances from `center`.
void merge_block(Moments& a, double center, double sum, double squares, double count) {
  double shift = sum / count;
  double m2 = squares - sum * shift;
  merge_moments(a, center + shift, m2 < 0 ? 0 : m2, count);
}

template <class T> struct MomentsOf {
  using C = typename SumTypes<true, __is_same(T, double)>::C;
  using V = Vec<C>;
  static constexpr int64_t w = kLanes<C>, kLine = 1024, kGroup = 32;

  static void row_line(const T* x, int64_t n, Moments& acc) {
    C center = static_cast<C>(row_block<Sum<T>>(x, n) / static_cast<double>(n));
    V c = splat<C>(center), s0{}, s1{}, q0{}, q1{};
    double sum = 0, squares = 0;
    int64_t i = 0;
    for (; i + 2 * w <= n; i += 2 * w) {
      V d0 = load_vec<C>(x + i) - c, d1 = load_vec<C>(x + i + w) - c;
      s0 += d0;
      s1 += d1;
      q0 += d0 * d0;
      q1 += d1 * d1;
    }
    s0 += s1;
    q0 += q1;
    for (int64_t j = 0; j < w; ++j) {
      sum += s0[j];
      squares += q0[j];
    }
    for (; i < n; ++i) {
      double d = static_cast<double>(load<C>(x[i])) - static_cast<double>(center);
      sum += d;
      squares += d * d;
    }
    merge_block(acc, center, sum, squares, static_cast<double>(n));
  }

  static void rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   int64_t, void* accs) {
    auto* x = static_cast<const T*>(data);
    auto* acc = static_cast<Moments*>(accs);
    for (int64_t r = 0; r < rows; ++r, x += row_stride) {
      for (int64_t i = 0; i < n; i += kLine) {
        int64_t m = n - i < kLine ? n - i : kLine;
        if (stride == 1) {
          row_line(x + i, m, acc[r]);
          continue;
        }
        double sum = 0, squares = 0, center = load<C>(x[i * stride]);
        for (int64_t j = 0; j < m; ++j) sum += static_cast<double>(load<C>(x[(i + j) * stride]));
        center = sum / static_cast<double>(m);
        sum = 0;
        for (int64_t j = 0; j < m; ++j) {
          double d = static_cast<double>(load<C>(x[(i + j) * stride])) - center;
          sum += d;
          squares += d * d;
        }
        merge_block(acc[r], center, sum, squares, static_cast<double>(m));
      }
    }
  }

  static void cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t, void* accs) {
    auto* acc = static_cast<Moments*>(accs);
    alignas(64) C center[kMaxColumns], sum[kMaxColumns], squares[kMaxColumns];
    for (int64_t r0 = 0; r0 < n; r0 += kGroup) {
      int64_t m = n - r0 < kGroup ? n - r0 : kGroup;
      auto* x = static_cast<const T*>(data) + r0 * stride;
      for (int64_t c = 0; c < cols; ++c) center[c] = sum[c] = squares[c] = 0;
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t c = 0; c < cols; ++c) center[c] += load<C>(x[r * stride + c]);
      }
      for (int64_t c = 0; c < cols; ++c) center[c] /= static_cast<C>(m);
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          C d = load<C>(x[r * stride + c]) - center[c];
          sum[c] += d;
          squares[c] += d * d;
        }
      }
      for (int64_t c = 0; c < cols; ++c)
        merge_block(acc[c], center[c], sum[c], squares[c], static_cast<double>(m));
    }
  }

  static void init(void* accs, int64_t n) {
    auto* acc = static_cast<Moments*>(accs);
    for (int64_t i = 0; i < n; ++i) acc[i] = {0, 0, 0};
  }
  static void combine(void* accs, const void* others, int64_t n) {
    auto* acc = static_cast<Moments*>(accs);
    auto* o = static_cast<const Moments*>(others);
    for (int64_t i = 0; i < n; ++i) merge_moments(acc[i], o[i].mean, o[i].m2, o[i].count);
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
