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

FN Doubles last(Doubles v) { return __builtin_shuffle(v, Places{} + (kWidth - 1)); }

// Writes running sums that begin at `before`, or returns the sum of the line, or both; the sum has
// the same bits in either case.
template <bool Write, bool Sum> FN double run(const float* x, int64_t n, double before, float* y) {
  constexpr int kParts = 4;
  Doubles start = Doubles{} + before, total[kParts]{};
  int64_t i = 0;
  auto step = [&](Doubles& part) {
    Doubles v = __builtin_convertvector(*reinterpret_cast<const Floats*>(x + i), Doubles);
    if constexpr (Sum) part += v;
    if constexpr (Write) {
      v = scan(v);
      *reinterpret_cast<Floats*>(y + i) = __builtin_convertvector(v + start, Floats);
      start += last(v);
    }
    i += kWidth;
  };
  while (i + kParts * kWidth <= n) {
    for (Doubles& part : total) step(part);
  }
  while (i + kWidth <= n) step(total[0]);
  double sum = 0;
  if constexpr (Sum) {
    for (const Doubles& part : total) {
      for (int k = 0; k < kWidth; ++k) sum += part[k];
    }
  }
  for (before = start[0]; i < n; ++i) {
    if constexpr (Sum) sum += x[i];
    if constexpr (Write) y[i] = static_cast<float>(before += x[i]);
  }
  return sum;
}

void sums(const float* x, int64_t n, float* y) { run<true, false>(x, n, 0, y); }
double sums_from(const float* x, int64_t n, double before, float* y) {
  return run<true, true>(x, n, before, y);
}
double sum(const float* x, int64_t n) { return run<false, true>(x, n, 0, nullptr); }

}  // namespace

extern constinit const ScanKernels scan_kernels = {sums, sums_from, sum};

}  // namespace taeda::cpu::simd::TAEDA_ISA
