#include "kernels/cpu/simd/scan.h"

#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Vectors of doubles that one register holds, each summed up in itself: x0, x0 + x1, ...
#if defined(__AVX512F__)
constexpr int64_t kWidth = 8;
typedef double Doubles __attribute__((vector_size(64)));
typedef int64_t Places __attribute__((vector_size(64)));
FN Doubles scan(Doubles v) {
  const Doubles zero{};
  v += __builtin_shuffle(v, zero, Places{8, 0, 1, 2, 3, 4, 5, 6});
  v += __builtin_shuffle(v, zero, Places{8, 8, 0, 1, 2, 3, 4, 5});
  return v + __builtin_shuffle(v, zero, Places{8, 8, 8, 8, 0, 1, 2, 3});
}
#elif defined(__AVX2__)
constexpr int64_t kWidth = 4;
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Places __attribute__((vector_size(32)));
FN Doubles scan(Doubles v) {
  const Doubles zero{};
  v += __builtin_shuffle(v, zero, Places{4, 0, 1, 2});
  return v + __builtin_shuffle(v, zero, Places{4, 4, 0, 1});
}
#else
constexpr int64_t kWidth = 2;
typedef double Doubles __attribute__((vector_size(16)));
typedef int64_t Places __attribute__((vector_size(16)));
FN Doubles scan(Doubles v) { return v + __builtin_shuffle(v, Doubles{}, Places{2, 0}); }
#endif
typedef float Floats __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));

void sums(const float* x, int64_t n, float* y) {
  double before = 0;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Doubles v =
        scan(__builtin_convertvector(*reinterpret_cast<const Floats*>(x + i), Doubles));
    *reinterpret_cast<Floats*>(y + i) = __builtin_convertvector(v + before, Floats);
    before += v[kWidth - 1];
  }
  for (; i < n; ++i) y[i] = static_cast<float>(before += x[i]);
}

}  // namespace

extern constinit const ScanKernels scan_kernels = {sums};

}  // namespace taeda::cpu::simd::TAEDA_ISA
