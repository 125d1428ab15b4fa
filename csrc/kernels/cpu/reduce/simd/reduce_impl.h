// Shared by the files of reductions: 64-byte vectors of a computing type, loaded from any element
// type, and the loops over rows and columns. Everything lives in the instruction set's own
// namespace.
#pragma once

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "kernels/cpu/reduce/simd/lanes.h"
#include "kernels/cpu/reduce/simd/reduce.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

template <class C> struct VecOf {
  static constexpr int64_t lanes = 64 / sizeof(C);
  typedef C type __attribute__((vector_size(64)));
};
template <class C> using Vec = typename VecOf<C>::type;
template <class C> constexpr int64_t kLanes = VecOf<C>::lanes;

// float16 to float without branches: the exponent is rebased by a multiplication, which also mends
// subnormals.
template <class U, class S, class F> inline F widen_f16(U h) {
  U magnitude = (h & 0x7fff) << 13, sign = (h & 0x8000) << 16;
  F scaled = (F)magnitude * 0x1p112f;
  U bits = (U)scaled;
  U special = (U)((S)(h & 0x7c00) == 0x7c00);
  bits |= special & 0x7f800000;
  return (F)(bits | sign);
}

template <class C, class T> inline C load(T x) {
  if constexpr (__is_same(T, BF16)) {
    return __builtin_bit_cast(float, uint32_t(x.bits) << 16);
  } else if constexpr (__is_same(T, F16)) {
    uint32_t h = x.bits, bits = (h & 0x7fff) << 13;
    bits = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, bits) * 0x1p112f);
    if ((h & 0x7c00) == 0x7c00) bits |= 0x7f800000;
    return __builtin_bit_cast(float, bits | (h & 0x8000) << 16);
  } else {
    return static_cast<C>(x);
  }
}

// The compiler makes vectors of conversions to twice the width, where the result fits a register,
// and of no others; from float32 to float64 it takes half a register at a time.
template <class W, class T, int64_t N>
inline typename Narrow<W, N>::type twice(typename Narrow<T, N>::type v) {
  typename Narrow<W, N>::type wide;
  if constexpr (N * sizeof(W) <= kRegister) {
    wide = __builtin_convertvector(v, typename Narrow<W, N>::type);
  } else {
    typename Narrow<T, N / 2>::type half[2];
    __builtin_memcpy(&half, &v, sizeof v);
    const typename Narrow<W, N / 2>::type parts[2] = {twice<W, T, N / 2>(half[0]),
                                                      twice<W, T, N / 2>(half[1])};
    __builtin_memcpy(&wide, &parts, sizeof wide);
  }
  return wide;
}
template <class T> struct Twice {
  using type = int64_t;
};
template <> struct Twice<int8_t> {
  using type = int16_t;
};
template <> struct Twice<uint8_t> {
  using type = int16_t;
};
template <> struct Twice<int16_t> {
  using type = int32_t;
};
template <class C, class T, int64_t N>
inline typename Narrow<C, N>::type widened(typename Narrow<T, N>::type v) {
#ifdef __AVX512F__
  if constexpr (__is_same(T, float) && __is_same(C, double) && N == 8)
    return (typename Narrow<double, 8>::type)_mm512_maskz_cvtps_pd(0xff, (__m256)v);
#endif
  if constexpr (__is_same(C, float) || __is_same(C, double)) {
    return __builtin_convertvector(v, typename Narrow<C, N>::type);
  } else {
    using W = typename Twice<T>::type;
    if constexpr (__is_same(W, C)) return twice<C, T, N>(v);
    else return widened<C, W, N>(twice<W, T, N>(v));
  }
}

