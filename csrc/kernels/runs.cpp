#include "kernels/runs.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace taeda::plain::runs {
namespace {

// Branch-free: every element is written, and overwritten by the next unless it starts a run.
template <class T>
[[gnu::optimize("O3"), gnu::noinline]] int64_t first_of_runs(const T* v, int64_t n, T* first) {
  int64_t count = 1;
  first[0] = v[0];
  for (int64_t i = 1; i < n; ++i) {
    first[count] = v[i];
    count += static_cast<int64_t>(v[i] != v[i - 1]);
  }
  return count;
}
int64_t take_first(DType dtype, const void* x, int64_t n, void* first) {
  return visit_real(dtype, "unique", [&]<class T>(Tag<T>) {
    return first_of_runs(static_cast<const T*>(x), n, static_cast<T*>(first));
  });
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] int64_t count_runs(const T* v, int64_t n) {
  int64_t count = n > 0 ? 1 : 0;
  for (int64_t i = 1; i < n; ++i) count += static_cast<int64_t>(v[i] != v[i - 1]);
  return count;
}
int64_t count(DType dtype, const void* x, int64_t n) {
  return visit_real(dtype, "unique",
                    [&]<class T>(Tag<T>) { return count_runs(static_cast<const T*>(x), n); });
}

// Converts start offsets of runs to their lengths, in place.
[[gnu::optimize("O3"), gnu::noinline]] void to_lengths(int64_t* begin, int64_t count, int64_t end) {
  for (int64_t i = 0; i + 1 < count; ++i) begin[i] = begin[i + 1] - begin[i];
  begin[count - 1] = end - begin[count - 1];
}
void split(DType dtype, const void* x, int64_t n, int64_t runs, const int64_t* order, void* first,
           int64_t* lengths, int64_t* run_of) {
  visit_real(dtype, "unique", [&]<class T>(Tag<T>) {
    const T* v = static_cast<const T*>(x);
    T* different = static_cast<T*>(first);
    // Branch-free, from the end: the first element of each run is the last to write its value and
    // start.
    int64_t k = runs - 1;
    for (int64_t i = n - 1; i > 0; --i) {
      const auto before = static_cast<int64_t>(v[i] != v[i - 1]);
      different[k] = v[i];
      lengths[k] = i;
      if (run_of) run_of[order ? order[i] : i] = k;
      k -= before;
    }
    different[0] = v[0];
    lengths[0] = 0;
    if (run_of) run_of[order ? order[0] : 0] = 0;
  });
  to_lengths(lengths, runs, n);
}

// Sort order: NaN comes after all numbers; it equals nothing, not even itself.
template <class T> bool before(T a, T b) {
  if constexpr (std::is_same_v<T, cfloat> || std::is_same_v<T, cdouble>) {
    if (a.real() != b.real()) return before(a.real(), b.real());
    return before(a.imag(), b.imag());
  } else {
    return a < b || (b != b && a == a);
  }
}
int64_t of_rows(DType dtype, const void* x, int64_t n, int64_t m, bool sort, int64_t* first,
                int64_t* lengths, int64_t* run_of) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  int64_t count = 0;
  visit_all(dtype, [&]<class T>(Tag<T>) {
    const auto row = [=](int64_t i) { return static_cast<const T*>(x) + i * m; };
    if (sort) {
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(row(a), row(a + 1), row(b), row(b + 1), before<T>);
      });
    }
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || !std::equal(row(order[i - 1]), row(order[i - 1] + 1), row(order[i]))) {
        first[count] = order[i];
        lengths[count++] = 0;
      }
      ++lengths[count - 1];
      run_of[order[i]] = count - 1;
    }
  });
  return count;
}

template <class T>
void find_modes(const T* sorted, const int64_t* order, T* values, int64_t* indices, int64_t rows,
                int64_t n) {
  for (int64_t l = 0; l < rows; ++l, sorted += n, order += n) {
    const int64_t best = last_of_mode(sorted, n);
    values[l] = sorted[best];
    indices[l] = order[best];
  }
}
void modes(DType dtype, const void* sorted, const int64_t* order, void* values, int64_t* indices,
           int64_t rows, int64_t n) {
  visit_real(dtype, "mode", [&]<class T>(Tag<T>) {
    find_modes(static_cast<const T*>(sorted), order, static_cast<T*>(values), indices, rows, n);
  });
}

}  // namespace
}  // namespace taeda::plain::runs

using namespace taeda::plain;
const taeda::RunKernels taeda::RunKernels::cpu = {runs::take_first, runs::count, runs::split,
                                                  runs::of_rows, runs::modes};
