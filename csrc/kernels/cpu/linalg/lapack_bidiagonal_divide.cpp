// Singular vectors of a bidiagonal matrix by divide and conquer (Gu and Eisenstat 1995). LAPACK
// solves for small pieces and single roots, and says which of them change; the pieces are put
// together by matrix products, and all of it with all threads.
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/cpu/linalg/lapack_bidiagonal.h"
#include "kernels/cpu/linalg/lapack_util.h"

#define TAEDA_LAPACK_DIVIDE(T, x)                                                                  \
  void scipy_##x##lasd0_(const int*, const int*, T*, T*, T*, const int*, T*, const int*,           \
                         const int*, int*, T*, int*);                                              \
  void scipy_##x##lasd2_(const int*, const int*, const int*, int*, T*, T*, const T*, const T*, T*, \
                         const int*, T*, const int*, T*, T*, const int*, T*, const int*, int*,     \
                         int*, int*, int*, int*, int*);                                            \
  void scipy_##x##lasd4_(const int*, const int*, const T*, const T*, T*, const T*, T*, T*, int*);  \
  void scipy_##x##lamrg_(const int*, const int*, const T*, const int*, const int*, int*);
extern "C" {
TAEDA_LAPACK_DIVIDE(float, s)
TAEDA_LAPACK_DIVIDE(double, d)
}

