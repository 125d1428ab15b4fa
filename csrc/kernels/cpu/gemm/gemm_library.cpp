#include "kernels/cpu/gemm/gemm_library.h"

#include <algorithm>
#include <complex>
#include <limits>

#include "base/error.h"
#include "base/openblas_buffer.h"
#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_packed.h"

// What we use of OpenBLAS as the scipy-openblas32 wheel exports it: 32-bit sizes, names with a
// prefix.
extern "C" {
void scipy_cblas_cgemm(int order, int ta, int tb, int m, int n, int k, const void* alpha,
                       const void* a, int lda, const void* b, int ldb, const void* beta, void* c,
                       int ldc);
void scipy_cblas_zgemm(int order, int ta, int tb, int m, int n, int k, const void* alpha,
                       const void* a, int lda, const void* b, int ldb, const void* beta, void* c,
                       int ldc);
}

namespace taeda::cpu {
namespace {

constexpr int kRowMajor = 101;
constexpr int64_t kMostInt = std::numeric_limits<int>::max();
constexpr double kTaskWork = 1 << 22;       // multiplications that are worth another thread
constexpr double kLargeTaskWork = 1 << 26;  // from 8 tasks on: each packs both its sides again
constexpr double kMostTasks = 64;

int code(Trans t) { return t == Trans::No ? 111 : t == Trans::Yes ? 112 : 113; }

int narrow(int64_t x) {
  check(x <= kMostInt, "matrix product: a size of ", x, " is more than BLAS can address");
  return static_cast<int>(x);
}

template <class T>
void blas_gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
               T* c, int64_t ldc) {
  const auto f = sizeof(T) == 8 ? scipy_cblas_cgemm : scipy_cblas_zgemm;
  f(kRowMajor, code(a.trans), code(b.trans), narrow(m), narrow(n), narrow(k), &alpha, a.data,
    narrow(a.stride), b.data, narrow(b.stride), &beta, c, narrow(ldc));
}

// Rows and columns of a task, from the sizes alone: the longer side is halved until there are
// enough.
struct Tasks {
  int64_t rows, cols;

  Tasks(int64_t m, int64_t n, int64_t k) : rows(m), cols(n) {
    const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double tasks =
        std::min({work / kTaskWork, std::max(8.0, work / kLargeTaskWork), kMostTasks});
    for (double count = 1; count * 2 <= tasks; count *= 2) {
      int64_t& side = rows >= cols ? rows : cols;
      if (side < 256) break;
      side = ceil_div(ceil_div(side, 2), 16) * 16;
    }
    rows = std::min(rows, kMostInt / 2);
    cols = std::min(cols, kMostInt / 2);
  }
};

}  // namespace

template <class T>
void library_gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
                  T* c, int64_t ldc) {
  // OpenBLAS does not start threads: the cutting is done here.
  // It wants sane leading dimensions even of matrices with one row.
  a.stride = std::max(a.stride, a.trans == Trans::No ? k : m);
  b.stride = std::max(b.stride, b.trans == Trans::No ? n : k);
  ldc = std::max(ldc, n);
  const Tasks task(m, n, k);
  const int64_t across = ceil_div(n, task.cols), down = ceil_div(m, task.rows);
  parallel_each(across * down, 1, [&](int64_t t) {
    const OpenblasBuffer buffer;
    const int64_t i = t / across * task.rows, j = t % across * task.cols;
    blas_gemm(std::min(task.rows, m - i), std::min(task.cols, n - j), k, alpha, a.from(i, 0),
              b.from(0, j), beta, c + i * ldc + j, ldc);
  });
}

template void library_gemm(int64_t, int64_t, int64_t, std::complex<float>,
                           MatrixRef<std::complex<float>>, MatrixRef<std::complex<float>>,
                           std::complex<float>, std::complex<float>*, int64_t);
template void library_gemm(int64_t, int64_t, int64_t, std::complex<double>,
                           MatrixRef<std::complex<double>>, MatrixRef<std::complex<double>>,
                           std::complex<double>, std::complex<double>*, int64_t);

}  // namespace taeda::cpu
