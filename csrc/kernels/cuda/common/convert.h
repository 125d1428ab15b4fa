// Elements of any dtype as numbers that kernels compute with, and back.
#pragma once

#include <complex>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/cuda/launch.h"
#include "kernels/functors/complex.h"

namespace taeda::cuda {

using portable::Complex, portable::is_complex, portable::is_float, portable::is_integer,
    portable::same_type;

template <class T>
inline constexpr bool is_half_type = same_type<T, Half> || same_type<T, BFloat16>;
template <class T> inline constexpr DType element_dtype = dtype_of<T>;
template <> inline constexpr DType element_dtype<Complex<float>> = DType::Complex64;
template <> inline constexpr DType element_dtype<Complex<double>> = DType::Complex128;

// f(Tag<T>) for the type that kernels have a dtype's elements as, where they compute with them.
template <class F> void visit_numbers(DType dtype, const char* what, F&& f) {
  if (dtype == DType::Complex64) return f(Tag<Complex<float>>());
  if (dtype == DType::Complex128) return f(Tag<Complex<double>>());
  visit_real(dtype, what, f);
}

// What the interface calls T, as kernels compute with it.
template <class T> struct StoredAs {
  using type = T;
};
template <class R> struct StoredAs<std::complex<R>> {
  using type = Complex<R>;
};
template <class T> using Stored = typename StoredAs<T>::type;

__host__ __device__ inline int size_of(DType d) {
  switch (d) {
    case DType::Int16:
    case DType::UInt16:
    case DType::Float16:
    case DType::BFloat16: return 2;
    case DType::Int32:
    case DType::UInt32:
    case DType::Complex32:
    case DType::Float32: return 4;
    case DType::Int64:
    case DType::UInt64:
    case DType::Float64:
    case DType::Complex64: return 8;
    case DType::Complex128: return 16;
    default: return 1;
  }
}

// Of float16 and bfloat16; a GPU has instructions for them.
template <class S> __host__ __device__ __forceinline__ float from_half(S s) {
#ifdef __CUDA_ARCH__
  if constexpr (same_type<S, Half>) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(s.bits));
    return v;
  }
#endif
  return static_cast<float>(s);
}
template <class D> __host__ __device__ __forceinline__ D to_half(float v) {
#ifdef __CUDA_ARCH__
  D d;
  if constexpr (same_type<D, Half>) asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d.bits) : "f"(v));
  else asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(d.bits) : "f"(v));
  return d;
#else
  return D(v);
#endif
}

// As the CPU converts (kernels/cpu/pointwise/simd/convert.cpp, storage_only.cpp).
template <class D, class S> __host__ __device__ inline D convert(S s) {
  if constexpr (same_type<D, S>) return s;
  else if constexpr (is_complex<S>) {
    if constexpr (is_complex<D>)
      return D(static_cast<decltype(D::re)>(s.re), static_cast<decltype(D::re)>(s.im));
    else if constexpr (same_type<D, bool>) return s.re != 0 || s.im != 0;
    else return convert<D>(s.re);
  } else if constexpr (is_complex<D>) return D(convert<decltype(D::re)>(s));
  else if constexpr (is_half_type<S>) return convert<D>(from_half(s));
  else if constexpr (is_half_type<D>) return to_half<D>(convert<float>(s));
  else if constexpr (same_type<D, bool>) return s != S(0);
  else if constexpr (is_float<S> && is_integer<D> && sizeof(D) < 4)
    return static_cast<D>(static_cast<int32_t>(s));
  else return static_cast<D>(s);
}

template <class S> __host__ __device__ inline S element(const char* p) {
  if constexpr (same_type<S, bool>) return *reinterpret_cast<const unsigned char*>(p) != 0;
  else return *reinterpret_cast<const S*>(p);
}