namespace taeda::cpu::lapack {
namespace {

constexpr int kPiece = 64;  // rows that LAPACK solves for
constexpr int kLeaf = 25;   // and of its pieces

template <class T> struct Routines;
#define TAEDA_ROUTINES(T, x)                         \
  template <> struct Routines<T> {                   \
    static constexpr auto lasd0 = scipy_##x##lasd0_; \
    static constexpr auto lasd2 = scipy_##x##lasd2_; \
    static constexpr auto lasd4 = scipy_##x##lasd4_; \
    static constexpr auto lamrg = scipy_##x##lamrg_; \
  };
TAEDA_ROUTINES(float, s)
TAEDA_ROUTINES(double, d)

// c (m x n) = a (m x k) b (k x n) + beta c, or a' b. Read by rows, as our products do, all matrices
// are transposed.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, bool turned, const T* b,
              int64_t ldb, T beta, T* c, int64_t ldc) {
  if (k == 0) {
    for (int64_t i = 0; beta == 0 && i < n; ++i) std::fill_n(c + i * ldc, m, T(0));
    return;
  }
  gemm<T>(n, m, k, T(1), {b, ldb}, {a, lda, turned ? Trans::Yes : Trans::No}, beta, c, ldc);
}

// A piece: n rows of an upper bidiagonal matrix, and one column more where `wider`. u (n x n) and
// vt (one more where wider) lie in larger matrices. order: such that d ascends, counted from 1.
template <class T> struct Piece {
  int n, wider;
  T *d, *e, *u, *vt;
  int ldu, ldvt;
  int* order;

  int solve() const {
    if (n <= kPiece) return solve_alone();
    const int above = n / 2, below = n - above - 1;
    const Piece first{above, 1, d, e, u, vt, ldu, ldvt, order};
    const int64_t next = above + 1;
    const Piece second{
        below, wider, d + next,    e + next, u + next * (ldu + 1), vt + next * (ldvt + 1),
        ldu,   ldvt,  order + next};
    int info[2] = {0, 0};
    parallel_for(2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) info[i] = (i == 0 ? first : second).solve();
    });
    if (info[0] || info[1]) return info[0] ? info[0] : info[1];
    return merge(above, below);
  }

 private:
  int solve_alone() const {
    const int leaf = kLeaf, m = n + wider;
    Scratch<int> iwork(8 * int64_t{n});
    Scratch<T> work(3 * int64_t{m} * m + 2 * m);
    int info = 0;
    Routines<T>::lasd0(&n, &wider, d, e, u, &ldu, vt, &ldvt, &leaf, iwork.data(), work.data(),
                       &info);
    std::copy_n(iwork.data() + 3 * n, n, order);
    return info;
  }

  int merge(int above, int below) const {
    const int64_t m = n + wider, rows = n;
    Scratch<T> memory(m + rows + rows * rows + m * m);
    Scratch<int> places(4 * rows);
    T *z = memory.data(), *poles = z + m, *u2 = poles + rows, *vt2 = u2 + rows * rows;
    int *index = places.data(), *columns = index + n, *types = columns + n, *moved = types + n;
    T alpha = d[above], beta = e[above];
    d[above] = 0;
    T scale = std::max(std::abs(alpha), std::abs(beta));
    for (int i = 0; i < n; ++i) scale = std::max(scale, std::abs(d[i]));
    for (int i = 0; i < n; ++i) d[i] /= scale;
    alpha /= scale, beta /= scale;
    int k = 0, info = 0;
    const int ldvt2 = narrow(m);
    Routines<T>::lasd2(&above, &below, &wider, &k, d, z, &alpha, &beta, u, &ldu, vt, &ldvt, poles,
                       u2, &n, vt2, &ldvt2, moved, index, columns, order, types, &info);
    if (info) return info;
    info = k == 1 ? put_one(z, u2, vt2)
                  : put_together(above, below, k, z, poles, u2, vt2, columns, types);
    if (info) return info;
    for (int i = 0; i < n; ++i) d[i] *= scale;
    const int kept = n - k, up = 1, down = -1;
    Routines<T>::lamrg(&k, &kept, d, &up, &down, order);
    return 0;
  }

  int put_one(const T* z, const T* u2, const T* vt2) const {
    const int64_t m = n + wider;
    d[0] = std::abs(z[0]);
    for (int64_t c = 0; c < m; ++c) vt[c * ldvt] = vt2[c * m];
    for (int64_t r = 0; r < n; ++r) u[r] = z[0] > 0 ? u2[r] : -u2[r];
    return 0;
  }

  // The k values that change, and their vectors: combinations of those in u2 and vt2. Behind the
  // first, types[0] of them have the upper part only, then types[1] the lower one, types[2] both.
  int put_together(int above, int below, int k, T* z, const T* poles, const T* u2, T* vt2,
                   const int* columns, const int* types) const {
    const int64_t size = k, m = n + wider, grain = std::max(1, (1 << 12) / k);
    Scratch<T> memory(2 * size * size + size);
    Scratch<int> status(size);
    T *left = memory.data(), *right = left + size * size, *exact = right + size * size;
    T square = 0;
    for (int64_t i = 0; i < size; ++i) square += z[i] * z[i];
    const T length = std::sqrt(square), rho = length * length;
    for (int64_t i = 0; i < size; ++i) z[i] /= length;
    parallel_for(size, grain, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {  // differences to the poles, and sums
        const int which = narrow(j + 1);
        Routines<T>::lasd4(&k, &which, poles, z, left + j * size, &rho, d + j, right + j * size,
                           status.data() + j);
      }
    });
    for (int64_t j = 0; j < size; ++j) {
      if (status.data()[j]) return status.data()[j];
    }
    // The z of which these values are exact: with it the vectors are orthogonal.
    parallel_for(size, grain, [&](int64_t begin, int64_t end) {
      const T *last = left + (size - 1) * size, *last_sum = right + (size - 1) * size;
      for (int64_t i = begin; i < end; ++i) exact[i] = last[i] * last_sum[i];
      for (int64_t j = 0; j + 1 < size; ++j) {
        const T *gap = left + j * size, *sum = right + j * size;
        auto times = [&](int64_t i, int64_t pole) {
          exact[i] *= gap[i] * sum[i] / (poles[i] - poles[pole]) / (poles[i] + poles[pole]);
        };
        for (int64_t i = begin; i < std::min(j + 1, end); ++i) times(i, j + 1);
        for (int64_t i = std::max(begin, j + 1); i < end; ++i) times(i, j);
      }
      for (int64_t i = begin; i < end; ++i)
        exact[i] = std::copysign(std::sqrt(std::abs(exact[i])), z[i]);
    });
    parallel_for(size, grain, [&](int64_t begin, int64_t end) {
      Scratch<T> of_right(size), of_left(size);
      T *x = of_right.data(), *y = of_left.data();
      for (int64_t j = begin; j < end; ++j) {
        T *gap = left + j * size, *sum = right + j * size, x_square = 0, y_square = 0;
        for (int64_t i = 0; i < size; ++i) {
          x[i] = exact[i] / gap[i] / sum[i];
          y[i] = i == 0 ? T(-1) : poles[i] * x[i];
        }
        for (int64_t i = 0; i < size; ++i) x_square += x[i] * x[i], y_square += y[i] * y[i];
        const T x_length = std::sqrt(x_square), y_length = std::sqrt(y_square);
        for (int64_t i = 0; i < size; ++i) {
          const int64_t from = i == 0 ? 0 : columns[i] - 1;
          sum[i] = x[from] / x_length;
          gap[i] = y[from] / y_length;
        }
      }
    });
    const int64_t lower = above + 1, lower_cols = below + wider;
    if (k == 2) {
      multiply<T>(n, k, k, u2, n, false, left, size, 0, u, ldu);
      multiply<T>(k, m, k, right, size, true, vt2, m, 0, vt, ldvt);
      return 0;
    }
    const int64_t only_above = types[0], only_below = types[1], both = types[2];
    const int64_t first_both = 1 + only_above + only_below;
    if (only_above + both == 0) {
      for (int64_t c = 0; c < k; ++c) std::copy_n(u2 + c * rows(), above, u + c * ldu);
    } else {
      multiply<T>(above, k, only_above, u2 + rows(), n, false, left + 1, size, 0, u, ldu);
      multiply<T>(above, k, both, u2 + first_both * rows(), n, false, left + first_both, size, 1, u,
                  ldu);
    }
    for (int64_t c = 0; c < k; ++c) u[c * ldu + above] = left[c * size];
    multiply<T>(below, k, both + only_below, u2 + (1 + only_above) * rows() + lower, n, false,
                left + 1 + only_above, size, 0, u + lower, ldu);
    multiply<T>(k, lower, 1 + only_above, right, size, true, vt2, m, 0, vt, ldvt);
    multiply<T>(k, lower, both, right + first_both, size, true, vt2 + first_both, m, 1, vt, ldvt);
    if (only_above > 0) {
      for (int64_t c = 0; c < k; ++c) right[c * size + only_above] = right[c * size];
      for (int64_t c = lower; c < m; ++c) vt2[c * m + only_above] = vt2[c * m];
    }
    multiply<T>(k, lower_cols, 1 + both + only_below, right + only_above, size, true,
                vt2 + lower * m + only_above, m, 0, vt + lower * ldvt, ldvt);
    return 0;
  }

  int64_t rows() const { return n; }
};

