#include "kernels/distance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/common/transpose.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/nn/simd/distance.h"
#include "kernels/cpu/nn/simd/norm.h"

namespace taeda::cpu {
namespace {

template <class T> const auto& distance_loops() { return typed<T>(TAEDA_PICK(distance_kernels)); }

// The sum of the squares, or of the absolute values, of a[i] - b[i], in as many parts as fill a few
// registers, so that the order of the additions does not keep a compiler from making vectors of
// them.
template <bool Squares, class T>
[[gnu::optimize("O3"), gnu::noinline]] T sum_differences(const T* a, const T* b, int64_t k) {
  constexpr int64_t parts = 64 / static_cast<int64_t>(sizeof(T));
  const auto term = [=](int64_t i) {
    const T d = a[i] - b[i];
    return Squares ? d * d : std::abs(d);
  };
  T sum = 0;
  int64_t i = 0;
  if (k >= parts) {
    T part[parts] = {};
    for (; i + parts <= k; i += parts) {
      for (int64_t j = 0; j < parts; ++j) part[j] += term(i + j);
    }
    for (int64_t half = parts / 2; half > 0; half /= 2) {
      for (int64_t j = 0; j < half; ++j) part[j] += part[j + half];
    }
    sum = part[0];
  }
  for (; i < k; ++i) sum += term(i);
  return sum;
}

template <class T> T distance(const T* a, const T* b, int64_t k, T p) {
  if (p == 2) return std::sqrt(sum_differences<true>(a, b, k));
  if (p == 1) return sum_differences<false>(a, b, k);
  T sum = 0;
  if (p == 0) {
    for (int64_t i = 0; i < k; ++i) sum += static_cast<T>(a[i] != b[i]);
  } else if (std::isinf(p)) {
    for (int64_t i = 0; i < k; ++i) {
      const T d = std::abs(a[i] - b[i]);
      sum = d > sum || d != d ? d : sum;
    }
  } else {
    for (int64_t i = 0; i < k; ++i) sum += std::pow(std::abs(a[i] - b[i]), p);
    return std::pow(sum, 1 / p);
  }
  return sum;
}

// Distances of a row to n rows of b (batches, n, k). For p = 1 and 2 they are computed from columns
// of b, whose elements lie side by side.
template <class T> class Others {
 public:
  Others(const T* b, int64_t batches, int64_t n, int64_t k, double p, bool by_columns)
      : b_(b),
        n_(n),
        k_(k),
        step_((n + 15) / 16 * 16),
        p_(static_cast<T>(p)),
        by_columns_(by_columns && (p == 1 || p == 2) && k > 0),
        columns_(by_columns_ ? batches * k * step_ + kExtra : 0) {
    if (!by_columns_) return;
    parallel_each(batches, 32768 / (n * k),
                  [&](int64_t i) { transpose(b + i * n * k, columns_.data() + i * k * step_); });
    std::fill_n(columns_.data() + batches * k * step_, kExtra, T(0));
  }

  // Those from `first` on.
  void distances(const T* a, int64_t batch, int64_t first, T* out) const {
    if (by_columns_) {
      const auto row = p_ == 2 ? distance_loops<T>().euclidean : distance_loops<T>().absolute;
      return row(a, columns_.data() + batch * k_ * step_ + first, n_ - first, step_, k_, out);
    }
    for (int64_t j = first; j < n_; ++j) *out++ = distance(a, b_ + (batch * n_ + j) * k_, k_, p_);
  }

 private:
  static constexpr int64_t kExtra = 16;  // is read past the ends of columns, to fill a register

  void transpose(const T* b, T* to) const {
    cpu::transpose(b, k_, n_, k_, to, step_);
    for (int64_t c = 0; c < k_; ++c) std::fill(to + c * step_ + n_, to + (c + 1) * step_, T(0));
  }

  const T* b_;
  int64_t n_, k_, step_;
  T p_;
  bool by_columns_;
  Scratch<T> columns_;
};

int64_t row_chunk(int64_t work) { return std::max<int64_t>(1, 65536 / std::max<int64_t>(1, work)); }

template <class T>
void pairs(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n, int64_t k,
           double p) {
  const Others<T> others(b, batches, n, k, p, m >= 4 && (n > 4 || k > 8));
  parallel_each(batches * m, row_chunk(n * k),
                [&](int64_t i) { others.distances(a + i * k, i / m, 0, out + i * n); });
}

template <class T>
void pairs_by_product(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n,
                      int64_t k) {
  if (k <= 24) return pairs(a, b, out, batches, m, n, k, 2);  // faster, and exact
  gemm_batched<T>(batches, m, n, k, T(-2), {a, k}, m * k, {b, k, Trans::Yes}, n * k, T(0), out, n,
                  m * n);
  const auto squared_norms = [k](const T* x, int64_t rows) {
    std::vector<T> norms(static_cast<size_t>(rows));
    for (T& norm : norms) {
      norm = static_cast<T>(typed<T>(TAEDA_PICK(norm_kernels)).squares(x, k, 0));
      x += k;
    }
    return norms;
  };
  const std::vector<T> norms_a = squared_norms(a, batches * m),
                       norms_b = squared_norms(b, batches * n);
  parallel_each(batches * m, row_chunk(4 * n), [&](int64_t i) {
    const int64_t first = i / m * n;
    T* row = out + i * n;
    if (distance_loops<T>().from_products(norms_a[static_cast<size_t>(i)], norms_b.data() + first,
                                          n, row))
      return;
    for (int64_t j = 0; j < n; ++j) {
      if (row[j] < 0) row[j] = distance(a + i * k, b + (first + j) * k, k, T(2));
    }
  });
}

template <class T> void own_pairs(const T* a, T* out, int64_t n, int64_t k, double p) {
  const Others<T> others(a, 1, n, k, p, n >= 4);
  parallel_each(n, row_chunk(n * k), [&](int64_t i) {
    others.distances(a + i * k, 0, i + 1, out + i * (2 * n - i - 1) / 2);
  });
}

template <class T> void square_of_pairs(const T* pairs, T* square, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    square[i * n + i] = 0;
    for (int64_t j = i + 1; j < n; ++j) square[i * n + j] = square[j * n + i] = *pairs++;
  }
}

template <class T> void pairs_of_square(const T* square, T* pairs, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) *pairs++ = square[i * n + j] + square[j * n + i];
  }
}

