// Distances between all pairs of rows, and cross products.
#include "kernels/distance.h"

#include <cmath>

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

// ---- how the differences of two rows become a distance ----
template <class T> struct Count {
  __device__ T add(T sum, T d) const { return sum + static_cast<T>(d != 0); }
  __device__ T end(T sum) const { return sum; }
};
template <class T> struct Absolute {
  __device__ T add(T sum, T d) const { return sum + ::fabs(d); }
  __device__ T end(T sum) const { return sum; }
};
template <class T> struct Euclidean {
  __device__ T add(T sum, T d) const { return sum + d * d; }
  __device__ T end(T sum) const { return ::sqrt(sum); }
};
template <class T> struct Largest {
  __device__ T add(T sum, T d) const {
    const T size = ::fabs(d);
    return size > sum || size != size ? size : sum;
  }
  __device__ T end(T sum) const { return sum; }
};
template <class T> struct Power {
  T p;
  __device__ T add(T sum, T d) const { return sum + ::pow(::fabs(d), p); }
  __device__ T end(T sum) const { return ::pow(sum, 1 / p); }
};
template <class T, class F> void visit_norm(double p, F&& f) {
  if (p == 0) return f(Count<T>());
  if (p == 1) return f(Absolute<T>());
  if (p == 2) return f(Euclidean<T>());
  if (std::isinf(p)) return f(Largest<T>());
  f(Power<T>{static_cast<T>(p)});
}

// Where the distance of rows i and j of a batch goes, if anywhere.
struct EveryPair {
  int64_t m, n;
  __device__ int64_t operator()(int64_t batch, int64_t i, int64_t j) const {
    return i < m && j < n ? (batch * m + i) * n + j : -1;
  }
};
struct LaterPair {  // j > i of n rows, those of row 0 first
  int64_t n;
  __device__ int64_t operator()(int64_t, int64_t i, int64_t j) const {
    return i < j && j < n ? i * (2 * n - i - 1) / 2 + (j - i - 1) : -1;
  }
};

// A block has kSide x kSide pairs, and goes over the columns by panels in shared memory.
constexpr int kSide = 16, kDepth = 32;

template <class T>
__device__ void load_panel(T (*panel)[kDepth + 1], const T* x, int64_t row, int64_t rows,
                           int64_t column, int64_t k) {
  for (int i = threadIdx.x; i < kSide * kDepth; i += kSide * kSide) {
    const int64_t r = row + i / kDepth, c = column + i % kDepth;
    panel[i / kDepth][i % kDepth] = r < rows && c < k ? x[r * k + c] : T(0);
  }
}
template <class T, class Norm, class Target>
__global__ void __launch_bounds__(kSide* kSide)
    pair_distances(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t k, int64_t across,
                   int64_t first_batch, Norm norm, Target target) {
  __shared__ T left[kSide][kDepth + 1], right[kSide][kDepth + 1];
  const int64_t batch = first_batch + blockIdx.z;
  const int64_t row = blockIdx.x / across * kSide, column = blockIdx.x % across * kSide;
  const int own_row = threadIdx.x / kSide, own_column = threadIdx.x % kSide;
  T sum = 0;
  for (int64_t first = 0; first < k; first += kDepth) {
    load_panel(left, a + batch * m * k, row, m, first, k);
    load_panel(right, b + batch * n * k, column, n, first, k);
    __syncthreads();
    const int depth = k - first < kDepth ? static_cast<int>(k - first) : kDepth;
    for (int d = 0; d < depth; ++d) sum = norm.add(sum, left[own_row][d] - right[own_column][d]);
    __syncthreads();
  }
  const int64_t to = target(batch, row + own_row, column + own_column);
  if (to >= 0) out[to] = norm.end(sum);
}
template <class T, class Norm, class Target>
void run_pairs(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n, int64_t k,
               Norm norm, Target target) {
  const int64_t across = (n + kSide - 1) / kSide, down = (m + kSide - 1) / kSide;
  if (across * down == 0) return;
  if (across * down >= kMostElements) missing_kernel();
  constexpr int64_t most = 65535;  // blocks in the third dimension of a grid
  for (int64_t first = 0; first < batches; first += most) {
    const dim3 grid(static_cast<unsigned>(across * down), 1,
                    static_cast<unsigned>(std::min(most, batches - first)));
    launch(pair_distances<T, Norm, Target>, grid, kSide * kSide, 0, a, b, out, m, n, k, across,
           first, norm, target);
  }
}

template <class T>
void pairs(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n, int64_t k,
           double p) {
  visit_norm<T>(p,
                [&](auto norm) { run_pairs(a, b, out, batches, m, n, k, norm, EveryPair{m, n}); });
}
template <class T> void own_pairs(const T* a, T* out, int64_t n, int64_t k, double p) {
  visit_norm<T>(p, [&](auto norm) { run_pairs(a, a, out, 1, n, n, k, norm, LaterPair{n}); });
}

