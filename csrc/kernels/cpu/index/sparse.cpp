#include "kernels/sparse.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <type_traits>

#include "base/dtype.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/index/simd/combine.h"
#include "kernels/cpu/index/simd/sparse.h"

namespace taeda::cpu {
namespace {

bool valid_row(const CsrRows& m, int64_t i) {
  return m.start[i] >= 0 && m.start[i] <= m.start[i + 1] && m.start[i + 1] <= m.count;
}

// f(begin, end) for ranges of rows, few enough that they stay in a near cache from a check to their
// use; false where it gives false for one.
template <class F> bool in_ranges(const CsrRows& m, int64_t width, F f) {
  if (m.start[0] != 0 || m.start[m.rows] != m.count) return false;
  constexpr int64_t work = 1 << 15, near = 2048;
  const int64_t average = m.count / std::max<int64_t>(m.rows, 1) + 1;
  const int64_t block = std::max<int64_t>(1, near / average);
  std::atomic<bool> ok = true;
  parallel_for(m.rows, work / (average * (width + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += block) {
      if (!f(i, std::min(i + block, end))) ok = false;
    }
  });
  return ok;
}

// The same of rows whose elements are all valid: ranges with others are left out.
template <class F> bool for_rows(const CsrRows& m, int64_t width, F f) {
  return in_ranges(m, width, [&](int64_t begin, int64_t end) {
    const int64_t first = m.start[begin], last = m.start[end];
    bool falls = false;
    for (int64_t i = begin; i < end; ++i) falls |= m.start[i] > m.start[i + 1];
    if (falls || first < 0 || last > m.count) return false;
    if (TAEDA_PICK(index_kernels).any_outside(m.column + first, last - first, 0, m.columns))
      return false;
    f(begin, end);
    return true;
  });
}

template <class T>
constexpr bool has_kernel = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
bool sparse_product(const CsrRows& m, const T* values, const T* x, int64_t width, T* y) {
  if constexpr (has_kernel<T>) {
    const auto& kernels = typed<T>(TAEDA_PICK(sparse_kernels));
    const bool fetch = simd::fetches_rows(m.columns, width * static_cast<int64_t>(sizeof(T)));
    return in_ranges(m, width, [&](int64_t begin, int64_t end) {
      const int64_t *start = m.start + begin, rows = end - begin;
      if (start[0] < 0 || start[rows] > m.count) return false;
      T* to = y + begin * width;
      if (width == 1 && values)
        return kernels.times_vector(start, rows, m.column, values, x, m.columns, to);
      return kernels.product(start, rows, m.column, values, x, m.columns, width, fetch, to);
    });
  } else {
    return for_rows(m, width, [&](int64_t begin, int64_t end) {
      std::fill(y + begin * width, y + end * width, T(0));
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t k = m.start[i]; k < m.start[i + 1]; ++k) {
          const T* row = x + m.column[k] * width;
          const T value = values ? values[k] : T(1);
          for (int64_t j = 0; j < width; ++j) y[i * width + j] += value * row[j];
        }
      }
    });
  }
}

template <class T>
bool sparse_inner(const CsrRows& m, const T* a, const T* b, int64_t width, T* out) {
  return for_rows(m, width, [&](int64_t begin, int64_t end) {
    if constexpr (has_kernel<T>) {
      typed<T>(TAEDA_PICK(sparse_kernels))
          .inner(m.start + begin, end - begin, m.column, a + begin * width, b, width, out);
    } else {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t k = m.start[i]; k < m.start[i + 1]; ++k) {
          const T* row = b + m.column[k] * width;
          T sum = 0;
          for (int64_t j = 0; j < width; ++j) sum += a[i * width + j] * row[j];
          out[k] = sum;
        }
      }
    }
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

bool expand_rows(const CsrRows& m, int64_t* row) {
  if (m.start[0] != 0 || m.start[m.rows] != m.count) return false;
  for (int64_t i = 0; i < m.rows; ++i) {
    if (!valid_row(m, i)) return false;
    std::fill(row + m.start[i], row + m.start[i + 1], i);
  }
  return true;
}

}  // namespace
}  // namespace taeda::cpu

const taeda::CsrKernels taeda::CsrKernels::cpu = {cpu::group_rows, cpu::expand_rows};
TAEDA_FLOAT_KERNELS(SparseKernels, cpu::sparse_product<T>, cpu::sparse_inner<T>)
template struct taeda::SparseKernels<taeda::cfloat>;
template struct taeda::SparseKernels<taeda::cdouble>;
template struct taeda::SparseKernels<int64_t>;
