// OpenBLAS's LAPACK: Routines<T>::getrf and so on, called as call(Routines<T>::getrf, m, n, ...).
#pragma once

#include <complex>
#include <limits>
#include <tuple>
#include <type_traits>

#include "base/error.h"
#include "base/openblas_buffer.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/linalg.h"

namespace taeda::cpu::lapack {

template <class T> using Real = RealOf<T>;
template <class T> inline constexpr bool is_complex = !std::is_floating_point_v<T>;

inline int narrow(double n) {
  check(n <= std::numeric_limits<int>::max(), "linalg: a matrix or its work space of ", n,
        " elements is more than LAPACK's 32-bit sizes can express");
  return static_cast<int>(n);
}
inline int narrow(int64_t n) { return narrow(static_cast<double>(n)); }

// Fortran takes the address of every argument, and the length of every text after all of them.
struct Size {
  int n;
  explicit Size(int64_t size) : n(narrow(size)) {}
  operator const int*() const { return &n; }
};
// An argument that only the routines for complex numbers have.
struct Nothing {};
template <class T, class A> auto if_complex(A a) {
  if constexpr (is_complex<T>) return a;
  else return Nothing{};
}
template <class A> auto argument(const A& a) {
  if constexpr (std::is_same_v<A, Nothing>) return std::tuple{};
  else if constexpr (std::is_same_v<A, int64_t>) return std::tuple{Size(a)};
  else if constexpr (std::is_pointer_v<A>) return std::tuple{a};
  else return std::tuple{&a};
}
template <class A> auto length_of(const A&) {
  if constexpr (std::is_same_v<A, char>) return std::tuple{size_t{1}};
  else return std::tuple{};
}
template <class... P, class... A> void call(void (*routine)(P...), const A&... a) {
  const OpenblasBuffer buffer;
  std::apply(routine, std::tuple_cat(argument(a)..., length_of(a)...));
}

// A leading dimension: at least 1.
inline int64_t leading(int64_t n) { return n > 1 ? n : 1; }

inline char code(Trans t) { return t == Trans::No ? 'N' : t == Trans::Yes ? 'T' : 'C'; }
inline char triangle(bool upper) { return upper ? 'U' : 'L'; }

// The types of the routines for T. Those for complex numbers may take a real work array as well.
template <class T> struct Types {
  using R = Real<T>;
  using I = const int*;
  using C = const char*;
  using L = size_t;
  template <class Plain, class Complex>
  using Either = std::conditional_t<is_complex<T>, Complex, Plain>;

  using trsm = void(C, C, C, C, I, I, const T*, const T*, I, T*, I, L, L, L, L);
  using trsv = void(C, C, C, I, const T*, I, T*, I, L, L, L);
  using potrf = void(C, I, T*, I, int*, L);
  using getrf = void(I, I, T*, I, int*, int*);
  using laswp = void(I, T*, I, I, I, I, I);
  using sytrf = void(C, I, T*, I, int*, T*, I, int*, L);
  using sytrs = void(C, I, I, const T*, I, I, T*, I, int*, L);
  using hetrf = sytrf;
  using hetrs = sytrs;
  using geqrf = void(I, I, T*, I, T*, T*, I, int*);
  using orgqr = void(I, I, I, T*, I, const T*, T*, I, int*);
  using ormqr = void(C, C, I, I, I, const T*, I, const T*, T*, I, T*, I, int*, L, L);
  using gesdd = Either<void(C, I, I, T*, I, R*, T*, I, T*, I, T*, I, int*, int*, L),
                       void(C, I, I, T*, I, R*, T*, I, T*, I, T*, I, R*, int*, int*, L)>;
  using gebrd = void(I, I, T*, I, T*, T*, T*, T*, T*, I, int*);
  using bdsdc = void(C, C, I, T*, T*, T*, I, T*, I, T*, int*, T*, int*, int*, L, L);
  using geev = Either<void(C, C, I, T*, I, T*, T*, T*, I, T*, I, T*, I, int*, L, L),
                      void(C, C, I, T*, I, T*, T*, I, T*, I, T*, I, R*, int*, L, L)>;
  // The steps of geev, of real numbers.
  using gebal = void(C, I, T*, I, int*, int*, R*, int*, L);
  using gehrd = void(I, I, I, T*, I, T*, T*, I, int*);
  using orghr = void(I, I, I, T*, I, const T*, T*, I, int*);
  using hseqr = void(C, C, I, I, I, T*, I, T*, T*, T*, I, T*, I, int*, L, L);
  using lahqr = void(I, I, I, I, I, T*, I, T*, T*, I, I, T*, I, int*);
  using trevc3 = void(C, C, int*, I, const T*, I, T*, I, T*, I, I, int*, T*, I, int*, L, L);
  using gebak = void(C, C, I, I, I, const R*, I, T*, I, int*, L, L);
  using syevd = Either<void(C, C, I, T*, I, R*, T*, I, int*, I, int*, L, L),
                       void(C, C, I, T*, I, R*, T*, I, R*, I, int*, I, int*, L, L)>;
  using gels = void(C, I, I, I, T*, I, T*, I, T*, I, int*, L);
  using gelsy = Either<void(I, I, I, T*, I, T*, I, int*, const R*, int*, T*, I, int*),
                       void(I, I, I, T*, I, T*, I, int*, const R*, int*, T*, I, R*, int*)>;
  using gelsd = Either<void(I, I, I, T*, I, T*, I, R*, const R*, int*, T*, I, int*, int*),
                       void(I, I, I, T*, I, T*, I, R*, const R*, int*, T*, I, R*, int*, int*)>;
  using gelss = Either<void(I, I, I, T*, I, T*, I, R*, const R*, int*, T*, I, int*),
                       void(I, I, I, T*, I, T*, I, R*, const R*, int*, T*, I, R*, int*)>;
  // Of symmetric and tridiagonal matrices; real numbers only.
  using sytrd = void(C, I, T*, I, T*, T*, T*, T*, I, int*, L);
  using sterf = void(I, T*, T*, int*);
  using stedc = void(C, I, T*, T*, T*, I, T*, I, int*, I, int*, L);
  using laed2 = void(int*, I, I, T*, T*, I, int*, T*, T*, T*, T*, T*, int*, int*, int*, int*, int*);
  using laed4 = void(I, I, const T*, const T*, T*, const T*, T*, int*);
};

template <class T> struct Routines;

// Names that differ: sy... is he... and or... is un... for (Hermitian) complex matrices.
// clang-format off
#define TAEDA_LAPACK_COMMON(F, T, x)                                                          \
  F(T, x, trsm, trsm) F(T, x, trsv, trsv) F(T, x, potrf, potrf) F(T, x, getrf, getrf)         \
  F(T, x, laswp, laswp) F(T, x, sytrf, sytrf) F(T, x, sytrs, sytrs) F(T, x, geqrf, geqrf)     \
  F(T, x, gesdd, gesdd) F(T, x, geev, geev) F(T, x, gels, gels) F(T, x, gelsy, gelsy)         \
  F(T, x, gelsd, gelsd) F(T, x, gelss, gelss)
#define TAEDA_LAPACK_REAL(F, T, x)                                                            \
  TAEDA_LAPACK_COMMON(F, T, x)                                                                \
  F(T, x, orgqr, orgqr) F(T, x, ormqr, ormqr) F(T, x, syevd, syevd) F(T, x, hetrf, sytrf)     \
  F(T, x, hetrs, sytrs) F(T, x, sytrd, sytrd) F(T, x, sterf, sterf) F(T, x, stedc, stedc)     \
  F(T, x, laed2, laed2) F(T, x, laed4, laed4) F(T, x, gebrd, gebrd) F(T, x, bdsdc, bdsdc)     \
  F(T, x, gebal, gebal) F(T, x, gehrd, gehrd) F(T, x, orghr, orghr) F(T, x, lahqr, lahqr)     \
  F(T, x, hseqr, hseqr) F(T, x, trevc3, trevc3) F(T, x, gebak, gebak)
#define TAEDA_LAPACK_COMPLEX(F, T, x)                                                         \
  TAEDA_LAPACK_COMMON(F, T, x)                                                                \
  F(T, x, orgqr, ungqr) F(T, x, ormqr, unmqr) F(T, x, syevd, heevd) F(T, x, hetrf, hetrf)     \
  F(T, x, hetrs, hetrs)
// clang-format on
#define TAEDA_DECLARE(T, x, type, name) Types<T>::type scipy_##x##name##_;
#define TAEDA_NAME(T, x, type, name) static constexpr auto type = scipy_##x##name##_;

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;
extern "C" {
TAEDA_LAPACK_REAL(TAEDA_DECLARE, float, s)
TAEDA_LAPACK_REAL(TAEDA_DECLARE, double, d)
TAEDA_LAPACK_COMPLEX(TAEDA_DECLARE, ComplexFloat, c)
TAEDA_LAPACK_COMPLEX(TAEDA_DECLARE, ComplexDouble, z)
}

template <> struct Routines<float> {
  TAEDA_LAPACK_REAL(TAEDA_NAME, float, s)
};
template <> struct Routines<double> {
  TAEDA_LAPACK_REAL(TAEDA_NAME, double, d)
};
template <> struct Routines<ComplexFloat> {
  TAEDA_LAPACK_COMPLEX(TAEDA_NAME, ComplexFloat, c)
};
template <> struct Routines<ComplexDouble> {
  TAEDA_LAPACK_COMPLEX(TAEDA_NAME, ComplexDouble, z)
};

}  // namespace taeda::cpu::lapack

// Defines the CPU's table of the kernels K, a template, for all four types.
#define TAEDA_LINALG_TABLE(K, ...)                         \
  namespace taeda {                                        \
  template <class T> const K<T> K<T>::cpu = {__VA_ARGS__}; \
  template struct K<float>;                                \
  template struct K<double>;                               \
  template struct K<std::complex<float>>;                  \
  template struct K<std::complex<double>>;                 \
  }
