#include "kernels/cpu/nn/distance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/nn/simd/distance.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace {

template <class T> const simd::DistanceLoops<T>& loops() {
  return typed<T>(TAEDA_PICK(distance_kernels));
}

// term(i) for i < k, summed up in as many parts as fill a few registers, so that the order of the
// additions does not keep a compiler from making vectors of them.
template <class T, class F> [[gnu::always_inline]] inline T sum_of(int64_t k, const F& term) {
  constexpr int64_t parts = 64 / static_cast<int64_t>(sizeof(T));
  T part[parts] = {};
  int64_t i = 0;
  for (; i + parts <= k; i += parts) {
    for (int64_t j = 0; j < parts; ++j) part[j] += term(i + j);
  }
  T sum = 0;
  for (; i < k; ++i) sum += term(i);
  for (int64_t half = parts / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) part[j] += part[j + half];
  }
  return sum + part[0];
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] T squared_distance(const T* a, const T* b, int64_t k) {
  return sum_of<T>(k, [=](int64_t i) { return (a[i] - b[i]) * (a[i] - b[i]); });
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] T absolute_distance(const T* a, const T* b, int64_t k) {
  return sum_of<T>(k, [=](int64_t i) { return std::abs(a[i] - b[i]); });
}

template <class T> T distance(const T* a, const T* b, int64_t k, T p) {
  if (p == 2) return std::sqrt(squared_distance(a, b, k));
  if (p == 1) return absolute_distance(a, b, k);
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

template <class T> std::vector<T> squared_norms(const T* a, int64_t rows, int64_t k) {
  std::vector<T> norms(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i)
    norms[static_cast<size_t>(i)] =
        sum_of<T>(k, [row = a + i * k](int64_t j) { return row[j] * row[j]; });
  return norms;
}

// Columns of b (n, k), at `to`: they lie `step` elements from one another, and end in zeros.
template <class T> void make_columns(const T* b, T* to, int64_t n, int64_t step, int64_t k) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  const auto& kernels = TAEDA_PICK(transpose_kernels);
  const simd::Transpose transpose = item == 4 ? kernels.bytes4 : kernels.bytes8;
  transpose(reinterpret_cast<char*>(to), step * item, reinterpret_cast<const char*>(b), k * item, n,
            k);
  for (int64_t c = 0; c < k; ++c) std::fill(to + c * step + n, to + (c + 1) * step, T(0));
}

// The same from columns of b, whose elements lie side by side; for p = 1 and 2.
template <class T>
void by_columns(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n, int64_t k,
                bool squares) {
  const int64_t step = (n + 15) / 16 * 16;
  const Scratch<T> columns(batches * k * step);
  parallel_for(batches, std::max<int64_t>(1, 32768 / (n * k)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      make_columns(b + i * n * k, columns.data() + i * k * step, n, step, k);
  });
  const auto row = squares ? loops<T>().euclidean : loops<T>().absolute;
  parallel_for(batches * m, std::max<int64_t>(1, 131072 / (n * k)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   row(a + i * k, columns.data() + i / m * k * step, n, step, k, out + i * n);
               });
}

// Of so few and short rows that neither they nor their columns fill a register.
bool are_tiny(int64_t n, int64_t k) { return n <= 4 && k <= 8; }
template <class T>
void tiny_distances(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n,
                    int64_t k, bool squares) {
  parallel_for(batches, std::max<int64_t>(1, 16384 / (m * n * k)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* others = b + i * n * k;
      for (int64_t row = i * m; row < (i + 1) * m; ++row) {
        for (int64_t j = 0; j < n; ++j) {
          T sum = 0;
          for (int64_t c = 0; c < k; ++c) {
            const T d = a[row * k + c] - others[j * k + c];
            sum += squares ? d * d : std::abs(d);
          }
          out[row * n + j] = squares ? std::sqrt(sum) : sum;
        }
      }
    }
  });
}

}  // namespace

template <class T>
void Distances<T>::pair_distances(const T* a, const T* b, T* out, int64_t batches, int64_t m,
                                  int64_t n, int64_t k, double p) {
  if ((p == 1 || p == 2) && m > 0 && k > 0 && are_tiny(n, k))
    return tiny_distances(a, b, out, batches, m, n, k, p == 2);
  if ((p == 1 || p == 2) && m >= 4 && k > 0) return by_columns(a, b, out, batches, m, n, k, p == 2);
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n * k));
  parallel_for(batches * m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* others = b + row / m * n * k;
      for (int64_t j = 0; j < n; ++j)
        out[row * n + j] = distance(a + row * k, others + j * k, k, static_cast<T>(p));
    }
  });
}

