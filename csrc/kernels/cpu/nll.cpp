#include "kernels/cpu/nll.h"

namespace taeda::cpu {
namespace {

// f(i, at, t) for each counted target: its number, where its element lies in x, and its class.
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
void nll_each(const NllShape& s, const T* x, const int64_t* target, const T* weight, T* loss) {
  for (int64_t i = 0; i < s.batch * s.inner; ++i) loss[i] = 0;
  for_targets(s, target, [&](int64_t i, int64_t at, int64_t t) {
    loss[i] = -x[at] * (weight ? weight[t] : T(1));
  });
}

template <class T>
void nll_total(const NllShape& s, const T* x, const int64_t* target, const T* weight, double* loss,
               double* total) {
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
void nll_backward(const NllShape& s, const T* g, int64_t g_step, double scale,
                  const int64_t* target, const T* weight, T* gx) {
  for_targets(s, target, [&](int64_t i, int64_t at, int64_t t) {
    gx[at] = static_cast<T>(-scale * g[i * g_step] * (weight ? weight[t] : T(1)));
  });
}

template void nll_each(const NllShape&, const float*, const int64_t*, const float*, float*);
template void nll_each(const NllShape&, const double*, const int64_t*, const double*, double*);
template void nll_total(const NllShape&, const float*, const int64_t*, const float*, double*,
                        double*);
template void nll_total(const NllShape&, const double*, const int64_t*, const double*, double*,
                        double*);
template void nll_backward(const NllShape&, const float*, int64_t, double, const int64_t*,
                           const float*, float*);
template void nll_backward(const NllShape&, const double*, int64_t, double, const int64_t*,
                           const double*, double*);

}  // namespace taeda::cpu
