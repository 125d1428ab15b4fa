// Eigenvalues and eigenvectors of Hermitian matrices. Of those of moderate size one loop computes
// them (simd/eigh.h), or LAPACK, if they are complex or not to be computed with plainly. Of a large
// one LAPACK computes the eigenvectors of small pieces of its tridiagonal form; the pieces are put
// together and the vectors taken back here, by matrix products and with all threads.
#include <atomic>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/cpu/linalg/lapack_tridiagonal.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eigh.h"

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
constexpr int64_t kStrip = 64;       // eigenvectors that a task takes back
constexpr int64_t kMostHelpers = 8;  // threads that reduce one matrix

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
  // Read by rows, as our products do, all matrices are transposed.
  const int64_t above = types[0] + types[1], below = types[1] + types[2];
  gemm<R>(k, n1, above, 1, {s, k}, {packed, n1}, 0, q, ldq);
  gemm<R>(k, n2, below, 1, {s + types[0], k}, {packed + n1 * above, n2}, 0, q + n1, ldq);
  Call::lamrg(&k, &kept, d, &up, &down, order);
  return 0;
}

template <class T> const simd::EighLoops<T>& near_loops() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(eigh_kernels).f32;
  else return TAEDA_PICK(eigh_kernels).f64;
}

// A tridiagonal matrix with the diagonal d and e beside it, cut into small pieces.
template <class R> class Pieces {
 public:
  explicit Pieces(int n) : n_(n), cuts_{0, n}, order_(n), d_(n), q_(int64_t{n} * n) {
    for (int widest = n; widest > kPiece; widest = (widest + 1) / 2) {
      std::vector<int> finer{0};
      for (size_t i = 1; i < cuts_.size(); ++i) {
        finer.push_back(cuts_[i - 1] + (cuts_[i] - cuts_[i - 1]) / 2);
        finer.push_back(cuts_[i]);
      }
      cuts_ = finer;
    }
    info_.resize(cuts_.size(), 0);
  }

  int64_t count() const { return std::ssize(cuts_) - 1; }
  // How many elements of d and e a piece needs.
  int64_t needs(int64_t piece) const { return cuts_[piece + 1]; }

  // The eigenvalues and eigenvectors of one piece, less what it shares with its neighbours. The
  // scale is near the matrix's norm.
  void solve(int64_t piece, const R* d, const R* e, R scale) {
    Scratch<R> work(simd::EighLoops<R>::space(kPiece)), beside(kPiece);
    const int at = cuts_[piece], end = cuts_[piece + 1], size = end - at;
    R *const own = d_.data() + at, *const own_beside = beside.data();
    const auto take = [&] {
      for (int i = at; i < end; ++i) own[i - at] = d[i] / scale;
      for (int i = at; i < end; ++i) own_beside[i - at] = i + 1 < end ? e[i] / scale : R(0);
      if (at > 0) own[0] -= std::abs(e[at - 1] / scale);
      if (end < n_) own[size - 1] -= std::abs(e[end - 1] / scale);
      for (int j = at; j < end; ++j) std::fill_n(q_.data() + int64_t{j} * n_, n_, R(0));
    };
    take();
    if (!near_loops<R>().of_tridiagonal(size, own, own_beside, corner(at), n_, work.data())) {
      take();
      solve_by_lapack(size, own, own_beside, corner(at), &info_[piece]);
    }
    std::iota(order_.data() + at, order_.data() + end, 1);
  }

  // Puts all of them together; returns LAPACK's info.
  int merge_all(const R* e, R scale) {
    for (int64_t pieces = count(); pieces > 1; pieces /= 2) {
      parallel_for(pieces / 2, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = 2 * begin; i < 2 * end; i += 2) {
          const int at = cuts_[i], middle = cuts_[i + 1];
          const int status = merge(cuts_[i + 2] - at, middle - at, e[middle - 1] / scale,
                                   d_.data() + at, corner(at), n_, order_.data() + at);
          info_[i] = info_[i] ? info_[i] : info_[i + 1] ? info_[i + 1] : status;
        }
      });
      for (int64_t i = 0; i <= pieces; i += 2) {
        cuts_[i / 2] = cuts_[i];
        info_[i / 2] = info_[i];
      }
    }
    // The last merge's order may be wrong by what rounding does.
    int* at = order_.data();
    std::iota(at, at + n_, 0);
    std::stable_sort(at, at + n_, [&](int i, int j) { return d_.data()[i] < d_.data()[j]; });
    return info_[0];
  }

  // Of eigenvalue number i, in ascending order.
  R value(int64_t i) const { return d_.data()[order_.data()[i]]; }
  const R* vector(int64_t i) const { return q_.data() + int64_t{order_.data()[i]} * n_; }

 private:
  void solve_by_lapack(int size, R* d, R* e, R* q, int* info) const {
    constexpr int lwork = 1 + 4 * kPiece + kPiece * kPiece, liwork = 3 + 5 * kPiece;
    Scratch<R> work(lwork);
    Scratch<int> iwork(liwork);
    Tridiagonal<R>::stedc("I", &size, d, e, q, &n_, work.data(), &lwork, iwork.data(), &liwork,
                          info, 1);
  }

  R* corner(int at) const { return q_.data() + int64_t{at} * (n_ + 1); }

  int n_;
  std::vector<int> cuts_, info_;
  Scratch<int> order_;
  Scratch<R> d_, q_;
};

