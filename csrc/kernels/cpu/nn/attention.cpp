#include "kernels/attention.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/gemm/gemm_packed.h"
#include "kernels/cpu/nn/simd/softmax.h"

namespace taeda::cpu {
namespace {

// Queries at a time. A block computes scores up to what its last row sees, so where a causal mask
// hides half of few keys, smaller blocks leave out more.
int64_t block_rows(const AttentionShape& s) { return s.causal && s.keys <= 512 ? 32 : 64; }
int64_t block_count(const AttentionShape& s) {
  return (s.queries + block_rows(s) - 1) / block_rows(s);
}

template <class T> const typename simd::SoftmaxLoops<T>::Pair& softmax_loops() {
  return typed<T>(TAEDA_PICK(softmax_kernels)).softmax;
}

// The queries [first, first + rows) of matrix `at`, and how many keys the last of them sees.
struct Block {
  int64_t at, first, rows, keys;
};

Block block_of(const AttentionShape& s, int64_t at, int64_t number) {
  const int64_t size = block_rows(s), first = number * size;
  const int64_t rows = std::min(size, s.queries - first);
  return {at, first, rows, s.causal ? std::min(s.keys, first + rows) : s.keys};
}

// How many keys a row of a block sees.
int64_t seen(const AttentionShape& s, const Block& b, int64_t row) {
  return s.causal ? std::min(s.keys, b.first + row + 1) : s.keys;
}

// Where matrix `at` of a batch begins.
template <class M> auto* begin_of(const AttentionShape& s, const M& m, int64_t at) {
  return m.data + at / s.heads * m.batch + at % s.heads * m.head;
}

// The transpose of the matrix that a run of blocks has to do with, as a product's right side.
template <class T> class Transposed {
 public:
  Transposed(const AttentionShape& s, AttentionMatrices<const T> x, int64_t rows, int64_t cols)
      : s_(s),
        x_(x),
        rows_(rows),
        cols_(cols) {}

  const PackedMatrix<T>& of(int64_t at) {
    if (at != at_)
      panels_.emplace(cols_, rows_, MatrixRef<T>{begin_of(s_, x_, at), x_.row, Trans::Yes});
    at_ = at;
    return *panels_;
  }

 private:
  const AttentionShape& s_;
  AttentionMatrices<const T> x_;
  int64_t rows_, cols_, at_ = -1;
  std::optional<PackedMatrix<T>> panels_;
};

// The attention weights of a block, rows x b.keys; a row that sees nothing gets zeros.
template <class T>
void weights(const AttentionShape& s, const Block& b, const AttentionMatrices<const T>& q,
             const PackedMatrix<T>& k, AttentionMask<T> mask, T* w) {
  k.multiply(b.rows, b.keys, T(s.scale), begin_of(s, q, b.at) + b.first * q.row, q.row, T(0), w,
             b.keys);
  const auto& softmax = softmax_loops<T>();
  for (int64_t i = 0; i < b.rows; ++i) {
    T* row = w + i * b.keys;
    const int64_t count = seen(s, b, i);
    bool any = true;
    if (mask.data) {
      const T* m = begin_of(s, mask, b.at) + (b.first + i) * mask.row;
      any = false;
      for (int64_t j = 0; j < count; ++j) {
        row[j] += m[j * mask.column];
        any |= !(row[j] == -std::numeric_limits<T>::infinity());
      }
    }
    if (any) softmax.rows(1, count, row, row, false);
    else std::fill_n(row, count, T(0));
    std::fill(row + count, row + b.keys, T(0));
  }
}

template <class T>
void attention(const AttentionShape& s, AttentionMatrices<const T> q, AttentionMatrices<const T> k,
               AttentionMatrices<const T> v, AttentionMask<T> mask, AttentionMatrices<T> out) {
  const int64_t blocks = block_count(s), most = std::min(block_rows(s), s.queries) * s.keys;
  const int64_t work = most * (s.size + s.value_size);
  // Some blocks of a matrix together, since the keys are copied for them.
  const int64_t together = std::min<int64_t>(blocks, 4);
  const int64_t grain = std::max(together, (1 << 17) / std::max<int64_t>(work, 1));
  parallel_for(s.batch * s.heads * blocks, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> w(most);
    Transposed<T> keys(s, k, s.keys, s.size);
    for (int64_t i = begin; i < end; ++i) {
      const Block b = block_of(s, i / blocks, i % blocks);
      weights(s, b, q, keys.of(b.at), mask, w.data());
      gemm<T>(b.rows, s.value_size, b.keys, T(1), {w.data(), b.keys}, {begin_of(s, v, b.at), v.row},
              T(0), begin_of(s, out, b.at) + b.first * out.row, out.row);
    }
  });
}

template <class T>
void attention_backward(const AttentionShape& s, AttentionMatrices<const T> g,
                        AttentionMatrices<const T> q, AttentionMatrices<const T> k,
                        AttentionMatrices<const T> v, AttentionMask<T> mask,
                        AttentionMatrices<T> dq, AttentionMatrices<T> dk, AttentionMatrices<T> dv) {
  const int64_t blocks = block_count(s);
  const int64_t work = s.queries * s.keys * (s.size + s.value_size);
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(work, 1));
  const auto& softmax = softmax_loops<T>();
  // The blocks of one matrix add to the same dk and dv, so they are worked on in their order.
  parallel_for(s.batch * s.heads, grain, [&](int64_t begin, int64_t end) {
    const int64_t most = std::min(block_rows(s), s.queries) * s.keys;
    Scratch<T> w(most), dw(most);
    Transposed<T> keys(s, k, s.keys, s.size), values(s, v, s.keys, s.value_size);
    for (int64_t i = begin * blocks; i < end * blocks; ++i) {
      const Block b = block_of(s, i / blocks, i % blocks);
      const MatrixRef<T> grad{begin_of(s, g, b.at) + b.first * g.row, g.row};
      weights(s, b, q, keys.of(b.at), mask, w.data());
      gemm<T>(b.keys, s.value_size, b.rows, T(1), {w.data(), b.keys, Trans::Yes}, grad, T(1),
              begin_of(s, dv, b.at), dv.row);
      values.of(b.at).multiply(b.rows, b.keys, T(1), grad.data, g.row, T(0), dw.data(), b.keys);
      softmax.rows_backward(b.rows, b.keys, dw.data(), w.data(), dw.data(), false);
      gemm<T>(b.rows, s.size, b.keys, T(s.scale), {dw.data(), b.keys},
              {begin_of(s, k, b.at), k.row}, T(0), begin_of(s, dq, b.at) + b.first * dq.row,
              dq.row);
      gemm<T>(b.keys, s.size, b.rows, T(s.scale), {dw.data(), b.keys, Trans::Yes},
              {begin_of(s, q, b.at) + b.first * q.row, q.row}, T(1), begin_of(s, dk, b.at), dk.row);
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(AttentionKernels, cpu::attention<T>, cpu::attention_backward<T>)
