// Eigenvalues and eigenvectors of Hermitian matrices. Of those of moderate size one loop computes
// them (simd/eigh.h), or LAPACK, if they are complex or not to be computed with plainly. Of a large
// one LAPACK computes the eigenvectors of small pieces of its tridiagonal form; the pieces are put
// together and the vectors taken back here, by matrix products and with all threads.
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/cpu/lapack_tridiagonal.h"
#include "kernels/cpu/lapack_util.h"
#include "kernels/cpu/simd/eigh.h"

// Fortran passes the length of every text behind the other arguments. Complex routines take a real
// work array (C stands for its argument).
#define TAEDA_REAL(argument)
#define TAEDA_COMPLEX(argument) argument,
#define TAEDA_LAPACK_EIGH(T, R, x, sy, C)                                                        \
  void scipy_##x##sy##evd_(const char*, const char*, const int*, T*, const int*, R*, T*,         \
                           const int*, C(R*) C(const int*) int*, const int*, int*, size_t,       \
                           size_t);                                                              \
  void scipy_##x##sy##trd_(const char*, const int*, T*, const int*, R*, R*, T*, T*, const int*,  \
                           int*, size_t);                                                        \
  void scipy_##x##larft_(const char*, const char*, const int*, const int*, const T*, const int*, \
                         const T*, T*, const int*, size_t, size_t);
#define TAEDA_LAPACK_TRIDIAGONAL(R, x)                                                           \
  void scipy_##x##stedc_(const char*, const int*, R*, R*, R*, const int*, R*, const int*, int*,  \
                         const int*, int*, size_t);                                              \
  void scipy_##x##laed2_(int*, const int*, const int*, R*, R*, const int*, int*, R*, R*, R*, R*, \
                         R*, int*, int*, int*, int*, int*);                                      \
  void scipy_##x##laed4_(const int*, const int*, const R*, const R*, R*, const R*, R*, int*);    \
  void scipy_##x##sterf_(const int*, R*, R*, int*);                                              \
  void scipy_##x##lamrg_(const int*, const int*, const R*, const int*, const int*, int*);

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;
extern "C" {
TAEDA_LAPACK_EIGH(float, float, s, sy, TAEDA_REAL)
TAEDA_LAPACK_EIGH(double, double, d, sy, TAEDA_REAL)
TAEDA_LAPACK_EIGH(ComplexFloat, float, c, he, TAEDA_COMPLEX)
TAEDA_LAPACK_EIGH(ComplexDouble, double, z, he, TAEDA_COMPLEX)
TAEDA_LAPACK_TRIDIAGONAL(float, s)
TAEDA_LAPACK_TRIDIAGONAL(double, d)
}

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kNear = 160;   // rows and columns of a real matrix that is too large for one loop
constexpr int64_t kLarge = 128;  // of a complex one that is worth more than a call
constexpr int kPiece = 64;       // rows of a piece of the tridiagonal matrix
constexpr int64_t kReflectors = 64;  // applied in one product

template <class T> struct Routines;
template <class R> struct Tridiagonal;
#define TAEDA_ROUTINES(T, x, sy)                       \
  template <> struct Routines<T> {                     \
    static constexpr auto syevd = scipy_##x##sy##evd_; \
    static constexpr auto sytrd = scipy_##x##sy##trd_; \
    static constexpr auto larft = scipy_##x##larft_;   \
  };
#define TAEDA_TRIDIAGONAL(R, x)                      \
  template <> struct Tridiagonal<R> {                \
    static constexpr auto stedc = scipy_##x##stedc_; \
    static constexpr auto laed2 = scipy_##x##laed2_; \
    static constexpr auto laed4 = scipy_##x##laed4_; \
    static constexpr auto sterf = scipy_##x##sterf_; \
    static constexpr auto lamrg = scipy_##x##lamrg_; \
  };
TAEDA_ROUTINES(float, s, sy)
TAEDA_ROUTINES(double, d, sy)
TAEDA_ROUTINES(ComplexFloat, c, he)
TAEDA_ROUTINES(ComplexDouble, z, he)
TAEDA_TRIDIAGONAL(float, s)
TAEDA_TRIDIAGONAL(double, d)

template <class T> inline constexpr bool is_complex = !std::is_floating_point_v<T>;

// ---- the tridiagonal matrix, by divide and conquer ----

