// A Python number: bool, int, float or complex, with its category kept for type promotion.
#pragma once

#include <complex>
#include <cstdint>

#include "base/dtype.h"
#include "base/error.h"

namespace taeda {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };
  Scalar() : Scalar(int64_t(0)) {}
  Scalar(bool v) : kind_(Kind::Bool), i_(v) {}
  Scalar(int v) : Scalar(int64_t(v)) {}
  Scalar(int64_t v) : kind_(Kind::Int), i_(v) {}
  Scalar(double v) : kind_(Kind::Float), d_{v, 0} {}
  Scalar(cdouble v) : kind_(Kind::Complex), d_{v.real(), v.imag()} {}

  Kind kind() const { return kind_; }
  bool is_integral(bool with_bool = true) const {
    return kind_ == Kind::Int || (with_bool && kind_ == Kind::Bool);
  }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_float() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  // The dtype of a zero-dim tensor made from it.
  DType dtype() const {
    switch (kind_) {
      case Kind::Bool: return DType::Bool;
      case Kind::Int: return DType::Int64;
      case Kind::Float: return default_dtype();
      default: return taeda::to_complex(default_dtype());
    }
  }
  template <class T> T to() const {
    if constexpr (std::is_same_v<T, ComplexHalf>) {
      return to<cfloat>();
    } else if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      return integral() ? T(static_cast<R>(i_)) : T(static_cast<R>(d_[0]), static_cast<R>(d_[1]));
    } else if constexpr (std::is_same_v<T, bool>) {
      return integral() ? i_ != 0 : (d_[0] != 0 || d_[1] != 0);
    } else if constexpr (std::is_class_v<T>) {  // a float of 16 or 8 bits
      check_real();
      return T(static_cast<float>(integral() ? static_cast<double>(i_) : d_[0]));
    } else {
      check_real();
      return integral() ? static_cast<T>(i_) : static_cast<T>(d_[0]);
    }
  }
  double to_double() const { return to<double>(); }
  int64_t to_int() const { return to<int64_t>(); }
  bool equals(double v) const { return to<cdouble>() == cdouble(v); }
  Scalar operator-() const {
    if (integral()) return Scalar(-i_);
    if (kind_ == Kind::Float) return Scalar(-d_[0]);
    return Scalar(cdouble(-d_[0], -d_[1]));
  }

 private:
  void check_real() const {  // an imaginary part must not get lost
    check(kind_ != Kind::Complex || d_[1] == 0,
          "value cannot be converted to a real type without overflow: ", d_[0], " + ", d_[1], "j");
  }
  bool integral() const { return kind_ == Kind::Bool || kind_ == Kind::Int; }
  Kind kind_;
  union {
    int64_t i_;
    double d_[2];
  };
};

}  // namespace taeda
