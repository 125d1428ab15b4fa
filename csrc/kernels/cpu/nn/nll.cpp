#include "kernels/cpu/nn/nll.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/nn/simd/softmax.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace {

template <class T> const simd::SoftmaxLoops<T>& loops() {
  return typed<T>(TAEDA_PICK(softmax_kernels));
}

int64_t row_grain(const NllShape& s) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(s.classes, 1));
}

// f(i, at, t) for each counted target: its number, the index of its element in x, and its class.
template <class F> void for_targets(const NllShape& s, const int64_t* target, F&& f) {
  for (int64_t i = 0; i < s.batch * s.inner; ++i) {
    int64_t t = target[i];
    if (t != s.ignore_index) f(i, ((i / s.inner) * s.classes + t) * s.inner + i % s.inner, t);
  }
}

}  // namespace

int64_t bad_target(const NllShape& s, const int64_t* target) {
  for (int64_t i = 0; i < s.batch * s.inner; ++i) {
    if (target[i] != s.ignore_index && (target[i] < 0 || target[i] >= s.classes)) return target[i];
  }
  return s.ignore_index;
}

template <class T>
void Nll<T>::nll_each(const NllShape& s, const T* x, const int64_t* target, const T* weight,
                      T* loss) {
  for (int64_t i = 0; i < s.batch * s.inner; ++i) loss[i] = 0;
  for_targets(s, target, [&](int64_t i, int64_t at, int64_t t) {
    loss[i] = -x[at] * (weight ? weight[t] : T(1));
  });
}

template <class T>
void Nll<T>::nll_total(const NllShape& s, const T* x, const int64_t* target, const T* weight,
                       double* loss, double* total) {
  double sum = 0, weights = 0;
  for_targets(s, target, [&](int64_t, int64_t at, int64_t t) {
    double w = weight ? weight[t] : 1;
    sum -= w * x[at];
    weights += w;
  });
  *loss = sum;
  *total = weights;
}

template <class T>
void Nll<T>::nll_backward(const NllShape& s, const T* g, int64_t g_step, double scale,
                          const int64_t* target, const T* weight, T* gx) {
  for_targets(s, target, [&](int64_t i, int64_t at, int64_t t) {
    gx[at] = static_cast<T>(-scale * g[i * g_step] * (weight ? weight[t] : T(1)));
  });
}

template <class T> void Nll<T>::entropy_stats(const NllShape& s, const T* x, double* stats) {
  parallel_for(s.batch, row_grain(s), [&](int64_t begin, int64_t end) {
    loops<T>().entropy_stats(end - begin, s.classes, x + begin * s.classes, stats + 2 * begin);
  });
}

template <class T>
void Nll<T>::entropy_losses(const NllShape& s, const T* x, const double* stats,
                            const int64_t* target, const T* weight, double* loss,
                            double* total_weight) {
  *total_weight = 0;
  std::fill_n(loss, s.batch, 0.0);
  for_targets(s, target, [&](int64_t i, int64_t at, int64_t t) {
    const double w = weight ? weight[t] : 1;
    loss[i] = w * (std::log(stats[2 * i + 1]) - (x[at] - stats[2 * i]));
    *total_weight += w;
  });
}

template <class T>
void Nll<T>::entropy_backward(const NllShape& s, const T* g, int64_t g_step, double scale,
                              const T* x, const double* stats, const int64_t* target,
                              const T* weight, T* gx) {
  const bool streamed = is_streamed(s.batch * s.classes * static_cast<int64_t>(sizeof(T)));
  parallel_for(s.batch, row_grain(s), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = target[i], at = i * s.classes;
      if (t == s.ignore_index) {
        std::fill_n(gx + at, s.classes, T(0));
        continue;
      }
      const double factor = scale * g[i * g_step] * (weight ? weight[t] : T(1));
      T own;  // computed apart: reading back what was stored non-temporally
              // would wait for memory
      loops<T>().scaled_softmax(x + at + t, 1, stats + 2 * i, factor, &own, false);
      loops<T>().scaled_softmax(x + at, s.classes, stats + 2 * i, factor, gx + at, streamed);
      gx[at + t] = own - static_cast<T>(factor);
    }
  });
}

template struct Nll<float>;
template struct Nll<double>;

}  // namespace taeda::cpu