template <class T>
void Distances<T>::pair_distances_by_product(const T* a, const T* b, T* out, int64_t batches,
                                             int64_t m, int64_t n, int64_t k) {
  if (k <= 24) return by_columns(a, b, out, batches, m, n, k, true);  // faster, and exact
  gemm_batched<T>(batches, m, n, k, T(-2), {a, k}, m * k, {b, k, Trans::Yes}, n * k, T(0), out, n,
                  m * n);
  const std::vector<T> norms_a = squared_norms(a, batches * m, k),
                       norms_b = squared_norms(b, batches * n, k);
  const int64_t grain = std::max<int64_t>(1, 16384 / n);
  parallel_for(batches * m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / m * n;
      T* row = out + i * n;
      if (loops<T>().from_products(norms_a[static_cast<size_t>(i)], norms_b.data() + first, n, row))
        continue;
      for (int64_t j = 0; j < n; ++j) {
        if (row[j] < 0) row[j] = std::sqrt(squared_distance(a + i * k, b + (first + j) * k, k));
      }
    }
  });
}

template <class T>
void Distances<T>::own_distances(const T* a, T* out, int64_t n, int64_t k, double p) {
  const bool by_columns = (p == 1 || p == 2) && n >= 4 && k > 0;
  // Rows are read past their ends, up to what fills a register.
  const int64_t step = (n + 15) / 16 * 16, extra = 16;
  const Scratch<T> columns(by_columns ? k * step + extra : 0);
  if (by_columns) {
    make_columns(a, columns.data(), n, step, k);
    std::fill_n(columns.data() + k * step, extra, T(0));
  }
  const auto row = p == 2 ? loops<T>().euclidean : loops<T>().absolute;
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, n * k));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t later = n - i - 1;
      T* to = out + i * (2 * n - i - 1) / 2;
      if (by_columns) {
        row(a + i * k, columns.data() + i + 1, later, step, k, to);
        continue;
      }
      for (int64_t j = 0; j < later; ++j)
        to[j] = distance(a + i * k, a + (i + 1 + j) * k, k, static_cast<T>(p));
    }
  });
}

template <class T>
void Distances<T>::sum_distance_gradient(const T* g, const T* a, const T* b, T* gx, int64_t batches,
                                         int64_t m, int64_t n, int64_t k) {
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, n * k));
  parallel_for(batches * m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      loops<T>().signs(g + i * n, a + i * k, b + i / m * n * k, n, k, gx + i * k);
  });
}

template <class T>
void Distances<T>::cross(DimsRef sizes, const Vectors<const T>& a, const Vectors<const T>& b,
                         const Vectors<T>& out) {
  const size_t last = sizes.size() - 1;
  const int64_t n = sizes[last];
  int64_t lines = 1;
  for (size_t d = 0; d < last; ++d) lines *= sizes[d];
  constexpr int64_t part = 8192;
  const int64_t parts = (n + part - 1) / part;
  parallel_for(lines * parts, std::max<int64_t>(1, part / n), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % parts * part, many = std::min(part, n - first);
      const T *x = a.data + first * a.strides[last], *y = b.data + first * b.strides[last];
      T* to = out.data + first * out.strides[last];
      int64_t rest = t / parts;
      for (size_t d = last; d-- > 0;) {
        const int64_t at = rest % sizes[d];
        rest /= sizes[d];
        x += at * a.strides[d];
        y += at * b.strides[d];
        to += at * out.strides[d];
      }
      for (int64_t i = 0; i < many; ++i) {
        const T x0 = x[0], x1 = x[a.apart], x2 = x[2 * a.apart];
        const T y0 = y[0], y1 = y[b.apart], y2 = y[2 * b.apart];
        to[0] = x1 * y2 - x2 * y1;
        to[out.apart] = x2 * y0 - x0 * y2;
        to[2 * out.apart] = x0 * y1 - x1 * y0;
        x += a.strides[last];
        y += b.strides[last];
        to += out.strides[last];
      }
    }
  });
}

template struct Distances<float>;
template struct Distances<double>;

}  // namespace taeda::cpu
