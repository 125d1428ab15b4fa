#include "kernels/margin.h"

#include <algorithm>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"

namespace taeda::cpu {
namespace {

template <class T> T above_zero(T z) { return z > 0 ? z : T(0); }

// The sum of max(0, start + x[i]), or of its square, in as many parts as fill a few registers.
template <bool Squared, class T>
[[gnu::optimize("O3"), gnu::noinline]] T sum_above(const T* x, int64_t n, T start) {
  constexpr int64_t parts = 64 / static_cast<int64_t>(sizeof(T));
  const auto term = [start](T v) {
    const T z = above_zero(start + v);
    return Squared ? z * z : z;
  };
  T part[parts] = {}, sum = 0;
  int64_t i = 0;
  for (; i + parts <= n; i += parts) {
    for (int64_t j = 0; j < parts; ++j) part[j] += term(x[i + j]);
  }
  for (; i < n; ++i) sum += term(x[i]);
  for (T p : part) sum += p;
  return sum;
}

// derivative[i] = the one of those terms, times `factor`; returns their sum.
template <bool Squared, class T>
[[gnu::optimize("O3"), gnu::noinline]] T derivatives(const T* __restrict x, int64_t n, T start,
                                                     T factor, T* __restrict derivative) {
  for (int64_t i = 0; i < n; ++i) {
    const T z = above_zero(start + x[i]);
    derivative[i] = Squared ? 2 * z * factor : (z > 0 ? factor : T(0));
  }
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += derivative[i];
  return sum;
}

// Counts at each of x, in `counts`, that start + x[i] is above 0; returns how often.
template <class T>
[[gnu::optimize("O3"), gnu::noinline]] int64_t count_above(const T* __restrict x, int64_t n,
                                                           T start, int32_t* __restrict counts) {
  int64_t all = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t more = start + x[i] > 0;
    counts[i] += more;
    all += more;
  }
  return all;
}

int64_t row_grain(int64_t work) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)); }

// The scores of a row, minus infinity for the classes that its target names: those have no terms.
// Returns how many names there are.
template <class T>
int64_t wrong_scores(int64_t classes, const T* x, const int64_t* target, T* scores) {
  std::copy_n(x, classes, scores);
  int64_t named = 0;
  for (; named < classes && target[named] >= 0; ++named)
    scores[target[named]] = -std::numeric_limits<T>::infinity();
  return named;
}

// The losses of rows, loss_of(i), each of which takes some `work`; or their mean or sum.
template <class T, class F>
void reduced(const MarginShape& s, int64_t work, Reduction reduction, T* loss, F&& loss_of) {
  const Scratch<double> memory(s.rows);
  double* each = memory.data();
  parallel_each(s.rows, row_grain(work), [&](int64_t i) {
    each[i] = loss_of(i) / static_cast<double>(s.classes);
    if (reduction == kUnreduced) loss[i] = static_cast<T>(each[i]);
  });
  if (reduction == kUnreduced) return;
  double sum = 0;
  for (int64_t i = 0; i < s.rows; ++i) sum += each[i];
  *loss = static_cast<T>(reduction == kMean ? sum / static_cast<double>(s.rows) : sum);
}

template <class T>
void one_right(const MarginShape& s, Reduction reduction, const T* x, const OneRightClass<T>& right,
               T* loss) {
  const auto sum = right.squared ? sum_above<true, T> : sum_above<false, T>;
  reduced(s, s.classes, reduction, loss, [&](int64_t i) {
    const T* row = x + i * s.classes;
    const int64_t t = right.target[i];
    const T start = right.margin - row[t];
    const double total = static_cast<double>(sum(row, t, start)) +
                         static_cast<double>(sum(row + t + 1, s.classes - t - 1, start));
    return right.weight ? total * static_cast<double>(right.weight[t]) : total;
  });
}

template <class T>
void one_right_backward(const MarginShape& s, const T* g, int64_t g_step, double scale, const T* x,
                        const OneRightClass<T>& right, T* gx) {
  const auto run = right.squared ? derivatives<true, T> : derivatives<false, T>;
  parallel_each(s.rows, row_grain(s.classes), [&](int64_t i) {
    const T* row = x + i * s.classes;
    T* to = gx + i * s.classes;
    const int64_t t = right.target[i];
    const T start = right.margin - row[t];
    const double weight = right.weight ? static_cast<double>(right.weight[t]) : 1.0;
    const T factor = static_cast<T>(scale * g[i * g_step] * weight / s.classes);
    const T before = run(row, t, start, factor, to);
    const T after = run(row + t + 1, s.classes - t - 1, start, factor, to + t + 1);
    to[t] = -(before + after);
  });
}

template <class T>
void many_right(const MarginShape& s, Reduction reduction, const T* x, const int64_t* target,
                T* loss) {
  reduced(s, s.classes * s.classes, reduction, loss, [&](int64_t i) {
    const Scratch<T> scores(s.classes);
    const T* row = x + i * s.classes;
    const int64_t* names = target + i * s.classes;
    const int64_t named = wrong_scores(s.classes, row, names, scores.data());
    double total = 0;
    for (int64_t k = 0; k < named; ++k)
      total += sum_above<false>(scores.data(), s.classes, T(1) - row[names[k]]);
    return total;
  });
}

template <class T>
void many_right_backward(const MarginShape& s, const T* g, int64_t g_step, double scale, const T* x,
                         const int64_t* target, T* gx) {
  parallel_for(s.rows, row_grain(s.classes * s.classes), [&](int64_t begin, int64_t end) {
    const Scratch<T> scores(s.classes);
    const Scratch<int32_t> counts(s.classes);
    for (int64_t i = begin; i < end; ++i) {
      const T* row = x + i * s.classes;
      const int64_t* names = target + i * s.classes;
      T* to = gx + i * s.classes;
      const T factor = static_cast<T>(scale * g[i * g_step] / s.classes);
      const int64_t named = wrong_scores(s.classes, row, names, scores.data());
      std::fill_n(counts.data(), s.classes, 0);
      std::fill_n(to, s.classes, T(0));
      for (int64_t k = 0; k < named; ++k) {
        const int64_t above =
            count_above(scores.data(), s.classes, T(1) - row[names[k]], counts.data());
        to[names[k]] -= factor * static_cast<T>(above);
      }
      for (int64_t c = 0; c < s.classes; ++c) to[c] += factor * static_cast<T>(counts.data()[c]);
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(MarginKernels, cpu::one_right<T>, cpu::one_right_backward<T>,
                    cpu::many_right<T>, cpu::many_right_backward<T>)
