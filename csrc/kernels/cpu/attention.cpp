#include "kernels/cpu/attention.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/pick.h"
#include "kernels/cpu/simd/rows.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 64;  // queries at a time

template <class T> const typename simd::SoftmaxLoops<T>::Pair& softmax_loops() {
  using namespace simd;
  const RowKernels& kernels = TAEDA_PICK(row_kernels);
  if constexpr (std::is_same_v<T, float>) return kernels.softmax_f32.softmax;
  else return kernels.softmax_f64.softmax;
}

// The queries [first, first + rows) of matrix `at`, and how many keys the last of them sees.
struct Block {
  int64_t at, first, rows, keys;
};

Block block_of(const AttentionShape& s, int64_t at, int64_t number) {
  const int64_t first = number * kBlock, rows = std::min(kBlock, s.queries - first);
  return {at, first, rows, s.causal ? std::min(s.keys, first + rows) : s.keys};
}

// How many keys a row of a block sees.
int64_t seen(const AttentionShape& s, const Block& b, int64_t row) {
  return s.causal ? std::min(s.keys, b.first + row + 1) : s.keys;
}

// The attention weights of a block, rows x b.keys; a row that sees nothing gets zeros.
template <class T>
void weights(const AttentionShape& s, const Block& b, const Matrices<const T>& q,
             const Matrices<const T>& k, const AttentionMask<T>& mask, T* w) {
  gemm<T>(b.rows, b.keys, s.size, T(s.scale), {q[b.at] + b.first * q.row, q.row},
          {k[b.at], k.row, Trans::Yes}, T(0), w, b.keys);
  const auto& softmax = softmax_loops<T>();
  for (int64_t i = 0; i < b.rows; ++i) {
    T* row = w + i * b.keys;
    const int64_t count = seen(s, b, i);
    bool any = true;
    if (mask.data) {
      const T* m = mask.data + mask.starts[b.at] + (b.first + i) * mask.row;
      any = false;
      for (int64_t j = 0; j < count; ++j) {
        row[j] += m[j * mask.column];
        any |= !(row[j] == -std::numeric_limits<T>::infinity());
      }
    }
    if (any) softmax.rows(1, count, row, row);
    else std::fill_n(row, count, T(0));
    std::fill(row + count, row + b.keys, T(0));
  }
}

}  // namespace

template <class T>
void attention(const AttentionShape& s, Matrices<const T> q, Matrices<const T> k,
               Matrices<const T> v, const AttentionMask<T>& mask, Matrices<T> out) {
  const int64_t blocks = (s.queries + kBlock - 1) / kBlock;
  const int64_t work = std::min(kBlock, s.queries) * s.keys * (s.size + s.value_size);
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(work, 1));
  parallel_for(s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> w(std::min(kBlock, s.queries) * s.keys);
    for (int64_t i = begin; i < end; ++i) {
      const Block b = block_of(s, i / blocks, i % blocks);
      weights(s, b, q, k, mask, w.data());
      gemm<T>(b.rows, s.value_size, b.keys, T(1), {w.data(), b.keys}, {v[b.at], v.row}, T(0),
              out[b.at] + b.first * out.row, out.row);
    }
  });
}

template <class T>
void attention_backward(const AttentionShape& s, Matrices<const T> g, Matrices<const T> q,
                        Matrices<const T> k, Matrices<const T> v, const AttentionMask<T>& mask,
                        Matrices<T> dq, Matrices<T> dk, Matrices<T> dv) {
  const int64_t blocks = (s.queries + kBlock - 1) / kBlock;
  const int64_t work = s.queries * s.keys * (s.size + s.value_size);
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(work, 1));
  const auto& softmax = softmax_loops<T>();
  // The blocks of one matrix add to the same dk and dv, so they are worked on in their order.
  parallel_for(s.batch, grain, [&](int64_t begin, int64_t end) {
    const int64_t most = std::min(kBlock, s.queries) * s.keys;
    Scratch<T> w(most), dw(most);
    for (int64_t i = begin * blocks; i < end * blocks; ++i) {
      const Block b = block_of(s, i / blocks, i % blocks);
      const MatrixRef<T> grad{g[b.at] + b.first * g.row, g.row};
      weights(s, b, q, k, mask, w.data());
      gemm<T>(b.keys, s.value_size, b.rows, T(1), {w.data(), b.keys, Trans::Yes}, grad, T(1),
              dv[b.at], dv.row);
      gemm<T>(b.rows, b.keys, s.value_size, T(1), grad, {v[b.at], v.row, Trans::Yes}, T(0),
              dw.data(), b.keys);
      softmax.rows_backward(b.rows, b.keys, dw.data(), w.data(), dw.data());
      gemm<T>(b.rows, s.size, b.keys, T(s.scale), {dw.data(), b.keys}, {k[b.at], k.row}, T(0),
              dq[b.at] + b.first * dq.row, dq.row);
      gemm<T>(b.keys, s.size, b.rows, T(s.scale), {dw.data(), b.keys, Trans::Yes},
              {q[b.at] + b.first * q.row, q.row}, T(1), dk[b.at], dk.row);
    }
  });
}

template void attention(const AttentionShape&, Matrices<const float>, Matrices<const float>,
                        Matrices<const float>, const AttentionMask<float>&, Matrices<float>);
template void attention_backward(const AttentionShape&, Matrices<const float>,
                                 Matrices<const float>, Matrices<const float>,
                                 Matrices<const float>, const AttentionMask<float>&,
                                 Matrices<float>, Matrices<float>, Matrices<float>);
template void attention(const AttentionShape&, Matrices<const double>, Matrices<const double>,
                        Matrices<const double>, const AttentionMask<double>&, Matrices<double>);
template void attention_backward(const AttentionShape&, Matrices<const double>,
                                 Matrices<const double>, Matrices<const double>,
                                 Matrices<const double>, const AttentionMask<double>&,
                                 Matrices<double>, Matrices<double>, Matrices<double>);

}  // namespace taeda::cpu
