#include "kernels/cpu/softmax.h"

#include <cmath>
#include <limits>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

// Calls row(base, stride) for each of the outer * inner lines of `size` elements.
template <class F>
void for_lines(const SoftmaxShape& s, F&& line) {
  int64_t lines = s.outer * s.inner;
  int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(s.size, 1));
  parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) line((i / s.inner) * s.size * s.inner + i % s.inner, s.inner);
  });
}

template <class T>
T line_max(const T* x, int64_t n, int64_t stride) {
  T m = -std::numeric_limits<T>::infinity();
  for (int64_t k = 0; k < n; ++k) {
    T v = x[k * stride];
    m = v > m || v != v ? v : m;  // NaN stays
  }
  return m;
}

}  // namespace

template <class T>
void softmax(const SoftmaxShape& s, const T* x, T* y) {
  for_lines(s, [&](int64_t at, int64_t stride) {
    T m = line_max(x + at, s.size, stride);
    double total = 0;
    for (int64_t k = 0; k < s.size; ++k) {
      T e = std::exp(x[at + k * stride] - m);
      y[at + k * stride] = e;
      total += e;
    }
    T scale = static_cast<T>(1 / total);
    for (int64_t k = 0; k < s.size; ++k) y[at + k * stride] *= scale;
  });
}

template <class T>
void log_softmax(const SoftmaxShape& s, const T* x, T* y) {
  for_lines(s, [&](int64_t at, int64_t stride) {
    T m = line_max(x + at, s.size, stride);
    double total = 0;
    for (int64_t k = 0; k < s.size; ++k) total += std::exp(x[at + k * stride] - m);
    T log_total = static_cast<T>(std::log(total));
    for (int64_t k = 0; k < s.size; ++k) y[at + k * stride] = x[at + k * stride] - m - log_total;
  });
}

template <class T>
void softmax_backward(const SoftmaxShape& s, const T* g, const T* y, T* gx) {
  for_lines(s, [&](int64_t at, int64_t stride) {
    double dot = 0;
    for (int64_t k = 0; k < s.size; ++k) dot += static_cast<double>(g[at + k * stride]) * y[at + k * stride];
    T d = static_cast<T>(dot);
    for (int64_t k = 0; k < s.size; ++k) gx[at + k * stride] = y[at + k * stride] * (g[at + k * stride] - d);
  });
}

template <class T>
void log_softmax_backward(const SoftmaxShape& s, const T* g, const T* y, T* gx) {
  for_lines(s, [&](int64_t at, int64_t stride) {
    double total = 0;
    for (int64_t k = 0; k < s.size; ++k) total += g[at + k * stride];
    T t = static_cast<T>(total);
    for (int64_t k = 0; k < s.size; ++k) gx[at + k * stride] = g[at + k * stride] - std::exp(y[at + k * stride]) * t;
  });
}

template void softmax(const SoftmaxShape&, const float*, float*);
template void softmax(const SoftmaxShape&, const double*, double*);
template void log_softmax(const SoftmaxShape&, const float*, float*);
template void log_softmax(const SoftmaxShape&, const double*, double*);
template void softmax_backward(const SoftmaxShape&, const float*, const float*, float*);
template void softmax_backward(const SoftmaxShape&, const double*, const double*, double*);
template void log_softmax_backward(const SoftmaxShape&, const float*, const float*, float*);
template void log_softmax_backward(const SoftmaxShape&, const double*, const double*, double*);

}  // namespace taeda::cpu
