// Triangular systems and the factorizations that end in them: Cholesky, LU, LDL'.
#include "kernels/cpu/common/sizes.h"
#include "kernels/cpu/common/transpose.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/triangle.h"
#include "kernels/matrices.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kSolvePanel = 64, kCholeskyBlock = 384;  // columns whose factors LAPACK finds
constexpr int64_t kSolveStrip = 128;                       // columns that a thread takes
constexpr int64_t kSmallCholesky = 8;
constexpr TriangularSystem kUnitLower{
    .left = true, .upper = false, .unit = true, .trans = Trans::No};

// f(matrix, first, count) over the right sides of every matrix, each of which takes some `work`;
// those of large matrices are cut into blocks.
template <class F> void each_block(int64_t batch, int64_t sides, double work, F&& f) {
  const auto fair = static_cast<int64_t>(double{1 << 23} / std::max(work, 1.0));
  const int64_t quarter = std::clamp<int64_t>(sides / 64 * 16, 32, 256);
  const int64_t block = std::max(fair, quarter), blocks = ceil_div(sides, block);
  each(batch * blocks, work * static_cast<double>(std::min(block, sides)),
       [&](int64_t begin, int64_t end) {
         for (int64_t t = begin; t < end; ++t) {
           const int64_t first = t % blocks * block;
           f(t / blocks, first, std::min(block, sides - first));
         }
       });
}

// f(first, count) over strips of columns.
template <class F> void each_strip(int64_t columns, F&& f) {
  parallel_each(ceil_div(columns, kSolveStrip), 1, [&](int64_t s) {
    f(s * kSolveStrip, std::min(kSolveStrip, columns - s * kSolveStrip));
  });
}

// Exchanges rows of a (n columns) as the k pivots say; `step` -1: from the last one to the first.
template <class T>
void swap_rows(int64_t n, T* a, int64_t ld, const int32_t* pivots, int64_t k, int64_t step = 1) {
  call(Routines<T>::laswp, n, a, leading(ld), int64_t{1}, k, pivots, step);
}

// The first of two parts, a multiple of what a register holds.
int64_t half_of(int64_t n) { return (n / 2 + 15) / 16 * 16; }

// Panels are LAPACK's, which runs on one thread. While other threads apply a panel to what is right
// of it and exchange the rows of what is left of it, one thread applies it to the next panel and
// factors that already. Returns the first pivot that is zero, counted from 1, or 0.
template <class T> int32_t lu_panels(int64_t m, int64_t n, T* a, int64_t ld, int32_t* pivots) {
  const int64_t k = std::min(m, n);
  int32_t info = 0;
  const auto factor = [&](int64_t top) {
    int32_t zero = 0;
    call(Routines<T>::getrf, m - top, std::min(kSolvePanel, k - top), a + top * (ld + 1),
         leading(ld), pivots + top, &zero);
    if (zero && !info) info = zero + narrow(top);
  };
  factor(0);
  for (int64_t top = 0; top < k; top += kSolvePanel) {
    const int64_t width = std::min(kSolvePanel, k - top), below = top + width;
    const int64_t right = ceil_div(n - below, kSolvePanel), left = top / kSolvePanel;
    T* panel = a + top * (ld + 1);
    parallel_each(right + left, 1, [&](int64_t t) {
      const int64_t first = t < right ? below + t * kSolvePanel : (t - right) * kSolvePanel;
      const int64_t count = std::min(kSolvePanel, n - first);
      T* b = a + first * ld + top;
      swap_rows(count, b, ld, pivots + top, width);
      if (t >= right) return;
      solve_triangle(width, count, kUnitLower, panel, ld, b, ld);
      gemm(count, m - below, width, T(-1), {b, ld}, {panel + width, ld}, T(1), b + width, ld);
      if (t == 0 && below < k) factor(below);
    });
  }
  for (int64_t i = kSolvePanel; i < k; ++i) pivots[i] += narrow(i / kSolvePanel * kSolvePanel);
  return info;
}

