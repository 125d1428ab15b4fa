// Element types: the enum, its C++ types, promotion, and dispatch by one generic lambda.
#pragma once

#include <complex>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/float8.h"
#include "base/half.h"

namespace taeda {

enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  // Storage-only: no arithmetic of their own. They can be copied and converted, and pointwise ops
  // compute in another dtype.
  Complex32,
  UInt16,
  UInt32,
  UInt64,
  Float8_e5m2,
  Float8_e4m3fn,
  Float8_e5m2fnuz,
  Float8_e4m3fnuz,
  Float8_e8m0fnu
};
inline constexpr int kNumDTypes = 21;

using cfloat = std::complex<float>;
using cdouble = std::complex<double>;
struct ComplexHalf {
  Half re, im;
  ComplexHalf() = default;
  ComplexHalf(cfloat z) : re(z.real()), im(z.imag()) {}
  operator cfloat() const { return {re, im}; }
};
template <class T>
inline constexpr bool is_complex_type =
    std::is_same_v<T, cfloat> || std::is_same_v<T, cdouble> || std::is_same_v<T, ComplexHalf>;

struct DTypeInfo {
  std::string_view name;    // "float32"
  std::string_view scalar;  // "Float", the word in PyTorch's messages
  uint8_t itemsize;
  bool floating, complex, is_signed;
};
extern const DTypeInfo kDTypeInfo[kNumDTypes];

inline const DTypeInfo& info(DType d) { return kDTypeInfo[static_cast<int>(d)]; }
inline size_t itemsize(DType d) { return info(d).itemsize; }
inline std::string_view name(DType d) { return info(d).name; }
inline bool is_floating(DType d) { return info(d).floating; }
inline bool is_complex(DType d) { return info(d).complex; }
inline bool is_inexact(DType d) { return info(d).floating || info(d).complex; }
inline bool is_integral(DType d, bool with_bool = true) {
  return !is_inexact(d) && (with_bool || d != DType::Bool);
}
inline bool is_storage_only(DType d) { return d > DType::Complex128; }
inline bool is_float8(DType d) { return d > DType::UInt64; }
inline bool is_half(DType d) { return d == DType::Float16 || d == DType::BFloat16; }
DType to_real(DType d);     // complex64 -> float32, others unchanged
DType to_complex(DType d);  // float32 -> complex64
DType promote(DType a, DType b);
bool can_cast(DType from, DType to);
std::ostream& operator<<(std::ostream& s, DType d);  // "Float"

DType default_dtype();
void set_default_dtype(DType d);

template <class T> struct DTypeOf;
template <> struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <> struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::UInt8;
};
template <> struct DTypeOf<int8_t> {
  static constexpr DType value = DType::Int8;
};
template <> struct DTypeOf<int16_t> {
  static constexpr DType value = DType::Int16;
};
template <> struct DTypeOf<int32_t> {
  static constexpr DType value = DType::Int32;
};
template <> struct DTypeOf<int64_t> {
  static constexpr DType value = DType::Int64;
};
template <> struct DTypeOf<Half> {
  static constexpr DType value = DType::Float16;
};
template <> struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::BFloat16;
};
template <> struct DTypeOf<float> {
  static constexpr DType value = DType::Float32;
};
template <> struct DTypeOf<double> {
  static constexpr DType value = DType::Float64;
};
template <> struct DTypeOf<cfloat> {
  static constexpr DType value = DType::Complex64;
};
template <> struct DTypeOf<cdouble> {
  static constexpr DType value = DType::Complex128;
};
template <> struct DTypeOf<ComplexHalf> {
  static constexpr DType value = DType::Complex32;
};
template <> struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::UInt16;
};
template <> struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::UInt32;
};
template <> struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::UInt64;
};
template <class T> inline constexpr DType dtype_of = DTypeOf<T>::value;

template <class T> struct Tag {
  using type = T;
};

// visit_*(dtype, [&]<class T>(Tag<T>) { ... }), or [&](auto tag) with its `type`. A dtype outside
// the set is an error that names `what`, the calling function.
[[noreturn]] void unsupported_dtype(const char* what, DType d);

template <class F> decltype(auto) visit_floating(DType d, const char* what, F&& f) {
  switch (d) {
    case DType::Float32: return f(Tag<float>{});
    case DType::Float64: return f(Tag<double>{});
    default: unsupported_dtype(what, d);
  }
}
template <class F> decltype(auto) visit_inexact(DType d, const char* what, F&& f) {
  switch (d) {
    case DType::Float32: return f(Tag<float>{});
    case DType::Float64: return f(Tag<double>{});
    case DType::Complex64: return f(Tag<cfloat>{});
    case DType::Complex128: return f(Tag<cdouble>{});
    default: unsupported_dtype(what, d);
  }
}
template <class F>
decltype(auto) visit_real(DType d, const char* what,
                          F&& f) {  // bool, integers, 16- to 64-bit floats
  switch (d) {
    case DType::Bool: return f(Tag<bool>{});
    case DType::UInt8: return f(Tag<uint8_t>{});
    case DType::Int8: return f(Tag<int8_t>{});
    case DType::Int16: return f(Tag<int16_t>{});
    case DType::Int32: return f(Tag<int32_t>{});
    case DType::Int64: return f(Tag<int64_t>{});
    case DType::Float16: return f(Tag<Half>{});
    case DType::BFloat16: return f(Tag<BFloat16>{});
    case DType::Float32: return f(Tag<float>{});
    case DType::Float64: return f(Tag<double>{});
    default: unsupported_dtype(what, d);
  }
}
template <class F> decltype(auto) visit_all(DType d, F&& f) {
  switch (d) {
    case DType::Complex64: return f(Tag<cfloat>{});
    case DType::Complex128: return f(Tag<cdouble>{});
    default: return visit_real(d, "visit_all", std::forward<F>(f));
  }
}
template <class F> decltype(auto) visit_storage_only(DType d, F&& f) {
  switch (d) {
    case DType::Complex32: return f(Tag<ComplexHalf>{});
    case DType::UInt16: return f(Tag<uint16_t>{});
    case DType::UInt32: return f(Tag<uint32_t>{});
    case DType::UInt64: return f(Tag<uint64_t>{});
    case DType::Float8_e5m2: return f(Tag<Float8_e5m2>{});
    case DType::Float8_e4m3fn: return f(Tag<Float8_e4m3fn>{});
    case DType::Float8_e5m2fnuz: return f(Tag<Float8_e5m2fnuz>{});
    case DType::Float8_e4m3fnuz: return f(Tag<Float8_e4m3fnuz>{});
    case DType::Float8_e8m0fnu: return f(Tag<Float8_e8m0fnu>{});
    default: unsupported_dtype("visit_storage_only", d);
  }
}
// Dispatches on the element size alone: for kernels that only move elements (copy, gather, index).
struct alignas(8) Bytes16 {
  uint64_t v[2];
  bool operator==(const Bytes16&) const = default;
};
template <class F> decltype(auto) visit_bytes(DType d, F&& f) {
  switch (itemsize(d)) {
    case 1: return f(Tag<uint8_t>{});
    case 2: return f(Tag<uint16_t>{});
    case 4: return f(Tag<uint32_t>{});
    case 8: return f(Tag<uint64_t>{});
    default: return f(Tag<Bytes16>{});
  }
}

}  // namespace taeda
