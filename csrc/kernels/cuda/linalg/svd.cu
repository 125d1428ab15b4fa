// Singular values: columns are rotated until they are orthogonal (Hestenes 1958), their lengths
// being the singular values then. All pairs have their turn, as many at a time as do not meet.
// Small matrices have a block each.
#include "kernels/cuda/linalg/block.h"
#include "kernels/cuda/linalg/jacobi.h"
#include "kernels/cuda/linalg/qr.h"
#include "kernels/cuda/linalg/tables.h"
#include "kernels/functors/elementary.h"

namespace taeda::cuda {
namespace {

// The square of a length, beside elements of at most 1, that is left as it is: of equal columns
// there remains less in every sweep, down to numbers that cannot be rotated.
template <class R> inline constexpr R kNegligible = same_type<R, float> ? R(1e-35) : R(1e-290);

template <class S> struct Inner {
  RealPartOf<S> p, q;
  S both;
  __device__ friend Inner operator+(Inner x, Inner y) {
    return {x.p + y.p, x.q + y.q, x.both + y.both};
  }
};

// Matrices a (rows x n), and (n x n) what is rotated with them, or null.
template <class S> struct Problem {
  using R = RealPartOf<S>;
  int64_t rows, n, even;
  S *a, *vectors;

  // Pair k of a turn, by some threads, of which this one is `self`; sum_of(part of a sum) is the
  // whole one. Whether it has been rotated.
  template <class Sum>
  __device__ bool rotate(int64_t matrix, int64_t turn, int64_t k, unsigned self, unsigned threads,
                         Sum sum_of) const {
    const auto [first, second] = pair_of(even, turn, k);
    if (second >= n) return false;
    S *p = a + (matrix * n + first) * rows, *q = a + (matrix * n + second) * rows;
    Inner<S> own{0, 0, S(0)};
    for (int64_t i = self; i < rows; i += threads)
      own = own + Inner<S>{squared(p[i]), squared(q[i]), conjugate(p[i]) * q[i]};
    const Inner<S> sum = sum_of(own);
    if (!(sum.p > kNegligible<R> && sum.q > kNegligible<R>)) return false;
    const R size = portable::abs(sum.both);
    const R least = kEpsilon<R> * ::sqrt(static_cast<R>(rows)) * ::sqrt(sum.p) * ::sqrt(sum.q);
    if (!(size > least)) return false;
    const Rotation<S> rotation(sum.p, sum.q, sum.both, size);
    for (int64_t i = self; i < rows; i += threads) rotation.apply(p[i], q[i]);
    if (!vectors) return true;
    S *vp = vectors + (matrix * n + first) * n, *vq = vectors + (matrix * n + second) * n;
    for (int64_t i = self; i < n; i += threads) rotation.apply(vp[i], vq[i]);
    return true;
  }
};

// A warp has a pair.
template <class S>
__global__ void __launch_bounds__(kThreads) rotate_alone(Problem<S> problem, int32_t* info) {
  const auto sum_of_warp = [](Inner<S> sum) {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
      sum = sum + across(sum, distance);
    return sum;
  };
  const unsigned warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  bool rotates = problem.n > 1;
  for (int sweep = 0; rotates && sweep < kMostSweeps; ++sweep) {
    bool any = false;
    for (int64_t turn = 0; turn < problem.even - 1; ++turn) {
      for (int64_t k = warp; k < problem.even / 2; k += warps)
        any |= problem.rotate(blockIdx.x, turn, k, threadIdx.x % kWarp, kWarp, sum_of_warp);
      __syncthreads();
    }
    rotates = __syncthreads_or(any);
  }
  if (threadIdx.x == 0) info[blockIdx.x] = rotates ? static_cast<int32_t>(problem.n) : 0;
}
// A block has a pair.
template <class S>
__global__ void __launch_bounds__(kThreads)
    rotate_turn(Problem<S> problem, int64_t turn, int* rotates) {
  const int64_t pairs = problem.even / 2, matrix = blockIdx.x / pairs, k = blockIdx.x % pairs;
  const bool any = problem.rotate(matrix, turn, k, threadIdx.x, blockDim.x,
                                  [](Inner<S> own) { return group_sum(own); });
  if (any && threadIdx.x == 0) *rotates = 1;
}
template <class S> void rotate_together(int64_t batch, const Problem<S>& problem, int32_t* info) {
  const Workspace memory(sizeof(int));
  auto* rotates = memory.as<int>();
  const bool ended = sweep(problem.n, rotates, [&](int64_t turn) {
    launch(rotate_turn<S>, grid_of(batch * problem.even / 2), threads_for(problem.rows / 2), 0,
           problem, turn, rotates);
  });
  write_codes(batch, ended ? 0 : static_cast<int32_t>(problem.n), info);
}

template <class S, class R>
__global__ void column_lengths(int64_t columns, int64_t rows, int64_t n, const S* a, const R* scale,
                               R* lengths) {
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
  launch(shrink<S, R>, grid_of(batch), threads_for(rows * n / 4), 0, rows * n, stored(a), scale);
  const Problem<S> problem{rows, n, n + n % 2, stored(a), stored(vectors)};
  if (n > kMostOfBlock) rotate_together(batch, problem, info);
  else launch(rotate_alone<S>, grid_of(batch), threads_for(rows * n / 4), 0, problem, info);
  const dim3 block = groups_for(rows);
  launch(column_lengths<S, R>, blocks_of(batch * n, block), block, 0, batch * n, rows, n, stored(a),
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
    if (u) write_adjoint(batch, n, n, stored(right), stored(vh));
    return;
  }
  write_adjoint(batch, m, n, stored(a), adjoint.as<S>());
  T* left = u ? other.as<T>() : nullptr;
  tall_svd(batch, n, m, columns, adjoint.as<T>(), s, left, u, info);
  if (u) write_adjoint(batch, n, columns, stored(left), stored(vh));
}

template <class T> const EigenKernels<T> table{nullptr, svd<T>};

}  // namespace

void add_svd_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(),
            {device_table(table<float>), device_table(table<double>),
             device_table(table<std::complex<float>>), device_table(table<std::complex<double>>)});
}

}  // namespace taeda::cuda
