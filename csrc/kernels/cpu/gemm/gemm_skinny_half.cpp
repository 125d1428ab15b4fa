#include "kernels/cpu/gemm/gemm_skinny_half.h"

#include <algorithm>
#include <utility>

#include "base/half.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/gemm_bf16.h"
#include "kernels/cpu/gemm/simd/gemm_skinny_half.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kTask = 1 << 16;                // elements that are worth another thread
constexpr int64_t kColumns = 512;                 // of a task, where sums run across rows
constexpr int64_t kLarge = 1 << 14, kLong = 256;  // a side that is worth to be read where it lies

float widened(bool brain, uint16_t bits) {
  if (brain) return std::bit_cast<float>(uint32_t(bits) << 16);
  return Half::to_float(bits);
}

}  // namespace

bool has_few_rows(bool brain, int64_t m, int64_t n, int64_t k, const HalfMatrix& a,
                  const HalfMatrix& b) {
  if (m > n) return n == 1 && (a.col == 1 || a.row == 1);
  if (m == 1) return b.col == 1 || b.row == 1;
  return m <= simd::kFewRows && k >= kLong && n * k >= kLarge && b.row == 1 &&
         !(brain && can_multiply_bf16());
}

void multiply_few_rows(bool brain, int64_t m, int64_t n, int64_t k, float alpha,
                       const HalfMatrix& a_in, const HalfMatrix& b_in, float beta, float* c) {
  using namespace simd;
  HalfMatrix a = a_in, b = b_in;
  if (m > n) {  // the transposed product
    std::swap(m, n);
    a = {b_in.data, b_in.col, b_in.row};
    b = {a_in.data, a_in.col, a_in.row};
  }
  const int64_t x_row = k + kFewPadding;
  Scratch<float> x(m * x_row);
  std::fill_n(x.data(), m * x_row, 0.0f);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p)
      x.data()[i * x_row + p] = widened(brain, a.data[i * a.row + p * a.col]);
  }
  const FewHalvesKernels& kernels = TAEDA_PICK(few_halves_kernels);
  const FewHalvesLoops& loops = brain ? kernels.bf16 : kernels.f16;
  const auto put = [&](const float* y, int64_t y_row, int64_t first, int64_t count) {
    for (int64_t i = 0; i < m; ++i) {
      float* to = c + i * n + first;
      const float* from = y + i * y_row;
      for (int64_t j = 0; j < count; ++j)
        to[j] = beta == 0 ? alpha * from[j] : alpha * from[j] + beta * to[j];
    }
  };
  const bool along = b.row == 1;
  const int64_t width =
      along ? std::clamp<int64_t>(kTask / std::max<int64_t>(k, 1), 1, kColumns) : kColumns;
  parallel_for((n + width - 1) / width, 1, [&](int64_t begin, int64_t end) {
    const int64_t y_row = width + kFewPadding;
    Scratch<float> y(m * y_row);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * width, count = std::min(width, n - first);
      (along ? loops.dots : loops.sums)(m, count, k, b.data + first * b.col, along ? b.col : b.row,
                                        x.data(), x_row, y.data(), y_row);
      put(y.data(), y_row, first, count);
    }
  });
}

}  // namespace taeda::cpu