template <class C, int64_t n = kLanes<C>, class T>
inline typename Narrow<C, n>::type load_vec(const T* x) {
  using V = typename Narrow<C, n>::type;
  if constexpr (__is_same(T, C)) {
    V v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
  } else if constexpr (__is_same(T, F16) || __is_same(T, BF16)) {
    using U32 = typename Narrow<uint32_t, n>::type;
    using F32 = typename Narrow<float, n>::type;
#ifdef __AVX512F__
    if constexpr (__is_same(T, F16) && __is_same(C, float) && n == 16)
      return (F32)_mm512_maskz_cvtph_ps(0xffff,
                                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
#endif
#ifdef __F16C__
    if constexpr (__is_same(T, F16) && n == 8) {
      const F32 f = (F32)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
      if constexpr (__is_same(C, float)) return f;
      else return widened<C, float, n>(f);
    }
#endif
    typename Narrow<uint16_t, n>::type h;
    __builtin_memcpy(&h, x, sizeof h);
    U32 w = twice<uint32_t, uint16_t, n>(h);
    F32 f;
    if constexpr (__is_same(T, BF16)) f = (F32)(w << 16);
    else f = widen_f16<U32, typename Narrow<int32_t, n>::type, F32>(w);
    if constexpr (__is_same(C, float)) return f;
    else return widened<C, float, n>(f);
  } else {
    typename Narrow<T, n>::type v;
    __builtin_memcpy(&v, x, sizeof v);
    return widened<C, T, n>(v);
  }
}

template <class V, class C> inline V splat(C v) { return v - V{}; }

// A reduction is a struct R with
//   T, C, A                     element, computing and accumulator types
//   kFlush                      rows (or vectors) that may be summed in C before they go to A
//   C identity(); A start();
//   kVector                     bytes of the vectors V of C that it takes
//   V map(V), V op(V, V)        for C too
//   A merge(A, A)
//   A total(V)                  optional: a vector's lanes put together
// and where NaN wins over every number, V quick(V, V): op for operands that are no NaN, of which
// the first stays where one is. A sum of the same elements, NaN whenever one of them is, tells when
// op must be applied after all. Applied to elements once more, op changes nothing.
template <class R>
concept HasQuick = requires(typename R::C a) { R::quick(a, a); };

template <class R, bool Quick, class V> inline V op_of(V a, V b) {
  if constexpr (Quick) return R::quick(a, b);
  else return R::op(a, b);
}
template <class R> constexpr int64_t kLanesOf = R::kVector / sizeof(typename R::C);
template <class R> using VecFor = typename Narrow<typename R::C, kLanesOf<R>>::type;

template <class R> inline bool may_have_nan(VecFor<R> sum) {
  using C = typename R::C;
  const C total = add_lanes<C, C, kLanesOf<R>>(sum);
  return total != total;
}

// Tells whether R::quick has met a NaN since the watch began. Asked once, when results are stored.
#ifdef __AVX512F__
// The processor keeps a flag of that, which costs nothing but to look.
template <class R> class NanWatch {
 public:
  NanWatch() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ & ~kInvalid);
    asm volatile("" ::: "memory");
  }
  void see(const VecFor<R>&) {}
  bool has_seen() {
    asm volatile("" ::: "memory");
    const unsigned now = _mm_getcsr();
    _mm_setcsr(now | (before_ & kInvalid));
    return (now & kInvalid) != 0;
  }

 private:
  static constexpr unsigned kInvalid = 1;
  unsigned before_;
};
#else
template <class R> class NanWatch {
 public:
  void see(const VecFor<R>& v) { sum_ += v; }
  bool has_seen() const { return may_have_nan<R>(sum_); }

 private:
  VecFor<R> sum_{};
};
#endif

constexpr int64_t kBlock = 2048;  // elements of a row that are reduced in C at once
constexpr int64_t kAhead = 8192;  // bytes: the machine's own prefetching stops at every page

// Asks for `bytes` at p, where they lie beyond the caches; within them, asking costs a tenth. To be
// inlined: a call would take all registers. Nearness: 3 is the first cache, 2 the second, which is
// enough where a few instructions follow.
template <int Nearness = 2>
[[gnu::always_inline]] inline void ask_for(bool far, const void* p, int64_t bytes) {
  if (!far) return;
  for (int64_t line = 0; line < bytes; line += 64)
    __builtin_prefetch(static_cast<const char*>(p) + line, 0, Nearness);
}

template <class R, bool Quick = HasQuick<R>>
typename R::A row_block(const typename R::T* x, int64_t n, bool far = false) {
  using C = typename R::C;
  constexpr int64_t w = kLanesOf<R>;
  using V = VecFor<R>;
  typename R::A total = R::start();
  int64_t i = 0;
  if (n >= w) {
    V a[4], sum[4] = {};
    for (V& v : a) v = splat<V>(R::identity());
    auto take = [&](int64_t at, int k) {
      const V v = R::map(load_vec<C, w>(x + at));
      if constexpr (Quick) {
        a[k] = R::quick(a[k], v);
        sum[k] += v;
      } else {
        a[k] = R::op(a[k], v);
      }
    };
    for (; i + 4 * w <= n; i += 4 * w) {
      ask_for(far, reinterpret_cast<const char*>(x + i) + kAhead, 4 * w * sizeof(*x));
      take(i, 0);
      take(i + w, 1);
      take(i + 2 * w, 2);
      take(i + 3 * w, 3);
    }
    for (; i + w <= n; i += w) take(i, 0);
    if constexpr (Quick) {
      if (may_have_nan<R>((sum[0] + sum[1]) + (sum[2] + sum[3]))) return row_block<R, false>(x, n);
    }
    a[0] = op_of<R, Quick>(op_of<R, Quick>(a[0], a[1]), op_of<R, Quick>(a[2], a[3]));
    if constexpr (Quick) {
      total =
          R::merge(total, fold_lanes<C, w>(a[0], [](auto p, auto q) { return R::quick(p, q); }));
    } else if constexpr (requires { R::total(a[0]); }) {
      total = R::merge(total, R::total(a[0]));
    } else {
      for (int64_t j = 0; j < w; ++j) total = R::merge(total, static_cast<typename R::A>(a[0][j]));
    }
  }
  for (; i < n; ++i) total = R::merge(total, static_cast<typename R::A>(R::map(load<C>(x[i]))));
  return total;
}

