// From functors to tables of loops, for one instruction set.
#pragma once

#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/simd/vector_forms.h"
#include "kernels/cpu/simd/half.h"
#include "kernels/functors/functors.h"

namespace taeda::TAEDA_ISA {

namespace simd = cpu::simd::TAEDA_ISA;

// Positions in the enum DType.
template <class T> inline constexpr uint8_t dtype_index = 255;
template <> inline constexpr uint8_t dtype_index<bool> = 0;
template <> inline constexpr uint8_t dtype_index<uint8_t> = 1;
template <> inline constexpr uint8_t dtype_index<int8_t> = 2;
template <> inline constexpr uint8_t dtype_index<int16_t> = 3;
template <> inline constexpr uint8_t dtype_index<int32_t> = 4;
template <> inline constexpr uint8_t dtype_index<int64_t> = 5;
template <> inline constexpr uint8_t dtype_index<simd::F16> = 6;
template <> inline constexpr uint8_t dtype_index<simd::BF16> = 7;
template <> inline constexpr uint8_t dtype_index<float> = 8;
template <> inline constexpr uint8_t dtype_index<double> = 9;
template <> inline constexpr uint8_t dtype_index<Complex<float>> = 10;
template <> inline constexpr uint8_t dtype_index<Complex<double>> = 11;

template <int... I> struct Indices {};
template <int N, int... I> struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I> struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};

// What a loop computes: a functor's value or one of its derivatives. A function with `f_slow` is
// fast where range_key(x) <= range_limit(x), and its derivative is easy_da there; blocks with other
// elements are computed by f_slow.
#define TAEDA_LOOP_OF(name, part)                                       \
  template <class Op, class T> struct name {                            \
    using Type = decltype(&Op::template part<T>);                       \
    FN static auto at(auto... a) { return Op::template part<T>(a...); } \
  };
TAEDA_LOOP_OF(ValueOf, f)
TAEDA_LOOP_OF(DaOf, da)
TAEDA_LOOP_OF(DbOf, db)
TAEDA_LOOP_OF(DcOf, dc)
TAEDA_LOOP_OF(SlowOf, f_slow)
TAEDA_LOOP_OF(EasyDaOf, easy_da)
#undef TAEDA_LOOP_OF

template <class Op, class T>
concept HasSlow = !is_complex<T> && requires { &Op::template f_slow<T>; };

// What is done to the bits of either half type; others are computed in float32.
template <class Op> struct HalfOf {
  using Type = decltype(&Op::half_bits);
  FN static auto at(auto... a) { return Op::half_bits(a...); }
};
template <class Op>
concept HasHalf = requires { &Op::half_bits; };

// Whatever its byte is, a bool that is not 0 is true: memory that others have written may hold any.
template <class T> FN T load(const T* p) {
  if constexpr (same_type<T, bool>) return *reinterpret_cast<const unsigned char*>(p) != 0;
  else return *p;
}

template <class W, class R, class... A> FN void run(int64_t n, R* out, const A*... in) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = W::at(load(in + i)...);
}

template <class W, class Type = typename W::Type> struct LoopOf;
template <class W, class R, class... A> struct LoopOf<W, R (*)(A...)> {
  using Result = R;
  static void loop(void* out, const void* const* in, int64_t n) {
    call(typename MakeIndices<sizeof...(A)>::type{}, out, in, n);
  }
  template <int... I>
  FN static void call(Indices<I...>, void* out, const void* const* in, int64_t n) {
    run<W>(n, static_cast<R*>(out), static_cast<const A*>(in[I])...);
  }
};
// Of `Count` operands, those from `First` on are the functor's.
template <class Op, class T, class Easy, class Hard, int First, int Count> struct GuardedLoop {
  static void loop(void* out, const void* const* in, int64_t n) {
    constexpr int64_t block = 1024;
    for (int64_t begin = 0; begin < n; begin += block) {
      const int64_t m = n - begin < block ? n - begin : block;
      run_block(static_cast<T*>(out) + begin, in, begin, m);
    }
  }
  FN static void run_block(T* out, const void* const* in, int64_t begin, int64_t n) {
    run_block(typename MakeIndices<Count>::type{}, typename MakeIndices<arity<Op>>::type{}, out, in,
              begin, n);
  }

 private:
  template <int... I, int... X>
  FN static void run_block(Indices<I...>, Indices<X...>, T* y, const void* const* in, int64_t begin,
                           int64_t n) {
    const T* const x[] = {(static_cast<const T*>(in[I]) + begin)...};
    decltype(Op::range_key(x[First + X][0]...)) worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto key = Op::range_key(x[First + X][i]...);
      worst = key > worst ? key : worst;
    }
    if (worst <= Op::range_limit(T())) run<Easy>(n, y, x[I]...);
    else run<Hard>(n, y, x[I]...);
  }
};
template <class Op, class T>
using GuardedValue = GuardedLoop<Op, T, ValueOf<Op, T>, SlowOf<Op, T>, 0, arity<Op>>;

