// Complex numbers for functors: laid out as std::complex, but in the instruction set's own
// namespace.
#pragma once

#ifdef __CUDACC__
#include <cuda/std/complex>
#endif

#include "kernels/functors/elementary.h"

namespace taeda::TAEDA_ISA {

template <class R> struct Complex {
  R re{}, im{};
  Complex() = default;
  FN constexpr Complex(R r) : re(r) {}
  FN constexpr Complex(R r, R i) : re(r), im(i) {}
};

template <class T> inline constexpr bool is_complex = false;
template <class R> inline constexpr bool is_complex<Complex<R>> = true;

template <class R> FN Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R> FN Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R> FN Complex<R> operator-(Complex<R> a) { return {-a.re, -a.im}; }
template <class R> FN Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Scaled by the larger part of the divisor, so that squares neither overflow nor vanish.
template <class R> FN Complex<R> operator/(Complex<R> a, Complex<R> b) {
  const bool wide = abs(b.re) >= abs(b.im);
  const R big = wide ? b.re : b.im, small = wide ? b.im : b.re;
  const R ratio = (big == R(0) && small == R(0)) ? R(0) : small / big;
  const R d = R(1) / (big + small * ratio);
  const R x = wide ? a.re : a.im, y = wide ? a.im : a.re;
  const R im = wide ? y - x * ratio : x * ratio - y;
  return {(x + y * ratio) * d, im * d};
}
template <class R> FN bool operator==(Complex<R> a, Complex<R> b) {
  return a.re == b.re && a.im == b.im;
}
template <class R> FN bool operator!=(Complex<R> a, Complex<R> b) { return !(a == b); }
template <class R> FN Complex<R> conj(Complex<R> a) { return {a.re, -a.im}; }
template <class R> FN R abs(Complex<R> a) { return hypot(a.re, a.im); }
template <class R> FN bool isinf(Complex<R> a) { return isinf(a.re) || isinf(a.im); }
template <class R> FN bool isnan(Complex<R> a) { return a.re != a.re || a.im != a.im; }

#ifdef __CUDACC__
// CUDA's complex functions.
template <class R> FN ::cuda::std::complex<R> to_cuda(Complex<R> a) { return {a.re, a.im}; }
template <class R> FN Complex<R> from_cuda(::cuda::std::complex<R> a) {
  return {a.real(), a.imag()};
}
#define TAEDA_COMPLEX(name)                             \
  template <class R> FN Complex<R> name(Complex<R> x) { \
    return from_cuda<R>(::cuda::std::name(to_cuda(x))); \
  }
template <class R> FN Complex<R> pow(Complex<R> x, Complex<R> y) {
  return from_cuda<R>(::cuda::std::pow(to_cuda(x), to_cuda(y)));
}
#else
// The C library's complex functions, by way of the compiler's own complex type.
FN __complex__ float to_c(Complex<float> a) {
  __complex__ float c;
  __real__ c = a.re;
  __imag__ c = a.im;
  return c;
}
FN __complex__ double to_c(Complex<double> a) {
  __complex__ double c;
  __real__ c = a.re;
  __imag__ c = a.im;
  return c;
}
FN Complex<float> from_c(__complex__ float c) { return {__real__ c, __imag__ c}; }
FN Complex<double> from_c(__complex__ double c) { return {__real__ c, __imag__ c}; }
#define TAEDA_COMPLEX(name)                                                                  \
  FN Complex<float> name(Complex<float> x) { return from_c(__builtin_c##name##f(to_c(x))); } \
  FN Complex<double> name(Complex<double> x) { return from_c(__builtin_c##name(to_c(x))); }
FN Complex<float> pow(Complex<float> x, Complex<float> y) {
  return from_c(__builtin_cpowf(to_c(x), to_c(y)));
}
FN Complex<double> pow(Complex<double> x, Complex<double> y) {
  return from_c(__builtin_cpow(to_c(x), to_c(y)));
}
#endif
TAEDA_COMPLEX(exp)
TAEDA_COMPLEX(log)
TAEDA_COMPLEX(sqrt)
TAEDA_COMPLEX(sin)
TAEDA_COMPLEX(cos)
TAEDA_COMPLEX(tan)
TAEDA_COMPLEX(asin)
TAEDA_COMPLEX(acos)
TAEDA_COMPLEX(atan)
TAEDA_COMPLEX(sinh)
TAEDA_COMPLEX(cosh)
TAEDA_COMPLEX(tanh)
TAEDA_COMPLEX(asinh)
TAEDA_COMPLEX(acosh)
TAEDA_COMPLEX(atanh)
#undef TAEDA_COMPLEX
template <class R> FN Complex<R> sin_anywhere(Complex<R> x) { return sin(x); }
template <class R> FN Complex<R> log1p(Complex<R> x) { return log(Complex<R>(R(1) + x.re, x.im)); }
template <class R> FN Complex<R> expm1(Complex<R> x) {
  const R s = library_sin(x.im * R(0.5)), e = ::exp(x.re);
  return {::expm1(x.re) * library_cos(x.im) - R(2) * s * s, e * library_sin(x.im)};
}
template <class R> FN Complex<R> log2(Complex<R> x) {
  const Complex<R> v = log(x);
  return {v.re / R(kLn2), v.im / R(kLn2)};
}
template <class R> FN Complex<R> log10(Complex<R> x) {
  const Complex<R> v = log(x);
  return {v.re / R(kLn10), v.im / R(kLn10)};
}
template <class R> FN Complex<R> exp2(Complex<R> x) {
  return exp(Complex<R>(x.re * R(kLn2), x.im * R(kLn2)));
}
template <class R> FN Complex<R> sigmoid(Complex<R> x) {
  return Complex<R>(R(1)) / (Complex<R>(R(1)) + exp(-x));
}

}  // namespace taeda::TAEDA_ISA
