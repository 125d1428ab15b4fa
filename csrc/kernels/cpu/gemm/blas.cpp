#include "kernels/cpu/gemm/blas.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/gemm_packed.h"
#include "kernels/cpu/gemm/simd/gemm_long_k.h"
#include "kernels/cpu/gemm/simd/gemm_small.h"
#include "kernels/cpu/gemm/simd/gemm_small_k.h"
#include "kernels/cpu/gemm/simd/gemv.h"
#include "kernels/cpu/simd/pick.h"

// What we use of OpenBLAS as the scipy-openblas32 wheel exports it: 32-bit sizes, names with a
// prefix.
extern "C" {
void scipy_openblas_set_num_threads(int count);
void scipy_cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
void scipy_cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha,
                       const double* a, int lda, const double* b, int ldb, double beta, double* c,
                       int ldc);
void scipy_cblas_cgemm(int order, int ta, int tb, int m, int n, int k, const void* alpha,
                       const void* a, int lda, const void* b, int ldb, const void* beta, void* c,
                       int ldc);
void scipy_cblas_zgemm(int order, int ta, int tb, int m, int n, int k, const void* alpha,
                       const void* a, int lda, const void* b, int ldb, const void* beta, void* c,
                       int ldc);
void scipy_cblas_sgemv(int order, int trans, int m, int n, float alpha, const float* a, int lda,
                       const float* x, int x_step, float beta, float* y, int y_step);
void scipy_cblas_dgemv(int order, int trans, int m, int n, double alpha, const double* a, int lda,
                       const double* x, int x_step, double beta, double* y, int y_step);
void scipy_cblas_cgemv(int order, int trans, int m, int n, const void* alpha, const void* a,
                       int lda, const void* x, int x_step, const void* beta, void* y, int y_step);
void scipy_cblas_zgemv(int order, int trans, int m, int n, const void* alpha, const void* a,
                       int lda, const void* x, int x_step, const void* beta, void* y, int y_step);
}

namespace taeda::cpu {
namespace {

constexpr int kRowMajor = 101;
constexpr int64_t kMostInt = std::numeric_limits<int>::max();
constexpr int64_t kTileWork = 1 << 22;  // m * n * k of a tile that is worth another thread
constexpr int64_t kLargeTileWork = 1
                                   << 26;  // from 8 tiles on: BLAS copies both sides for every tile
constexpr int64_t kMostTiles = 64;
constexpr double kTaskWork = 1 << 18;    // the same for products of small matrices
constexpr double kMatrixWork = 1 << 24;  // of a matrix that is worth several threads
constexpr int64_t kVectorWork =
    1 << 16;  // elements of a matrix, the same for a matrix-vector product

int code(Trans t) { return t == Trans::No ? 111 : t == Trans::Yes ? 112 : 113; }

// OpenBLAS must not start threads: the cutting is done here.
void single_threaded() {
  [[maybe_unused]] static const bool done = (scipy_openblas_set_num_threads(1), true);
}

int narrow(int64_t x, const char* what) {
  check(x <= kMostInt, "matrix product: ", what, " of ", x,
        " elements is more than BLAS can address");
  return static_cast<int>(x);
}

template <class T>
void blas_gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
               T* c, int64_t ldc) {
  const int m_ = static_cast<int>(m), n_ = static_cast<int>(n), k_ = static_cast<int>(k);
  const int lda = narrow(a.stride, "a row"), ldb = narrow(b.stride, "a row"),
            ldc_ = narrow(ldc, "a row");
  const int ta = code(a.trans), tb = code(b.trans);
  if constexpr (std::is_same_v<T, float>) {
    scipy_cblas_sgemm(kRowMajor, ta, tb, m_, n_, k_, alpha, a.data, lda, b.data, ldb, beta, c,
                      ldc_);
  } else if constexpr (std::is_same_v<T, double>) {
    scipy_cblas_dgemm(kRowMajor, ta, tb, m_, n_, k_, alpha, a.data, lda, b.data, ldb, beta, c,
                      ldc_);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    scipy_cblas_cgemm(kRowMajor, ta, tb, m_, n_, k_, &alpha, a.data, lda, b.data, ldb, &beta, c,
                      ldc_);
  } else {
    scipy_cblas_zgemm(kRowMajor, ta, tb, m_, n_, k_, &alpha, a.data, lda, b.data, ldb, &beta, c,
                      ldc_);
  }
}

template <class T> void scale(int64_t m, int64_t n, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
  }
}