// Puts two neighbouring pieces together, n1 and n - n1 rows with n1 <= n / 2. d: their eigenvalues;
// q: their eigenvectors, in blocks on its diagonal; order: counted from 1 within a piece, the order
// in which its eigenvalues ascend; e: the element between the pieces. All become those of the
// whole. Eigenvalues are roots of 1 + rho * sum(w[i]^2 / (poles[i] - x)) but for those that a piece
// keeps, and the differences to the poles give the vectors (Gu and Eisenstat 1994). Returns
// LAPACK's info.
template <class R> int merge(int n, int n1, R e, R* d, R* q, int ldq, int* order) {
  using Call = Tridiagonal<R>;
  const int64_t n2 = n - n1;
  Scratch<R> memory(int64_t{n} * (2 * n + 4));
  Scratch<int> places(5 * int64_t{n});
  R *z = memory.data(), *poles = z + n, *w = poles + n, *exact = w + n, *packed = exact + n,
    *s = packed + int64_t{n} * n;
  int *index = places.data(), *status = index + n, *types = status + n, *unused = types + n;
  for (int64_t j = 0; j < n; ++j) z[j] = q[j * ldq + (j < n1 ? n1 - 1 : n1)];
  int k = 0, info = 0;
  R rho = e;
  // Which eigenvalues change: k of them. The vectors are packed without the blocks that are zero:
  // types[0] of them have only the upper part, types[2] only the lower one, types[1] both.
  Call::laed2(&k, &n, &n1, d, q, &ldq, order, &rho, z, poles, w, packed, unused, index, unused + n,
              types, &info);
  if (info) return info;
  const int kept = n - k, up = 1, down = -1;
  if (k == 0) {
    for (int j = 0; j < n; ++j) order[j] = j + 1;
    return 0;
  }
  const int64_t grain = std::max(1, (1 << 12) / k);
  parallel_for(k, grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const int which = static_cast<int>(j) + 1;
      Call::laed4(&k, &which, poles, w, q + j * ldq, &rho, d + j, status + j);
    }
  });
  for (int64_t j = 0; j < k; ++j) info = info ? info : status[j];
  if (info) return info;
  // The w of which these roots are exact: with them the vectors are orthogonal.
  parallel_for(k, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) exact[i] = q[i * ldq + i];
    for (int64_t j = 0; j < k; ++j) {
      const R* gap = q + j * ldq;
      for (int64_t i = begin; i < std::min(j, end); ++i) exact[i] *= gap[i] / (poles[i] - poles[j]);
      for (int64_t i = std::max(begin, j + 1); i < end; ++i)
        exact[i] *= gap[i] / (poles[i] - poles[j]);
    }
    for (int64_t i = begin; i < end; ++i) exact[i] = std::copysign(std::sqrt(-exact[i]), w[i]);
  });
  parallel_for(k, grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      R *gap = q + j * ldq, *to = s + j * k, square = 0;
      if (k > 2) {  // else these are the vectors
        for (int64_t i = 0; i < k; ++i) gap[i] = exact[i] / gap[i];
        for (int64_t i = 0; i < k; ++i) square += gap[i] * gap[i];
      }
      const R length = k > 2 ? std::sqrt(square) : R(1);
      for (int64_t i = 0; i < k; ++i) to[i] = gap[index[i] - 1] / length;
    }
  });
  // Read by rows, as our products do, all matrices are transposed.
  const int64_t above = types[0] + types[1], below = types[1] + types[2];
  gemm<R>(k, n1, above, 1, {s, k}, {packed, n1}, 0, q, ldq);
  gemm<R>(k, n2, below, 1, {s + types[0], k}, {packed + n1 * above, n2}, 0, q + n1, ldq);
  Call::lamrg(&k, &kept, d, &up, &down, order);
  return 0;
}

// The eigenvalues, into d, and eigenvectors, into q (n x n zeros), of a tridiagonal matrix with the
// diagonal d and e beside it, which is lost. order: as merge gives it.
template <class R> int tridiagonal_eigh(int n, R* d, R* e, R* q, int* order) {
  std::vector<int> cuts{0, n};
  for (int widest = n; widest > kPiece; widest = (widest + 1) / 2) {
    std::vector<int> finer{0};
    for (size_t i = 1; i < cuts.size(); ++i) {
      finer.push_back(cuts[i - 1] + (cuts[i] - cuts[i - 1]) / 2);
      finer.push_back(cuts[i]);
    }
    cuts = finer;
  }
  for (size_t i = 1; i + 1 < cuts.size(); ++i) {
    const R between = std::abs(e[cuts[i] - 1]);
    d[cuts[i] - 1] -= between;
    d[cuts[i]] -= between;
  }
  auto corner = [&](int at) { return q + int64_t{at} * (n + 1); };
  auto pieces = static_cast<int64_t>(cuts.size()) - 1;
  std::vector<int> info(cuts.size(), 0);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    constexpr int lwork = 1 + 4 * kPiece + kPiece * kPiece, liwork = 3 + 5 * kPiece;
    Scratch<R> work(lwork);
    Scratch<int> iwork(liwork);
    for (int64_t i = begin; i < end; ++i) {
      const int at = cuts[i], size = cuts[i + 1] - at;
      Tridiagonal<R>::stedc("I", &size, d + at, e + at, corner(at), &n, work.data(), &lwork,
                            iwork.data(), &liwork, &info[i], 1);
      for (int j = 0; j < size; ++j) order[at + j] = j + 1;
    }
  });
  for (; pieces > 1; pieces /= 2) {
    parallel_for(pieces / 2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = 2 * begin; i < 2 * end; i += 2) {
        const int at = cuts[i], middle = cuts[i + 1];
        const int status =
            merge(cuts[i + 2] - at, middle - at, e[middle - 1], d + at, corner(at), n, order + at);
        info[i] = info[i] ? info[i] : info[i + 1] ? info[i + 1] : status;
      }
    });
    for (int64_t i = 0; i <= pieces; i += 2) {
      cuts[i / 2] = cuts[i];
      info[i / 2] = info[i];
    }
  }
  return info[0];
}

