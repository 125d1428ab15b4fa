#include "kernels/cpu/gemm/gemm_bf16.h"

#include <algorithm>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/simd/gemm_bf16.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/simd/pick.h"

// Both sides are copied to panels of some rows or columns, [pair][row or column], but for rows that
// can be read where they lie; a product then runs over the whole depth with its sums in registers.
namespace taeda::cpu {
namespace {

constexpr int64_t kRowsOfPanel = 16;  // the transposition works on squares of 16
constexpr int64_t kRowsOfTask = 64, kColsOfTask = 256;
constexpr int64_t kPairsOfChunk = 1 << 14;  // copied by one thread at least
constexpr int64_t kFewRows = 32, kColsOfFew = 48, kLongSum = 256;
constexpr int64_t kPairsOfTask = 1 << 12;  // of a row with all columns: worth another thread

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

// What computes n columns of results.
const simd::Bf16Products& products_for(int64_t n) {
  const simd::GemmBf16Kernels& k = kernels();
  return n <= k.narrow.cols ? k.narrow : k.wide;
}

// product(i, j, rows, cols, pairs, a, a_row, a_step, b): results from row i and column j on.
template <class F>
void multiply(int64_t m, int64_t n, int64_t k, MatrixRef<BFloat16> a, MatrixRef<BFloat16> b,
              F&& product) {
  const int64_t most = kernels().rows, width = products_for(n).cols;
  const Side left{a.data, a.stride, a.trans == Trans::No, m, k, kRowsOfPanel};
  const Side right{b.data, b.stride, b.trans != Trans::No, n, k, width};
  const bool in_place = left.readable();
  Scratch<uint32_t> rows(in_place ? 0 : left.words()), columns(right.words());
  if (!in_place) left.copy(rows.data());
  right.copy(columns.data());
  const int64_t pairs = left.pairs(), across = ceil_div(n, kColsOfTask);
  const int64_t grain =
      std::max<int64_t>(1, kPairsOfTask / std::max<int64_t>(1, pairs * std::min(n, kColsOfTask)));
  parallel_for(ceil_div(m, kRowsOfTask) * across, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t top = task / across * kRowsOfTask, start = task % across * kColsOfTask;
      const int64_t bottom = std::min(top + kRowsOfTask, m),
                    stop = std::min(start + kColsOfTask, n);
      for (int64_t j = start; j < stop; j += width) {
        for (int64_t i = top; i < bottom; i += most) {
          const int64_t panel = i / kRowsOfPanel * pairs * kRowsOfPanel + i % kRowsOfPanel;
          const auto* from = in_place
                                 ? reinterpret_cast<const simd::Bf16Pair*>(a.data + i * a.stride)
                                 : rows.data() + panel;
          product(i, j, std::min(most, bottom - i), std::min(width, stop - j), pairs, from,
                  in_place ? a.stride / 2 : 1, in_place ? 1 : kRowsOfPanel,
                  columns.data() + j * pairs);
        }
      }
    }
  });
}

// With few rows, the right side's columns are read where they lie: copying takes longer than the
// product.
bool has_few_rows(int64_t m, int64_t k, MatrixRef<BFloat16> a, MatrixRef<BFloat16> b) {
  return m <= kFewRows && k >= kLongSum && a.trans == Trans::No && b.trans != Trans::No;
}

// finish(i, j, cols, sums): sums of row i from column j on.
template <class F>
void multiply_few_rows(int64_t m, int64_t n, int64_t k, MatrixRef<BFloat16> a,
                       MatrixRef<BFloat16> b, F&& finish) {
  const auto bits = [](const BFloat16* x) { return reinterpret_cast<const uint16_t*>(x); };
  parallel_for(ceil_div(n, kColsOfFew), std::max<int64_t>(1, kPairsOfChunk / (kColsOfFew * k)),
               [&](int64_t begin, int64_t end) {
                 float sums[kFewRows * kColsOfFew];
                 for (int64_t j = begin * kColsOfFew; j < std::min(end * kColsOfFew, n);
                      j += kColsOfFew) {
                   const int64_t cols = std::min(kColsOfFew, n - j);
                   kernels().dots(m, cols, k, bits(a.data), a.stride, bits(b.data + j * b.stride),
                                  b.stride, sums, kColsOfFew);
                   for (int64_t i = 0; i < m; ++i) finish(i, j, cols, sums + i * kColsOfFew);
                 }
               });
}

}  // namespace

bool can_multiply_bf16() {
#if defined(__x86_64__)
  static const bool can =
      __builtin_cpu_supports("avx512bf16") && kernels().wide.in_float != nullptr;
  return can;
#else
  return false;
#endif
}

void gemm_bf16(int64_t m, int64_t n, int64_t k, float alpha, MatrixRef<BFloat16> a,
               MatrixRef<BFloat16> b, float beta, float* c, int64_t ldc) {
  const auto finish = [&](int64_t i, int64_t j, int64_t cols, const float* sums) {
    float* to = c + i * ldc + j;
    for (int64_t q = 0; q < cols; ++q) {
      const float v = alpha * sums[q];
      to[q] = beta == 0 ? v : v + beta * to[q];
    }
  };
  if (has_few_rows(m, k, a, b)) return multiply_few_rows(m, n, k, a, b, finish);
  const simd::Bf16Products& products = products_for(n);
  multiply(m, n, k, a, b,
           [&](int64_t i, int64_t j, int64_t rows, int64_t cols, const auto&... product) {
             alignas(64) float sums[8 * 32];
             products.in_float(rows, product..., sums);
             for (int64_t r = 0; r < rows; ++r) finish(i + r, j, cols, sums + r * products.cols);
           });
}

void gemm_bf16(int64_t m, int64_t n, int64_t k, MatrixRef<BFloat16> a, MatrixRef<BFloat16> b,
               BFloat16* c, int64_t ldc) {
  if (has_few_rows(m, k, a, b)) {
    return multiply_few_rows(m, n, k, a, b,
                             [&](int64_t i, int64_t j, int64_t cols, const float* sums) {
                               kernels().round(sums, cols, &c[i * ldc + j].bits);
                             });
  }
  const simd::Bf16Products& products = products_for(n);
  multiply(m, n, k, a, b,
           [&](int64_t i, int64_t j, int64_t rows, int64_t cols, const auto&... product) {
             products.rounded(rows, product..., &c[i * ldc + j].bits, ldc, cols);
           });
}

void round_to_bf16(const float* from, int64_t n, BFloat16* to) {
  kernels().round(from, n, &to->bits);
}

}  // namespace taeda::cpu