// Functors that are written for vectors too. On float16 and bfloat16 they go from memory to memory
// through registers, without buffers of float32.
template <class Op> constexpr bool takes_vectors = false;
template <> inline constexpr bool takes_vectors<struct Add> = true;
template <> inline constexpr bool takes_vectors<struct Sub> = true;
template <> inline constexpr bool takes_vectors<struct Mul> = true;
template <> inline constexpr bool takes_vectors<struct Div> = true;
template <> inline constexpr bool takes_vectors<struct Sqrt> = true;
template <class Op, class V> FN V value_on_vectors(V a, auto... others) {
  if constexpr (same_type<Op, struct Sqrt>) {
    for (int64_t i = 0; i < simd::kLanesOf<V>; ++i) a[i] = sqrt(a[i]);  // one instruction for all
    return a;
  } else {
    return Op::f(a, others...);
  }
}

// Operands of a ScalarLoop that computes in C: element i, and a vector of elements from i on.
template <class C, class T> struct ArrayOperand {
  const T* p;
  FN explicit ArrayOperand(const void* from) : p(static_cast<const T*>(from)) {}
  FN C at(int64_t i) const { return simd::to<C>(p[i]); }
  FN simd::Vec<C> vector(int64_t i) const { return simd::load_as<C>(p + i); }
};
template <class C> struct ScalarOperand {
  C c;
  FN explicit ScalarOperand(const void* from) : c(*static_cast<const C*>(from)) {}
  FN C at(int64_t) const { return c; }
  FN simd::Vec<C> vector(int64_t) const { return simd::broadcast_to(c); }
};

// The loops of functors whose operands may be single numbers. T: float, double, F16 or BF16.
template <class Op, class T> struct ScalarLoopOf {
  using C = std::conditional_t<simd::is_half<T>, float, T>;
  using Array = ArrayOperand<C, T>;
  using Scalar = ScalarOperand<C>;
  static constexpr bool kClamps = requires { &Op::template between<float>; };
  // A bit for each set of operands, itself a mask, that may be scalars.
  static constexpr uint8_t kMasks = kClamps            ? 1 << 6
                                    : arity<Op> == 1   ? 0b0001
                                    : simd::is_half<T> ? 0b0111
                                                       : 0b0110;

  static void loop(void* out, const void* const* in, unsigned scalars, int64_t n, int64_t rows,
                   const int64_t* steps) {
    if constexpr (kClamps) {
      for (int64_t r = 0; r < rows; ++r) {
        clamp(at<T>(out, r * steps[0]), at<const T>(in[0], r * steps[1]),
              *at<const T>(in[1], r * steps[2]), *at<const T>(in[2], r * steps[3]), n);
      }
    } else if constexpr (arity<Op> == 1) {
      for (int64_t r = 0; r < rows; ++r)
        row(at<T>(out, r * steps[0]), n, Array(at<const T>(in[0], r * steps[1])));
    } else if (scalars == 1) {
      binary<Scalar, Array>(out, in, n, rows, steps);
    } else if (scalars == 2) {
      binary<Array, Scalar>(out, in, n, rows, steps);
    } else if constexpr (simd::is_half<T>) {
      binary<Array, Array>(out, in, n, rows, steps);
    }
  }

 private:
  template <class U> FN static U* at(auto* base, int64_t offset) {
    using Bytes = std::conditional_t<std::is_const_v<U>, const char, char>;
    return reinterpret_cast<U*>(static_cast<Bytes*>(base) + offset);
  }
  FN static void clamp(T* y, const T* x, const T low, const T high, int64_t n) {
    if (low == low && high == high) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) y[i] = Op::between(x[i], low, high);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = Op::f(x[i], low, high);
    }
  }
  template <class A, class B>
  FN static void binary(void* out, const void* const* in, int64_t n, int64_t rows,
                        const int64_t* steps) {
    for (int64_t r = 0; r < rows; ++r)
      row(at<T>(out, r * steps[0]), n, A(at<const T>(in[0], r * steps[1])),
          B(at<const T>(in[1], r * steps[2])));
  }
  FN static void row(T* y, int64_t n, const auto... x) {
    int64_t i = 0;
    if constexpr (simd::is_half<T>) {
      constexpr int64_t lanes = simd::kLanes<float>;
      for (; i + lanes <= n; i += lanes)
        simd::store_as(y + i, value_on_vectors<Op>(x.vector(i)...));
      for (; i < n; ++i) y[i] = simd::narrow<T>(Op::f(x.at(i)...));
    } else {
#pragma GCC ivdep
      for (; i < n; ++i) y[i] = Op::f(x.at(i)...);
    }
  }
};
template <class Op>
concept HasScalars = requires { Op::scalar_operands; };

template <class Op, class T>
concept HasEasyDa = requires { &Op::template easy_da<T>; };
template <class Op, class T>
using GuardedDerivative = GuardedLoop<Op, T, EasyDaOf<Op, T>, DaOf<Op, T>, 1, arity<Op> + 2>;