template <class T>
void sum_signs(const T* g, const T* a, const T* b, T* gx, int64_t batches, int64_t m, int64_t n,
               int64_t k) {
  parallel_each(batches * m, row_chunk(n * k), [&](int64_t i) {
    distance_loops<T>().signs(g + i * n, a + i * k, b + i / m * n * k, n, k, gx + i * k);
  });
}

template <class T> void cross(const CrossShape& s, const T* a, const T* b, T* out) {
  const auto& [a_stride, b_stride, out_stride] = s.strides;
  const auto [a_apart, b_apart, out_apart] = s.apart;
  const int64_t last = s.dims - 1, n = s.sizes[last];
  int64_t lines = 1;
  for (int64_t d = 0; d < last; ++d) lines *= s.sizes[d];
  constexpr int64_t part = 8192;
  const int64_t parts = (n + part - 1) / part;
  parallel_each(lines * parts, part / n, [&](int64_t t) {
    const int64_t first = t % parts * part, many = std::min(part, n - first);
    const T *x = a + first * a_stride[last], *y = b + first * b_stride[last];
    T* to = out + first * out_stride[last];
    int64_t rest = t / parts;
    for (int64_t d = last; d-- > 0;) {
      const int64_t at = rest % s.sizes[d];
      rest /= s.sizes[d];
      x += at * a_stride[d];
      y += at * b_stride[d];
      to += at * out_stride[d];
    }
    for (int64_t i = 0; i < many;
         ++i, x += a_stride[last], y += b_stride[last], to += out_stride[last]) {
      const T x0 = x[0], x1 = x[a_apart], x2 = x[2 * a_apart];
      const T y0 = y[0], y1 = y[b_apart], y2 = y[2 * b_apart];
      to[0] = x1 * y2 - x2 * y1;
      to[out_apart] = x2 * y0 - x0 * y2;
      to[2 * out_apart] = x0 * y1 - x1 * y0;
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(DistanceKernels, cpu::pairs<T>, cpu::pairs_by_product<T>, cpu::own_pairs<T>,
                    cpu::square_of_pairs<T>, cpu::pairs_of_square<T>, cpu::sum_signs<T>,
                    cpu::cross<T>)
