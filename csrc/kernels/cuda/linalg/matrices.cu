// What surrounds factors: checks, permutations, determinants.
#include "kernels/matrices.h"

#include <cmath>

#include "kernels/cuda/common/find.h"
#include "kernels/cuda/linalg/matrices.h"
#include "kernels/cuda/linalg/tables.h"
#include "kernels/functors/elementary.h"

namespace taeda::cuda {
namespace {

template <class S> void identity_as(const MatrixBatch& s, S* a) {
  const Divisor by_rows(s.rows), by_columns(s.cols);
  each(s.count * s.rows * s.cols, [=] __device__(int64_t i) {
    S* to = a + i;
    const int64_t row = by_rows.divide(i), column = by_columns.divide(i);
    *to = row == column ? S(1) : S(0);
  });
}

template <class S>
void det_as(int64_t batch, int64_t n, const S* lu, const int32_t* pivots, S* det) {
  each(batch, [=] __device__(int64_t i) {
    S d(1);
    for (int64_t k = 0; k < n; ++k) {
      d = d * lu[(i * n + k) * n + k];
      if (pivots[i * n + k] != k + 1) d = -d;
    }
    det[i] = d;
  });
}
template <class S, class R>
void slogdet_as(int64_t batch, int64_t n, const S* lu, const int32_t* pivots, S* sign, R* log) {
  each(batch, [=] __device__(int64_t i) {
    S s(1);
    R logs(0);
    for (int64_t k = 0; k < n; ++k) {
      const S u = lu[(i * n + k) * n + k];
      const R size = portable::abs(u);
      s = s * (size == R(0) ? S(0) : u / S(size));
      logs += ::log(size);
      if (pivots[i * n + k] != k + 1) s = -s;
    }
    sign[i] = s;
    log[i] = logs;
  });
}

template <class T> Stored<T>* stored(T* p) { return reinterpret_cast<Stored<T>*>(p); }
template <class T> const Stored<T>* stored(const T* p) {
  return reinterpret_cast<const Stored<T>*>(p);
}
template <class T> void identity(MatrixBatch s, T* a) { identity_as(s, stored(a)); }
template <class T>
void det(int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* result) {
  det_as(batch, n, stored(lu), pivots, stored(result));
}
template <class T>
void slogdet(int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* sign,
             RealOf<T>* log) {
  slogdet_as(batch, n, stored(lu), pivots, stored(sign), log);
}

// ---- checks, for which the host waits ----
std::optional<MatrixFailure> find_failure(int64_t batch, const int32_t* info) {
  const int64_t first = find_first(batch, [=] __device__(int64_t i) { return info[i] != 0; });
  if (first == kNone) return std::nullopt;
  return MatrixFailure{first, read_back(info + first)};
}

template <class T> int64_t find_not_finite_as(int64_t n, const T* x) {
  return find_first(n, [=] __device__(int64_t i) { return !(x[i] - x[i] == T(0)); });
}
std::optional<int64_t> find_not_finite(DType dtype, int64_t n, const void* x) {
  const int64_t first = visit_floating(dtype, "linalg", [&]<class T>(Tag<T>) {
    return find_not_finite_as(n, static_cast<const T*>(x));
  });
  return first == kNone ? std::nullopt : std::optional(first);
}

std::optional<int32_t> find_bad_pivot(int64_t n, int64_t rows, const int32_t* pivots) {
  const int64_t first =
      find_first(n, [=] __device__(int64_t i) { return pivots[i] < 1 || pivots[i] > rows; });
  if (first == kNone) return std::nullopt;
  return read_back(pivots + first);
}

void row_order(int64_t batch, int64_t k, int64_t rows, const int32_t* pivots, int64_t* order) {
  each(batch, [=] __device__(int64_t i) {
    int64_t* own = order + i * rows;
    for (int64_t r = 0; r < rows; ++r) own[r] = r;
    for (int64_t r = 0; r < k; ++r) {
      const int64_t other = pivots[i * k + r] - 1, v = own[r];
      own[r] = own[other];
      own[other] = v;
    }
  });
}

// The host decides how many products follow.
Halvings halve(int64_t n, double bound, const double* norm, int64_t* halvings, double* scale) {
  const auto count = static_cast<size_t>(n);
  std::vector<double> norms(count), scales(count);
  std::vector<int64_t> all(count);
  if (n > 0) read_back(norms.data(), norm, count * sizeof(double));
  const Halvings found = plain::halve(n, bound, norms.data(), all.data(), scales.data());
  if (n > 0) {
    send(halvings, all.data(), count * sizeof(int64_t));
    send(scale, scales.data(), count * sizeof(double));
  }
  return found;
}

template <class T> const MatrixKernels<T> table{identity<T>, det<T>, slogdet<T>};
const LinalgKernels linalg_table{find_failure, find_not_finite, find_bad_pivot, row_order, halve};

}  // namespace

void write_codes(int64_t batch, int32_t code, int32_t* info) {
  each(batch, [=] __device__(int64_t i) { info[i] = code; });
}

template <class T> void write_identity(MatrixBatch s, T* a) { identity(s, a); }
template void write_identity(MatrixBatch, float*);
template void write_identity(MatrixBatch, double*);
template void write_identity(MatrixBatch, std::complex<float>*);
template void write_identity(MatrixBatch, std::complex<double>*);

void add_matrix_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>),
                       device_table(table<std::complex<float>>),
                       device_table(table<std::complex<double>>), device_table(linalg_table)});
}

}  // namespace taeda::cuda