// Rotations of two neighbouring rows, that make a lower bidiagonal matrix an upper one.
template <class T> struct RowTurns {
  std::vector<T> c, s;

  RowTurns(int64_t n, T* d, T* e) : c(n - 1), s(n - 1) {
    for (int64_t i = 0; i + 1 < n; ++i) {
      const T length = std::copysign(std::hypot(d[i], e[i]), d[i]);
      c[i] = length == 0 ? T(1) : d[i] / length;
      s[i] = length == 0 ? T(0) : e[i] / length;
      d[i] = length;
      e[i] = s[i] * d[i + 1];
      d[i + 1] *= c[i];
    }
  }
  void undo(T* column) const {
    for (int64_t i = std::ssize(c); i-- > 0;) {
      const T below = column[i + 1];
      column[i + 1] = c[i] * below + s[i] * column[i];
      column[i] = c[i] * column[i] - s[i] * below;
    }
  }
};

}  // namespace

template <class T>
bool divided_svd(bool lower, int64_t n, T* values, const T* beside, T* u, int64_t ldu, T* vt,
                 int64_t ldvt) {
  std::vector<T> d(values, values + n), e(beside, beside + n - 1);
  e.push_back(0);
  std::optional<RowTurns<T>> turns;
  if (lower) turns.emplace(n, d.data(), e.data());
  T scale = 0;
  for (int64_t i = 0; i < n; ++i) scale = std::max({scale, std::abs(d[i]), std::abs(e[i])});
  // LAPACK's, of which less counts as zero.
  const T least = T(0.9) * std::numeric_limits<T>::epsilon() / 2;
  for (int64_t i = 0; i < n; ++i) {
    d[i] /= scale, e[i] /= scale;
    if (std::abs(d[i]) < least) d[i] = std::copysign(least, d[i]);
    if (i + 1 < n && !(std::abs(e[i]) >= least)) return false;
  }
  const int size = narrow(n);
  narrow(3 * product(n, n) + 4 * static_cast<double>(n));
  Scratch<T> left(n * n), right(n * n);
  Scratch<int> order(n);
  for (T* x : {left.data(), right.data()}) {
    std::fill_n(x, n * n, T(0));
    for (int64_t i = 0; i < n; ++i) x[i * (n + 1)] = 1;
  }
  const Piece<T> whole{size,         0,    d.data(), e.data(),    left.data(),
                       right.data(), size, size,     order.data()};
  if (whole.solve() != 0) return false;
  int* at = order.data();
  std::iota(at, at + n, 0);
  std::stable_sort(at, at + n, [&](int i, int j) { return d[i] > d[j]; });
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / n);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      values[j] = d[at[j]] * scale;
      std::copy_n(left.data() + at[j] * n, n, u + j * ldu);
      if (turns) turns->undo(u + j * ldu);
      for (int64_t r = 0; r < n; ++r) vt[j * ldvt + r] = right.data()[j * n + at[r]];
    }
  });
  return true;
}

template bool divided_svd<float>(bool, int64_t, float*, const float*, float*, int64_t, float*,
                                 int64_t);
template bool divided_svd<double>(bool, int64_t, double*, const double*, double*, int64_t, double*,
                                  int64_t);

}  // namespace taeda::cpu::lapack
