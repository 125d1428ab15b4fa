#include "kernels/cpu/conv/simd/depthwise_nhwc.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int kAccumulators = 4;  // enough to hide the latency of an FMA

template <class T> void sum(const Pairs (&pairs)[3], const T* a, const T* b, T* y) {
  constexpr int64_t lanes = kLanes<T>;
  const auto& [d, h, w] = pairs;
  for (int64_t rd = 0; rd < d.results; ++rd) {
    for (int64_t rh = 0; rh < h.results; ++rh) {
      for (int64_t rw = 0; rw < w.results; ++rw, y += kAccumulators * lanes) {
        Vec<T> acc[kAccumulators];
#pragma GCC unroll 4
        for (int r = 0; r < kAccumulators; ++r) acc[r] = load(y + r * lanes);
        for (int64_t i = d.first[rd]; i < d.first[rd + 1]; ++i) {
          for (int64_t j = h.first[rh]; j < h.first[rh + 1]; ++j) {
            const T *a_row = a + d.a[i] + h.a[j], *b_row = b + d.b[i] + h.b[j];
            for (int64_t k = w.first[rw]; k < w.first[rw + 1]; ++k) {
              const T *p = a_row + w.a[k], *q = b_row + w.b[k];
#pragma GCC unroll 4
              for (int r = 0; r < kAccumulators; ++r)
                acc[r] += load(p + r * lanes) * load(q + r * lanes);
            }
          }
        }
#pragma GCC unroll 4
        for (int r = 0; r < kAccumulators; ++r) store(y + r * lanes, acc[r]);
      }
    }
  }
}

template <class T>
constexpr DepthwiseLoops<T> depthwise_loops = {kAccumulators * kLanes<T>, sum<T>};

}  // namespace

extern constinit const DepthwiseKernels depthwise_kernels = {depthwise_loops<float>,
                                                             depthwise_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
