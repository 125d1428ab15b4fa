// Eigenvalues and eigenvectors of Hermitian matrices. Small real ones of a batch are diagonalized
// together (simd/batched.h), one that fits a near cache by one loop (simd/eigh.h). Of a large real
// one LAPACK computes the tridiagonal form; its eigenvectors are found by divide and conquer, which
// is matrix products on all threads here and on one thread in LAPACK. Complex ones are LAPACK's.
#include <numeric>
#include <vector>

#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eigh.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kNear = 160;  // rows of a matrix that no longer fits
constexpr int64_t kPiece = 64;  // rows of a piece of the tridiagonal matrix

template <class T> const simd::EighLoops<T>& eigh_loops() {
  return typed<T>(TAEDA_PICK(eigh_kernels));
}

// Merges two neighbouring pieces of n1 and n - n1 rows, n1 <= n / 2. d: their eigenvalues; q: their
// eigenvectors, in blocks on its diagonal; order: counted from 1 within a piece, the order in which
// its eigenvalues ascend; e: the element between the pieces. All become those of the whole.
// Eigenvalues are roots of 1 + rho * sum(w[i]^2 / (poles[i] - x)), except those that a piece keeps,
// and the differences to the poles give the vectors (Gu and Eisenstat 1994). Returns LAPACK's info.
template <class R> int32_t merge(int64_t n, int64_t n1, R e, R* d, R* q, int64_t ldq, int* order) {
  using Call = Routines<R>;
  const int64_t n2 = n - n1;
  Scratch<R> memory(n * (2 * n + 4));
  Scratch<int> int_memory(5 * n);
  R *z = memory.data(), *poles = z + n, *w = poles + n, *exact = w + n, *packed = exact + n,
    *s = packed + n * n;
  int *index = int_memory.data(), *status = index + n, *types = status + n, *unused = types + n;
  for (int64_t j = 0; j < n; ++j) z[j] = q[j * ldq + (j < n1 ? n1 - 1 : n1)];
  int count = 0, info = 0;
  R rho = e;
  // How many eigenvalues change. The vectors are packed without the blocks that are zero: types[0]
  // of them have only the upper part, types[2] only the lower one, types[1] both.
  call(Call::laed2, &count, n, n1, d, q, ldq, order, &rho, z, poles, w, packed, unused, index,
       unused + n, types, &info);
  if (info) return info;
  const int64_t k = count;
  if (k == 0) {
    std::iota(order, order + n, 1);
    return 0;
  }
  const int64_t grain = std::max<int64_t>(1, (1 << 12) / k);
  parallel_for(k, grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      call(Call::laed4, k, j + 1, poles, w, q + j * ldq, &rho, d + j, status + j);
  });
  for (int64_t j = 0; j < k; ++j) info = info ? info : status[j];
  if (info) return info;
  // The w of which these roots are exact: with them the vectors are orthogonal.
  parallel_for(k, std::max<int64_t>(64, grain), [&](int64_t begin, int64_t end) {
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
  // gemm is row-major: it sees the transpose of every matrix, and factors in reverse order.
  const int64_t above = types[0] + types[1], below = types[1] + types[2];
  gemm<R>(k, n1, above, 1, {s, k}, {packed, n1}, 0, q, ldq);
  gemm<R>(k, n2, below, 1, {s + types[0], k}, {packed + n1 * above, n2}, 0, q + n1, ldq);
  call(Call::lamrg, k, n - k, d, 1, -1, order);
  return 0;
}

// A tridiagonal matrix with the diagonal d and e next to it, cut into small pieces.
template <class R> class Pieces {
 public:
  explicit Pieces(int64_t n) : n_(n), cuts_{0, n}, order_(n), d_(n), q_(n * n) {
    for (int64_t widest = n; widest > kPiece; widest = (widest + 1) / 2) {
      std::vector<int64_t> finer{0};
      for (size_t i = 1; i < cuts_.size(); ++i) {
        finer.push_back(cuts_[i - 1] + (cuts_[i] - cuts_[i - 1]) / 2);
        finer.push_back(cuts_[i]);
      }
      cuts_ = finer;
    }
    info_.resize(cuts_.size(), 0);
  }

  // Returns LAPACK's info. scale: about the matrix's norm.
  int32_t solve(const R* d, const R* e, R scale) {
    int64_t pieces = std::ssize(cuts_) - 1;
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) info_[i] = solve_piece(i, d, e, scale);
    });
    for (; pieces > 1; pieces /= 2) {
      parallel_for(pieces / 2, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = 2 * begin; i < 2 * end; i += 2) {
          const int64_t at = cuts_[i], middle = cuts_[i + 1];
          info_[i] = info_[i] ? info_[i] : info_[i + 1];
          if (info_[i]) continue;
          info_[i] = merge(cuts_[i + 2] - at, middle - at, e[middle - 1] / scale, d_.data() + at,
                           corner(at), n_, order_.data() + at);
        }
      });
      for (int64_t i = 0; i <= pieces; i += 2) {
        cuts_[i / 2] = cuts_[i];
        info_[i / 2] = info_[i];
      }
    }
    // The last merge's order may be wrong by rounding errors.
    int* order = order_.data();
    std::iota(order, order + n_, 0);
    std::stable_sort(order, order + n_, [&](int i, int j) { return d_.data()[i] < d_.data()[j]; });
    return info_[0];
  }

  R* vectors() const { return q_.data(); }
  // Of eigenvalue number i, in ascending order.
  R value(int64_t i) const { return d_.data()[order_.data()[i]]; }
  const R* vector(int64_t i) const { return q_.data() + int64_t{order_.data()[i]} * n_; }

 private:
  // The eigenvalues and eigenvectors of one piece, without what it shares with its neighbours.
  int32_t solve_piece(int64_t piece, const R* d, const R* e, R scale) {
    Scratch<R> work(simd::EighLoops<R>::space(kPiece)), own_e(kPiece);
    const int64_t at = cuts_[piece], end = cuts_[piece + 1], size = end - at;
    R* const own = d_.data() + at;
    for (int64_t i = at; i < end; ++i) own[i - at] = d[i] / scale;
    for (int64_t i = at; i < end; ++i) own_e.data()[i - at] = i + 1 < end ? e[i] / scale : R(0);
    if (at > 0) own[0] -= std::abs(e[at - 1] / scale);
    if (end < n_) own[size - 1] -= std::abs(e[end - 1] / scale);
    std::fill_n(q_.data() + at * n_, size * n_, R(0));
    std::iota(order_.data() + at, order_.data() + end, 1);
    return eigh_loops<R>().of_tridiagonal(size, own, own_e.data(), corner(at), n_, work.data()) ? 0
                                                                                                : 1;
  }

  R* corner(int64_t at) const { return q_.data() + at * (n_ + 1); }

  int64_t n_;
  std::vector<int64_t> cuts_;
  std::vector<int32_t> info_;
  Scratch<int> order_;
  Scratch<R> d_, q_;
};

