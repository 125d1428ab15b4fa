#include "kernels/cpu/nn/simd/ctc.h"

#include "kernels/functors/scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using taeda::TAEDA_ISA::exp;
using taeda::TAEDA_ISA::kInf;
using taeda::TAEDA_ISA::log_easy;

template <class T>
void step(const T* a, const T* b, const T* c, const T* gate, const T* p, int64_t n,
          T* __restrict to) {
  for (int64_t s = 0; s < n; ++s) {
    const T x = a[s], y = b[s], z = c[s] + gate[s];
    const T two = x > y ? x : y, most = two > z ? two : z;
    const T sum = exp(x - most) + exp(y - most) + exp(z - most);
    to[s] = (most == -static_cast<T>(kInf) ? most : most + log_easy(sum)) + p[s];
  }
}

template <class T>
void through(const T* a, const T* b, const T* p, T more, int64_t n, T* __restrict to) {
  for (int64_t s = 0; s < n; ++s) to[s] = exp(a[s] + b[s] - p[s] + more);
}

template <class T>
void differences(const T* p, const T* sum, T loss, T scale, int64_t n, T* __restrict to) {
  for (int64_t c = 0; c < n; ++c) to[c] = (exp(p[c]) - (sum[c] + T(0) * (loss - p[c]))) * scale;
}

template <class T> constexpr CtcLoops<T> kLoops{step<T>, through<T>, differences<T>};

}  // namespace

extern constinit const ForFloats<CtcLoops> ctc_kernels = {kLoops<float>, kLoops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