// Halves of a matrix of more panels, and matrix products on all threads between them.
template <class T> int32_t lu_recursive(int64_t m, int64_t n, T* a, int64_t ld, int32_t* pivots) {
  const int64_t k = std::min(m, n), left = half_of(k), right = n - left;
  if (k <= 4 * kSolvePanel) return lu_panels(m, n, a, ld, pivots);
  const int32_t info = lu_recursive(m, left, a, ld, pivots);
  T *beside = a + left * ld, *corner = beside + left;
  each_strip(right, [&](int64_t first, int64_t count) {
    T* b = beside + first * ld;
    swap_rows(count, b, ld, pivots, left);
    solve_triangle(left, count, kUnitLower, a, ld, b, ld);
  });
  gemm(right, m - left, left, T(-1), {beside, ld}, {a + left, ld}, T(1), corner, ld);
  const int32_t later = lu_recursive(m - left, right, corner, ld, pivots + left);
  each_strip(left, [&](int64_t first, int64_t count) {
    swap_rows(count, a + left + first * ld, ld, pivots + left, k - left);
  });
  for (int64_t i = left; i < k; ++i) pivots[i] += narrow(left);
  return info || !later ? info : later + narrow(left);
}

// The same for a = L L^H or U^H U; returns which leading minor is not positive, or 0. Part of the
// other triangle is overwritten.
template <class T> int32_t cholesky_recursive(int64_t n, bool upper, T* a, int64_t ld) {
  int32_t info = 0;
  if (n <= kCholeskyBlock) {
    call(Routines<T>::potrf, triangle(upper), n, a, leading(ld), &info);
    return info;
  }
  const int64_t top = half_of(n), rest = n - top;
  info = cholesky_recursive(top, upper, a, ld);
  if (info) return info;
  T *beside = upper ? a + top * ld : a + top, *corner = a + top * (ld + 1);
  each_strip(rest, [&](int64_t first, int64_t count) {
    solve_triangle(top, count, {.left = upper, .upper = upper, .unit = false, .trans = Trans::Conj},
                   a, ld, beside + first * (upper ? ld : 1), ld);
  });
  for (int64_t j = 0; j < rest; j += kSolveStrip) {
    const int64_t width = std::min(kSolveStrip, rest - j);
    if (upper) {
      gemm(width, j + width, top, T(-1), {beside + j * ld, ld}, {beside, ld, Trans::Conj}, T(1),
           corner + j * ld, ld);
    } else {
      gemm(width, rest - j, top, T(-1), {beside + j, ld, Trans::Conj}, {beside + j, ld}, T(1),
           corner + j * (ld + 1), ld);
    }
  }
  info = cholesky_recursive(rest, upper, corner, ld);
  return info ? info + static_cast<int32_t>(top) : 0;
}

// x op(t) = x for x (sides x n) and a small triangle.
template <class T>
void substitute(int64_t n, int64_t sides, bool upper, bool transposed, bool unit, const T* t,
                int64_t ldt, T* x, int64_t ldx) {
  constexpr int64_t most = simd::TriangleLoops<T>::kMost;
  alignas(64) T columns[most * most];
  if (transposed) transpose(t, ldt, n, n, columns, most);
  const T* m = transposed ? columns : t;
  const int64_t col = transposed ? most : ldt;
  const auto solve = typed<T>(TAEDA_PICK(triangle_kernels)).solve;
  if (upper != transposed) return solve(n, sides, unit, m, 1, col, x, ldx);
  solve(n, sides, unit, m + (n - 1) * (col + 1), -1, -col, x + (n - 1) * ldx, -ldx);
}

// Small triangles by substitution, matrix products between them.
template <class T>
void solve_by_halves(int64_t n, int64_t sides, const TriangularSystem& how, const T* t, int64_t ldt,
                     T* b, int64_t ldb) {
  const bool transposed = how.trans != Trans::No;
  if (n <= simd::TriangleLoops<T>::kMost) {
    if (!how.left) return substitute(n, sides, how.upper, transposed, how.unit, t, ldt, b, ldb);
    Scratch<T> x(n * sides);
    transpose(b, ldb, sides, n, x.data(), sides);
    substitute(n, sides, how.upper, !transposed, how.unit, t, ldt, x.data(), sides);
    return transpose(x.data(), sides, n, sides, b, ldb);
  }
  // t = [t1 0; off t2] or [t1 off; 0 t2]; b = [b1; b2], or [b1 b2] from the right.
  const int64_t half = half_of(n), rest = n - half;
  const T *t2 = t + half * (ldt + 1), *off = t + half * (how.upper ? ldt : 1);
  T* b2 = b + half * (how.left ? 1 : ldb);
  // gemm is row-major: it sees the transpose of every matrix, and factors in reverse order.
  const auto subtract = [&](int64_t known, const T* from, int64_t unknown, T* to) {
    if (how.left)
      gemm(sides, unknown, known, T(-1), {from, ldb}, {off, ldt, how.trans}, T(1), to, ldb);
    else gemm(unknown, sides, known, T(-1), {off, ldt, how.trans}, {from, ldb}, T(1), to, ldb);
  };
  const bool first_half_first = (how.upper != transposed) != how.left;
  if (first_half_first) {
    solve_by_halves(half, sides, how, t, ldt, b, ldb);
    subtract(half, b, rest, b2);
    solve_by_halves(rest, sides, how, t2, ldt, b2, ldb);
  } else {
    solve_by_halves(rest, sides, how, t2, ldt, b2, ldb);
    subtract(rest, b2, half, b);
    solve_by_halves(half, sides, how, t, ldt, b, ldb);
  }
}

}  // namespace