// The part of op(x) that starts at (row, col).
template <class T> MatrixRef<T> from(MatrixRef<T> x, int64_t row, int64_t col) {
  x.data += x.trans == Trans::No ? row * x.stride + col : col * x.stride + row;
  return x;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows and columns of a tile, from the sizes alone: the longer side is halved until a tile is small
// enough.
struct Tiles {
  int64_t rows, cols;

  Tiles(int64_t m, int64_t n, int64_t k) : rows(m), cols(n) {
    const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double tiles =
        std::min({work / kTileWork, std::max(8.0, work / kLargeTileWork), double{kMostTiles}});
    for (double count = 1; count * 2 <= tiles; count *= 2) {
      if (rows >= cols && rows >= 256) {
        rows = ceil_div(ceil_div(rows, 2), 16) * 16;
      } else if (cols >= 256) {
        cols = ceil_div(ceil_div(cols, 2), 16) * 16;
      } else {
        break;
      }
    }
    rows = std::min(rows, kMostInt / 2);
    cols = std::min(cols, kMostInt / 2);
  }
};

// How a product is computed, by its sizes and layout alone. Small: BLAS has a path without copies,
// in some tens of nanoseconds, but it is slow where both sides' rows run along the sum, and never
// faster than panels in the widest registers. Long: few results, each a long sum.
constexpr int64_t kPart = 4096;  // of a long sum
template <class T>
bool is_small(int64_t m, int64_t n, int64_t k, const MatrixRef<T>& a, const MatrixRef<T>& b) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int64_t of_widest = 8;
    if (m <= 16 || Panels<T>::rows_together() >= of_widest) return false;
  }
  if (m > 64 || n > 64 || m * n * k > 1'000'000) return false;
  const bool inner = a.trans == Trans::No && b.trans != Trans::No;
  return !(std::is_floating_point_v<T> && inner && m >= 32 && n >= 32);
}
bool is_long(int64_t m, int64_t n, int64_t k) {
  return k >= 2 * kPart && m * n <= std::min<int64_t>(256 * 256, k * 4) &&
         m * n * kPart >= kTileWork / 4;
}

// The sum is cut, and the parts added in order.
template <class T>
void long_gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
               T* c, int64_t ldc) {
  constexpr int64_t most_parts = 32;
  const int64_t step = std::max(kPart, ceil_div(k, most_parts));
  const int64_t parts = ceil_div(k, step);
  Scratch<T> sums(m * n * parts);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t start = p * step, count = std::min(step, k - start);
      gemm(m, n, count, alpha, from(a, 0, start), from(b, start, 0), T(0), sums.data() + p * m * n,
           n);
    }
  });
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = sums.data()[i * n + j];
      for (int64_t p = 1; p < parts; ++p) sum += sums.data()[(p * m + i) * n + j];
      c[i * ldc + j] = beta == T(0) ? sum : sum + beta * c[i * ldc + j];
    }
  }
}

template <class T>
void blas_gemv(Trans trans, int64_t rows, int64_t cols, T alpha, const T* a, int64_t lda,
               const T* x, int64_t x_step, T beta, T* y, int64_t y_step) {
  const int r = narrow(rows, "a matrix"), c = narrow(cols, "a matrix"),
            ld = narrow(std::max<int64_t>(lda, 1), "a row");
  const int xs = narrow(x_step, "a step"), ys = narrow(y_step, "a step"), t = code(trans);
  if constexpr (std::is_same_v<T, float>) {
    scipy_cblas_sgemv(kRowMajor, t, r, c, alpha, a, ld, x, xs, beta, y, ys);
  } else if constexpr (std::is_same_v<T, double>) {
    scipy_cblas_dgemv(kRowMajor, t, r, c, alpha, a, ld, x, xs, beta, y, ys);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    scipy_cblas_cgemv(kRowMajor, t, r, c, &alpha, a, ld, x, xs, &beta, y, ys);
  } else {
    scipy_cblas_zgemv(kRowMajor, t, r, c, &alpha, a, ld, x, xs, &beta, y, ys);
  }
}