// ---- from there to the matrix ----

// c (n x n) = Q c for the Q of a tridiagonal form, whose reflectors are below a's subdiagonal. Some
// of them together are I - V F V^H.
template <class T> void apply_reflectors(int64_t n, const T* a, const T* tau, T* c) {
  Scratch<T> memory(n * kReflectors * 3 + kReflectors * kReflectors);
  T *v = memory.data(), *vf = v + n * kReflectors, *w = vf + n * kReflectors,
    *factor = w + n * kReflectors;
  const int64_t all = n - 1;
  for (int64_t first = (all - 1) / kReflectors * kReflectors; first >= 0; first -= kReflectors) {
    const int64_t many = std::min(kReflectors, all - first), high = all - first;
    for (int64_t j = 0; j < many; ++j) {
      T* to = v + j * high;
      std::fill_n(to, j, T(0));
      to[j] = T(1);
      std::copy_n(a + (first + j) * n + first + j + 2, high - j - 1, to + j + 1);
    }
    std::fill_n(factor, many * many, T(0));
    const int high_ = narrow(high), many_ = narrow(many);
    Routines<T>::larft("F", "C", &high_, &many_, v, &high_, tau + first, factor, &many_, 1, 1);
    // Read by rows, as our products do, all matrices are transposed.
    T* part = c + first + 1;
    gemm<T>(many, high, many, T(1), {factor, many}, {v, high}, T(0), vf, high);
    gemm<T>(n, many, high, T(1), {part, n}, {v, high, Trans::Conj}, T(0), w, many);
    gemm<T>(n, high, many, T(-1), {w, many}, {vf, high}, T(1), part, n);
  }
}

template <class T> const simd::EighLoops<T>& near_loops() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(eigh_kernels).f32;
  else return TAEDA_PICK(eigh_kernels).f64;
}

// The eigenvalues, and the eigenvectors in a's place where they are wanted, of a matrix of moderate
// size. Returns false, with the matrix as it was, where they are not found.
template <class T> bool near_eigh(int64_t n, bool upper, bool vectors, T* a, T* values, T* space) {
  Scratch<T> memory(n);
  T* e = memory.data();
  near_loops<T>().tridiagonal(n, upper, a, values, e, space);
  if (vectors) return near_loops<T>().vectors(n, values, e, a, space);
  const int size = narrow(n);
  int info = 0;
  Tridiagonal<T>::sterf(&size, values, e, &info);
  return info == 0;
}

template <class T> Real<T> largest(int64_t n, bool upper, const T* a) {
  Real<T> most = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = upper ? 0 : j; i < (upper ? j + 1 : n); ++i)
      most = std::max(most, std::abs(a[j * n + i]));
  }
  return most;
}

// Whether numbers as large as `most` can be squared, with eps to spare.
template <class R> bool is_moderate(R most) {
  const R least = std::sqrt(std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon());
  return most >= least && most <= 1 / least;
}

