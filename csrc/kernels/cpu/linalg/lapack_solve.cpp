// Triangular systems and the factorisations that end in them: Cholesky, LU, LDL'.
#include <type_traits>

#include "kernels/cpu/linalg/lapack_blocked.h"
#include "kernels/cpu/linalg/lapack_util.h"

// Fortran passes the length of every text behind the other arguments.
#define TAEDA_LAPACK_SOLVE(T, x, he)                                                              \
  void scipy_##x##potrs_(const char*, const int*, const int*, const T*, const int*, T*,           \
                         const int*, int*, size_t);                                               \
  void scipy_##x##potri_(const char*, const int*, T*, const int*, int*, size_t);                  \
  void scipy_##x##getrs_(const char*, const int*, const int*, const T*, const int*, const int*,   \
                         T*, const int*, int*, size_t);                                           \
  void scipy_##x##sytrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*,     \
                         size_t);                                                                 \
  void scipy_##x##sytrs_(const char*, const int*, const int*, const T*, const int*, const int*,   \
                         T*, const int*, int*, size_t);                                           \
  void scipy_##x##he##trf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*,   \
                           size_t);                                                               \
  void scipy_##x##he##trs_(const char*, const int*, const int*, const T*, const int*, const int*, \
                           T*, const int*, int*, size_t);

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;
extern "C" {
TAEDA_LAPACK_SOLVE(float, s, sy)
TAEDA_LAPACK_SOLVE(double, d, sy)
TAEDA_LAPACK_SOLVE(ComplexFloat, c, he)
TAEDA_LAPACK_SOLVE(ComplexDouble, z, he)
}

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kSmall = 12;  // matrices so small that most of a call to LAPACK is the call

template <class T> struct Routines;
#define TAEDA_ROUTINES(T, x, he)                       \
  template <> struct Routines<T> {                     \
    static constexpr auto potrs = scipy_##x##potrs_;   \
    static constexpr auto potri = scipy_##x##potri_;   \
    static constexpr auto getrs = scipy_##x##getrs_;   \
    static constexpr auto sytrf = scipy_##x##sytrf_;   \
    static constexpr auto sytrs = scipy_##x##sytrs_;   \
    static constexpr auto hetrf = scipy_##x##he##trf_; \
    static constexpr auto hetrs = scipy_##x##he##trs_; \
  };
TAEDA_ROUTINES(float, s, sy)
TAEDA_ROUTINES(double, d, sy)
TAEDA_ROUTINES(ComplexFloat, c, he)
TAEDA_ROUTINES(ComplexDouble, z, he)

const char* code(Trans t) { return t == Trans::No ? "N" : t == Trans::Yes ? "T" : "C"; }
const char* triangle(bool upper) { return upper ? "U" : "L"; }

// f(matrix, first, how many) over `many` columns or rows of every matrix, each of which is solved
// for on its own and takes some `work`: those of large matrices are dealt out in blocks.
template <class F> void each_block(int64_t batch, int64_t many, double work, F&& f) {
  const auto fair = static_cast<int64_t>(double{1 << 23} / std::max(work, 1.0));
  const int64_t block = std::max<int64_t>(fair, 32), blocks = (many + block - 1) / block;
  each(batch * blocks, work * static_cast<double>(std::min(block, many)),
       [&](int64_t begin, int64_t end) {
         for (int64_t t = begin; t < end; ++t) {
           const int64_t first = t % blocks * block;
           f(t / blocks, first, std::min(block, many - first));
         }
       });
}

// Whether right sides are best left to LAPACK's own solver.
bool is_little(int64_t n) { return n <= 64; }

template <class T> T conjugate(T x) {
  if constexpr (std::is_floating_point_v<T>) return x;
  else return std::conj(x);
}