template <class T> void real_gemv(bool plain, const simd::VectorProduct<T>& p) {
  using namespace simd;
  const GemvKernels& kernels = TAEDA_PICK(gemv_kernels);
  if constexpr (std::is_same_v<T, float>) (plain ? kernels.f32 : kernels.turned_f32)(p);
  else (plain ? kernels.f64 : kernels.turned_f64)(p);
}

// Products of small matrices. start: n elements that are added to each row, or null.
constexpr int64_t kSmallSum = 256;       // terms, of several rows and columns
constexpr int64_t kSmallWork = 1 << 16;  // multiplications that do not pay for packing
template <class T>
bool small_gemm(int64_t batch, int64_t m, int64_t n, int64_t k, T alpha, const MatrixRef<T>& a,
                int64_t a_step, const MatrixRef<T>& b, int64_t b_step, T beta, T* c, int64_t ldc,
                int64_t c_step, const T* start = nullptr) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int64_t most = simd::kSmallSide;
    if (m > 2 * most || n > most || k <= 0 || alpha != 1 || (beta != 0 && beta != 1)) return false;
    if (k > most) {
      if (m == 1 || n == 1 || k > kSmallSum || m * n * k > kSmallWork) return false;
      if (b.trans != Trans::No && n * k > simd::kSmallTurned) return false;
    }
    auto strided = [](const MatrixRef<T>& x, int64_t step) {
      const bool plain = x.trans == Trans::No;
      return simd::Strided<T>{x.data, plain ? x.stride : 1, plain ? 1 : x.stride, step};
    };
    using namespace simd;
    const SmallGemmKernels& kernels = TAEDA_PICK(small_gemm_kernels);
    const SmallProduct<T> product{m,   n,      k,     strided(a, a_step), strided(b, b_step), c,
                                  ldc, c_step, start, beta == 1};
    if constexpr (std::is_same_v<T, float>) kernels.f32(batch, product);
    else kernels.f64(batch, product);
    return true;
  }
  return false;
}

// Products whose sums are short, where copies and calls take longer than the arithmetic.
constexpr int64_t kThin = 64;           // complex terms of a sum
constexpr int64_t kThinReal = 4;        // real ones, of many results
constexpr int64_t kTurned = 1024;       // elements of a right side that is transposed first
constexpr int64_t kThinTask = 1 << 17;  // multiplications and results that are worth another thread
constexpr int64_t kThinCols = 2048;     // of a task
template <class T>
bool is_thin(int64_t m, int64_t n, int64_t k, T alpha, const MatrixRef<T>& b, T beta) {
  if (k <= 0 || alpha != T(1) || (beta != T(0) && beta != T(1)) || m * n == 0) return false;
  if (n > 1 && b.trans != Trans::No && n * k > kTurned) return false;
  if constexpr (!std::is_floating_point_v<T>)
    return n > 1 ? k <= kThin && (m > 1 || n * k <= kTurned) : k <= kThinReal;
  constexpr auto half = static_cast<int64_t>(32 / sizeof(T));  // of the widest register
  constexpr int64_t small = simd::kSmallSide;
  return m > 1 && n > 1 &&
         (k <= kThinReal || (n <= small && k <= small) || (n <= half && k <= 4 * kThin));
}
template <class T>
bool thin_gemm(int64_t batch, int64_t m, int64_t n, int64_t k, T alpha, const MatrixRef<T>& a,
               int64_t a_step, const MatrixRef<T>& b, int64_t b_step, T beta, T* c, int64_t ldc,
               int64_t c_step) {
  if (!is_thin(m, n, k, alpha, b, beta)) return false;
  constexpr bool real = std::is_floating_point_v<T>;
  using R = decltype(std::real(T()));
  const bool turns = n > 1 && b.trans != Trans::No;
  const bool by_rows = a.trans == Trans::No;
  Scratch<T> columns(turns ? n * k : 0);
  simd::ThinProduct<R> x{
      .m = m,
      .n = n,
      .k = k,
      .a = {reinterpret_cast<const R*>(a.data), by_rows ? a.stride : 1, by_rows ? 1 : a.stride,
            a_step},
      .b = {reinterpret_cast<const R*>(b.data), b.trans == Trans::No ? b.stride : 1, 1, b_step},
      .conjugate_a = a.trans == Trans::Conj,
      .conjugate_b = b.trans == Trans::Conj,
      .add = beta == T(1)};
  using namespace simd;
  const ThinGemmKernels& kernels = TAEDA_PICK(thin_gemm_kernels);
  auto run = [&](int64_t count, const ThinProduct<R>& product, T* to) {
    auto* const out = reinterpret_cast<R*>(to);
    if constexpr (std::is_same_v<R, float>)
      (real ? kernels.f32 : kernels.c32)(count, product, out, ldc, c_step);
    else (real ? kernels.f64 : kernels.c64)(count, product, out, ldc, c_step);
  };
  if (batch > 1 && !turns && m * n * k <= kThinTask) return run(batch, x, c), true;
  constexpr int64_t together = 32, parts = real ? 1 : 2;
  const int64_t wide = std::min(n, kThinCols), across = ceil_div(n, wide);
  const int64_t high = std::max(together, kThinTask / (wide * (k + 2)) / together * together);
  for (int64_t i = 0; i < batch; ++i) {
    if (turns) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < n; ++j)
          columns.data()[p * n + j] = b.data[i * b_step + j * b.stride + p];
      }
      x.b = {reinterpret_cast<const R*>(columns.data()), n, 1, 0};
    }
    x.a.data = reinterpret_cast<const R*>(a.data + i * a_step);
    if (!turns) x.b.data = reinterpret_cast<const R*>(b.data + i * b_step);
    parallel_for(ceil_div(m, high) * across, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t row = t / across * high, col = t % across * wide;
        ThinProduct<R> part = x;
        part.m = std::min(high, m - row);
        part.n = std::min(wide, n - col);
        part.a.data += parts * row * x.a.row;
        part.b.data += parts * col;
        run(1, part, c + i * c_step + row * ldc + col);
      }
    });
  }
  return true;
}