// ---- from there to the matrix ----

// The Q of a tridiagonal form, whose reflectors are below a's subdiagonal. Some of them together
// are I - V F V^H.
template <class T> class Reflections {
 public:
  explicit Reflections(int64_t n) : n_(n), conjugate_(n * n), product_(n * n) {}

  int64_t blocks() const { return (n_ - 1 + kReflectors - 1) / kReflectors; }
  int64_t needs(int64_t block) const { return std::min((block + 1) * kReflectors, n_ - 1); }

  void prepare(int64_t block, const T* a, const T* tau) const {
    const auto [first, many, high] = sizes(block);
    Scratch<T> memory(high * many + many * many);
    T *v = memory.data(), *factor = v + high * many, *conjugate = conjugate_.data() + first * n_;
    for (int64_t j = 0; j < many; ++j) {
      T* to = v + j * high;
      std::fill_n(to, j, T(0));
      to[j] = T(1);
      std::copy_n(a + (first + j) * n_ + first + j + 2, high - j - 1, to + j + 1);
    }
    for (int64_t r = 0; r < high; ++r) {
      for (int64_t j = 0; j < many; ++j) {
        if constexpr (is_complex<T>) conjugate[r * many + j] = std::conj(v[j * high + r]);
        else conjugate[r * many + j] = v[j * high + r];
      }
    }
    std::fill_n(factor, many * many, T(0));
    const int high_ = narrow(high), many_ = narrow(many);
    Routines<T>::larft("F", "C", &high_, &many_, v, &high_, tau + first, factor, &many_, 1, 1);
    gemm<T>(many, high, many, T(1), {factor, many}, {v, high}, T(0), product_.data() + first * n_,
            high);
  }

  // Columns of c, n high, become Q times themselves.
  void apply(int64_t columns, T* c) const {
    Scratch<T> inner(columns * kReflectors);
    for (int64_t block = blocks(); block-- > 0;) {
      const auto [first, many, high] = sizes(block);
      // Read by rows, as our products do, all matrices are transposed.
      T* part = c + first + 1;
      gemm<T>(columns, many, high, T(1), {part, n_}, {conjugate_.data() + first * n_, many}, T(0),
              inner.data(), many);
      gemm<T>(columns, high, many, T(-1), {inner.data(), many},
              {product_.data() + first * n_, high}, T(1), part, n_);
    }
  }

 private:
  struct Sizes {
    int64_t first, many, high;
  };
  Sizes sizes(int64_t block) const {
    const int64_t first = block * kReflectors;
    return {first, std::min(kReflectors, n_ - 1 - first), n_ - 1 - first};
  }

  int64_t n_;
  Scratch<T> conjugate_, product_;  // V^H and F V^H, block by block
};

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

// How large a matrix is.
template <class R> struct Size {
  R most = 0, square = 0;  // its largest number, and the sum of all numbers' squares

  [[gnu::optimize("O3"), gnu::noinline]] void take(const R* x, int64_t n) {
    constexpr int64_t lanes = 8;
    R largest[lanes] = {most}, squares[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      for (int64_t k = 0; k < lanes; ++k) {
        const R v = std::abs(x[i + k]);
        largest[k] = v > largest[k] ? v : largest[k];
        squares[k] += v * v;
      }
    }
    for (; i < n; ++i) {
      most = std::max(most, std::abs(x[i]));
      square += x[i] * x[i];
    }
    for (int64_t k = 0; k < lanes; ++k) most = std::max(most, largest[k]), square += squares[k];
  }
};