// A small matrix's Cholesky factor, in place: element (r, c) of the lower one, or (c, r) of the
// upper one, lies at x[r * row + c * col]. Returns 0, or which leading minor is not positive, as
// LAPACK does.
template <class T> int32_t small_cholesky(int64_t n, T* x, int64_t row, int64_t col) {
  for (int64_t j = 0; j < n; ++j) {
    const T* pivots = x + j * row;
    Real<T> square = std::real(pivots[j * col]);
    for (int64_t k = 0; k < j; ++k) square -= std::norm(pivots[k * col]);
    x[j * (row + col)] = square;
    if (!(square > 0)) return static_cast<int32_t>(j + 1);
    const Real<T> pivot = std::sqrt(square);
    x[j * (row + col)] = pivot;
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = x[i * row + j * col];
      for (int64_t k = 0; k < j; ++k) sum -= x[i * row + k * col] * conjugate(pivots[k * col]);
      x[i * row + j * col] = sum / pivot;
    }
  }
  return 0;
}

// The same for some matrices at once, which hides how long each root and division takes. Returns
// false, with nothing changed, where one of them is not positive definite.
constexpr int64_t kTogether = 8;
template <class T> bool choleskys_together(int64_t n, T* x, int64_t row, int64_t col) {
  T factor[kSmall * kSmall][kTogether];
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      T* sum = factor[i * n + j];
      for (int64_t m = 0; m < kTogether; ++m) sum[m] = x[m * n * n + i * row + j * col];
      for (int64_t k = 0; k < j; ++k) {
        const T *left = factor[i * n + k], *right = factor[j * n + k];
        for (int64_t m = 0; m < kTogether; ++m) sum[m] -= left[m] * right[m];
      }
      const T* pivot = factor[j * n + j];
      if (i > j) {
        for (int64_t m = 0; m < kTogether; ++m) sum[m] /= pivot[m];
        continue;
      }
      bool positive = true;
      for (int64_t m = 0; m < kTogether; ++m) positive &= sum[m] > 0;
      if (!positive) return false;
      for (int64_t m = 0; m < kTogether; ++m) sum[m] = std::sqrt(sum[m]);
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      for (int64_t m = 0; m < kTogether; ++m)
        x[m * n * n + i * row + j * col] = factor[i * n + j][m];
    }
  }
  return true;
}

// Of the matrices from `begin` to `end`.
template <class T>
void small_choleskys(int64_t begin, int64_t end, int64_t n, bool upper, T* a, int32_t* info) {
  const int64_t row = upper ? n : 1, col = upper ? 1 : n;
  for (int64_t i = begin; i < end; i += kTogether) {
    const int64_t stop = std::min(i + kTogether, end);
    if constexpr (std::is_floating_point_v<T>) {
      if (stop - i == kTogether && choleskys_together(n, a + i * n * n, row, col)) {
        std::fill(info + i, info + stop, 0);
        continue;
      }
    }
    for (int64_t m = i; m < stop; ++m) info[m] = small_cholesky(n, a + m * n * n, row, col);
  }
}

}  // namespace

template <class T> void solve_triangular(Shape s, Triangle how, const T* a, int64_t a_step, T* b) {
  const int64_t n = how.left ? s.rows : s.cols, many = how.left ? s.cols : s.rows;
  each_block(s.batch, many, product(n, n), [&](int64_t i, int64_t first, int64_t count) {
    solve_blocks(n, count, how, a + i * a_step, n,
                 b + i * s.rows * s.cols + first * (how.left ? s.rows : 1), s.rows);
  });
}

template <class T> void cholesky(int64_t batch, int64_t n, bool upper, T* a, int32_t* info) {
  each(batch, product(n, n, n) / 3, [&](int64_t begin, int64_t end) {
    if (n <= kSmall) small_choleskys(begin, end, n, upper, a, info);
    for (int64_t i = begin; i < end; ++i) {
      T* x = a + i * n * n;
      if (n > kSmall) {
        info[i] = cholesky_blocks(n, upper, x, n);
        // OpenBLAS takes a NaN for positive.
        for (int64_t j = 0; info[i] == 0 && j < n; ++j) {
          if (!(std::real(x[j * (n + 1)]) > 0)) info[i] = narrow(j + 1);
        }
      }
      for (int64_t col = 0; col < n; ++col) {
        T* c = x + col * n;
        if (upper) std::fill(c + col + 1, c + n, T(0));
        else std::fill(c, c + col, T(0));
      }
    }
  });
}

