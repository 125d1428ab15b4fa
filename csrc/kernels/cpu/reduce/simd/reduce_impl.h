// The loops that all reductions share, over rows and over columns. Everything lives in the
// instruction set's own namespace.
#pragma once

#include "kernels/cpu/reduce/simd/reduce.h"
#include "kernels/cpu/simd/half.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> constexpr bool kIsFloat = is_float<T> || is_half<T>;

// A reduction is a struct R with
//   T, C, A                     element, computing and accumulator types
//   kFlush                      rows of a matrix that may be reduced in C before they go to A
//   C identity(); A start();
//   V map(V), V op(V, V)        V: C or a Vec of it
//   A merge(A, A)
//   A total(Vec<C>)             optional: a vector's lanes reduced
//   bool is_final(A)            optional: whether no element can change it
// and where NaN wins over every number, V quick(V, V): op for operands that are no NaN, which takes
// half of the instructions. A sum of the same elements, NaN whenever one of them is, tells when op
// must be applied after all. Applied to elements once more, op changes nothing.
template <class R>
concept HasQuick = requires(typename R::C a) { R::quick(a, a); };
template <class R>
concept EndsEarly = requires(typename R::A a) { R::is_final(a); };

template <class R, bool Quick, class V> FN V op_of(V a, V b) {
  if constexpr (Quick) return R::quick(a, b);
  else return R::op(a, b);
}
template <class R> using VecFor = Vec<typename R::C>;
template <class R> constexpr int64_t kLanesFor = kLanes<typename R::C>;

template <class V> FN bool may_have_nan(V sum) {
  const auto total = reduce_add(sum);
  return total != total;
}

constexpr int64_t kBlock = 2048;  // elements of a row that are reduced in C at once
// Bytes to prefetch ahead, into the second cache, since hardware prefetching ends at each page. It
// gains a fifth for bodies of one addition; those that take longer lose by it.
constexpr int64_t kAhead = 4096;

template <class R, bool Quick = HasQuick<R>>
typename R::A row_block(const typename R::T* x, int64_t n, bool far = false) {
  using A = typename R::A;
  using C = typename R::C;
  using V = VecFor<R>;
  constexpr int64_t w = kLanesFor<R>;
  A total = R::start();
  int64_t i = 0;
  if (n >= w) {
    V a[4], sum[4] = {};
    for (V& v : a) v = broadcast<V>(R::identity());
    auto take = [&](int64_t at, int k) {
      const V v = R::map(load_as<C>(x + at));
      a[k] = op_of<R, Quick>(a[k], v);
      if constexpr (Quick) sum[k] += v;
    };
    for (; i + 4 * w <= n; i += 4 * w) {
      if constexpr (!HasQuick<R> && !EndsEarly<R>) {
        if (far) prefetch(reinterpret_cast<const char*>(x + i) + kAhead, 4 * w * sizeof(*x));
      }
      for (int k = 0; k < 4; ++k) take(i + k * w, k);
    }
    for (; i + w <= n; i += w) take(i, 0);
    if constexpr (Quick) {
      if (may_have_nan((sum[0] + sum[1]) + (sum[2] + sum[3]))) return row_block<R, false>(x, n);
    }
    a[0] = op_of<R, Quick>(op_of<R, Quick>(a[0], a[1]), op_of<R, Quick>(a[2], a[3]));
    if constexpr (requires { R::total(a[0]); }) total = R::total(a[0]);
    else total = reduce(a[0], [](auto p, auto q) { return op_of<R, Quick>(p, q); });
  }
  for (; i < n; ++i) total = R::merge(total, static_cast<A>(R::map(to<C>(x[i]))));
  return total;
}

template <class R> typename R::A strided_row(const typename R::T* x, int64_t n, int64_t stride) {
  using A = typename R::A;
  A acc[4] = {R::start(), R::start(), R::start(), R::start()};
  auto element = [&](int64_t i) {
    return static_cast<A>(R::map(to<typename R::C>(x[i * stride])));
  };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) acc[k] = R::merge(acc[k], element(i + k));
  }
  for (; i < n; ++i) acc[0] = R::merge(acc[0], element(i));
  return R::merge(R::merge(acc[0], acc[1]), R::merge(acc[2], acc[3]));
}