// Values to where a cache line begins, by non-temporal stores a few lines at a time.
template <class Op> struct StreamedLoop {
  static void loop(void* out, const void* const* in, int64_t n) {
    constexpr int64_t block = 64, line = 16, ahead = 2048;
    auto* y = static_cast<float*>(out);
    auto* x = static_cast<const float*>(in[0]);
    int64_t i = 0;
    for (; i + block <= n; i += block) {
      alignas(64) float value[block];
      for (int64_t k = 0; k < block; k += line) __builtin_prefetch(x + i + ahead + k);
      values(block, value, x + i);
      for (int64_t k = 0; k < block; k += simd::kLanes<float>)
        simd::stream(y + i + k, simd::load(value + k));
    }
    values(n - i, y + i, x + i);
    simd::stream_fence();
  }
  FN static void values(int64_t n, float* y, const float* x) {
    if constexpr (VectorForm<Op>::kExists) VectorLoop<Op>::run(n, y, x);
    else if constexpr (HasSlow<Op, float>) {
      const void* const in[] = {x};
      GuardedValue<Op, float>::run_block(y, in, 0, n);
    } else run<ValueOf<Op, float>>(n, y, x);
  }
};

template <class Op, class T> constexpr void add_value(Loops& l) {
  using L = LoopOf<ValueOf<Op, T>>;
  if constexpr (VectorForm<Op>::kExists && same_type<T, float>)
    l.f[dtype_index<T>] = &VectorLoop<Op>::loop;
  else if constexpr (HasSlow<Op, T>) l.f[dtype_index<T>] = &GuardedValue<Op, T>::loop;
  else l.f[dtype_index<T>] = &L::loop;
  l.supported[dtype_index<T>] = true;
  l.result[dtype_index<T>] = dtype_index<typename L::Result>;
}
template <class Op, class T> constexpr void add_scalars(Loops& l) {
  using S = ScalarLoopOf<Op, T>;
  l.scalar[dtype_index<T> - kFirstFloat] = {&S::loop, S::kMasks};
}
template <class Op, class T> constexpr void add_derivatives(Loops& l, int at) {
  if constexpr (HasEasyDa<Op, T>) l.d[0][at] = &GuardedDerivative<Op, T>::loop;
  else if constexpr (HasDa<Op>) l.d[0][at] = &LoopOf<DaOf<Op, T>>::loop;
  if constexpr (HasDb<Op>) l.d[1][at] = &LoopOf<DbOf<Op, T>>::loop;
  if constexpr (HasDc<Op>) l.d[2][at] = &LoopOf<DcOf<Op, T>>::loop;
}

// The slow functors that have a streamed loop. Registers of 64 bytes make them fast.
template <class Op>
constexpr bool is_often_fast = same_type<Op, struct Sigmoid> || same_type<Op, struct Erf>;

// `flags`: what all functors of a list have.
template <class Op, uint32_t flags> constexpr Loops make_loops() {
  Loops l;
  constexpr uint32_t all = Op::info.flags | flags, in = Op::info.dtypes;
  l.heavy = (all & heavy_value) != 0;
  l.heavy_derivatives = (all & heavy_derivatives) != 0;
  l.slow = (all & slow) != 0 && !(is_often_fast<Op> && simd::kRegisterBytes == 64);
  if constexpr ((all & heavy_value) != 0 && ((all & slow) == 0 || is_often_fast<Op>) &&
                same_type<decltype(&Op::template f<float>), float (*)(float)>)
    l.streamed = &StreamedLoop<Op>::loop;
  if constexpr ((in & kBools) != 0) add_value<Op, bool>(l);
  if constexpr ((in & kInts) != 0) {
    add_value<Op, uint8_t>(l);
    add_value<Op, int8_t>(l);
    add_value<Op, int16_t>(l);
    add_value<Op, int32_t>(l);
    add_value<Op, int64_t>(l);
  }
  if constexpr ((in & kFloats) != 0) {
    add_value<Op, float>(l);
    add_value<Op, double>(l);
    add_derivatives<Op, float>(l, 0);
    add_derivatives<Op, double>(l, 1);
    if constexpr (HasHalf<Op>) {
      for (const uint8_t d : {dtype_index<simd::F16>, dtype_index<simd::BF16>}) {
        l.f[d] = &LoopOf<HalfOf<Op>>::loop;
        l.supported[d] = true;
        l.result[d] = d;
      }
    }
    if constexpr (HasScalars<Op>) {
      add_scalars<Op, float>(l);
      add_scalars<Op, double>(l);
    }
    if constexpr (takes_vectors<Op>) {
#if defined(__F16C__) || defined(__aarch64__)  // else float16 is converted faster in long runs
      add_scalars<Op, simd::F16>(l);
#endif
      add_scalars<Op, simd::BF16>(l);
    }
  }
  if constexpr ((in & kComplexes) != 0) {
    add_value<Op, Complex<float>>(l);
    add_value<Op, Complex<double>>(l);
  }
  l.bool_first = Signature<decltype(&Op::template f<float>)>::bool_first;
  return l;
}

template <class L, uint32_t flags = 0> struct Table;
template <class... Ops, uint32_t flags> struct Table<List<Ops...>, flags> {
  static constexpr Loops rows[] = {make_loops<Ops, flags>()...};
};

}  // namespace taeda::TAEDA_ISA