// The eigenvalues, and the eigenvectors in a's place where they are wanted.
template <class T> int32_t large_eigh(int64_t n, bool upper, bool vectors, T* a, Real<T>* values) {
  using R = Real<T>;
  if (upper) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < j; ++i) {
        if constexpr (is_complex<T>) a[i * n + j] = std::conj(a[j * n + i]);
        else a[i * n + j] = a[j * n + i];
      }
    }
  }
  const int size = narrow(n);
  int info = 0;
  Scratch<T> tau(n);
  Scratch<R> d(n), e(n), q(vectors ? n * n : 1);
  Scratch<int> order(n);
  if constexpr (is_complex<T>) {
    const int lwork = narrow(32 * n);
    Scratch<T> work(lwork);
    Routines<T>::sytrd("L", &size, a, &size, d.data(), e.data(), tau.data(), work.data(), &lwork,
                       &info, 1);
  } else {
    tridiagonal(n, a, d.data(), e.data(), tau.data());
  }
  if (!vectors) {
    Tridiagonal<R>::sterf(&size, d.data(), e.data(), &info);
    std::copy_n(d.data(), n, values);
    return info;
  }
  e.data()[n - 1] = 0;
  R scale = 0;
  for (int64_t i = 0; i < n; ++i)
    scale = std::max({scale, std::abs(d.data()[i]), std::abs(e.data()[i])});
  for (int64_t i = 0; i < n; ++i) d.data()[i] /= scale, e.data()[i] /= scale;
  std::fill_n(q.data(), n * n, R(0));
  info = tridiagonal_eigh(size, d.data(), e.data(), q.data(), order.data());
  if (info) return info;
  int* at = order.data();  // the last merge's order may be wrong by what rounding does
  std::iota(at, at + n, 0);
  std::stable_sort(at, at + n, [&](int i, int j) { return d.data()[i] < d.data()[j]; });
  Scratch<T> sorted(n * n);
  parallel_for(n, std::max<int64_t>(1, (1 << 14) / n), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const int64_t from = at[j];
      values[j] = d.data()[from] * scale;
      std::copy_n(q.data() + from * n, n, sorted.data() + j * n);
    }
  });
  apply_reflectors(n, a, tau.data(), sorted.data());
  std::copy_n(sorted.data(), n * n, a);
  return 0;
}

}  // namespace

template <class T>
void eigh(int64_t batch, int64_t n, bool upper, bool vectors, T* a, Real<T>* values,
          int32_t* info) {
  using R = Real<T>;
  const int size = narrow(n), ld = leading(n);
  narrow(2 * product(n, n) + 6 * static_cast<double>(n) + 1);
  auto run = [&](T* x, R* w, T* work, int lwork, [[maybe_unused]] R* rwork,
                 [[maybe_unused]] int lrwork, int* iwork, int liwork, int* status) {
    const char *job = vectors ? "V" : "N", *uplo = upper ? "U" : "L";
    if constexpr (is_complex<T>)
      Routines<T>::syevd(job, uplo, &size, x, &ld, w, work, &lwork, rwork, &lrwork, iwork, &liwork,
                         status, 1, 1);
    else
      Routines<T>::syevd(job, uplo, &size, x, &ld, w, work, &lwork, iwork, &liwork, status, 1, 1);
  };
  T answer{};
  R real_answer{};
  int int_answer = 0, status = 0;
  run(a, values, &answer, -1, &real_answer, -1, &int_answer, -1, &status);
  const int lwork = work_size(answer), lrwork = work_size(real_answer),
            liwork = std::max(int_answer, 1);
  // The vectors of 2x2 matrices have the same signs in all libraries, those of larger ones do not.
  const int64_t lanes = vectors && n == 2 ? 0 : rotated_at_once<T>(n, n);
  const bool near = !is_complex<T> && n > 2 && n < kNear;
  const int64_t least = is_complex<T> ? kLarge : kNear;
  auto some = [&](int64_t begin, int64_t end) {
    Scratch<T> work(lwork);
    Scratch<R> rwork(lrwork);
    Scratch<int> iwork(liwork);
    Scratch<T> space(near ? simd::EighLoops<Real<T>>::space(n) : 1);
    auto alone = [&](int64_t i) {
      T* x = a + i * n * n;
      if constexpr (!is_complex<T>) {
        if (near && is_moderate(largest(n, upper, x)) &&
            near_eigh(n, upper, vectors, x, values + i * n, space.data())) {
          info[i] = 0;
          return;
        }
      }
      if (n >= least && is_moderate(largest(n, upper, x))) {
        info[i] = large_eigh(n, upper, vectors, x, values + i * n);
      } else {
        run(x, values + i * n, work.data(), lwork, rwork.data(), lrwork, iwork.data(), liwork,
            info + i);
      }
    };
    if constexpr (!is_complex<T>) {
      auto together = [&](int64_t i, int64_t count) {
        T* x = a + i * n * n;
        std::fill_n(info + i, count, 0);
        return small_loops<T>().eigh(count, n, upper, x, values + i * n, vectors ? x : nullptr);
      };
      const int64_t few = few_to_rotate(lanes, n, n);
      if (lanes) return each_together(begin, end, lanes, few, together, alone);
    }
    for (int64_t i = begin; i < end; ++i) alone(i);
  };
  each(batch, product(n, n, n) * 4, some, std::max<int64_t>(lanes, 1));
}

#define TAEDA_INSTANTIATE(T) \
  template void eigh<T>(int64_t, int64_t, bool, bool, T*, Real<T>*, int32_t*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
