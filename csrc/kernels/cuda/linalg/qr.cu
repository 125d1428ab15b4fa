// QR factors by Householder reflectors. A block factors some columns of a matrix; what they do to
// others goes by matrix products, as I - V T V^H (Schreiber & Van Loan 1989).
#include "kernels/cuda/linalg/qr.h"

#include "kernels/cuda/linalg/block.h"
#include "kernels/cuda/linalg/tables.h"

namespace taeda::cuda {
namespace {

constexpr int kPanel = 32;  // reflectors that are applied together

// I - tau v v^H with v = (1, factor * x) makes (alpha, x) to (beta, 0).
template <class S> struct Reflector {
  RealPartOf<S> beta;
  S tau, factor;

  __device__ Reflector(S alpha, RealPartOf<S> norm_of_x)
      : beta(real_part(alpha)),
        tau(0),
        factor(0) {
    using R = RealPartOf<S>;
    R imaginary = 0;
    if constexpr (is_complex<S>) imaginary = alpha.im;
    if (norm_of_x == R(0) && imaginary == R(0)) return;
    const R real = beta;
    beta = -::copysign(::hypot(::hypot(real, imaginary), norm_of_x), real);
    if constexpr (is_complex<S>) tau = S((beta - real) / beta, -imaginary / beta);
    else tau = (beta - real) / beta;
    factor = S(1) / (alpha - S(beta));
  }
};

// Columns of less are enlarged before a reflector is made of them: a power of two.
template <class R> inline constexpr R kSmall = same_type<R, float> ? R(0x1p-90) : R(0x1p-900);

// A warp has a column at a time.
template <class S> __device__ void reflect(const S* v, S tau, int64_t j, int64_t rows, S* column) {
  const int lane = threadIdx.x % kWarp;
  S sum = lane == 0 ? column[j] : S(0);
  for (int64_t i = j + 1 + lane; i < rows; i += kWarp) sum = sum + conjugate(v[i]) * column[i];
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    sum = sum + across(sum, distance);
  const S change = conjugate(tau) * sum;
  if (lane == 0) column[j] = column[j] - change;
  for (int64_t i = j + 1 + lane; i < rows; i += kWarp) column[i] = column[i] - change * v[i];
}

template <class S>
__global__ void __launch_bounds__(kManyThreads)
    factor_columns(int64_t rows, int columns, Columns<S> a, S* tau, int64_t tau_step) {
  using R = RealPartOf<S>;
  S* matrix = a.matrix(blockIdx.x);
  tau += blockIdx.x * tau_step;
  for (int64_t j = 0; j < columns; ++j) {
    S* v = matrix + j * a.ld;
    R norm = norm_of(v, j + 1, rows), up = 1;
    const R size = ::fmax(norm, largest_part(v[j]));
    if (size > 0 && size < kSmall<R>) {  // with few digits, perhaps
      up = 1 / kSmall<R>;
      norm = norm_of(v, j + 1, rows, up);
    }
    const Reflector<S> h(S(up) * v[j], norm);
    __syncthreads();
    by_threads(rows - j - 1, [&](int64_t i) { v[j + 1 + i] = S(up) * v[j + 1 + i] * h.factor; });
    if (threadIdx.x == 0) {
      v[j] = S(h.beta / up);
      tau[j] = h.tau;
    }
    __syncthreads();
    for (int64_t c = j + 1 + threadIdx.x / kWarp; c < columns; c += blockDim.x / kWarp)
      reflect(v, h.tau, j, rows, matrix + c * a.ld);
    __syncthreads();
  }
}

// The reflectors as a matrix of their own, with ones in the diagonal and zeros above.
template <class S>
void write_reflectors(int64_t batch, int64_t rows, int64_t count, Columns<S> a, S* v) {
  const Divisor by_rows(rows), by_count(count);
  each(batch * rows * count, [=] __device__(int64_t i) {
    S* to = v + i;
    const int64_t row = by_rows.divide(i), column = by_count.divide(i);
    *to = row < column ? S(0) : row == column ? S(1) : a.matrix(i)[column * a.ld + row];
  });
}
// T from the products of all pairs of reflectors: column j is -tau_j T (V^H v_j).
template <class S>
__global__ void write_block(int n, const S* products, const S* tau, int64_t tau_step, S* t) {
  __shared__ S own[kPanel][kPanel + 1];
  products += int64_t{blockIdx.x} * n * n;
  t += int64_t{blockIdx.x} * n * n;
  tau += blockIdx.x * tau_step;
  const int i = static_cast<int>(threadIdx.x);
  for (int j = 0; j < n; ++j) {
    S sum(0);
    for (int k = i; k < j; ++k) sum = sum + own[i][k] * products[j * n + k];
    if (i < n) own[i][j] = i < j ? -(tau[j] * sum) : i == j ? tau[j] : S(0);
    __syncthreads();
  }
  for (int j = 0; i < n && j < n; ++j) t[j * n + i] = own[i][j];
}

// The product of some neighbouring reflectors of each matrix.
template <class T> class Product {
 public:
  Product(int64_t batch, int64_t rows, int64_t count, Columns<T> a, const T* tau, int64_t tau_step)
      : batch_(batch),
        rows_(rows),
        count_(count),
        memory_(static_cast<size_t>(batch * count * (rows + 2 * count)) * sizeof(T)) {
    T *v = memory_.as<T>(), *products = v + batch * rows * count;
    T* t = products + batch * count * count;
    v_ = {v, rows, rows * count};
    t_ = {t, count, count * count};
    const auto stored = a.stored();
    write_reflectors(batch, rows, count, stored, v_.stored().data);
    const Columns<T> all{products, count, count * count};
    multiply(batch, count, count, rows, T(1), v_.readable(), Trans::Conj, v_.readable(), Trans::No,
             T(0), all);
    launch(write_block<Stored<T>>, grid_of(batch), kPanel, 0, static_cast<int>(count),
           all.readable().stored().data, reinterpret_cast<const Stored<T>*>(tau), tau_step,
           t_.stored().data);
  }
  // c = op(Q) c or c op(Q); c has `others` columns, or rows.
  void apply(bool left, Trans trans, int64_t others, Columns<T> c) const {
    if (others == 0) return;
    const Workspace memory(static_cast<size_t>(2 * batch_ * count_ * others) * sizeof(T));
    T *first = memory.as<T>(), *second = first + batch_ * count_ * others;
    const int64_t ld = left ? count_ : others, step = count_ * others;
    const Columns<T> inner{first, ld, step}, scaled{second, ld, step};
    const Columns<const T> v = v_.readable(), t = t_.readable(), from = c.readable();
    if (left) {
      multiply(batch_, count_, others, rows_, T(1), v, Trans::Conj, from, Trans::No, T(0), inner);
      multiply(batch_, count_, others, count_, T(1), t, trans, inner.readable(), Trans::No, T(0),
               scaled);
      multiply(batch_, rows_, others, count_, T(-1), v, Trans::No, scaled.readable(), Trans::No,
               T(1), c);
    } else {
      multiply(batch_, others, count_, rows_, T(1), from, Trans::No, v, Trans::No, T(0), inner);
      multiply(batch_, others, count_, count_, T(1), inner.readable(), Trans::No, t, trans, T(0),
               scaled);
      multiply(batch_, others, rows_, count_, T(-1), scaled.readable(), Trans::No, v, Trans::Conj,
               T(1), c);
    }
  }

 private:
  int64_t batch_, rows_, count_;
  Workspace memory_;
  Columns<T> v_, t_;
};

template <class S> void copy_columns(int64_t batch, int64_t elements, Columns<S> from, S* to) {
  const Divisor by_elements(elements);
  each(batch * elements, [=] __device__(int64_t i) {
    S* target = to + i;
    const int64_t at = by_elements.divide(i);
    *target = from.matrix(i)[at];
  });
}

}  // namespace

template <class T> void factor_qr(MatrixBatch s, T* a, T* tau) {
  const int64_t k = std::min(s.rows, s.cols);
  const Columns<T> all{a, s.rows, s.rows * s.cols};
  for (int64_t first = 0; first < k && s.count > 0; first += kPanel) {
    const int64_t count = std::min<int64_t>(kPanel, k - first), rows = s.rows - first;
    const Columns<T> panel = all.from(first, first);
    launch(factor_columns<Stored<T>>, grid_of(s.count), threads_for(rows * count / 4, kManyThreads),
           0, rows, static_cast<int>(count), panel.stored(),
           reinterpret_cast<Stored<T>*>(tau + first), k);
    const int64_t next = first + count;
    if (next < s.cols)
      Product<T>(s.count, rows, count, panel, tau + first, k)
          .apply(true, Trans::Conj, s.cols - next, all.from(first, next));
  }
}

template <class T> void form_q(MatrixBatch s, int64_t k, T* a, const T* tau) {
  const Columns<T> q{a, s.rows, s.rows * s.cols};
  const Workspace memory(static_cast<size_t>(s.count * s.rows * k) * sizeof(T));
  const Columns<T> reflectors{memory.as<T>(), s.rows, s.rows * k};
  copy_columns(s.count, s.rows * k, q.stored(), reflectors.stored().data);
  write_identity(s, a);
  for (int64_t first = (k - 1) / kPanel * kPanel; first >= 0 && k > 0; first -= kPanel)
    Product<T>(s.count, s.rows - first, std::min<int64_t>(kPanel, k - first),
               reflectors.from(first, first), tau + first, k)
        .apply(true, Trans::No, s.cols - first, q.from(first, first));
}

template <class T>
void multiply_by_q(MatrixBatch s, bool left, Trans trans, int64_t k, const T* a, const T* tau,
                   T* c) {
  const int64_t rows = left ? s.rows : s.cols, others = left ? s.cols : s.rows;
  const Columns<T> reflectors{const_cast<T*>(a), rows, rows * k}, all{c, s.rows, s.rows * s.cols};
  const int64_t last = (k - 1) / kPanel * kPanel;
  const bool last_first = left == (trans == Trans::No);
  for (int64_t done = 0; done < k; done += kPanel) {
    const int64_t first = last_first ? last - done : done;
    Product<T>(s.count, rows - first, std::min<int64_t>(kPanel, k - first),
               reflectors.from(first, first), tau + first, k)
        .apply(left, trans, others, left ? all.from(first, 0) : all.from(0, first));
  }
}

namespace {

// ---- least squares ----
template <class S>
void clear_rows(int64_t batch, int64_t first, int64_t last, int64_t columns, Columns<S> b) {
  const Divisor by_rows(last - first), by_columns(columns);
  each(batch * (last - first) * columns, [=] __device__(int64_t i) {
    const int64_t row = by_rows.divide(i), column = by_columns.divide(i);
    b.matrix(i)[column * b.ld + first + row] = S(0);
  });
}

// R x = Q^H b, or where there are more columns than rows a^H = Q R and x = Q R^-H b, the shortest.
template <class T>
void least_squares(LeastSquares method, MatrixBatch s, int64_t b_cols, T* a, T* b, double, int32_t*,
                   RealOf<T>*, int32_t* info) {
  if (method != LeastSquares::QR) missing_kernel();
  const int64_t high = std::max(s.rows, s.cols), k = std::min(s.rows, s.cols);
  const MatrixBatch tall{s.count, high, k}, sides{s.count, high, b_cols};
  const Workspace memory(static_cast<size_t>(s.count * k * (1 + high)) * sizeof(T));
  T *tau = memory.as<T>(), *adjoint = tau + s.count * k;
  T* factors = s.rows < s.cols ? adjoint : a;
  if (s.rows < s.cols)
    write_adjoint(s.count, s.rows, s.cols, reinterpret_cast<const Stored<T>*>(a),
                  reinterpret_cast<Stored<T>*>(adjoint));
  factor_qr(tall, factors, tau);
  const Columns<T> r{factors, high, high * k}, x{b, high, high * b_cols};
  find_zeros(s.count, k, r.stored(), info);
  TriangularSystem how{true, true, false, Trans::No};
  if (s.rows >= s.cols) {
    multiply_by_q<T>(sides, true, Trans::Conj, k, factors, tau, b);
    return solve_triangle(s.count, k, b_cols, how, r.readable(), x);
  }
  how.trans = Trans::Conj;
  solve_triangle(s.count, k, b_cols, how, r.readable(), x);
  clear_rows(s.count, k, high, b_cols, x.stored());
  multiply_by_q<T>(sides, true, Trans::No, k, factors, tau, b);
}

template <class T> const QrKernels<T> table{factor_qr<T>, form_q<T>, multiply_by_q<T>};
template <class T> const LeastSquaresKernels<T> least_squares_table{least_squares<T>};

template <class... T> void add(std::vector<DeviceTable>& to) {
  (to.insert(to.end(), {device_table(table<T>), device_table(least_squares_table<T>)}), ...);
}

}  // namespace

template void factor_qr(MatrixBatch, float*, float*);
template void factor_qr(MatrixBatch, double*, double*);
template void factor_qr(MatrixBatch, std::complex<float>*, std::complex<float>*);
template void factor_qr(MatrixBatch, std::complex<double>*, std::complex<double>*);
template void form_q(MatrixBatch, int64_t, float*, const float*);
template void form_q(MatrixBatch, int64_t, double*, const double*);
template void form_q(MatrixBatch, int64_t, std::complex<float>*, const std::complex<float>*);
template void form_q(MatrixBatch, int64_t, std::complex<double>*, const std::complex<double>*);

void add_qr_tables(std::vector<DeviceTable>& to) {
  add<float, double, std::complex<float>, std::complex<double>>(to);
}

}  // namespace taeda::cuda
