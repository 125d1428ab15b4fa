#include "kernels/nll.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/nn/simd/softmax.h"

namespace taeda::cpu {
namespace {

template <class T> const auto& nll_loops() { return typed<T>(TAEDA_PICK(softmax_kernels)); }

int64_t nll_grain(const NllShape& s) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(s.classes, 1));
}

// f(i, at, t) for each counted target: its number, the index of its element in x, and its class.
template <class F> void for_targets(const NllShape& s, const int64_t* target, F&& f) {
  for (int64_t i = 0; i < s.batch * s.inner; ++i) {
    int64_t t = target[i];
    if (t != s.ignore_index) f(i, ((i / s.inner) * s.classes + t) * s.inner + i % s.inner, t);
  }
}

int64_t bad_target(const NllShape& s, const int64_t* target) {
  for (int64_t i = 0; i < s.batch * s.inner; ++i) {
    if (target[i] != s.ignore_index && (target[i] < 0 || target[i] >= s.classes)) return target[i];
  }
  return s.ignore_index;
}

// The losses weight * loss_of(i, at), of targets as above, or their mean or sum; total: of the
// weights.
template <class T, class F>
void reduced(const NllShape& s, Reduction reduction, const int64_t* target, const T* weight,
             T* loss, double* total, F&& loss_of) {
  double sum = 0, weights = 0;
  if (reduction == kUnreduced) std::fill_n(loss, s.batch * s.inner, T(0));
  for_targets(s, target, [&](int64_t i, int64_t at, int64_t t) {
    const double w = weight ? weight[t] : 1, one = w * loss_of(i, at);
    if (reduction == kUnreduced) loss[i] = static_cast<T>(one);
    sum += one;
    weights += w;
  });
  *total = weights;
  if (reduction != kUnreduced) *loss = static_cast<T>(reduction == kMean ? sum / weights : sum);
}

template <class T>
void nll(const NllShape& s, Reduction reduction, const T* x, const int64_t* target, const T* weight,
         T* loss, double* total) {
  reduced(s, reduction, target, weight, loss, total,
          [x](int64_t, int64_t at) { return -static_cast<double>(x[at]); });
}

template <class T>
void nll_backward(const NllShape& s, const T* g, int64_t g_step, const double* total,
                  const int64_t* target, const T* weight, T* gx) {
  const double scale = total ? 1 / *total : 1;
  for_targets(s, target, [&](int64_t i, int64_t at, int64_t t) {
    gx[at] = static_cast<T>(-scale * g[i * g_step] * (weight ? weight[t] : T(1)));
  });
}

template <class T>
void entropy(const NllShape& s, Reduction reduction, const T* x, const int64_t* target,
             const T* weight, T* loss, double* stats, double* total) {
  parallel_for(s.batch, nll_grain(s), [&](int64_t begin, int64_t end) {
    nll_loops<T>().entropy_stats(end - begin, s.classes, x + begin * s.classes, stats + 2 * begin);
  });
  reduced(s, reduction, target, weight, loss, total, [&](int64_t i, int64_t at) {
    return std::log(stats[2 * i + 1]) - (x[at] - stats[2 * i]);
  });
}

template <class T>
void entropy_backward(const NllShape& s, const T* g, int64_t g_step, const double* total,
                      const T* x, const double* stats, const int64_t* target, const T* weight,
                      T* gx) {
  const double scale = total ? 1 / *total : 1;
  const bool streamed = is_streamed(s.batch * s.classes * static_cast<int64_t>(sizeof(T)));
  parallel_each(s.batch, nll_grain(s), [&](int64_t i) {
    const int64_t t = target[i], at = i * s.classes;
    if (t == s.ignore_index) {
      std::fill_n(gx + at, s.classes, T(0));
      return;
    }
    const double factor = scale * g[i * g_step] * (weight ? weight[t] : T(1));
    T own;  // computed apart: reading back what was stored non-temporally
            // would wait for memory
    nll_loops<T>().scaled_softmax(x + at + t, 1, stats + 2 * i, factor, &own, false);
    nll_loops<T>().scaled_softmax(x + at, s.classes, stats + 2 * i, factor, gx + at, streamed);
    gx[at + t] = own - static_cast<T>(factor);
  });
}

template <class T> bool are_probabilities(int64_t n, const T* x) {
  std::atomic<bool> inside = true;
  parallel_for(n, 32768, [&](int64_t begin, int64_t end) {
    unsigned ok = 1;
    for (int64_t i = begin; i < end; ++i)
      ok &= static_cast<unsigned>((x[i] >= T(0)) & (x[i] <= T(1)));  // refuses NaN too
    if (!ok) inside.store(false, std::memory_order_relaxed);
  });
  return inside;
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(NllKernels, cpu::bad_target, cpu::nll<T>, cpu::nll_backward<T>, cpu::entropy<T>,
                    cpu::entropy_backward<T>, cpu::are_probabilities<T>)