template <class T>
void cholesky_solve(Shape s, bool upper, const T* factor, int64_t factor_step, T* b) {
  const int64_t n = s.rows;
  each_block(s.batch, s.cols, 2 * product(n, n), [&](int64_t i, int64_t first, int64_t count) {
    const T* f = factor + i * factor_step;
    T* x = b + (i * s.cols + first) * n;
    if (is_little(n)) {
      const int size = narrow(n), ld = leading(n), cols = narrow(count);
      int info = 0;
      return Routines<T>::potrs(triangle(upper), &size, &cols, f, &ld, x, &ld, &info, 1);
    }
    for (const Trans trans : {upper ? Trans::Conj : Trans::No, upper ? Trans::No : Trans::Conj})
      solve_blocks(n, count, {.left = true, .upper = upper, .unit = false, .trans = trans}, f, n, x,
                   n);
  });
}

namespace {

// Fills the other triangle of a Hermitian matrix, in squares that stay in the first cache.
template <class T> void mirror(int64_t n, bool upper, T* x) {
  constexpr int64_t side = 16;
  for (int64_t left = 0; left < n; left += side) {
    for (int64_t top = 0; top <= left; top += side) {
      for (int64_t col = left; col < std::min(left + side, n); ++col) {
        T *above = x + col * n, *below = x + col;
        const int64_t last = std::min(top + side, col);
        if (upper) {
          for (int64_t row = top; row < last; ++row) below[row * n] = conjugate(above[row]);
        } else {
          for (int64_t row = top; row < last; ++row) above[row] = conjugate(below[row * n]);
        }
      }
    }
  }
}

}  // namespace

namespace {

constexpr int64_t kTriangle = 64;  // rows of a triangle that is inverted at once
constexpr int64_t kSquare = 128;   // and of one that is squared by one product

// The first half of a triangle's rows, a multiple of what a register holds.
int64_t top_of(int64_t n) { return (n / 2 + 15) / 16 * 16; }

// w (n x n, zeros above the diagonal) = the inverse of the lower triangle l, or of l' where
// `upper`.
template <class T>
void invert_triangle(int64_t n, bool upper, const T* l, int64_t ldl, T* w, int64_t ldw) {
  if (n <= kTriangle) {
    Scratch<T> work(simd::TriangleLoops<T>::space(n, n));
    return triangle_loops<T>().inverse(n, upper, l, ldl, w, ldw, work.data());
  }
  const int64_t top = top_of(n), rest = n - top;
  const T* corner = upper ? l + top * ldl : l + top;
  T* low = w + top;
  invert_triangle(top, upper, l, ldl, w, ldw);
  invert_triangle(rest, upper, l + top * (ldl + 1), ldl, w + top * (ldw + 1), ldw);
  for (int64_t c = top; c < n; ++c) std::fill_n(w + c * ldw, top, T(0));
  // Below the first inverse is minus the second one times the corner times the first one. Read by
  // rows, as our products do, all matrices are transposed.
  Scratch<T> product(rest * top);
  gemm<T>(top, rest, top, 1, {w, ldw}, {corner, ldl, upper ? Trans::Yes : Trans::No}, 0,
          product.data(), rest);
  gemm<T>(top, rest, rest, -1, {product.data(), rest}, {w + top * (ldw + 1), ldw}, 0, low, ldw);
}

// The lower triangle of x = w' w, for a lower triangle w.
template <class T> void square_triangle(int64_t n, const T* w, int64_t ldw, T* x, int64_t ldx) {
  if (n <= kSquare) return gemm<T>(n, n, n, 1, {w, ldw}, {w, ldw, Trans::Yes}, 0, x, ldx);
  const int64_t top = top_of(n), rest = n - top;
  const T *low = w + top, *corner = w + top * (ldw + 1);
  square_triangle(top, w, ldw, x, ldx);
  gemm<T>(top, top, rest, 1, {low, ldw}, {low, ldw, Trans::Yes}, 1, x, ldx);
  gemm<T>(top, rest, rest, 1, {low, ldw}, {corner, ldw, Trans::Yes}, 0, x + top, ldx);
  square_triangle(rest, corner, ldw, x + top * (ldx + 1), ldx);
}

}  // namespace

