#include "kernels/cpu/gemm_bf16.h"

#include <algorithm>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/gemm_bf16.h"
#include "kernels/cpu/simd/pick.h"
#include "kernels/cpu/simd/transpose.h"

// Both sides are copied to panels of some rows or columns, [pair][row or column], but for rows that
// can be read where they lie; a product then runs over the whole depth with its sums in registers.
namespace taeda::cpu {
namespace {

constexpr int64_t kRowsOfPanel = 16;  // the transposition works on squares of 16
constexpr int64_t kRowsOfTask = 64, kColsOfTask = 256;
constexpr int64_t kPairsOfChunk = 1 << 14;  // copied by one thread at least

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

const simd::GemmBf16Kernels& kernels() {
  using namespace simd;
  return TAEDA_PICK(gemm_bf16_kernels);
}
simd::Transpose transpose() {
  using namespace simd;
  return TAEDA_PICK(transpose_kernels).bytes4;
}

// Some elements i of n, each a run of k: at data[i * ld + p], or at data[p * ld + i].
struct Side {
  const BFloat16* data;
  int64_t ld;
  bool runs;  // elements of a run lie side by side
  int64_t n, k, width;

  // Whether pairs may be read where they lie: not where runs are so far apart that all fall into
  // the same few lines of a cache.
  bool readable() const { return runs && k % 2 == 0 && ld % 2 == 0 && ld % 1024 != 0; }
  int64_t pairs() const { return ceil_div(k, 2); }
  int64_t panels() const { return ceil_div(n, width); }
  int64_t words() const { return panels() * pairs() * width; }

  void copy_panel(int64_t panel, uint32_t* to) const {
    const int64_t first = panel * width, many = std::min(width, n - first);
    if (many < width) std::fill_n(to, pairs() * width, 0u);
    if (!runs) {
      const auto* from = reinterpret_cast<const uint16_t*>(data + first);
      return kernels().pair_rows(from, ld, k, many, to, width);
    }
    const BFloat16* from = data + first * ld;
    transpose()(reinterpret_cast<char*>(to), width * 4, reinterpret_cast<const char*>(from), ld * 2,
                many, k / 2);
    if (k % 2) {
      for (int64_t i = 0; i < many; ++i) to[k / 2 * width + i] = from[i * ld + k - 1].bits;
    }
  }
  void copy(uint32_t* to) const {
    const int64_t words_of_panel = pairs() * width;
    const int64_t grain =
        std::max<int64_t>(1, kPairsOfChunk / std::max<int64_t>(1, words_of_panel));
    parallel_for(panels(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) copy_panel(i, to + i * words_of_panel);
    });
  }
};

// finish(i, j, rows, cols, sums): sums of the results from row i and column j on, `cols` of the
// kernel apart.
template <class F>
void multiply(int64_t m, int64_t n, int64_t k, MatrixRef<BFloat16> a, MatrixRef<BFloat16> b,
              F&& finish) {
  const simd::GemmBf16Kernels& kernel = kernels();
  const Side left{a.data, a.stride, a.trans == Trans::No, m, k, kRowsOfPanel};
  const Side right{b.data, b.stride, b.trans != Trans::No, n, k, kernel.cols};
  const bool in_place = left.readable();
  Scratch<uint32_t> rows(in_place ? 0 : left.words()), columns(right.words());
  if (!in_place) left.copy(rows.data());
  right.copy(columns.data());
  const int64_t pairs = left.pairs(), across = ceil_div(n, kColsOfTask);
  parallel_for(ceil_div(m, kRowsOfTask) * across, 1, [&](int64_t begin, int64_t end) {
    alignas(64) float sums[8 * 32];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t top = task / across * kRowsOfTask, start = task % across * kColsOfTask;
      const int64_t bottom = std::min(top + kRowsOfTask, m),
                    stop = std::min(start + kColsOfTask, n);
      for (int64_t j = start; j < stop; j += kernel.cols) {
        for (int64_t i = top; i < bottom; i += kernel.rows) {
          const int64_t many = std::min(kernel.rows, bottom - i);
          const int64_t panel = i / kRowsOfPanel * pairs * kRowsOfPanel + i % kRowsOfPanel;
          const auto* from = in_place
                                 ? reinterpret_cast<const simd::Bf16Pair*>(a.data + i * a.stride)
                                 : rows.data() + panel;
          kernel.product(many, pairs, from, in_place ? a.stride / 2 : 1,
                         in_place ? 1 : kRowsOfPanel, columns.data() + j * pairs, sums);
          finish(i, j, many, std::min(kernel.cols, stop - j), sums);
        }
      }
    }
  });
}

}  // namespace

bool can_multiply_bf16() {
#if defined(__x86_64__)
  static const bool can = __builtin_cpu_supports("avx512bf16") && kernels().product != nullptr;
  return can;
#else
  return false;
#endif
}

void gemm_bf16(int64_t m, int64_t n, int64_t k, float alpha, MatrixRef<BFloat16> a,
               MatrixRef<BFloat16> b, float beta, float* c, int64_t ldc) {
  const int64_t step = kernels().cols;
  multiply(m, n, k, a, b, [&](int64_t i, int64_t j, int64_t rows, int64_t cols, const float* sums) {
    for (int64_t r = 0; r < rows; ++r) {
      float* to = c + (i + r) * ldc + j;
      for (int64_t q = 0; q < cols; ++q) {
        const float v = alpha * sums[r * step + q];
        to[q] = beta == 0 ? v : v + beta * to[q];
      }
    }
  });
}

void gemm_bf16(int64_t m, int64_t n, int64_t k, MatrixRef<BFloat16> a, MatrixRef<BFloat16> b,
               BFloat16* c, int64_t ldc) {
  const simd::GemmBf16Kernels& kernel = kernels();
  multiply(m, n, k, a, b, [&](int64_t i, int64_t j, int64_t rows, int64_t cols, const float* sums) {
    for (int64_t r = 0; r < rows; ++r)
      kernel.round(sums + r * kernel.cols, cols, &c[(i + r) * ldc + j].bits);
  });
}

void round_to_bf16(const float* from, int64_t n, BFloat16* to) {
  kernels().round(from, n, &to->bits);
}

}  // namespace taeda::cpu
