// QR factors of one matrix of moderate size, column by column: panels of columns are worth it for
// larger ones only, several matrices at once for smaller ones (matrices.h).
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct ReflectorLoops {
  // Elements of work space for a matrix of that size.
  static constexpr int64_t space(int64_t rows, int64_t cols) {
    return (rows + 15) / 16 * 16 * (cols + 9) + 2 * cols + 16;
  }

  // R in the upper triangle of a (m x n), reflectors below it, in LAPACK's form; tau: min(m, n).
  void (*qr)(int64_t m, int64_t n, T* a, T* tau, T* work);
  // The same of a with its columns exchanged such that the longest of what is left comes next:
  // column i of it is column order[i] of a.
  void (*qr_pivots)(int64_t m, int64_t n, T* a, T* tau, int32_t* order, T* work);
  // The first n columns of the product of the k reflectors in a (m x n), in their place.
  void (*q)(int64_t m, int64_t n, int64_t k, T* a, const T* tau, T* work);
  // c (m x n, `ldc` apart) = op(Q) c or c op(Q), Q the product of the k reflectors in a, each as
  // long as Q is high.
  void (*multiply)(int64_t m, int64_t n, bool left, bool turned, int64_t k, const T* a,
                   const T* tau, T* c, int64_t ldc, T* work);
};

struct ReflectorKernels {
  ReflectorLoops<float> f32;
  ReflectorLoops<double> f64;
};

namespace v2 {
extern const ReflectorKernels reflector_kernels;
}
namespace v3 {
extern const ReflectorKernels reflector_kernels;
}
namespace v4 {
extern const ReflectorKernels reflector_kernels;
}
namespace base {
extern const ReflectorKernels reflector_kernels;
}

}  // namespace taeda::cpu::simd
