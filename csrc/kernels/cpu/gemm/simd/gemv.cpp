#include "kernels/cpu/gemm/simd/gemv.h"

#include "kernels/cpu/reduce/simd/lanes.h"
#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> void put(const VectorProduct<T>& p, int64_t i, T sum) {
  T& y = p.y[i * p.y_step];
  y = p.beta == T(0) ? p.alpha * sum : p.alpha * sum + p.beta * y;
}

// G rows times x: each element of x is loaded once for all of them.
template <int G, class T> void dots(const VectorProduct<T>& p, int64_t row) {
  using V = typename Vector<T>::type;
  constexpr int64_t lanes = kLanes<T>;
  const T* a = p.a + row * p.stride;
  V sum[G][2] = {};
  int64_t j = 0;
  for (; j + 2 * lanes <= p.cols; j += 2 * lanes) {
    const V x0 = at(p.x + j), x1 = at(p.x + j + lanes);
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      sum[g][0] += at(a + g * p.stride + j) * x0;
      sum[g][1] += at(a + g * p.stride + j + lanes) * x1;
    }
  }
  for (int g = 0; g < G; ++g) {
    using Lanes = typename Narrow<T, lanes>::type;
    T total = add_lanes<T, T, lanes>(Lanes(sum[g][0] + sum[g][1]));
    for (int64_t k = j; k < p.cols; ++k) total += a[g * p.stride + k] * p.x[k];
    put(p, row + g, total);
  }
}
template <class T> void rows_by_vector(const VectorProduct<T>& p) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) dots<4>(p, row);
  for (; row < p.rows; ++row) dots<1>(p, row);
}

// sum[c] += x[g] a[g][c], of G rows.
template <int G, class T>
void add_rows(const T* a, int64_t stride, const T* x, int64_t cols, T* sum) {
  using V = typename Vector<T>::type;
  constexpr int64_t lanes = kLanes<T>;
  V factor[G];
  for (int g = 0; g < G; ++g) factor[g] = x[g] - V{};
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    V even = at(sum + c), odd{};
#pragma GCC unroll 4
    for (int g = 0; g < G; g += 2) {
      even += factor[g] * at(a + g * stride + c);
      if (g + 1 < G) odd += factor[g + 1] * at(a + (g + 1) * stride + c);
    }
    at(sum + c) = even + odd;
  }
  for (; c < cols; ++c) {
    for (int g = 0; g < G; ++g) sum[c] += x[g] * a[g * stride + c];
  }
}
template <class T> void vector_by_rows(const VectorProduct<T>& p) {
  constexpr int64_t strip = 16384 / sizeof(T);  // columns whose sums stay in the first cache
  alignas(64) T sum[strip];
  for (int64_t c0 = 0; c0 < p.cols; c0 += strip) {
    const int64_t cols = p.cols - c0 < strip ? p.cols - c0 : strip;
    for (int64_t c = 0; c < cols; ++c) sum[c] = 0;
    const T* a = p.a + c0;
    int64_t row = 0;
    for (; row + 8 <= p.rows; row += 8)
      add_rows<8>(a + row * p.stride, p.stride, p.x + row, cols, sum);
    for (; row < p.rows; ++row) add_rows<1>(a + row * p.stride, p.stride, p.x + row, cols, sum);
    for (int64_t c = 0; c < cols; ++c) put(p, c0 + c, sum[c]);
  }
}

}  // namespace

extern const GemvKernels gemv_kernels{rows_by_vector<float>, rows_by_vector<double>,
                                      vector_by_rows<float>, vector_by_rows<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
