#include "kernels/cpu/index/sparse.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <type_traits>

#include "base/dtype.h"
#include "base/thread_pool.h"
#include "kernels/cpu/index/simd/sparse.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace {

template <class T> const simd::SparseLoops<T>& loops() {
  using namespace simd;
  if constexpr (std::is_same_v<T, float>) return TAEDA_PICK(sparse_kernels).f32;
  else return TAEDA_PICK(sparse_kernels).f64;
}
template <class T> constexpr bool has_loops = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
bool combine(int64_t count, const int64_t* column, const T* values, const T* x, int64_t rows,
             int64_t width, T* y) {
  if constexpr (has_loops<T>) {
    return loops<T>().combine(count, column, values, x, rows, width, y);
  } else {
    std::fill(y, y + width, T(0));
    for (int64_t k = 0; k < count; ++k) {
      if (column[k] < 0 || column[k] >= rows) return false;
      const T* row = x + column[k] * width;
      for (int64_t j = 0; j < width; ++j) y[j] += values[k] * row[j];
    }
    return true;
  }
}

template <class T>
bool inner(int64_t count, const int64_t* column, const T* a, const T* x, int64_t rows,
           int64_t width, T* out) {
  if constexpr (has_loops<T>) {
    return loops<T>().inner(count, column, a, x, rows, width, out);
  } else {
    for (int64_t k = 0; k < count; ++k) {
      if (column[k] < 0 || column[k] >= rows) return false;
      const T* row = x + column[k] * width;
      T sum = 0;
      for (int64_t j = 0; j < width; ++j) sum += a[j] * row[j];
      out[k] = sum;
    }
    return true;
  }
}

bool valid_row(const Rows& m, int64_t i) {
  return m.start[i] >= 0 && m.start[i] <= m.start[i + 1] && m.start[i + 1] <= m.count;
}

// Calls f(row) for all rows, several at a time; stops a chunk at the first that gives false.
template <class F> bool for_rows(const Rows& m, int64_t width, F f) {
  constexpr int64_t work = 1 << 15;
  const int64_t average = (m.count / std::max<int64_t>(m.rows, 1) + 1) * (width + 1);
  std::atomic<bool> ok = true;
  parallel_for(m.rows, std::max<int64_t>(1, work / average), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!valid_row(m, i) || !f(i)) {
        ok = false;
        return;
      }
    }
  });
  return ok;
}

}  // namespace

template <class T>
bool sparse_product(const Rows& m, const T* values, const T* x, int64_t width, T* y) {
  return for_rows(m, width, [&](int64_t i) {
    const int64_t at = m.start[i], count = m.start[i + 1] - at;
    return combine<T>(count, m.column + at, values + at, x, m.columns, width, y + i * width);
  });
}

template <class T> bool sparse_inner(const Rows& m, const T* a, const T* b, int64_t width, T* out) {
  // Rows that leave elements out would leave their results undefined.
  if (m.start[0] != 0 || m.start[m.rows] != m.count) return false;
  return for_rows(m, width, [&](int64_t i) {
    const int64_t at = m.start[i], count = m.start[i + 1] - at;
    return inner<T>(count, m.column + at, a + i * width, b, m.columns, width, out + at);
  });
}

bool group_rows(int64_t count, const int64_t* index, int64_t size, int64_t* start, int64_t* order) {
  std::fill(start, start + size + 1, 0);
  for (int64_t k = 0; k < count; ++k) {
    if (index[k] < 0 || index[k] >= size) return false;
    ++start[index[k]];
  }
  int64_t sum = 0;
  for (int64_t i = 0; i <= size; ++i) {
    const int64_t n = start[i];
    start[i] = sum;
    sum += n;
  }
  // Each start moves to its end, which is the next one's start, and moves back.
  for (int64_t k = 0; k < count; ++k) order[start[index[k]]++] = k;
  for (int64_t i = size; i > 0; --i) start[i] = start[i - 1];
  start[0] = 0;
  return true;
}

bool expand_rows(const Rows& m, int64_t* row) {
  if (m.start[0] != 0 || m.start[m.rows] != m.count) return false;
  for (int64_t i = 0; i < m.rows; ++i) {
    if (!valid_row(m, i)) return false;
    std::fill(row + m.start[i], row + m.start[i + 1], i);
  }
  return true;
}

#define TAEDA_INSTANCES(T)                                                    \
  template bool sparse_product(const Rows&, const T*, const T*, int64_t, T*); \
  template bool sparse_inner(const Rows&, const T*, const T*, int64_t, T*);
TAEDA_INSTANCES(float)
TAEDA_INSTANCES(double)
TAEDA_INSTANCES(cfloat)
TAEDA_INSTANCES(cdouble)
TAEDA_INSTANCES(int64_t)
#undef TAEDA_INSTANCES

}  // namespace taeda::cpu