// The largest number of one triangle; NaN where an element is NaN.
template <class T> T largest_of(int64_t n, bool upper, const T* a) {
  T most = 0;
  for (int64_t j = 0; j < n && most == most; ++j) {
    const int64_t first = upper ? 0 : j, last = upper ? j + 1 : n;
    const T size = reflector_loops<T>().largest_size(last - first, a + j * n + first);
    most = size <= most ? most : size;
  }
  return most;
}

// The eigenvalues, and the eigenvectors over a, of a large real matrix of moderate numbers.
template <class T> int32_t eigh_divided(int64_t n, bool upper, T* a, T* values) {
  const int64_t lwork = 64 * n;
  Scratch<T> memory(3 * n + lwork);
  T *d = memory.data(), *e = d + n, *tau = e + n, *work = tau + n;
  int32_t info = 0;
  if (upper) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < j; ++i) a[i * n + j] = a[j * n + i];
    }
  }
  call(Routines<T>::sytrd, 'L', n, a, n, d, e, tau, work, lwork, &info);
  T scale = 0;
  for (int64_t i = 0; i < n; ++i)
    scale = std::max({scale, std::abs(d[i]), i + 1 < n ? std::abs(e[i]) : T(0)});
  Pieces<T> pieces(n);
  info = pieces.solve(d, e, scale);
  if (info) return info;
  multiply_reflectors(n - 1, n, true, false, n - 1, a + 1, n, tau, pieces.vectors() + 1, n);
  parallel_for(n, 64, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      values[j] = pieces.value(j) * scale;
      std::copy_n(pieces.vector(j), n, a + j * n);
    }
  });
  return 0;
}

// Those of a matrix that fits a near cache. Returns false, with the matrix as it was, where they
// are not found.
template <class T> bool eigh_near(int64_t n, bool upper, bool vectors, T* a, T* values) {
  Scratch<T> memory(simd::EighLoops<T>::space(n) + n);
  T *e = memory.data(), *space = e + n;
  if (!eigh_loops<T>().tridiagonal(n, upper, a, values, e, space)) return false;
  if (vectors) return eigh_loops<T>().vectors(n, values, e, a, space);
  int info = 0;
  call(Routines<T>::sterf, n, values, e, &info);
  return info == 0;
}

}  // namespace

template <class T>
void eigh(int64_t batch, int64_t n, bool upper, bool vectors, T* a, Real<T>* values,
          int32_t* info) {
  narrow(2 * product(n, n) + 6 * static_cast<double>(n) + 1);
  if (batch == 0) return;
  auto run = [&](int64_t i, const Workspace<T>& w) {
    call(Routines<T>::syevd, vectors ? 'V' : 'N', triangle(upper), n, a + i * n * n, leading(n),
         values + i * n, w.work, w.lwork, if_complex<T>(w.rwork), if_complex<T>(w.lrwork), w.iwork,
         w.liwork, info + i);
  };
  const WorkSizes<T> sizes([&](const Workspace<T>& w) { run(0, w); });
  auto one = [&](int64_t i) {
    if constexpr (!is_complex<T>) {
      T* x = a + i * n * n;
      info[i] = 0;
      if (n > 2 && n < kNear && eigh_near(n, upper, vectors, x, values + i * n)) return;
      if (n >= kNear && vectors && is_moderate(largest_of(n, upper, x))) {
        info[i] = eigh_divided(n, upper, x, values + i * n);
        return;
      }
    }
    sizes.use([&](const Workspace<T>& w) { run(i, w); });
  };
  auto some = [&](const auto& loops, int64_t i, int64_t count) {
    T* x = a + i * n * n;
    std::fill_n(info + i, count, 0);
    return loops.eigh(count, n, upper, x, values + i * n, vectors ? x : nullptr);
  };
  // The vectors of 2x2 matrices have the same signs in all libraries, those of larger ones do not.
  const Together how = vectors && n == 2 ? Together{} : rotated_together<T>(batch, n, n);
  each_together<T>(batch, product(n, n, n) * 4, how, some, one);
}

#define TAEDA_INSTANTIATE(T) \
  template void eigh<T>(int64_t, int64_t, bool, bool, T*, Real<T>*, int32_t*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