// Few inner products of long vectors, by parts that are added in order.
template <class T>
bool few_gemm(int64_t m, int64_t n, int64_t k, T alpha, const MatrixRef<T>& a,
              const MatrixRef<T>& b, T beta, T* c, int64_t ldc) {
  constexpr int64_t shortest = 64, part = 2048, task = 1 << 17;
  if (m < 2 || n < 2 || m > simd::kLongSide || n > simd::kLongSide || k < shortest) return false;
  using R = decltype(std::real(T()));
  constexpr int64_t parts_of_number = std::is_floating_point_v<T> ? 1 : 2;
  const bool a_along = a.trans == Trans::No, b_along = b.trans != Trans::No;
  simd::LongProduct<R> x{.m = m,
                         .n = n,
                         .k = 0,
                         .a = reinterpret_cast<const R*>(a.data),
                         .a_row = a_along ? a.stride : 1,
                         .a_step = a_along ? 1 : a.stride,
                         .b = reinterpret_cast<const R*>(b.data),
                         .b_col = b_along ? b.stride : 1,
                         .b_step = b_along ? 1 : b.stride,
                         .conjugate_a = a.trans == Trans::Conj,
                         .conjugate_b = b.trans == Trans::Conj};
  const bool turns = b_along && !a_along;  // c' = op(b)' op(a)'
  if (turns) {
    std::swap(x.m, x.n);
    std::swap(x.a, x.b);
    std::swap(x.a_row, x.b_col);
    std::swap(x.a_step, x.b_step);
    std::swap(x.conjugate_a, x.conjugate_b);
  }
  using namespace simd;
  const LongGemmKernels& kernels = TAEDA_PICK(long_gemm_kernels);
  const int64_t parts = ceil_div(k, part), size = m * n;
  Scratch<T> sums(size * parts);
  parallel_for(parts, std::max<int64_t>(1, task / (size * part)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      LongProduct<R> some = x;
      some.k = std::min(part, k - p * part);
      some.a += parts_of_number * p * part * x.a_step;
      some.b += parts_of_number * p * part * x.b_step;
      R* const to = reinterpret_cast<R*>(sums.data() + p * size);
      if constexpr (std::is_same_v<T, float>) kernels.f32(some, to);
      else if constexpr (std::is_same_v<T, double>) kernels.f64(some, to);
      else if constexpr (std::is_same_v<R, float>) kernels.c32(some, to);
      else kernels.c64(some, to);
    }
  });
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const T* at = sums.data() + (turns ? j * m + i : i * n + j);
      T sum = at[0];
      for (int64_t p = 1; p < parts; ++p) sum += at[p * size];
      T& to = c[i * ldc + j];
      to = beta == T(0) ? alpha * sum : alpha * sum + beta * to;
    }
  }
  return true;
}

