#include "kernels/cpu/rnn.h"

#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {

namespace simd {
namespace v2 {
extern const RnnTable rnn_table;
}
namespace v3 {
extern const RnnTable rnn_table;
}
namespace v4 {
extern const RnnTable rnn_table;
}
namespace base {
extern const RnnTable rnn_table;
}
}  // namespace simd

namespace {

template <class T> const RnnLoops<T>& loops() {
  using namespace simd;
  if constexpr (std::is_same_v<T, float>) return TAEDA_PICK(rnn_table).f32;
  else return TAEDA_PICK(rnn_table).f64;
}

// f(row) for each row of a step, in parallel where a step is large.
template <class F> void for_rows(const RnnShape& s, int64_t rows, F&& f) {
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(s.hidden, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
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

}  // namespace

template <class T> void rnn(const RnnShape& s, const RnnWeights<T>& w, const RnnForward<T>& f) {
  const int64_t n = s.hidden, p = s.state, gates = s.gates();
  const RnnLoops<T>& loop = loops<T>();
  Scratch<T> products(s.batch * gates), raw(w.r ? s.batch * n : 0);
  for (int64_t k = 0; k < s.steps; ++k) {
    const int64_t t = s.reverse ? s.steps - 1 - k : k, rows = s.sizes[t], first = s.offsets[t];
    if (rows == 0) continue;
    gemm<T>(rows, gates, p, T(1), {f.h, p}, {w.w, p, Trans::Yes}, T(0), products.data(), gates);
    for_rows(s, rows, [&](int64_t i) {
      const int64_t at = first + i;
      const T *x = f.x + at * gates, *g = products.data() + i * gates;
      T *acts = f.acts + at * gates, *h = f.h + i * p;
      switch (s.cell) {
        case Cell::Lstm:
          loop.lstm(n, x, g, w.b, f.c + i * n, acts, w.r ? raw.data() + i * n : h);
          std::copy_n(f.c + i * n, n, f.extra + at * n);
          break;
        case Cell::Gru: loop.gru(n, x, g, w.b, h, acts, f.extra + at * n); break;
        default: loop.elman(s.cell == Cell::Relu, n, x, g, w.b, acts); std::copy_n(acts, n, h);
      }
    });
    if (w.r) gemm<T>(rows, p, n, T(1), {raw.data(), n}, {w.r, n, Trans::Yes}, T(0), f.h, p);
    std::copy_n(f.h, rows * p, f.output + first * p);
  }
}

template <class T>
void rnn_backward(const RnnShape& s, const RnnWeights<T>& w, const RnnBackward<T>& b) {
  const int64_t n = s.hidden, p = s.state, gates = s.gates();
  const RnnLoops<T>& loop = loops<T>();
  Scratch<T> unprojected(w.r ? s.batch * n : 0);
  for (int64_t k = s.steps - 1; k >= 0; --k) {
    const int64_t t = s.reverse ? s.steps - 1 - k : k, rows = s.sizes[t], first = s.offsets[t];
    const int64_t earlier = step_before(s, t);
    if (rows == 0) continue;
    if (b.grad) {
      for (int64_t i = 0; i < rows * p; ++i) b.dh[i] += b.grad[first * p + i];
    }
    T* dh = b.dh;
    if (w.r) {
      std::copy_n(b.dh, rows * p, b.dp + first * p);
      gemm<T>(rows, n, p, T(1), {b.dh, p}, {w.r, n}, T(0), unprojected.data(), n);
      dh = unprojected.data();
    }
    for_rows(s, rows, [&](int64_t i) {
      const int64_t at = first + i;
      const T* acts = b.acts + at * gates;
      T* dx = b.dx + at * gates;
      const T* before = row_before(s, earlier, i, b.output, b.h0, p);
      std::copy_n(before, p, b.before + at * p);
      switch (s.cell) {
        case Cell::Lstm: {
          const T* c = b.extra + at * n;
          loop.lstm_backward(n, acts, c, row_before(s, earlier, i, b.extra, b.c0, n), dh + i * n,
                             b.dc + i * n, dx);
          if (w.r) loop.lstm_output(n, acts, c, b.raw + at * n);
          break;
        }
        case Cell::Gru:
          loop.gru_backward(n, acts, b.extra + at * n, before, dh + i * n, dx, b.dg + at * gates);
          break;
        default: loop.elman_backward(s.cell == Cell::Relu, n, acts, dh + i * n, dx);
      }
    });
    // A GRU's state also reaches the next one directly; that part is in dh already.
    gemm<T>(rows, p, gates, T(1), {b.dg + first * gates, gates}, {w.w, p},
            s.cell == Cell::Gru ? T(1) : T(0), b.dh, p);
  }
}

template void rnn(const RnnShape&, const RnnWeights<float>&, const RnnForward<float>&);
template void rnn(const RnnShape&, const RnnWeights<double>&, const RnnForward<double>&);
template void rnn_backward(const RnnShape&, const RnnWeights<float>&, const RnnBackward<float>&);
template void rnn_backward(const RnnShape&, const RnnWeights<double>&, const RnnBackward<double>&);

}  // namespace taeda::cpu
