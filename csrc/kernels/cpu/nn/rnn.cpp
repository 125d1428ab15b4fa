#include "kernels/rnn.h"

#include <algorithm>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/gemm/gemm_packed.h"
#include "kernels/cpu/nn/simd/rnn.h"

namespace taeda::cpu {
namespace {

template <class T> const auto& rnn_loops() { return typed<T>(TAEDA_PICK(rnn_kernels)); }

// A weight that all steps multiply by.
template <class T> class Weight {
 public:
  // op(w) is k x n; `rows` are multiplied in all.
  Weight(int64_t rows, int64_t k, int64_t n, MatrixRef<T> w) : k_(k), n_(n), w_(w) {
    if (w.data && k > 0 && rows >= kRowsThatPay) panels_.emplace(k, n, w);
  }

  // c (m x n) = a (m x k) op(w) + beta * c.
  void multiply(int64_t m, const T* a, T beta, T* c) const {
    if (panels_) panels_->multiply(m, n_, T(1), a, k_, beta, c, n_);
    else gemm<T>(m, n_, k_, T(1), {a, k_}, w_, beta, c, n_);
  }

  // Whether it stays in a core's own cache from one step to the next.
  bool near() const { return panels_ && panels_->bytes() <= kNear; }

 private:
  static constexpr int64_t kRowsThatPay = 64;  // for a copy
  static constexpr size_t kNear = 1 << 20;

  int64_t k_, n_;
  MatrixRef<T> w_;
  std::optional<PackedMatrix<T>> panels_;
};

// f(begin, end) for some rows of the batch at a time, whose sequences do not depend on each other:
// as many as a tile of a product has at most, and about as many in each chunk. Where weights are
// large, all rows go together, so that a step reads the weights once.
template <class T, class F>
void for_rows(const RnnShape& s, const Weight<T>& w, const Weight<T>& r, F&& f) {
  const bool alone = w.near() && (s.state == s.hidden || r.near());
  const int64_t tile = alone ? PackedMatrix<T>::tile_rows() : std::max<int64_t>(s.batch, 1);
  const int64_t chunks = (s.batch + tile - 1) / tile;
  parallel_for(s.batch, chunks > 0 ? (s.batch + chunks - 1) / chunks : 1, f);
}

// The step that comes before step t in the order of reading, or -1.
int64_t step_before(const RnnShape& s, int64_t t) {
  if (s.reverse) return t + 1 < s.steps ? t + 1 : -1;
  return t - 1;
}

// Row i of what step t starts from: of the step before it, where that has such a row, or the
// initial state.
template <class T>
const T* row_before(const RnnShape& s, int64_t before, int64_t i, const T* kept, const T* initial,
                    int64_t width) {
  if (before >= 0 && i < s.sizes[before]) return kept + (s.offsets[before] + i) * width;
  return initial + i * width;
}

template <class T> void rnn(const RnnShape& s, const RnnWeights<T>& w, const RnnForward<T>& f) {
  const int64_t n = s.hidden, p = s.state, gates = s.gates(), all = s.rows();
  const simd::RnnLoops<T>& loop = rnn_loops<T>();
  const Weight<T> weight(all, p, gates, {w.w, p, Trans::Yes}),
      project(all, n, p, {w.r, n, Trans::Yes});
  for_rows(s, weight, project, [&](int64_t begin, int64_t end) {
    Scratch<T> products((end - begin) * gates), raw(w.r ? (end - begin) * n : 0);
    for (int64_t k = 0; k < s.steps; ++k) {
      const int64_t t = s.reverse ? s.steps - 1 - k : k, first = s.offsets[t];
      const int64_t rows = std::min(end, s.sizes[t]) - begin;
      if (rows <= 0) continue;
      weight.multiply(rows, f.h + begin * p, T(0), products.data());
      for (int64_t i = begin; i < begin + rows; ++i) {
        const int64_t at = first + i;
        const T *x = f.x + at * gates, *g = products.data() + (i - begin) * gates;
        T *acts = f.acts + at * gates, *h = f.h + i * p;
        switch (s.cell) {
          case RnnCell::Lstm:
            loop.lstm(n, x, g, w.b, f.c + i * n, acts, w.r ? raw.data() + (i - begin) * n : h);
            std::copy_n(f.c + i * n, n, f.extra + at * n);
            break;
          case RnnCell::Gru: loop.gru(n, x, g, w.b, h, acts, f.extra + at * n); break;
          default: loop.elman(s.cell == RnnCell::Relu, n, x, g, w.b, acts); std::copy_n(acts, n, h);
        }
      }
      if (w.r) project.multiply(rows, raw.data(), T(0), f.h + begin * p);
      std::copy_n(f.h + begin * p, rows * p, f.output + (first + begin) * p);
    }
  });
}

template <class T>
void rnn_backward(const RnnShape& s, const RnnWeights<T>& w, const RnnBackward<T>& b) {
  const int64_t n = s.hidden, p = s.state, gates = s.gates(), all = s.rows();
  const simd::RnnLoops<T>& loop = rnn_loops<T>();
  const Weight<T> weight(all, gates, p, {w.w, p}), project(all, p, n, {w.r, n});
  for_rows(s, weight, project, [&](int64_t begin, int64_t end) {
    Scratch<T> unprojected(w.r ? (end - begin) * n : 0);
    for (int64_t k = s.steps - 1; k >= 0; --k) {
      const int64_t t = s.reverse ? s.steps - 1 - k : k, first = s.offsets[t];
      const int64_t rows = std::min(end, s.sizes[t]) - begin;
      const int64_t earlier = step_before(s, t);
      if (rows <= 0) continue;
      T* dh = b.dh + begin * p;
      if (b.grad) {
        const T* grad = b.grad + (first + begin) * p;
        for (int64_t i = 0; i < rows * p; ++i) dh[i] += grad[i];
      }
      if (w.r) {
        std::copy_n(dh, rows * p, b.dp + (first + begin) * p);
        project.multiply(rows, dh, T(0), unprojected.data());
      }
      for (int64_t i = begin; i < begin + rows; ++i) {
        const int64_t at = first + i;
        const T* acts = b.acts + at * gates;
        T *dx = b.dx + at * gates, *d = (w.r ? unprojected.data() : dh) + (i - begin) * n;
        const T* before = row_before(s, earlier, i, b.output, b.h0, p);
        std::copy_n(before, p, b.before + at * p);
        switch (s.cell) {
          case RnnCell::Lstm: {
            const T* c = b.extra + at * n;
            loop.lstm_backward(n, acts, c, row_before(s, earlier, i, b.extra, b.c0, n), d,
                               b.dc + i * n, dx);
            if (w.r) loop.lstm_output(n, acts, c, b.raw + at * n);
            break;
          }
          case RnnCell::Gru:
            loop.gru_backward(n, acts, b.extra + at * n, before, d, dx, b.dg + at * gates);
            break;
          default: loop.elman_backward(s.cell == RnnCell::Relu, n, acts, d, dx);
        }
      }
      // A GRU's state also reaches the next one directly; that part is in dh already.
      weight.multiply(rows, b.dg + (first + begin) * gates, s.cell == RnnCell::Gru ? T(1) : T(0),
                      dh);
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(RnnKernels, cpu::rnn<T>, cpu::rnn_backward<T>)
