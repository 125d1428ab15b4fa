// From functors to kernels.
#pragma once

#include <algorithm>

#include "kernels/cuda/common/vector.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/functors/functors.h"

namespace taeda::cuda {

using portable::arity, portable::HasDa, portable::HasDb, portable::HasDc;

// ---- what a kernel computes ----
// What functors have, as concepts: within a function, nvcc takes for missing what a
// requires-expression looks for, and the general function would never be called.
template <class Op, class T>
concept HasSlow = requires { typename portable::Signature<decltype(&Op::template f_slow<T>)>; };
template <class Op>
concept HasHalfBits = requires { &Op::half_bits; };

// The value, with the general function where the one for the common range is not good enough.
template <class Op, class T> struct ValueOf {
  using Type = decltype(&Op::template f<T>);
  template <class... A> __device__ static auto at(A... a) {
    if constexpr (!is_complex<T> && HasSlow<Op, T>) {
      return Op::range_key(a...) <= Op::range_limit(T()) ? Op::template f<T>(a...)
                                                         : Op::template f_slow<T>(a...);
    } else {
      return Op::template f<T>(a...);
    }
  }
};
// What is done to the bits of either half type.
template <class H, class F> struct HalfSignature;
template <class H, class... A> struct HalfSignature<H, uint16_t (*)(A...)> {
  template <class> using Each = H;
  using Type = H (*)(Each<A>...);
};
template <class Op, class H> struct HalfBitsOf {
  using Type = typename HalfSignature<H, decltype(&Op::half_bits)>::Type;
  template <class... A> __device__ static H at(A... a) {
    H result;
    result.bits = Op::half_bits(a.bits...);
    return result;
  }
};
template <class Op, class T> struct DaOf {
  using Type = decltype(&Op::template da<T>);
  template <class... A> __device__ static T at(A... a) { return Op::template da<T>(a...); }
};
template <class Op, class T> struct DbOf {
  using Type = decltype(&Op::template db<T>);
  template <class... A> __device__ static T at(A... a) { return Op::template db<T>(a...); }
};
template <class Op, class T> struct DcOf {
  using Type = decltype(&Op::template dc<T>);
  template <class... A> __device__ static T at(A... a) { return Op::template dc<T>(a...); }
};

// ---- the kernel ----
// A thread computes N neighbours: as many as 16 bytes hold.

// What is not read and written by vectors. Not inlined: it would be most of every kernel.
template <class T, int N>
__device__ NOT_INLINED Neighbours<T, N> gather(const LoopShape& l, const PointwiseOperand& o,
                                               uint32_t first) {
  Neighbours<T, N> all;
#pragma unroll 1
  for (int j = 0; j < N; ++j) all.v[j] = load<T>(o.data + l.offset(o, first + j), o.dtype);
  return all;
}
template <class T, int N>
__device__ NOT_INLINED void scatter(const LoopShape& l, const PointwiseOperand& o, uint32_t first,
                                    Neighbours<T, N> all) {
#pragma unroll 1
  for (int j = 0; j < N && first + j < l.n; ++j)
    store<T>(o.data + l.offset(o, first + j), o.dtype, all.v[j]);
}

// With Mixed, what is computed in float is stored as that or as either half type.
template <bool Mixed, class T> inline constexpr bool is_mixed = Mixed && same_type<T, float>;
template <bool Mixed, class T>
__device__ __forceinline__ bool is_stored_as(const PointwiseOperand& o) {
  return is_mixed<Mixed, T> || o.dtype == element_dtype<T>;
}

__device__ __forceinline__ char* place_of(const LoopShape& l, const PointwiseOperand& o,
                                          uint32_t first) {
  return o.data +
         (o.access == Access::Flat ? int64_t{first} * size_of(o.dtype) : l.offset(o, first));
}
template <bool Mixed, class T, int N>
__device__ __forceinline__ Neighbours<T, N> read(const LoopShape& l, const PointwiseOperand& o,
                                                 uint32_t first) {
  Neighbours<T, N> all;
  if (!o.data) {
    for (int j = 0; j < N; ++j) all.v[j] = element<T>(o.number);
    return all;
  }
  if (first + N > l.n || o.access == Access::Any || !is_stored_as<Mixed, T>(o))
    return gather<T, N>(l, o, first);
  const char* p = place_of(l, o, first);
  if (o.access == Access::Same) {
    const T one = load<T>(p, o.dtype);
    for (int j = 0; j < N; ++j) all.v[j] = one;
    return all;
  }
  if constexpr (is_mixed<Mixed, T>) return load_mixed<T, N>(p, o.dtype);
  else return load_vector<T, T, N>(p);
}
template <bool Mixed, class T, int N>
__device__ __forceinline__ void write(const LoopShape& l, const PointwiseOperand& o, uint32_t first,
                                      const Neighbours<T, N>& all) {
  if (first + N > l.n || o.access >= Access::Same || !is_stored_as<Mixed, T>(o))
    return scatter<T, N>(l, o, first, all);
  char* p = place_of(l, o, first);
  if constexpr (is_mixed<Mixed, T>) store_mixed(p, o.dtype, all);
  else store_vector<T>(p, all);
}

template <class... A> struct Types {};

// Reads the operands one after the other, and computes from all.
template <class W, bool Mixed, class R, int N, class L, class... In>
__device__ __forceinline__ void compute(Types<>, const L& l, uint32_t first, const In&... in) {
  Neighbours<R, N> out;
  for (int j = 0; j < N; ++j) out.v[j] = W::at(in.v[j]...);
  write<Mixed, R, N>(l, l.operand[0], first, out);
}
template <class W, bool Mixed, class R, int N, class A, class... Rest, class L, class... In>
__device__ __forceinline__ void compute(Types<A, Rest...>, const L& l, uint32_t first,
                                        const In&... in) {
  compute<W, Mixed, R, N>(Types<Rest...>(), l, first, in...,
                          read<Mixed, A, N>(l, l.operand[1 + sizeof...(In)], first));
}

template <class W, int N, bool Mixed, class R, class... A>
__global__ void pointwise(const __grid_constant__ PointwiseLoop<1 + sizeof...(A)> l) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (l.n + N - 1) / N) compute<W, Mixed, R, N>(Types<A...>(), l, i * N);
}