// ---- by a product ----
template <class T> __global__ void row_squares(const T* x, int64_t rows, int64_t k, T* out) {
  const int64_t row = group_index();
  T own = 0;
  for (int64_t c = threadIdx.x; row < rows && c < k; c += blockDim.x)
    own += x[row * k + c] * x[row * k + c];
  const T sum = group_sum(own);
  if (threadIdx.x == 0 && row < rows) out[row] = sum;
}
template <class T> void squares_of(const T* x, int64_t rows, int64_t k, T* out) {
  const dim3 block = groups_for(k);
  if (rows > 0) launch(row_squares<T>, blocks_of(rows, block), block, 0, x, rows, k, out);
}
template <class T>
void pairs_by_product(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n,
                      int64_t k) {
  if (k <= 24) return pairs(a, b, out, batches, m, n, k, 2);  // faster, and exact
  gemm_kernels<T>().batched(batches, m, n, k, T(-2), {a, k}, m * k, {b, k, Trans::Yes}, n * k, T(0),
                            out, n, m * n);
  const Workspace memory(static_cast<size_t>(batches * (m + n)) * sizeof(T));
  T *squares_a = memory.as<T>(), *squares_b = squares_a + batches * m;
  squares_of(a, batches * m, k, squares_a);
  squares_of(b, batches * n, k, squares_b);
  const Divisor by_n(n), by_m(m);
  each(batches * m * n, [=] __device__(int64_t i) {
    T* to = out + i;
    const int64_t j = by_n.divide(i), row = i;
    by_m.divide(i);
    const int64_t other = i * n + j;
    const T both = squares_a[row] + squares_b[other], square = both + *to;
    const bool is_exact = square >= both / 32 && both < static_cast<T>(INFINITY);
    T sum = square;
    if (!is_exact) {  // most of the digits cancel
      sum = 0;
      for (int64_t c = 0; c < k; ++c) {
        const T d = a[row * k + c] - b[other * k + c];
        sum += d * d;
      }
    }
    *to = ::sqrt(sum);
  });
}

// ---- lists of pairs ----
__device__ int64_t place_in_list(int64_t i, int64_t j, int64_t n) {
  return LaterPair{n}(0, i < j ? i : j, i < j ? j : i);
}
template <class T> void square_of_pairs(const T* pairs, T* square, int64_t n) {
  const Divisor by_n(n);
  each(n * n, [=] __device__(int64_t i) {
    T* to = square + i;
    const int64_t j = by_n.divide(i);
    *to = i == j ? T(0) : pairs[place_in_list(i, j, n)];
  });
}
template <class T> void pairs_of_square(const T* square, T* pairs, int64_t n) {
  const Divisor by_n(n);
  each(n * n, [=] __device__(int64_t i) {
    const int64_t j = by_n.divide(i);
    if (i < j) pairs[place_in_list(i, j, n)] = square[i * n + j] + square[j * n + i];
  });
}

template <class T>
void sum_signs(const T* g, const T* a, const T* b, T* gx, int64_t batches, int64_t m, int64_t n,
               int64_t k) {
  const Divisor by_k(k), by_m(m);
  each(batches * m * k, [=] __device__(int64_t i) {
    const int64_t own = i;
    const int64_t c = by_k.divide(i);
    const T* weight = g + i * n;
    by_m.divide(i);
    const T *others = b + i * n * k + c, here = a[own];
    T sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const T there = others[j * k];
      sum += here > there ? weight[j] : here < there ? -weight[j] : T(0);
    }
    gx[own] = sum;
  });
}

// ---- cross products ----
struct CrossPlaces {
  int dims;
  Divisor sizes[kMostDims];
  int64_t strides[3][kMostDims], apart[3], count = 1;

  explicit CrossPlaces(const CrossShape& s) : dims(static_cast<int>(s.dims)) {
    if (dims > kMostDims) missing_kernel();
    for (int d = 0; d < dims; ++d) {
      sizes[d] = Divisor(s.sizes[d]);
      count *= s.sizes[d];
      for (int k = 0; k < 3; ++k) strides[k][d] = s.strides[k][d];
    }
    for (int k = 0; k < 3; ++k) apart[k] = s.apart[k];
  }
};
template <class T> void cross(const CrossShape& s, const T* a, const T* b, T* out) {
  const CrossPlaces p(s);
  each(p.count, [=] __device__(int64_t i) {
    const T *x = a, *y = b;
    T* to = out;
    for (int d = p.dims - 1; d >= 0; --d) {
      const int64_t at = p.sizes[d].divide(i);
      x += at * p.strides[0][d];
      y += at * p.strides[1][d];
      to += at * p.strides[2][d];
    }
    const T x0 = x[0], x1 = x[p.apart[0]], x2 = x[2 * p.apart[0]];
    const T y0 = y[0], y1 = y[p.apart[1]], y2 = y[2 * p.apart[1]];
    to[0] = x1 * y2 - x2 * y1;
    to[p.apart[2]] = x2 * y0 - x0 * y2;
    to[2 * p.apart[2]] = x0 * y1 - x1 * y0;
  });
}

template <class T>
const DistanceKernels<T> table{
    pairs<T>,           pairs_by_product<T>, own_pairs<T>, square_of_pairs<T>,
    pairs_of_square<T>, sum_signs<T>,        cross<T>};

}  // namespace

void add_distance_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
