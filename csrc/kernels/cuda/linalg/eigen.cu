// Eigenvalues of Hermitian matrices and singular values, by Jacobi's method: a block rotates all
// pairs of columns of a matrix, as many at a time as do not meet, until none is left to be rotated.
#include <cmath>

#include "kernels/cuda/linalg/block.h"
#include "kernels/cuda/linalg/jacobi.h"
#include "kernels/cuda/linalg/qr.h"
#include "kernels/cuda/linalg/tables.h"
#include "kernels/functors/elementary.h"

namespace taeda::cuda {
namespace {

// The number of `values` that come before value i.
template <class R, class Before>
__device__ int64_t rank_of(int64_t n, const R* values, int64_t i, Before before) {
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j)
    rank += before(values[j], values[i]) || (j < i && !before(values[i], values[j]));
  return rank;
}

// ---- Hermitian matrices ----
template <class S> void fill_triangle(int64_t batch, int64_t n, bool upper, const S* a, S* to) {
  const Divisor by_n(n);
  each(batch * n * n, [=] __device__(int64_t i) {
    S* target = to + i;
    const int64_t row = by_n.divide(i), column = by_n.divide(i);
    const bool is_given = upper ? row <= column : row >= column;
    const int64_t r = is_given ? row : column, c = is_given ? column : row;
    const S v = a[(i * n + c) * n + r];
    *target = row == column ? S(real_part(v)) : is_given ? v : conjugate(v);
  });
}

// `vectors` (or null) begins as the identity.
template <class S>
__global__ void __launch_bounds__(kThreads)
    rotate_hermitian(int64_t n, S* a, S* vectors, Rotation<S>* rotations, int32_t* info) {
  using R = RealPartOf<S>;
  a += blockIdx.x * n * n;
  if (vectors) vectors += blockIdx.x * n * n;
  const int64_t even = n + n % 2, pairs = even / 2;
  rotations += blockIdx.x * pairs;
  const R least = kEpsilon<R> * norm_of(a, 0, n * n) / static_cast<R>(n);
  bool rotates = n > 1;
  for (int sweep = 0; rotates && sweep < kMostSweeps; ++sweep) {
    bool any = false;
    for (int64_t turn = 0; turn < even - 1; ++turn) {
      by_threads(pairs, [&](int64_t k) {
        const auto [p, q] = pair_of(even, turn, k);
        rotations[k] = {};
        if (q >= n) return;
        const S between = a[q * n + p];
        const R size = portable::abs(between);
        if (!(size > least)) return;
        rotations[k] = {real_part(a[p * (n + 1)]), real_part(a[q * (n + 1)]), between, size};
        any = true;
      });
      __syncthreads();
      // Rows and columns of two pairs have four elements in common, which no others touch.
      by_threads(pairs * pairs, [&](int64_t t) {
        const int64_t k = t % pairs, l = t / pairs;
        const auto [p, q] = pair_of(even, turn, k);
        const auto [x, y] = pair_of(even, turn, l);
        const Rotation<S>&rows = rotations[k], &columns = rotations[l];
        if (rows.t == R(0) && columns.t == R(0)) return;
        S none(0);
        S &px = a[x * n + p], &qx = q < n ? a[x * n + q] : none;
        S &py = y < n ? a[y * n + p] : none, &qy = q < n && y < n ? a[y * n + q] : none;
        if (k == l) {
          const R change = rows.t * portable::abs(py);
          px = S(real_part(px) - change);
          qy = S(real_part(qy) + change);
          py = qx = S(0);
          return;
        }
        columns.apply(px, py);
        columns.apply(qx, qy);
        rows.apply_to_rows(px, qx);
        rows.apply_to_rows(py, qy);
      });
      by_threads(vectors ? pairs * n : 0, [&](int64_t t) {
        const int64_t k = t / n, row = t % n;
        const auto [p, q] = pair_of(even, turn, k);
        if (rotations[k].t != R(0)) rotations[k].apply(vectors[p * n + row], vectors[q * n + row]);
      });
      __syncthreads();
    }
    rotates = __syncthreads_or(any);
  }
  if (threadIdx.x == 0) info[blockIdx.x] = rotates ? static_cast<int32_t>(n) : 0;
}
// Ascending.
template <class S, class R>
void write_sorted(int64_t batch, int64_t n, const S* rotated, const S* vectors, S* a, R* diagonal,
                  R* values, int64_t* rank) {
  each(batch * n, [=] __device__(int64_t i) {
    diagonal[i] = real_part(rotated[i / n * n * n + i % n * (n + 1)]);
  });
  each(batch * n, [=] __device__(int64_t i) {
    const int64_t first = i / n * n;
    rank[i] = rank_of(n, diagonal + first, i - first, [](R x, R y) { return x < y; });
    values[first + rank[i]] = diagonal[i];
  });
  if (!vectors) return;
  const Divisor by_n(n);
  each(batch * n * n, [=] __device__(int64_t i) {
    const S v = vectors[i];
    const int64_t row = by_n.divide(i);
    a[(i / n * n + rank[i]) * n + row] = v;
  });
}

template <class T>
void eigh(int64_t batch, int64_t n, bool upper, bool vectors, T* a, RealOf<T>* values,
          int32_t* info) {
  using S = Stored<T>;
  using R = RealOf<T>;
  if (batch == 0 || n == 0) return;
  const int64_t elements = batch * n * n, pairs = batch * ((n + 1) / 2);
  const Workspace matrices(static_cast<size_t>(2 * elements) * sizeof(T)),
      rotations(static_cast<size_t>(pairs) * sizeof(Rotation<S>)),
      lists(static_cast<size_t>(batch * n) * (sizeof(R) + sizeof(int64_t)));
  auto* own = reinterpret_cast<S*>(a);
  S *whole = matrices.as<S>(), *rotated = vectors ? whole + elements : nullptr;
  auto* rank = lists.as<int64_t>();
  fill_triangle(batch, n, upper, own, whole);
  if (vectors) write_identity({batch, n, n}, matrices.as<T>() + elements);
  launch(rotate_hermitian<S>, grid_of(batch), threads_for(n * n / 4), 0, n, whole, rotated,
         rotations.as<Rotation<S>>(), info);
  write_sorted(batch, n, whole, rotated, own, reinterpret_cast<R*>(rank + batch * n), values, rank);
}

// ---- singular values ----
// Columns of a (rows x n) are rotated until they are orthogonal (Hestenes 1958); their lengths are
// the singular values then. A warp has a pair.
template <class S> struct Inner {
  RealPartOf<S> p, q;
  S both;
  __device__ friend Inner operator+(Inner x, Inner y) {
    return {x.p + y.p, x.q + y.q, x.both + y.both};
  }
};
template <class S> __device__ bool rotate_pair(int64_t rows, int64_t n, S* p, S* q, S* vp, S* vq) {
  using R = RealPartOf<S>;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  Inner<S> sum{0, 0, S(0)};
  for (int64_t i = lane; i < rows; i += kWarp)
    sum = sum + Inner<S>{squared(p[i]), squared(q[i]), conjugate(p[i]) * q[i]};
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    sum = sum + across(sum, distance);
  const R size = portable::abs(sum.both);
  const R least = kEpsilon<R> * ::sqrt(static_cast<R>(rows)) * ::sqrt(sum.p) * ::sqrt(sum.q);
  if (!(size > least)) return false;
  const Rotation<S> rotation(sum.p, sum.q, sum.both, size);
  for (int64_t i = lane; i < rows; i += kWarp) rotation.apply(p[i], q[i]);
  for (int64_t i = lane; vp && i < n; i += kWarp) rotation.apply(vp[i], vq[i]);
  return true;
}

// `scale`: what each matrix is divided by first, so that squares do not overflow.
template <class S>
__global__ void __launch_bounds__(kThreads)
    rotate_columns(int64_t rows, int64_t n, S* a, S* vectors, RealPartOf<S>* scale, int32_t* info) {
  using R = RealPartOf<S>;
  a += blockIdx.x * rows * n;
  if (vectors) vectors += blockIdx.x * n * n;
  R own = 0;
  by_threads(rows * n, [&](int64_t i) {
    const R size = portable::abs(a[i]);
    own = size > own ? size : own;
  });
  const R most = group_all(own, [](R x, R y) { return x > y ? x : y; });
  const R divisor = most > 0 ? most : R(1);
  by_threads(rows * n, [&](int64_t i) { a[i] = a[i] / S(divisor); });
  if (threadIdx.x == 0) scale[blockIdx.x] = divisor;
  __syncthreads();
  const int64_t even = n + n % 2;
  bool rotates = n > 1;
  for (int sweep = 0; rotates && sweep < kMostSweeps; ++sweep) {
    bool any = false;
    for (int64_t turn = 0; turn < even - 1; ++turn) {
      for (int64_t k = threadIdx.x / kWarp; k < even / 2; k += blockDim.x / kWarp) {
        const auto [p, q] = pair_of(even, turn, k);
        if (q >= n) continue;
        any |= rotate_pair(rows, n, a + p * rows, a + q * rows, vectors ? vectors + p * n : nullptr,
                           vectors ? vectors + q * n : nullptr);
      }
      __syncthreads();
    }
    rotates = __syncthreads_or(any);
  }
  if (threadIdx.x == 0) info[blockIdx.x] = rotates ? static_cast<int32_t>(n) : 0;
}

template <class S>
__global__ void column_lengths(int64_t columns, int64_t rows, int64_t n, const S* a,
                               const RealPartOf<S>* scale, RealPartOf<S>* lengths) {
  using R = RealPartOf<S>;
  const int64_t column = group_index();
  R own = 0;
  for (int64_t i = threadIdx.x; column < columns && i < rows; i += blockDim.x) {
    own += squared(a[column * rows + i]);
  }
  const R sum = group_sum(own);
  if (threadIdx.x == 0 && column < columns) lengths[column] = scale[column / n] * ::sqrt(sum);
}
// Descending, and the columns of a in that order.
template <class R>
void rank_lengths(int64_t batch, int64_t n, const R* lengths, R* s, int64_t* rank) {
  each(batch * n, [=] __device__(int64_t i) {
    const int64_t first = i / n * n;
    rank[i] = rank_of(n, lengths + first, i - first, [](R x, R y) { return x > y; });
    s[first + rank[i]] = lengths[i];
  });
}
template <class S>
void sort_columns(int64_t batch, int64_t rows, int64_t n, const int64_t* rank, const S* a, S* to) {
  const Divisor by_rows(rows);
  each(batch * n * rows, [=] __device__(int64_t i) {
    const S v = a[i];
    const int64_t row = by_rows.divide(i);
    to[(i / n * n + rank[i]) * rows + row] = v;
  });
}
// Column j of q, times the sign of element j in the diagonal of R.
template <class S>
void take_signs(int64_t batch, int64_t rows, int64_t n, int64_t columns, const S* r, S* q) {
  const Divisor by_rows(rows), by_n(n);
  each(batch * n * rows, [=] __device__(int64_t i) {
    const int64_t row = by_rows.divide(i), j = by_n.divide(i);
    if (real_part(r[(i * n + j) * rows + j]) >= 0) return;
    S& v = q[(i * columns + j) * rows + row];
    v = -v;
  });
}
template <class S>
void copy_adjoint(int64_t batch, int64_t rows, int64_t columns, const S* a, S* to) {
  const Divisor by_columns(columns), by_rows(rows);
  each(batch * rows * columns, [=] __device__(int64_t i) {
    S* target = to + i;
    const int64_t column = by_columns.divide(i), row = by_rows.divide(i);
    *target = conjugate(a[(i * columns + column) * rows + row]);
  });
}
// The first n columns of matrices that have `columns`.
template <class S>
void place_columns(int64_t batch, int64_t rows, int64_t n, int64_t columns, const S* from, S* to) {
  const Divisor by_matrix(rows * n);
  each(batch * rows * n, [=] __device__(int64_t i) {
    const S v = from[i];
    const int64_t at = by_matrix.divide(i);
    to[i * rows * columns + at] = v;
  });
}

// Of matrices a (rows x n) with rows >= n, which are lost. left: (rows x `columns`), right (n x n):
// the vectors, as columns, or null.
template <class T>
void tall_svd(int64_t batch, int64_t rows, int64_t n, int64_t columns, T* a, RealOf<T>* s, T* left,
              T* right, int32_t* info) {
  using S = Stored<T>;
  using R = RealOf<T>;
  const Workspace lists(static_cast<size_t>(batch * n) * (sizeof(R) + sizeof(int64_t)) +
                        static_cast<size_t>(batch) * sizeof(R)),
      memory(static_cast<size_t>(right ? batch * n * (n + rows + 1) : 0) * sizeof(T));
  auto* rank = lists.as<int64_t>();
  R *lengths = reinterpret_cast<R*>(rank + batch * n), *scale = lengths + batch * n;
  T *vectors = right ? memory.as<T>() : nullptr, *sorted = memory.as<T>() + batch * n * n,
    *tau = sorted + batch * n * rows;
  const auto stored = [](T* p) { return reinterpret_cast<S*>(p); };
  if (right) write_identity({batch, n, n}, vectors);
  launch(rotate_columns<S>, grid_of(batch), threads_for(rows * n / 4), 0, rows, n, stored(a),
         stored(vectors), scale, info);
  const dim3 block = groups_for(rows);
  launch(column_lengths<S>, blocks_of(batch * n, block), block, 0, batch * n, rows, n, stored(a),
         scale, lengths);
  rank_lengths(batch, n, lengths, s, rank);
  if (!right) return;
  sort_columns(batch, n, n, rank, stored(vectors), stored(right));
  // The orthogonal columns, of length 1 and completed: their QR factors, R being diagonal.
  sort_columns(batch, rows, n, rank, stored(a), stored(sorted));
  factor_qr({batch, rows, n}, sorted, tau);
  place_columns(batch, rows, n, columns, stored(sorted), stored(left));
  form_q({batch, rows, columns}, n, left, tau);
  take_signs(batch, rows, n, columns, stored(sorted), stored(left));
}

template <class T>
void svd(MatrixBatch shape, bool full, bool, T* a, RealOf<T>* s, T* u, T* vh, int32_t* info) {
  using S = Stored<T>;
  const auto stored = [](T* p) { return reinterpret_cast<S*>(p); };
  const auto [batch, m, n] = shape;
  const bool is_wide = m < n;
  const int64_t high = std::max(m, n), k = std::min(m, n), columns = full ? high : k;
  const Workspace adjoint(static_cast<size_t>(is_wide ? batch * m * n : 0) * sizeof(T)),
      other(static_cast<size_t>(u ? batch * (is_wide ? high * columns : k * k) : 0) * sizeof(T));
  if (!is_wide) {
    T* right = u ? other.as<T>() : nullptr;
    tall_svd(batch, m, n, columns, a, s, u, right, info);
    if (u) copy_adjoint(batch, n, n, stored(right), stored(vh));
    return;
  }
  copy_adjoint(batch, m, n, stored(a), adjoint.as<S>());
  T* left = u ? other.as<T>() : nullptr;
  tall_svd(batch, n, m, columns, adjoint.as<T>(), s, left, u, info);
  if (u) copy_adjoint(batch, n, columns, stored(left), stored(vh));
}

template <class T> const HermitianKernels<T> hermitian_table{eigh<T>};
template <class T> const EigenKernels<T> eigen_table{nullptr, svd<T>};

template <class... T> void add(std::vector<DeviceTable>& to) {
  (to.insert(to.end(), {device_table(hermitian_table<T>), device_table(eigen_table<T>)}), ...);
}

}  // namespace

void add_eigen_tables(std::vector<DeviceTable>& to) {
  add<float, double, std::complex<float>, std::complex<double>>(to);
}

}  // namespace taeda::cuda
