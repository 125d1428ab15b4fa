// Eigenvalues of Hermitian matrices, by Jacobi's method: all pairs of rows and columns have their
// turn, as many at a time as do not meet, until no element beside the diagonal is left. Small
// matrices have a block each.
#include "kernels/cuda/linalg/block.h"
#include "kernels/cuda/linalg/jacobi.h"
#include "kernels/cuda/linalg/tables.h"
#include "kernels/functors/elementary.h"

namespace taeda::cuda {
namespace {

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

// Of one matrix (n x n); `vectors`, or null, has the columns that are rotated with it.
template <class S> struct Turn {
  using R = RealPartOf<S>;
  int64_t n, even, number;
  S *a, *vectors;
  Rotation<S>* rotations;

  __device__ int64_t pairs() const { return even / 2; }
  __device__ ColumnPair pair(int64_t k) const { return pair_of(even, number, k); }
  // Rotation k, where the element between its columns is above `least`.
  __device__ bool choose(int64_t k, R least) const {
    const auto [p, q] = pair(k);
    rotations[k] = {};
    if (q >= n) return false;
    const S between = a[q * n + p];
    const R size = portable::abs(between);
    if (!(size > least)) return false;
    rotations[k] = {real_part(a[p * (n + 1)]), real_part(a[q * (n + 1)]), between, size};
    return true;
  }
  // The elements that the rows of pair k and the columns of pair l have in common; no others touch
  // them.
  __device__ void rotate(int64_t k, int64_t l) const {
    const Rotation<S>&rows = rotations[k], &columns = rotations[l];
    if (rows.t == R(0) && columns.t == R(0)) return;
    const auto [p, q] = pair(k);
    const auto [x, y] = pair(l);
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
  }
  __device__ void rotate_vectors(int64_t k, int64_t row) const {
    const auto [p, q] = pair(k);
    if (rotations[k].t != R(0)) rotations[k].apply(vectors[p * n + row], vectors[q * n + row]);
  }
};

template <class S> struct Problem {
  int64_t n, even;
  S *a, *vectors;  // the latter begin as identities, or are null
  Rotation<S>* rotations;

  __device__ Turn<S> turn(int64_t matrix, int64_t number) const {
    const int64_t first = matrix * n * n;
    return {n,
            even,
            number,
            a + first,
            vectors ? vectors + first : nullptr,
            rotations + matrix * (even / 2)};
  }
};

template <class S> __device__ RealPartOf<S> least_of(int64_t n, const S* a) {
  return kEpsilon<RealPartOf<S>> * norm_of(a, 0, n * n) / static_cast<RealPartOf<S>>(n);
}

template <class S>
__global__ void __launch_bounds__(kThreads) rotate_alone(Problem<S> problem, int32_t* info) {
  const int64_t n = problem.n;
  Turn<S> turn = problem.turn(blockIdx.x, 0);
  const auto least = least_of(n, turn.a);
  const int64_t pairs = turn.pairs();
  bool rotates = n > 1;
  for (int sweep = 0; rotates && sweep < kMostSweeps; ++sweep) {
    bool any = false;
    for (turn.number = 0; turn.number < turn.even - 1; ++turn.number) {
      by_threads(pairs, [&](int64_t k) { any |= turn.choose(k, least); });
      __syncthreads();
      by_threads(pairs * pairs, [&](int64_t t) { turn.rotate(t % pairs, t / pairs); });
      by_threads(turn.vectors ? pairs * n : 0,
                 [&](int64_t t) { turn.rotate_vectors(t / n, t % n); });
      __syncthreads();
    }
    rotates = __syncthreads_or(any);
  }
  if (threadIdx.x == 0) info[blockIdx.x] = rotates ? static_cast<int32_t>(n) : 0;
}

template <class S, class R>
__global__ void __launch_bounds__(kThreads) write_least(int64_t n, const S* a, R* least) {
  const R own = least_of(n, a + blockIdx.x * n * n);
  if (threadIdx.x == 0) least[blockIdx.x] = own;
}
template <class S, class R>
void rotate_turn(int64_t batch, const Problem<S>& given, int64_t number, const R* least,
                 int* rotates) {
  const Problem<S> problem = given;
  const int64_t n = problem.n, pairs = problem.even / 2;
  const Divisor by_pairs(pairs), by_n(n);
  each(batch * pairs, [=] __device__(int64_t i) {
    const int64_t k = by_pairs.divide(i);
    if (problem.turn(i, number).choose(k, least[i])) *rotates = 1;
  });
  each(batch * pairs * pairs, [=] __device__(int64_t i) {
    const int64_t k = by_pairs.divide(i), l = by_pairs.divide(i);
    problem.turn(i, number).rotate(k, l);
  });
  if (!problem.vectors) return;
  each(batch * pairs * n, [=] __device__(int64_t i) {
    const int64_t row = by_n.divide(i), k = by_pairs.divide(i);
    problem.turn(i, number).rotate_vectors(k, row);
  });
}
template <class S> void rotate_together(int64_t batch, const Problem<S>& problem, int32_t* info) {
  using R = RealPartOf<S>;
  const Workspace memory(static_cast<size_t>(batch) * sizeof(R) + sizeof(int64_t));
  auto* rotates = memory.as<int>();
  R* least = reinterpret_cast<R*>(memory.as<int64_t>() + 1);
  launch(write_least<S, R>, grid_of(batch), kThreads, 0, problem.n, problem.a, least);
  const bool ended = sweep(problem.n, rotates, [&](int64_t number) {
    rotate_turn(batch, problem, number, least, rotates);
  });
  write_codes(batch, ended ? 0 : static_cast<int32_t>(problem.n), info);
}

// Ascending.
template <class S, class R>
void write_sorted(int64_t batch, int64_t n, const S* rotated, const S* vectors, S* a,
                  const R* scale, R* diagonal, R* values, int64_t* rank) {
  each(batch * n, [=] __device__(int64_t i) {
    diagonal[i] = scale[i / n] * real_part(rotated[i / n * n * n + i % n * (n + 1)]);
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
  const int64_t elements = batch * n * n, even = n + n % 2;
  const Workspace matrices(static_cast<size_t>(2 * elements) * sizeof(T)),
      rotations(static_cast<size_t>(batch * even / 2) * sizeof(Rotation<S>)),
      lists(static_cast<size_t>(batch * n) * (sizeof(R) + sizeof(int64_t)) +
            static_cast<size_t>(batch) * sizeof(R));
  auto* own = reinterpret_cast<S*>(a);
  S* whole = matrices.as<S>();
  const Problem<S> problem{n, even, whole, vectors ? whole + elements : nullptr,
                           rotations.as<Rotation<S>>()};
  auto* rank = lists.as<int64_t>();
  R *diagonal = reinterpret_cast<R*>(rank + batch * n), *scale = diagonal + batch * n;
  fill_triangle(batch, n, upper, own, whole);
  launch(shrink<S, R>, grid_of(batch), threads_for(n * n / 4), 0, n * n, whole, scale);
  if (vectors) write_identity({batch, n, n}, matrices.as<T>() + elements);
  if (n > kMostOfBlock) rotate_together(batch, problem, info);
  else launch(rotate_alone<S>, grid_of(batch), threads_for(n * n / 4), 0, problem, info);
  write_sorted(batch, n, whole, problem.vectors, own, scale, diagonal, values, rank);
}

template <class T> const HermitianKernels<T> table{eigh<T>};

}  // namespace

void add_hermitian_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(),
            {device_table(table<float>), device_table(table<double>),
             device_table(table<std::complex<float>>), device_table(table<std::complex<double>>)});
}

}  // namespace taeda::cuda
