#include "kernels/cpu/index/simd/sparse.h"

#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

typedef float Line32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef double Line64 __attribute__((vector_size(64), aligned(8), may_alias));
template <class T> struct LineOf;
template <> struct LineOf<float> {
  using type = Line32;
};
template <> struct LineOf<double> {
  using type = Line64;
};

constexpr int64_t kAhead = 8;  // how many rows of x are asked for before their turn

FN bool all_inside(int64_t count, const int64_t* column, int64_t rows) {
  bool inside = true;
  for (int64_t k = 0; k < count; ++k) inside &= uint64_t(column[k]) < uint64_t(rows);
  return inside;
}

// N cache lines of the result stay in registers while the rows go by.
template <int N, class T>
FN void combine_lines(int64_t count, const int64_t* column, const T* values, const T* x,
                      int64_t width, T* y) {
  using Line = typename LineOf<T>::type;
  constexpr int64_t lanes = 64 / int64_t(sizeof(T));
  Line sum[N] = {};
  for (int64_t k = 0; k < count; ++k) {
    if (k + kAhead < count) {
      const T* ahead = x + column[k + kAhead] * width;
      for (int i = 0; i < N; ++i) __builtin_prefetch(ahead + i * lanes);
    }
    const T* row = x + column[k] * width;
    const T value = values[k];
    for (int i = 0; i < N; ++i) sum[i] += value * *reinterpret_cast<const Line*>(row + i * lanes);
  }
  for (int i = 0; i < N; ++i) *reinterpret_cast<Line*>(y + i * lanes) = sum[i];
}

template <class T>
bool combine(int64_t count, const int64_t* column, const T* values, const T* x, int64_t rows,
             int64_t width, T* y) {
  constexpr int64_t lanes = 64 / int64_t(sizeof(T));
  if (width == 1 && rows > 0) {
    T sum = 0;
    bool inside = true;
    for (int64_t k = 0; k < count; ++k) {
      const bool here = uint64_t(column[k]) < uint64_t(rows);
      inside &= here;
      sum += values[k] * x[here ? column[k] : 0];
    }
    *y = sum;
    return inside;
  }
  if (!all_inside(count, column, rows)) return false;
  int64_t j = 0;
  for (; j + 4 * lanes <= width; j += 4 * lanes)
    combine_lines<4>(count, column, values, x + j, width, y + j);
  for (; j + lanes <= width; j += lanes)
    combine_lines<1>(count, column, values, x + j, width, y + j);
  const int64_t rest = width - j;
  if (rest == 0) return true;
  T sum[lanes] = {};
  for (int64_t k = 0; k < count; ++k) {
    const T* row = x + column[k] * width + j;
    for (int64_t i = 0; i < rest; ++i) sum[i] += values[k] * row[i];
  }
  for (int64_t i = 0; i < rest; ++i) y[j + i] = sum[i];
  return true;
}

template <class T>
bool inner(int64_t count, const int64_t* column, const T* a, const T* x, int64_t rows,
           int64_t width, T* out) {
  if (!all_inside(count, column, rows)) return false;
  using Line = typename LineOf<T>::type;
  constexpr int64_t lanes = 64 / int64_t(sizeof(T));
  for (int64_t k = 0; k < count; ++k) {
    if (k + kAhead < count) __builtin_prefetch(x + column[k + kAhead] * width);
    const T* row = x + column[k] * width;
    Line sum = {};
    int64_t j = 0;
    for (; j + lanes <= width; j += lanes) {
      sum += *reinterpret_cast<const Line*>(a + j) * *reinterpret_cast<const Line*>(row + j);
    }
    T total = 0;
    for (int64_t i = 0; i < lanes; ++i) total += sum[i];
    for (; j < width; ++j) total += a[j] * row[j];
    out[k] = total;
  }
  return true;
}

}  // namespace

extern constinit const SparseKernels sparse_kernels = {{combine<float>, inner<float>},
                                                       {combine<double>, inner<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