// A product with a vector on one side.
template <class T>
bool vector_gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
                 T* c, int64_t ldc) {
  if (n == 1 && b.trans != Trans::Conj) {
    const bool plain = a.trans == Trans::No;
    gemv(a.trans, plain ? m : k, plain ? k : m, alpha, a.data, a.stride, b.data,
         b.trans == Trans::No ? b.stride : 1, beta, c, ldc);
    return true;
  }
  if (m == 1 && a.trans != Trans::Conj && b.trans != Trans::Conj) {
    const bool plain = b.trans == Trans::No;  // c' = op(b)' a'
    gemv(plain ? Trans::Yes : Trans::No, plain ? k : n, plain ? n : k, alpha, b.data, b.stride,
         a.data, a.trans == Trans::No ? 1 : a.stride, beta, c, 1);
    return true;
  }
  return false;
}

}  // namespace

template <class T>
void gemv(Trans trans, int64_t rows, int64_t cols, T alpha, const T* a, int64_t lda, const T* x,
          int64_t x_step, T beta, T* y, int64_t y_step) {
  single_threaded();
  const int64_t outputs = trans == Trans::No ? rows : cols;
  const int64_t inputs = trans == Trans::No ? cols : rows;
  if (beta == T(0)) {
    for (int64_t i = 0; i < outputs; ++i)
      y[i * y_step] = T(0);  // BLAS may multiply what is there, NaN included
  }
  if (inputs == 0 || outputs == 0) {
    if (inputs == 0 && beta != T(0)) {
      for (int64_t i = 0; i < outputs; ++i) y[i * y_step] *= beta;
    }
    return;
  }
  const int64_t shortest = trans == Trans::No ? 256 : 64;
  const bool long_lines = cols >= shortest && x_step == 1;  // others are OpenBLAS's
  // Of rows that are added up, short parts would be read from far apart.
  const int64_t least = trans == Trans::No ? 64 : 512;
  const int64_t grain = std::max<int64_t>(least, kVectorWork / inputs / 16 * 16);
  parallel_for(outputs, grain, [&](int64_t begin, int64_t end) {
    const bool plain = trans == Trans::No;
    const T* part = plain ? a + begin * lda : a + begin;
    const int64_t r = plain ? end - begin : rows, c = plain ? cols : end - begin;
    T* to = y + begin * y_step;
    if constexpr (std::is_floating_point_v<T>) {
      if (long_lines) return real_gemv<T>(plain, {r, c, part, lda, x, alpha, beta, to, y_step});
    }
    blas_gemv(trans, r, c, alpha, part, lda, x, x_step, beta, to, y_step);
  });
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta, T* c,
          int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) return scale(m, n, beta, c, ldc);
  // BLAS wants sane leading dimensions even of matrices with one row.
  a.stride = std::max(a.stride, a.trans == Trans::No ? k : m);
  b.stride = std::max(b.stride, b.trans == Trans::No ? n : k);
  ldc = std::max(ldc, n);
  if (small_gemm(1, m, n, k, alpha, a, 0, b, 0, beta, c, ldc, 0)) return;
  if (few_gemm(m, n, k, alpha, a, b, beta, c, ldc)) return;
  if (thin_gemm(1, m, n, k, alpha, a, 0, b, 0, beta, c, ldc, 0)) return;
  if (vector_gemm(m, n, k, alpha, a, b, beta, c, ldc)) return;
  single_threaded();
  if (is_small(m, n, k, a, b)) return blas_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  if (is_long(m, n, k)) return long_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  if constexpr (std::is_floating_point_v<T>) {
    gemm_panels(m, n, k, alpha, a, b, beta, c, ldc);
  } else {
    check(k <= kMostInt, "matrix product: an inner dimension of ", k,
          " is more than BLAS can address");
    const Tiles tile(m, n, k);
    const int64_t across = ceil_div(n, tile.cols), down = ceil_div(m, tile.rows);
    parallel_for(across * down, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t i = t / across * tile.rows, j = t % across * tile.cols;
        blas_gemm(std::min(tile.rows, m - i), std::min(tile.cols, n - j), k, alpha, from(a, i, 0),
                  from(b, 0, j), beta, c + i * ldc + j, ldc);
      }
    });
  }
}