template <class R> typename R::A strided_row(const typename R::T* x, int64_t n, int64_t stride) {
  using A = typename R::A;
  using C = typename R::C;
  A a0 = R::start(), a1 = a0, a2 = a0, a3 = a0;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a0 = R::merge(a0, static_cast<A>(R::map(load<C>(x[i * stride]))));
    a1 = R::merge(a1, static_cast<A>(R::map(load<C>(x[(i + 1) * stride]))));
    a2 = R::merge(a2, static_cast<A>(R::map(load<C>(x[(i + 2) * stride]))));
    a3 = R::merge(a3, static_cast<A>(R::map(load<C>(x[(i + 3) * stride]))));
  }
  for (; i < n; ++i) a0 = R::merge(a0, static_cast<A>(R::map(load<C>(x[i * stride]))));
  return R::merge(R::merge(a0, a1), R::merge(a2, a3));
}

template <class R>
void reduce_rows(const void* data, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                 int64_t, bool far, void* accs) {
  auto* x = static_cast<const typename R::T*>(data);
  auto* acc = static_cast<typename R::A*>(accs);
  for (int64_t r = 0; r < rows; ++r, x += row_stride) {
    if (stride == 1) {
      for (int64_t i = 0; i < n; i += kBlock)
        acc[r] = R::merge(acc[r], row_block<R>(x + i, n - i < kBlock ? n - i : kBlock, far));
    } else {
      acc[r] = R::merge(acc[r], strided_row<R>(x, n, stride));
    }
  }
}

// One vector from each of G rows, two by two; `sum` gets the sum of them.
template <class R, int64_t G, bool Quick>
inline VecFor<R> column_tree(const typename R::T* x, int64_t stride, VecFor<R>& sum) {
  if constexpr (G == 1) {
    const auto v = R::map(load_vec<typename R::C, kLanesOf<R>>(x));
    if constexpr (Quick) sum += v;
    return v;
  } else {
    const auto a = column_tree<R, G / 2, Quick>(x, stride, sum);
    const auto b = column_tree<R, G / 2, Quick>(x + G / 2 * stride, stride, sum);
    return op_of<R, Quick>(a, b);
  }
}

// part[c] gets element c of each of G rows.
template <class R, int64_t G, bool Quick = HasQuick<R>>
void rows_by_cols(const typename R::T* x, int64_t stride, int64_t cols, typename R::C* part) {
  using C = typename R::C;
  using V = VecFor<R>;
  constexpr int64_t w = kLanesOf<R>;
  V sums{};
  int64_t c = 0;
  for (; c + w <= cols; c += w) {
    V sum{};
    const V v =
        op_of<R, Quick>(load_vec<C, w>(part + c), column_tree<R, G, Quick>(x + c, stride, sum));
    __builtin_memcpy(part + c, &v, sizeof v);
    if constexpr (Quick) sums += sum;
  }
  if constexpr (Quick) {
    if (may_have_nan<R>(sums)) rows_by_cols<R, G, false>(x, stride, c, part);
  }
  for (; c < cols; ++c) {
    for (int64_t r = 0; r < G; ++r) part[c] = R::op(part[c], R::map(load<C>(x[r * stride + c])));
  }
}

template <class R>
void reduce_cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t, void* accs) {
  auto* x = static_cast<const typename R::T*>(data);
  auto* acc = static_cast<typename R::A*>(accs);
  alignas(64) typename R::C part[kMaxColumns];
  for (int64_t r = 0; r < n;) {
    const int64_t end = n - r < R::kFlush ? n : r + R::kFlush;
    for (int64_t c = 0; c < cols; ++c) part[c] = R::identity();
    for (; r + 8 <= end; r += 8) rows_by_cols<R, 8>(x + r * stride, stride, cols, part);
    for (; r < end; ++r) rows_by_cols<R, 1>(x + r * stride, stride, cols, part);
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

template <class T>
constexpr bool kIsFloat =
    __is_same(T, F16) || __is_same(T, BF16) || __is_same(T, float) || __is_same(T, double);

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