template <class R>
void reduce_rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                 int64_t, bool far, void* accs) {
  auto* x = static_cast<const typename R::T*>(data);
  auto* acc = static_cast<typename R::A*>(accs);
  for (int64_t r = 0; r < rows; ++r, x += row_stride) {
    if (stride == 1) {
      for (int64_t i = 0; i < n; i += kBlock) {
        if constexpr (EndsEarly<R>) {
          if (R::is_final(acc[r])) break;
        }
        acc[r] = R::merge(acc[r], row_block<R>(x + i, n - i < kBlock ? n - i : kBlock, far));
      }
    } else {
      acc[r] = R::merge(acc[r], strided_row<R>(x, n, stride));
    }
  }
}

// One vector from each of G rows, combined pairwise; `sum` gets the sum of them.
template <class R, int64_t G, bool Quick>
FN VecFor<R> combine_rows(const typename R::T* x, int64_t stride, VecFor<R>& sum) {
  if constexpr (G == 1) {
    const auto v = R::map(load_as<typename R::C>(x));
    if constexpr (Quick) sum += v;
    return v;
  } else {
    const auto a = combine_rows<R, G / 2, Quick>(x, stride, sum);
    const auto b = combine_rows<R, G / 2, Quick>(x + G / 2 * stride, stride, sum);
    return op_of<R, Quick>(a, b);
  }
}

// part[c] gets element c of each of G rows.
template <class R, int64_t G, bool Quick = HasQuick<R>>
void add_rows(const typename R::T* x, int64_t stride, int64_t cols, typename R::C* part) {
  using C = typename R::C;
  using V = VecFor<R>;
  constexpr int64_t w = kLanesFor<R>;
  V sums{};
  int64_t c = 0;
  for (; c + w <= cols; c += w) {
    V sum{};
    store(part + c, op_of<R, Quick>(load(part + c), combine_rows<R, G, Quick>(x + c, stride, sum)));
    if constexpr (Quick) sums += sum;
  }
  if constexpr (Quick) {
    if (may_have_nan(sums)) add_rows<R, G, false>(x, stride, c, part);
  }
  for (; c < cols; ++c) {
    for (int64_t r = 0; r < G; ++r) part[c] = R::op(part[c], R::map(to<C>(x[r * stride + c])));
  }
}

template <class R>
void reduce_cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t, void* accs) {
  auto* x = static_cast<const typename R::T*>(data);
  auto* acc = static_cast<typename R::A*>(accs);
  alignas(kCacheLine) typename R::C part[kMaxColumns];
  for (int64_t r = 0; r < n;) {
    const int64_t end = n - r < R::kFlush ? n : r + R::kFlush;
    for (int64_t c = 0; c < cols; ++c) part[c] = R::identity();
    for (; r + 8 <= end; r += 8) add_rows<R, 8>(x + r * stride, stride, cols, part);
    for (; r < end; ++r) add_rows<R, 1>(x + r * stride, stride, cols, part);
    for (int64_t c = 0; c < cols; ++c)
      acc[c] = R::merge(acc[c], static_cast<typename R::A>(part[c]));
  }
}

template <class R> void init_acc(void* accs, int64_t n) {
  auto* acc = static_cast<typename R::A*>(accs);
  for (int64_t i = 0; i < n; ++i) acc[i] = R::start();
}
template <class R> void combine_acc(void* accs, const void* others, int64_t n) {
  auto* acc = static_cast<typename R::A*>(accs);
  auto* other = static_cast<const typename R::A*>(others);
  for (int64_t i = 0; i < n; ++i) acc[i] = R::merge(acc[i], other[i]);
}

template <class R>
constexpr ReduceKernel kKernel{reduce_rows<R>, reduce_cols<R>, init_acc<R>, combine_acc<R>,
                               sizeof(typename R::A)};

// The kernel of R<T> for the element type e.
template <template <class> class R> const ReduceKernel* for_floats(Element e) {
  switch (e) {
    case Element::F16: return &R<F16>::kernel();
    case Element::BF16: return &R<BF16>::kernel();
    case Element::F32: return &R<float>::kernel();
    case Element::F64: return &R<double>::kernel();
    default: return nullptr;
  }
}
template <template <class> class R> const ReduceKernel* for_reals(Element e) {
  switch (e) {
    case Element::Bool:
    case Element::U8: return &R<uint8_t>::kernel();
    case Element::I8: return &R<int8_t>::kernel();
    case Element::I16: return &R<int16_t>::kernel();
    case Element::I32: return &R<int32_t>::kernel();
    case Element::I64: return &R<int64_t>::kernel();
    default: return for_floats<R>(e);
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