template <class T>
void cholesky_inverse(int64_t batch, int64_t n, bool upper, T* a, int32_t* info) {
  each(batch, product(n, n, n), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_floating_point_v<T>) {
      Scratch<T> memory(n * n);
      for (int64_t i = begin; i < end; ++i) {
        T* x = a + i * n * n;
        info[i] = 0;
        for (int64_t j = n; j-- > 0;) info[i] = x[j * (n + 1)] == T(0) ? narrow(j + 1) : info[i];
        if (info[i] == 0) {
          invert_triangle(n, upper, x, n, memory.data(), n);
          square_triangle(n, memory.data(), n, x, n);
        }
        mirror(n, info[i] == 0 ? false : upper, x);
      }
    } else {
      const int size = narrow(n), ld = leading(n);
      for (int64_t i = begin; i < end; ++i) {
        T* x = a + i * n * n;
        Routines<T>::potri(triangle(upper), &size, x, &ld, info + i, 1);
        mirror(n, upper, x);
      }
    }
  });
}

namespace {

// What LAPACK compares when it looks for a pivot.
template <class T> Real<T> pivot_size(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::abs(x);
  else return std::abs(x.real()) + std::abs(x.imag());
}

// A small matrix's LU factors, in place, with rows exchanged. Returns 0, or where the first pivot
// of 0 is, as LAPACK does.
template <class T> int32_t small_lu(int64_t m, int64_t n, T* a, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* column = a + j * m;
    int64_t best = j;
    for (int64_t i = j + 1; i < m; ++i) {
      if (pivot_size(column[i]) > pivot_size(column[best])) best = i;
    }
    pivots[j] = static_cast<int32_t>(best + 1);
    if (column[best] == T(0)) {
      if (!info) info = static_cast<int32_t>(j + 1);
    } else {
      if (best != j) {
        for (int64_t c = 0; c < n; ++c) std::swap(a[c * m + j], a[c * m + best]);
      }
      for (int64_t i = j + 1; i < m; ++i) column[i] /= column[j];
    }
    for (int64_t c = j + 1; c < n; ++c) {
      const T factor = a[c * m + j];
      for (int64_t i = j + 1; i < m; ++i) a[c * m + i] -= column[i] * factor;
    }
  }
  return info;
}
// b := A^-1 b for columns b of n elements, from these factors.
template <class T>
void small_lu_solve(int64_t n, int64_t cols, const T* lu, const int32_t* pivots, T* b) {
  constexpr bool divides = std::is_floating_point_v<T>;  // which takes long for complex numbers
  T pivot[kSmall];
  for (int64_t j = 0; j < n; ++j) pivot[j] = divides ? lu[j * (n + 1)] : T(1) / lu[j * (n + 1)];
  for (T* const end = b + n * cols; b != end; b += n) {
    for (int64_t i = 0; i < n; ++i) std::swap(b[i], b[pivots[i] - 1]);
    for (int64_t j = 0; j < n; ++j) {
      const T factor = b[j];
      for (int64_t i = j + 1; i < n; ++i) b[i] -= lu[j * n + i] * factor;
    }
    for (int64_t j = n; j-- > 0;) {
      const T factor = b[j] = divides ? b[j] / pivot[j] : b[j] * pivot[j];
      for (int64_t i = 0; i < j; ++i) b[i] -= lu[j * n + i] * factor;
    }
  }
}

}  // namespace

template <class T> void lu_factor(Shape s, T* a, int32_t* pivots, int32_t* info) {
  const int64_t k = std::min(s.rows, s.cols), size = s.rows * s.cols;
  const int64_t lanes = s.batch > 1 ? factored_at_once<T>(s.rows, s.cols) : 0;
  auto some = [&](int64_t begin, int64_t end) {
    if constexpr (std::is_floating_point_v<T>) {
      for (int64_t i = begin; lanes && i < end; i += lanes)
        small_loops<T>().lu(std::min(lanes, end - i), s.rows, s.cols, a + i * size, pivots + i * k,
                            info + i);
      if (lanes) return;
    }
    for (int64_t i = begin; i < end; ++i) {
      T* x = a + i * size;
      info[i] = s.rows <= kSmall && s.cols <= kSmall
                    ? small_lu(s.rows, s.cols, x, pivots + i * k)
                    : lu_blocks(s.rows, s.cols, x, s.rows, pivots + i * k);
    }
  };
  each(s.batch, product(s.rows, s.cols, k), some, std::max<int64_t>(lanes, 1));
}