// kRare: what is computed in float has the kernel alone that takes all three types.
template <class W, bool kRare = false, class Type = typename W::Type> struct Runner;
template <class W, bool kRare, class R, class... A> struct Runner<W, kRare, R (*)(A...)> {
  static constexpr FunctorKernel kernel() { return {run, {element_dtype<R>, element_dtype<A>...}}; }
  static void run(const PlanPart& part) {
    constexpr bool floats = same_type<R, float> || (same_type<A, float> || ...);
    if constexpr (floats) {
      if (kRare || has_halves(part)) return start<8, true>(part);
    }
    if constexpr (!floats || !kRare) {
      constexpr size_t most = std::max({sizeof(R), sizeof(A)...});
      start<most >= 16 ? 1 : most == 1 ? 8 : 16 / most, false>(part);
    }
  }

 private:
  template <int N, bool Mixed> static void start(const PlanPart& part) {
    const auto loop = loop_of<1 + sizeof...(A)>(part, N);
    launch(pointwise<W, N, Mixed, R, A...>, blocks_for_all((int64_t{loop.n} + N - 1) / N), kThreads,
           0, loop);
  }
  // Whether something that is computed in float is stored in a half type.
  static bool has_halves(const PlanPart& part) {
    constexpr bool floats[] = {same_type<R, float>, same_type<A, float>...};
    for (int k = 0; k < 1 + int{sizeof...(A)}; ++k)
      if (floats[k] && part.plan.data[k] && is_half(part.plan.dtype[k])) return true;
    return false;
  }
};

// ---- tables ----
template <class Op, bool kRare, class T> constexpr void add_value(FunctorKernels& k) {
  k.value[static_cast<int>(element_dtype<T>)] = Runner<ValueOf<Op, T>, kRare>::kernel();
}
template <class Op, bool kRare, class T> constexpr void add_gradients(FunctorKernels& k, int at) {
  if constexpr (HasDa<Op>) k.gradient[0][at] = Runner<DaOf<Op, T>, kRare>::kernel();
  if constexpr (HasDb<Op>) k.gradient[1][at] = Runner<DbOf<Op, T>, kRare>::kernel();
  if constexpr (HasDc<Op>) k.gradient[2][at] = Runner<DcOf<Op, T>, kRare>::kernel();
}

template <class Op, bool kRare> constexpr FunctorKernels make_kernels() {
  FunctorKernels k;
  constexpr uint32_t in = Op::info.dtypes;
  if constexpr ((in & portable::kBools) != 0) add_value<Op, kRare, bool>(k);
  if constexpr ((in & portable::kInts) != 0) {
    add_value<Op, kRare, uint8_t>(k);
    add_value<Op, kRare, int8_t>(k);
    add_value<Op, kRare, int16_t>(k);
    add_value<Op, kRare, int32_t>(k);
    add_value<Op, kRare, int64_t>(k);
  }
  if constexpr ((in & portable::kFloats) != 0) {
    add_value<Op, kRare, float>(k);
    add_value<Op, kRare, double>(k);
    add_gradients<Op, kRare, float>(k, 0);
    add_gradients<Op, kRare, double>(k, 1);
    if constexpr (HasHalfBits<Op>) {
      k.value[static_cast<int>(DType::Float16)] = Runner<HalfBitsOf<Op, Half>>::kernel();
      k.value[static_cast<int>(DType::BFloat16)] = Runner<HalfBitsOf<Op, BFloat16>>::kernel();
    }
  }
  if constexpr ((in & portable::kComplexes) != 0) {
    add_value<Op, kRare, Complex<float>>(k);
    add_value<Op, kRare, Complex<double>>(k);
  }
  return k;
}

template <class L, bool kRare = false> struct Table;
template <class... Ops, bool kRare> struct Table<portable::List<Ops...>, kRare> {
  static constexpr FunctorKernels rows[] = {make_kernels<Ops, kRare>()...};
};

}  // namespace taeda::cuda
