// Cholesky and LU factors, and systems that are solved by them. Halves of large matrices are
// factored one after the other, with matrix products between them; a block has what is left of one
// matrix. Pivots do not depend on timing.
#include "kernels/cuda/linalg/block.h"
#include "kernels/cuda/linalg/matrices.h"
#include "kernels/cuda/linalg/tables.h"
#include "kernels/matrices.h"

namespace taeda::cuda {
namespace {

constexpr int kMost = 32;  // columns that a block factors

// ---- Cholesky ----
// Of the lower triangle, or of the upper one, which is read as its conjugate transpose.
template <class S>
__global__ void __launch_bounds__(kThreads)
    factor_triangle(int n, bool upper, Columns<S> a, int32_t first, int32_t* info) {
  __shared__ S l[kMost][kMost + 1];
  S* matrix = a.matrix(blockIdx.x);
  by_threads(n * n, [&](int64_t t) {
    const int64_t row = t % n, column = t / n;
    const S v = matrix[column * a.ld + row];
    if (upper ? column >= row : row >= column)
      l[upper ? column : row][upper ? row : column] = upper ? conjugate(v) : v;
  });
  __syncthreads();
  for (int j = 0; j < n; ++j) {
    const auto d = real_part(l[j][j]);
    __syncthreads();
    if (threadIdx.x == 0 && !(d > 0) && info[blockIdx.x] == 0) info[blockIdx.x] = first + j + 1;
    const auto root = ::sqrt(d);
    by_threads(n - j, [&](int64_t i) {
      S& v = l[j + i][j];
      v = i == 0 ? S(root) : v / S(root);
    });
    __syncthreads();
    const int rest = n - j - 1;
    by_threads(rest * rest, [&](int64_t t) {
      const int64_t i = j + 1 + t % rest, k = j + 1 + t / rest;
      if (k <= i) l[i][k] = l[i][k] - l[i][j] * conjugate(l[k][j]);
    });
    __syncthreads();
  }
  by_threads(n * n, [&](int64_t t) {
    const int64_t row = t % n, column = t / n;
    if (upper ? column >= row : row >= column) {
      const S v = l[upper ? column : row][upper ? row : column];
      matrix[column * a.ld + row] = upper ? conjugate(v) : v;
    }
  });
}
template <class T>
void factor_cholesky(int64_t batch, int64_t n, bool upper, Columns<T> a, int64_t first,
                     int32_t* info) {
  if (n <= kMost) {
    launch(factor_triangle<Stored<T>>, grid_of(batch), threads_for(n * n), 0, static_cast<int>(n),
           upper, a.stored(), static_cast<int32_t>(first), info);
    return;
  }
  const int64_t half = half_of(n), rest = n - half;
  const Columns<T> beside = upper ? a.from(0, half) : a.from(half, 0), corner = a.from(half, half);
  factor_cholesky(batch, half, upper, a, first, info);
  solve_triangle(batch, half, rest, {upper, upper, false, Trans::Conj}, a.readable(), beside);
  multiply(batch, rest, rest, half, T(-1), beside.readable(), upper ? Trans::Conj : Trans::No,
           beside.readable(), upper ? Trans::No : Trans::Conj, T(1), corner);
  factor_cholesky(batch, rest, upper, corner, first + half, info);
}
// Zeros above the diagonal, or below it where the upper triangle is kept.
template <class S> void clear_other(int64_t batch, int64_t n, bool upper, S* a) {
  const Divisor by_n(n);
  each(batch * n * n, [=] __device__(int64_t i) {
    S* to = a + i;
    const int64_t row = by_n.divide(i), column = by_n.divide(i);
    if (upper ? row > column : row < column) *to = S(0);
  });
}
template <class T> void cholesky(int64_t batch, int64_t n, bool upper, T* a, int32_t* info) {
  write_codes(batch, 0, info);
  if (batch == 0 || n == 0) return;
  const Columns<T> all{a, n, n * n};
  factor_cholesky(batch, n, upper, all, 0, info);
  clear_other(batch, n, upper, all.stored().data);
}

template <class T>
void cholesky_solve(MatrixBatch s, bool upper, const T* factor, int64_t factor_step, T* b) {
  const Columns<const T> a{factor, s.rows, factor_step};
  const Columns<T> x{b, s.rows, s.rows * s.cols};
  // The factor times its adjoint, or the adjoint times the factor.
  for (const Trans trans : {upper ? Trans::Conj : Trans::No, upper ? Trans::No : Trans::Conj})
    solve_triangle(s.count, s.rows, s.cols, {true, upper, false, trans}, a, x);
}

template <class S> void copy_elements(int64_t n, const S* from, S* to) {
  each(n, [=] __device__(int64_t i) { to[i] = from[i]; });
}
template <class T>
void cholesky_inverse(int64_t batch, int64_t n, bool upper, T* a, int32_t* info) {
  const Columns<T> all{a, n, n * n};
  find_zeros(batch, n, all.stored(), info);
  const int64_t elements = batch * n * n;
  const Workspace memory(static_cast<size_t>(elements) * sizeof(T));
  T* inverse = memory.as<T>();
  write_identity({batch, n, n}, inverse);
  cholesky_solve({batch, n, n}, upper, a, n * n, inverse);
  copy_elements(elements, reinterpret_cast<const Stored<T>*>(inverse), all.stored().data);
}

// ---- LU ----
template <class R> struct Candidate {
  R size;
  int64_t row;
};
// As LAPACK measures pivots.
template <class S> __device__ RealPartOf<S> size_of_pivot(S v) {
  if constexpr (is_complex<S>) return ::fabs(v.re) + ::fabs(v.im);
  else return ::fabs(v);
}

// Rows of a panel of columns, the pivots of which are counted from row `first` of their matrix on.
template <class S>
__global__ void __launch_bounds__(kManyThreads)
    factor_panel(int64_t rows, int columns, Columns<S> a, int32_t* pivots, int64_t pivot_step,
                 int32_t first, int32_t* info) {
  using Best = Candidate<double>;
  S* panel = a.matrix(blockIdx.x);
  pivots += blockIdx.x * pivot_step;
  const int64_t pivot_count = rows < columns ? rows : columns;
  for (int64_t j = 0; j < pivot_count; ++j) {
    S* column = panel + j * a.ld;
    Best own{-1, INT64_MAX};
    for (int64_t i = j + threadIdx.x; i < rows; i += blockDim.x) {
      const double size = size_of_pivot(column[i]);
      if (size > own.size) own = {size, i};
    }
    const Best best = group_all(own, [](Best x, Best y) {
      return x.size > y.size || (x.size == y.size && x.row < y.row) ? x : y;
    });
    const int64_t pivot = best.size < 0 ? j : best.row;  // all are NaN
    by_threads(columns, [&](int64_t c) {
      S* line = panel + c * a.ld;
      const S v = line[j];
      line[j] = line[pivot];
      line[pivot] = v;
    });
    __syncthreads();
    const S divisor = column[j];
    const bool is_zero = divisor == S(0);
    if (threadIdx.x == 0) {
      pivots[j] = static_cast<int32_t>(first + pivot + 1);
      if (is_zero && info[blockIdx.x] == 0) info[blockIdx.x] = static_cast<int32_t>(first + j + 1);
    }
    by_threads(rows - j - 1, [&](int64_t t) {
      const int64_t i = j + 1 + t;
      if (!is_zero) column[i] = column[i] / divisor;
      const S factor = column[i];
      for (int64_t c = j + 1; c < columns; ++c) {
        S* line = panel + c * a.ld;
        line[i] = line[i] - factor * line[j];
      }
    });
    __syncthreads();
  }
}

// Exchanges rows of `columns` columns as the pivots from `first` up to `last` say, or backwards.
template <class S>
void swap_rows(int64_t batch, int64_t columns, Columns<S> a, const int32_t* pivots,
               int64_t pivot_step, int64_t first, int64_t last, bool backwards) {
  const Divisor by_columns(columns);
  each(batch * columns, [=] __device__(int64_t i) {
    const int64_t column = by_columns.divide(i);
    S* line = a.matrix(i) + column * a.ld;
    const int32_t* order = pivots + i * pivot_step;
    for (int64_t k = 0; k < last - first; ++k) {
      const int64_t row = backwards ? last - 1 - k : first + k, other = order[row] - 1;
      const S v = line[row];
      line[row] = line[other];
      line[other] = v;
    }
  });
}

template <class T> struct LuProblem {
  MatrixBatch shape;
  Columns<T> a;
  int32_t *pivots, *info;
  int64_t pivot_step;

  void swap(int64_t first_column, int64_t columns, int64_t first, int64_t last) const {
    swap_rows(shape.count, columns, a.from(0, first_column).stored(), pivots, pivot_step, first,
              last, false);
  }
  // The columns behind those that have been factored.
  void update(int64_t first, int64_t factored, int64_t columns) const {
    const int64_t next = first + factored;
    swap(next, columns, first, next);
    const Columns<T> beside = a.from(first, next);
    solve_triangle(shape.count, factored, columns, {true, false, true, Trans::No},
                   a.from(first, first).readable(), beside);
    multiply(shape.count, shape.rows - next, columns, factored, T(-1),
             a.from(next, first).readable(), Trans::No, beside.readable(), Trans::No, T(1),
             a.from(next, next));
  }
  void factor(int64_t first, int64_t columns) const {
    if (columns <= kMost) {
      launch(factor_panel<Stored<T>>, grid_of(shape.count),
             threads_for(shape.rows - first, kManyThreads), 0, shape.rows - first,
             static_cast<int>(columns), a.from(first, first).stored(), pivots + first, pivot_step,
             static_cast<int32_t>(first), info);
      return;
    }
    const int64_t half = half_of(columns), rest = columns - half;
    factor(first, half);
    update(first, half, rest);
    factor(first + half, rest);
    swap(first, half, first + half, first + columns);
  }
};

template <class T> void lu_factor(MatrixBatch s, T* a, int32_t* pivots, int32_t* info) {
  write_codes(s.count, 0, info);
  const int64_t k = std::min(s.rows, s.cols);
  if (s.count == 0 || k == 0) return;
  const LuProblem<T> problem{s, {a, s.rows, s.rows * s.cols}, pivots, info, k};
  problem.factor(0, k);
  if (s.cols > k) problem.update(0, k, s.cols - k);
}

template <class T>
void lu_solve(MatrixBatch s, Trans trans, const T* lu, int64_t lu_step, const int32_t* pivots,
              int64_t pivot_step, T* b) {
  if (s.count == 0 || s.rows == 0 || s.cols == 0) return;
  const Columns<const T> a{lu, s.rows, lu_step};
  const Columns<T> x{b, s.rows, s.rows * s.cols};
  const TriangularSystem lower{true, false, true, trans}, upper{true, true, false, trans};
  const auto swap = [&](bool backwards) {
    swap_rows(s.count, s.cols, x.stored(), pivots, pivot_step, 0, s.rows, backwards);
  };
  if (trans == Trans::No) swap(false);
  for (const TriangularSystem& how :
       {trans == Trans::No ? lower : upper, trans == Trans::No ? upper : lower})
    solve_triangle(s.count, s.rows, s.cols, how, a, x);
  if (trans != Trans::No) swap(true);
}

template <class T>
void triangular(MatrixBatch s, TriangularSystem how, const T* a, int64_t a_step, T* b) {
  const int64_t n = how.left ? s.rows : s.cols, sides = how.left ? s.cols : s.rows;
  solve_triangle<T>(s.count, n, sides, how, {a, n, a_step}, {b, s.rows, s.rows * s.cols});
}

template <class T>
const SolveKernels<T> table{triangular<T>, cholesky<T>, cholesky_solve<T>, cholesky_inverse<T>,
                            lu_factor<T>,  lu_solve<T>, nullptr,           nullptr};

}  // namespace

void add_solve_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(),
            {device_table(table<float>), device_table(table<double>),
             device_table(table<std::complex<float>>), device_table(table<std::complex<double>>)});
}

}  // namespace taeda::cuda