template <class T>
void lu_solve(Shape s, Trans trans, const T* lu, int64_t lu_step, const int32_t* pivots,
              int64_t pivot_step, T* b) {
  const int64_t n = s.rows;
  if constexpr (std::is_floating_point_v<T>) {
    const int64_t lanes = s.batch > 1 && s.cols <= n ? factored_at_once<T>(n, n) : 0;
    auto some = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += lanes)
        small_loops<T>().lu_solve(std::min(lanes, end - i), n, s.cols, trans != Trans::No,
                                  lu + i * lu_step, lu_step, pivots + i * pivot_step, pivot_step,
                                  b + i * n * s.cols);
    };
    if (lanes) return each(s.batch, 2 * product(n, n, s.cols), some, lanes);
  }
  each_block(s.batch, s.cols, 2 * product(n, n), [&](int64_t i, int64_t first, int64_t count) {
    const T* a = lu + i * lu_step;
    const int32_t* order = pivots + i * pivot_step;
    T* x = b + (i * s.cols + first) * n;
    if (trans == Trans::No && n <= kSmall) return small_lu_solve(n, count, a, order, x);
    if (is_little(n)) {
      const int size = narrow(n), ld = leading(n), cols = narrow(count);
      int info = 0;
      return Routines<T>::getrs(code(trans), &size, &cols, a, &ld, order, x, &ld, &info, 1);
    }
    const bool plain = trans == Trans::No;
    if (plain) swap_rows(count, x, n, order, n, true);
    for (const bool upper : {!plain, plain})  // the lower factor comes first, or last
      solve_blocks(n, count, {.left = true, .upper = upper, .unit = !upper, .trans = trans}, a, n,
                   x, n);
    if (!plain) swap_rows(count, x, n, order, n, false);
  });
}

template <class T>
void ldl_factor(int64_t batch, int64_t n, bool hermitian, T* a, int32_t* pivots, int32_t* info) {
  const int size = narrow(n), ld = leading(n);
  const auto factor = hermitian ? Routines<T>::hetrf : Routines<T>::sytrf;
  T answer{};
  const int query = -1;
  int status = 0;
  factor("L", &size, a, &ld, pivots, &answer, &query, &status, 1);
  const int lwork = work_size(answer);
  each(batch, product(n, n, n) / 3, [&](int64_t begin, int64_t end) {
    Scratch<T> work(lwork);
    for (int64_t i = begin; i < end; ++i) {
      T* x = a + i * n * n;
      factor("L", &size, x, &ld, pivots + i * n, work.data(), &lwork, info + i, 1);
      for (int64_t col = 1; col < n; ++col) std::fill_n(x + col * n, col, T(0));
    }
  });
}

template <class T>
void ldl_solve(Shape s, bool hermitian, const T* ld, const int32_t* pivots, T* b) {
  const int n = narrow(s.rows), cols = narrow(s.cols), lead = leading(s.rows);
  const auto solve = hermitian ? Routines<T>::hetrs : Routines<T>::sytrs;
  each(s.batch, product(s.rows, s.rows, s.cols) * 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int info = 0;
      solve("L", &n, &cols, ld + i * s.rows * s.rows, &lead, pivots + i * s.rows,
            b + i * s.rows * s.cols, &lead, &info, 1);
    }
  });
}

#define TAEDA_INSTANTIATE(T)                                                               \
  template void solve_triangular<T>(Shape, Triangle, const T*, int64_t, T*);               \
  template void cholesky<T>(int64_t, int64_t, bool, T*, int32_t*);                         \
  template void cholesky_solve<T>(Shape, bool, const T*, int64_t, T*);                     \
  template void cholesky_inverse<T>(int64_t, int64_t, bool, T*, int32_t*);                 \
  template void lu_factor<T>(Shape, T*, int32_t*, int32_t*);                               \
  template void lu_solve<T>(Shape, Trans, const T*, int64_t, const int32_t*, int64_t, T*); \
  template void ldl_factor<T>(int64_t, int64_t, bool, T*, int32_t*, int32_t*);             \
  template void ldl_solve<T>(Shape, bool, const T*, const int32_t*, T*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