template <class T>
void solve_triangle(int64_t n, int64_t sides, TriangularSystem how, const T* t, int64_t ldt, T* b,
                    int64_t ldb) {
  const char upper = triangle(how.upper), op = code(how.trans), unit = how.unit ? 'U' : 'N';
  if (how.left && sides == 1)
    return call(Routines<T>::trsv, upper, op, unit, n, t, leading(ldt), b, 1);
  if constexpr (is_complex<T>) {
    const int64_t rows = how.left ? n : sides, cols = how.left ? sides : n;
    call(Routines<T>::trsm, how.left ? 'L' : 'R', upper, op, unit, rows, cols, T(1), t,
         leading(ldt), b, leading(ldb));
  } else {
    solve_by_halves(n, sides, how, t, ldt, b, ldb);
  }
}

namespace {

template <class T>
void solve_triangular(MatrixBatch s, TriangularSystem how, const T* a, int64_t a_step, T* b) {
  const int64_t n = how.left ? s.rows : s.cols, sides = how.left ? s.cols : s.rows;
  each_block(s.count, sides, product(n, n), [&](int64_t i, int64_t first, int64_t count) {
    solve_triangle(n, count, how, a + i * a_step, n,
                   b + i * s.rows * s.cols + first * (how.left ? s.rows : 1), s.rows);
  });
}

template <class T> void cholesky(int64_t batch, int64_t n, bool upper, T* a, int32_t* info) {
  auto some = [&](const auto& loops, int64_t i, int64_t count) {
    loops.cholesky(count, n, upper, a + i * n * n, info + i);
    for (int64_t j = i; j < i + count; ++j) plain::clear_triangle(n, !upper, a + j * n * n);
    return true;
  };
  auto one = [&](int64_t i) {
    T* x = a + i * n * n;
    info[i] = cholesky_recursive(n, upper, x, n);
    // OpenBLAS takes a NaN for positive.
    for (int64_t j = 0; info[i] == 0 && j < n; ++j) {
      if (!(std::real(x[j * (n + 1)]) > 0)) info[i] = narrow(j + 1);
    }
    plain::clear_triangle(n, !upper, x);
  };
  const Together how = n <= kSmallCholesky ? factored_together<T>(batch, n, n) : Together{};
  each_together<T>(batch, product(n, n, n) / 3, how, some, one);
}

template <class T>
void cholesky_solve(MatrixBatch s, bool upper, const T* factor, int64_t factor_step, T* b) {
  const int64_t n = s.rows;
  each_block(s.count, s.cols, 2 * product(n, n), [&](int64_t i, int64_t first, int64_t count) {
    for (const bool first_factor : {true, false}) {  // of L L^H or U^H U
      const Trans trans = first_factor == upper ? Trans::Conj : Trans::No;
      solve_triangle(n, count, {.left = true, .upper = upper, .unit = false, .trans = trans},
                     factor + i * factor_step, n, b + (i * s.cols + first) * n, n);
    }
  });
}

// W = the inverse of the lower factor, strip by strip, and the lower triangle of W^H W.
template <class T>
void cholesky_inverse(int64_t batch, int64_t n, bool upper, T* a, int32_t* info) {
  const TriangularSystem how{
      .left = true, .upper = upper, .unit = false, .trans = upper ? Trans::Conj : Trans::No};
  each(batch, product(n, n, n), [&](int64_t begin, int64_t end) {
    Scratch<T> inverse(n * n);
    for (int64_t i = begin; i < end; ++i) {
      T *x = a + i * n * n, *w = inverse.data();
      info[i] = 0;
      for (int64_t d = n; d-- > 0;) {
        if (x[d * (n + 1)] == T(0)) info[i] = narrow(d + 1);
      }
      if (info[i]) continue;
      std::fill_n(w, n * n, T(0));
      for (int64_t d = 0; d < n; ++d) w[d * (n + 1)] = T(1);
      for (int64_t j = 0; j < n; j += kSolvePanel) {
        const int64_t at = j * (n + 1);
        solve_triangle(n - j, std::min(kSolvePanel, n - j), how, x + at, n, w + at, n);
      }
      for (int64_t j = 0; j < n; j += kSolvePanel) {
        const int64_t at = j * (n + 1);
        gemm(std::min(kSolvePanel, n - j), n - j, n - j, T(1), {w + at, n},
             {w + at, n, Trans::Conj}, T(0), x + at, n);
      }
      plain::mirror(n, x);
    }
  });
}

template <class T> void lu_factor(MatrixBatch s, T* a, int32_t* pivots, int32_t* info) {
  const int64_t m = s.rows, n = s.cols, k = std::min(m, n), size = m * n;
  auto some = [&](const auto& loops, int64_t i, int64_t count) {
    loops.lu(count, m, n, a + i * size, pivots + i * k, info + i);
    return true;
  };
  auto one = [&](int64_t i) { info[i] = lu_recursive(m, n, a + i * size, m, pivots + i * k); };
  each_together<T>(s.count, product(m, n, k), factored_together<T>(s.count, m, n), some, one);
}

template <class T>
void lu_solve(MatrixBatch s, Trans trans, const T* lu, int64_t lu_step, const int32_t* pivots,
              int64_t pivot_step, T* b) {
  const int64_t n = s.rows;
  auto sides = [&](int64_t i, int64_t first, int64_t count) {
    T* x = b + (i * s.cols + first) * n;
    auto triangle = [&](bool upper) {
      solve_triangle(n, count, {.left = true, .upper = upper, .unit = !upper, .trans = trans},
                     lu + i * lu_step, n, x, n);
    };
    if (trans == Trans::No) swap_rows(count, x, n, pivots + i * pivot_step, n, 1);
    triangle(trans != Trans::No);
    triangle(trans == Trans::No);
    if (trans != Trans::No) swap_rows(count, x, n, pivots + i * pivot_step, n, -1);
  };
  const Together how = s.cols <= n ? factored_together<T>(s.count, n, n) : Together{};
  if (!how.lanes) return each_block(s.count, s.cols, 2 * product(n, n), sides);
  auto some = [&](const auto& loops, int64_t i, int64_t count) {
    loops.lu_solve(count, n, s.cols, trans != Trans::No, lu + i * lu_step, lu_step,
                   pivots + i * pivot_step, pivot_step, b + i * n * s.cols);
    return true;
  };
  each_together<T>(s.count, 2 * product(n, n, s.cols), how, some,
                   [&](int64_t i) { sides(i, 0, s.cols); });
}

template <class T>
void ldl_factor(int64_t batch, int64_t n, bool hermitian, T* a, int32_t* pivots, int32_t* info) {
  const auto factor = hermitian ? Routines<T>::hetrf : Routines<T>::sytrf;
  each_with_work<T>(batch, product(n, n, n) / 3, [&](int64_t i, const Workspace<T>& w) {
    T* x = a + i * n * n;
    call(factor, 'L', n, x, leading(n), pivots + i * n, w.work, w.lwork, info + i);
    if (w.lwork > 0) plain::clear_triangle(n, true, x);
  });
}

template <class T>
void ldl_solve(MatrixBatch s, bool hermitian, const T* ld, const int32_t* pivots, T* b) {
  const int64_t n = s.rows;
  const auto solve = hermitian ? Routines<T>::hetrs : Routines<T>::sytrs;
  each(s.count, product(n, n, s.cols) * 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int info = 0;
      call(solve, 'L', n, s.cols, ld + i * n * n, leading(n), pivots + i * n, b + i * n * s.cols,
           leading(n), &info);
    }
  });
}

}  // namespace

template void solve_triangle<float>(int64_t, int64_t, TriangularSystem, const float*, int64_t,
                                    float*, int64_t);
template void solve_triangle<double>(int64_t, int64_t, TriangularSystem, const double*, int64_t,
                                     double*, int64_t);

}  // namespace taeda::cpu::lapack

TAEDA_LINALG_TABLE(SolveKernels, cpu::lapack::solve_triangular<T>, cpu::lapack::cholesky<T>,
                   cpu::lapack::cholesky_solve<T>, cpu::lapack::cholesky_inverse<T>,
                   cpu::lapack::lu_factor<T>, cpu::lapack::lu_solve<T>, cpu::lapack::ldl_factor<T>,
                   cpu::lapack::ldl_solve<T>)