template <class T>
void gemm_onto(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
               T* c, int64_t ldc) {
  if (small_gemm(1, m, n, k, T(1), a, 0, b, 0, T(0), c, ldc, 0, start)) return;
  if constexpr (std::is_floating_point_v<T>) {
    if (m > 1 && n > 1 && k > 0 && !is_small(m, n, k, a, b) && !is_long(m, n, k))
      return gemm_panels(m, n, k, T(1), a, b, T(0), c, ldc, start);
  }
  for (int64_t i = 0; i < m; ++i) std::copy_n(start, n, c + i * ldc);
  gemm(m, n, k, T(1), a, b, T(1), c, ldc);
}

template <class T>
void gemm_onto_rows(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
                    T* c, int64_t ldc) {
  if constexpr (std::is_floating_point_v<T>) {
    if (m > 1 && n > 1 && k > 0 && !is_small(m, n, k, a, b) && !is_long(m, n, k))
      return gemm_panels<T>(m, n, k, T(1), a, b, T(0), c, ldc, nullptr, start);
  }
  for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, start[i]);
  gemm(m, n, k, T(1), a, b, T(1), c, ldc);
}

template <class T>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a,
                  int64_t a_step, MatrixRef<T> b, int64_t b_step, T beta, T* c, int64_t ldc,
                  int64_t c_step) {
  if (batch == 1) return gemm(m, n, k, alpha, a, b, beta, c, ldc);
  const double work = static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(std::max<int64_t>(k, 1));
  auto run = [&](int64_t begin, int64_t end) {
    if (small_gemm(end - begin, m, n, k, alpha, {a.data + begin * a_step, a.stride, a.trans},
                   a_step, {b.data + begin * b_step, b.stride, b.trans}, b_step, beta,
                   c + begin * c_step, ldc, c_step))
      return;
    if constexpr (!std::is_floating_point_v<T>) {
      if (thin_gemm(end - begin, m, n, k, alpha, {a.data + begin * a_step, a.stride, a.trans},
                    a_step, {b.data + begin * b_step, b.stride, b.trans}, b_step, beta,
                    c + begin * c_step, ldc, c_step))
        return;
    }
    for (int64_t i = begin; i < end; ++i) {
      gemm(m, n, k, alpha, {a.data + i * a_step, a.stride, a.trans},
           {b.data + i * b_step, b.stride, b.trans}, beta, c + i * c_step, ldc);
    }
  };
  // A few large matrices: parallel inside each. Otherwise whole matrices are dealt out.
  if (batch < 8 && work > kMatrixWork) return run(0, batch);
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(kTaskWork / work));
  parallel_for(batch, grain, run);
}

#define TAEDA_GEMM(T)                                                                              \
  template void gemm<T>(int64_t, int64_t, int64_t, T, MatrixRef<T>, MatrixRef<T>, T, T*, int64_t); \
  template void gemm_onto<T>(int64_t, int64_t, int64_t, MatrixRef<T>, MatrixRef<T>, const T*, T*,  \
                             int64_t);                                                             \
  template void gemm_onto_rows<T>(int64_t, int64_t, int64_t, MatrixRef<T>, MatrixRef<T>, const T*, \
                                  T*, int64_t);                                                    \
  template void gemm_batched<T>(int64_t, int64_t, int64_t, int64_t, T, MatrixRef<T>, int64_t,      \
                                MatrixRef<T>, int64_t, T, T*, int64_t, int64_t);                   \
  template void gemv<T>(Trans, int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T, T*,   \
                        int64_t);
TAEDA_GEMM(float)
TAEDA_GEMM(double)
TAEDA_GEMM(std::complex<float>)
TAEDA_GEMM(std::complex<double>)

}  // namespace taeda::cpu