// Of the triangle; elements beside the diagonal count twice.
template <class T> Size<Real<T>> size_of(int64_t n, bool upper, const T* a) {
  using R = Real<T>;
  constexpr int64_t parts = is_complex<T> ? 2 : 1;
  Size<R> diagonal, beside;
  for (int64_t j = 0; j < n; ++j) {
    const auto* column = reinterpret_cast<const R*>(a + j * n);
    diagonal.take(column + j * parts, parts);
    if (upper) beside.take(column, j * parts);
    else beside.take(column + (j + 1) * parts, (n - j - 1) * parts);
  }
  return {std::max(diagonal.most, beside.most), diagonal.square + 2 * beside.square};
}

// Whether numbers as large as `most` can be squared, with eps to spare.
template <class R> bool is_moderate(R most) {
  const R least = std::sqrt(std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon());
  return most >= least && most <= 1 / least;
}

template <class T>
void reduce(int64_t n, T* a, Real<T>* d, Real<T>* e, T* tau, Team& team,
            std::atomic<int64_t>& finished) {
  if constexpr (is_complex<T>) {
    const int size = narrow(n), lwork = narrow(32 * n);
    int info = 0;
    Scratch<T> work(lwork);
    Routines<T>::sytrd("L", &size, a, &size, d, e, tau, work.data(), &lwork, &info, 1);
    finished.store(n, std::memory_order_release);
  } else {
    tridiagonal(n, a, d, e, tau, team, finished);
  }
}

// Work on what a thread has finished of its own.
class Followers {
 public:
  struct Task {
    int64_t needs, kind, index;
  };
  void add(int64_t needs, int64_t kind, int64_t index) { tasks_.push_back({needs, kind, index}); }
  void sort() { std::ranges::stable_sort(tasks_, {}, &Task::needs); }
  // f(task) for the next one, if all it needs is finished. Returns whether it may be worth asking
  // again.
  template <class F> bool run_one(int64_t finished, F&& f) {
    size_t at = next_.load(std::memory_order_relaxed);
    if (at >= tasks_.size() || finished < tasks_[at].needs) return false;
    if (next_.compare_exchange_strong(at, at + 1)) f(tasks_[at]);
    return true;
  }

 private:
  std::vector<Task> tasks_;
  std::atomic<size_t> next_{0};
};

// The eigenvalues, and the eigenvectors in a's place where they are wanted. norm: Frobenius's.
template <class T>
int32_t large_eigh(int64_t n, bool upper, bool vectors, Real<T> norm, T* a, Real<T>* values) {
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
  Scratch<T> tau(n);
  Scratch<R> d(n), e(n);
  std::atomic<int64_t> finished{0};
  const auto lead = [&](Team& team) {
    reduce(n, a, d.data(), e.data(), tau.data(), team, finished);
  };
  if (!vectors) {
    int info = 0;
    Team::run(kMostHelpers, lead, [] { return false; });
    Tridiagonal<R>::sterf(&size, d.data(), e.data(), &info);
    std::copy_n(d.data(), n, values);
    return info;
  }
  // At most the largest eigenvalue, as small elements are told from zero by this measure.
  const R scale = norm / std::sqrt(static_cast<R>(n));
  Pieces<R> pieces(size);
  Reflections<T> reflections(n);
  enum { kSolve, kPrepare };
  Followers followers;
  for (int64_t i = 0; i < pieces.count(); ++i) followers.add(pieces.needs(i), kSolve, i);
  for (int64_t i = 0; i < reflections.blocks(); ++i)
    followers.add(reflections.needs(i), kPrepare, i);
  followers.sort();
  Team::run(kMostHelpers, lead, [&] {
    return followers.run_one(finished.load(std::memory_order_acquire), [&](const auto& task) {
      if (task.kind == kSolve) pieces.solve(task.index, d.data(), e.data(), scale);
      else reflections.prepare(task.index, a, tau.data());
    });
  });
  const int info = pieces.merge_all(e.data(), scale);
  if (info) return info;
  parallel_for(n, kStrip, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      values[j] = pieces.value(j) * scale;
      std::copy_n(pieces.vector(j), n, a + j * n);
    }
    reflections.apply(end - begin, a + begin * n);
  });
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
        if (near && is_moderate(size_of(n, upper, x).most) &&
            near_eigh(n, upper, vectors, x, values + i * n, space.data())) {
          info[i] = 0;
          return;
        }
      }
      const Size<R> size_x = n >= least ? size_of(n, upper, x) : Size<R>{};
      if (n >= least && is_moderate(size_x.most)) {
        info[i] = large_eigh(n, upper, vectors, std::sqrt(size_x.square), x, values + i * n);
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
