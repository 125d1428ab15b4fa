// Shared by the files of reductions: 64-byte vectors of a computing type, loaded from any element
// type, and the loops over rows and columns. Everything lives in the instruction set's own
// namespace.
#pragma once

#include "kernels/cpu/simd/reduce.h"

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
template <class T, int64_t Lanes> struct Narrow {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
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

template <class C, class T> inline Vec<C> load_vec(const T* x) {
  constexpr int64_t n = kLanes<C>;
  if constexpr (__is_same(T, C)) {
    Vec<C> v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
  } else if constexpr (__is_same(T, F16) || __is_same(T, BF16)) {
    using U32 = typename Narrow<uint32_t, n>::type;
    using F32 = typename Narrow<float, n>::type;
    typename Narrow<uint16_t, n>::type h;
    __builtin_memcpy(&h, x, sizeof h);
    U32 w = __builtin_convertvector(h, U32);
    F32 f;
    if constexpr (__is_same(T, BF16)) f = (F32)(w << 16);
    else f = widen_f16<U32, typename Narrow<int32_t, n>::type, F32>(w);
    if constexpr (__is_same(C, float)) return f;
    else return __builtin_convertvector(f, Vec<C>);
  } else {
    typename Narrow<T, n>::type v;
    __builtin_memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, Vec<C>);
  }
}

template <class C> inline Vec<C> splat(C v) { return v - Vec<C>{}; }

// A reduction is a struct R with
//   T, C, A                     element, computing and accumulator types
//   kFlush                      rows (or vectors) that may be summed in C before they go to A
//   C identity(); A start();
//   V map(V), V op(V, V)        for V = C and V = Vec<C>
//   A merge(A, A)

constexpr int64_t kBlock = 2048;  // elements of a row that are reduced in C at once
constexpr int64_t kAhead = 8192;  // bytes: the machine's own prefetching stops at every page

template <class R> typename R::A row_block(const typename R::T* x, int64_t n) {
  using C = typename R::C;
  constexpr int64_t w = kLanes<C>;
  using V = Vec<C>;
  typename R::A total = R::start();
  int64_t i = 0;
  if (n >= w) {
    V a0 = splat<C>(R::identity()), a1 = a0, a2 = a0, a3 = a0;
    for (; i + 4 * w <= n; i += 4 * w) {
      for (size_t line = 0; line < 4 * w * sizeof(*x); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(x + i) + kAhead + line);
      a0 = R::op(a0, R::map(load_vec<C>(x + i)));
      a1 = R::op(a1, R::map(load_vec<C>(x + i + w)));
      a2 = R::op(a2, R::map(load_vec<C>(x + i + 2 * w)));
      a3 = R::op(a3, R::map(load_vec<C>(x + i + 3 * w)));
    }
    for (; i + w <= n; i += w) a0 = R::op(a0, R::map(load_vec<C>(x + i)));
    a0 = R::op(R::op(a0, a1), R::op(a2, a3));
    for (int64_t j = 0; j < w; ++j) total = R::merge(total, static_cast<typename R::A>(a0[j]));
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
                 int64_t, void* accs) {
  auto* x = static_cast<const typename R::T*>(data);
  auto* acc = static_cast<typename R::A*>(accs);
  for (int64_t r = 0; r < rows; ++r, x += row_stride) {
    if (stride == 1) {
      for (int64_t i = 0; i < n; i += kBlock)
        acc[r] = R::merge(acc[r], row_block<R>(x + i, n - i < kBlock ? n - i : kBlock));
    } else {
      acc[r] = R::merge(acc[r], strided_row<R>(x, n, stride));
    }
  }
}

template <class R>
void reduce_cols(const void* data, int64_t n, int64_t stride, int64_t cols, int64_t, void* accs) {
  using T = typename R::T;
  using C = typename R::C;
  using V = Vec<C>;
  constexpr int64_t w = kLanes<C>;
  auto* x = static_cast<const T*>(data);
  auto* acc = static_cast<typename R::A*>(accs);
  alignas(64) C part[kMaxColumns];
  for (int64_t r0 = 0; r0 < n; r0 += R::kFlush) {
    int64_t r1 = r0 + R::kFlush < n ? r0 + R::kFlush : n, r = r0;
    for (int64_t c = 0; c < cols; ++c) part[c] = R::identity();
    for (; r + 4 <= r1; r += 4) {
      const T *p0 = x + r * stride, *p1 = p0 + stride, *p2 = p1 + stride, *p3 = p2 + stride;
      int64_t c = 0;
      for (; c + w <= cols; c += w) {
        V v = R::op(R::op(R::map(load_vec<C>(p0 + c)), R::map(load_vec<C>(p1 + c))),
                    R::op(R::map(load_vec<C>(p2 + c)), R::map(load_vec<C>(p3 + c))));
        V a = load_vec<C>(part + c);
        a = R::op(a, v);
        __builtin_memcpy(part + c, &a, sizeof a);
      }
      for (; c < cols; ++c) {
        part[c] = R::op(part[c], R::op(R::op(R::map(load<C>(p0[c])), R::map(load<C>(p1[c]))),
                                       R::op(R::map(load<C>(p2[c])), R::map(load<C>(p3[c])))));
      }
    }
    for (; r < r1; ++r) {
      const T* p = x + r * stride;
      for (int64_t c = 0; c < cols; ++c) part[c] = R::op(part[c], R::map(load<C>(p[c])));
    }
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