// The element of dtype `d` at p as a T. Not inlined: kernels read their own dtype by themselves.
template <class T> __host__ __device__ NOT_INLINED T load_as(const char* p, DType d) {
  switch (d) {
    case DType::Bool: return convert<T>(element<bool>(p));
    case DType::UInt8: return convert<T>(element<uint8_t>(p));
    case DType::Int8: return convert<T>(element<int8_t>(p));
    case DType::Int16: return convert<T>(element<int16_t>(p));
    case DType::Int32: return convert<T>(element<int32_t>(p));
    case DType::Int64: return convert<T>(element<int64_t>(p));
    case DType::Float16: return convert<T>(element<Half>(p));
    case DType::BFloat16: return convert<T>(element<BFloat16>(p));
    case DType::Float32: return convert<T>(element<float>(p));
    case DType::Float64: return convert<T>(element<double>(p));
    case DType::Complex64: return convert<T>(element<Complex<float>>(p));
    case DType::Complex128: return convert<T>(element<Complex<double>>(p));
    case DType::Complex32: {
      const auto z = element<ComplexHalf>(p);
      return convert<T>(Complex<float>(from_half(z.re), from_half(z.im)));
    }
    case DType::UInt16: return convert<T>(int64_t{element<uint16_t>(p)});
    case DType::UInt32: return convert<T>(int64_t{element<uint32_t>(p)});
    case DType::UInt64:
      if constexpr (is_float<T> || is_complex<T> || is_half_type<T>)
        return convert<T>(static_cast<double>(element<uint64_t>(p)));
      else return convert<T>(static_cast<int64_t>(element<uint64_t>(p)));
    case DType::Float8_e5m2: return convert<T>(static_cast<float>(element<Float8_e5m2>(p)));
    case DType::Float8_e4m3fn: return convert<T>(static_cast<float>(element<Float8_e4m3fn>(p)));
    case DType::Float8_e5m2fnuz: return convert<T>(static_cast<float>(element<Float8_e5m2fnuz>(p)));
    case DType::Float8_e4m3fnuz: return convert<T>(static_cast<float>(element<Float8_e4m3fnuz>(p)));
    case DType::Float8_e8m0fnu: return convert<T>(static_cast<float>(element<Float8_e8m0fnu>(p)));
  }
  return T();
}

// Negative numbers wrap around, as integers do; what has no integer is 0.
__device__ inline uint64_t to_uint64(double v) {
  if (v >= 0) return v < 0x1p64 ? static_cast<uint64_t>(v) : 0;
  return v > -0x1p63 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : 0;
}

// An element that is stored as a T, or as either half type where T is float.
template <class T> __device__ __forceinline__ T load(const char* p, DType d) {
  if constexpr (same_type<T, float>) {
    if (d == DType::Float16) return convert<T>(element<Half>(p));
    if (d == DType::BFloat16) return convert<T>(element<BFloat16>(p));
  }
  return element<T>(p);
}
template <class T> __device__ __forceinline__ void store(char* p, DType d, T v) {
  if constexpr (same_type<T, float>) {
    if (d == DType::Float16) return void(*reinterpret_cast<Half*>(p) = convert<Half>(v));
    if (d == DType::BFloat16) return void(*reinterpret_cast<BFloat16*>(p) = convert<BFloat16>(v));
  }
  *reinterpret_cast<T*>(p) = v;
}

// A T to where elements are stored in a dtype that is wider or narrower.
template <class T> __device__ inline void store_narrow(char* p, DType d, T v) {
  const auto put = [p](auto x) { *reinterpret_cast<decltype(x)*>(p) = x; };
  if constexpr (same_type<T, float>) {
    switch (d) {
      case DType::Float16: return put(Half(v));
      case DType::BFloat16: return put(BFloat16(v));
      case DType::Float8_e5m2: return put(Float8_e5m2(v));
      case DType::Float8_e4m3fn: return put(Float8_e4m3fn(v));
      case DType::Float8_e5m2fnuz: return put(Float8_e5m2fnuz(v));
      case DType::Float8_e4m3fnuz: return put(Float8_e4m3fnuz(v));
      case DType::Float8_e8m0fnu: return put(Float8_e8m0fnu(v));
      default: break;
    }
  } else if constexpr (same_type<T, double>) {
    if (d == DType::UInt64) return put(to_uint64(v));
  } else if constexpr (same_type<T, int64_t>) {
    if (d == DType::UInt16) return put(static_cast<uint16_t>(v));
    if (d == DType::UInt32) return put(static_cast<uint32_t>(v));
  } else if constexpr (same_type<T, Complex<float>>) {
    ComplexHalf z;
    z.re = to_half<Half>(v.re);
    z.im = to_half<Half>(v.im);
    if (d == DType::Complex32) return put(z);
  }
  put(v);
}

}  // namespace taeda::cuda
