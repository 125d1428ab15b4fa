// From accumulators to results: the CPU's table of reductions.
#include <atomic>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/reduce/reduce.h"

namespace taeda::cpu {
namespace {

// f(i, acc) for the accumulator of every result.
template <class A, class F> void for_each_result(ReduceOp op, const ReduceInput& x, F&& f) {
  auto call = [](void* context, const void* acc, int64_t count, int64_t first, int64_t stride) {
    auto& g = *static_cast<std::remove_reference_t<F>*>(context);
    for (int64_t i = 0; i < count; ++i) g(first + i * stride, static_cast<const A*>(acc)[i]);
  };
  reduce(op, x, ReduceFinish{call, &f});
}

template <class T, class A> T narrowed(A a) {
  if constexpr (std::is_same_v<T, bool>) return a != 0;
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(a));
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(a);
  else return T(static_cast<std::conditional_t<std::is_same_v<T, A>, T, double>>(a));
}

double root_of(double v, double root) { return root == 2 ? std::sqrt(v) : std::pow(v, 1 / root); }

template <class A> void sum(ReduceOp op, const ReduceInput& x, const ReduceResults& y) {
  visit_all(y.dtype, [&]<class T>(Tag<T>) {
    T* out = static_cast<T*>(y.values);
    if (y.divisor == 1 && y.root == 1)
      return for_each_result<A>(op, x, [=](int64_t i, A a) { out[i] = narrowed<T>(a); });
    for_each_result<A>(op, x, [=](int64_t i, A a) {
      const double v = static_cast<double>(a) / y.divisor;
      out[i] = narrowed<T>(y.root == 1 ? v : root_of(v, y.root));
    });
  });
}

void moments(const ReduceInput& x, const ReduceResults& y) {
  visit_real(y.dtype, "var", [&]<class T>(Tag<T>) {
    if constexpr (std::is_integral_v<T>) return;
    T *spread = static_cast<T*>(y.values), *mean = static_cast<T*>(y.second);
    for_each_result<Moments>(ReduceOp::Moments, x, [=](int64_t i, const Moments& m) {
      const double v = m.m2 / y.divisor;
      spread[i] = narrowed<T>(y.root == 1 ? v : root_of(v, y.root));
      if (mean)
        mean[i] = narrowed<T>(m.count > 0 ? m.mean : std::numeric_limits<double>::quiet_NaN());
    });
  });
}

void extremes(ReduceOp op, const ReduceInput& x, const ReduceResults& y) {
  visit_real(x.dtype, "max", [&]<class E>(Tag<E>) {
    using T = std::conditional_t<std::is_same_v<E, bool>, uint8_t, E>;
    using A = std::conditional_t<std::is_same_v<E, Half> || std::is_same_v<E, BFloat16>, float, T>;
    T* out = static_cast<T*>(y.values);
    if (op != ReduceOp::ArgMax && op != ReduceOp::ArgMin)
      return for_each_result<A>(op, x, [=](int64_t i, A a) { out[i] = T(a); });
    auto* index = static_cast<int64_t*>(y.second);
    for_each_result<ValueIndex<A>>(op, x, [=](int64_t i, const ValueIndex<A>& a) {
      index[i] = a.index;
      if (out) out[i] = T(a.value);
    });
  });
}

// ---- sums without a plan ----

// x (before, n, columns), summed over n; the rows of n lie `stride` apart.
struct RowSumShape {
  int64_t before = 1, n = 1, columns = 1, stride = 1;
};

template <class T> void sum_rows(const RowSumShape& s, const T* x, T* y) {
  constexpr int64_t grain = 32768;
  const auto loop = typed<T>(TAEDA_PICK(row_sums));
  const int64_t part = std::min(s.columns, grain), parts = (s.columns + part - 1) / part;
  parallel_each(s.before * parts, grain / (s.n * part), [&](int64_t t) {
    const int64_t row = t / parts, first = t % parts * part;
    const int64_t count = std::min(part, s.columns - first);
    loop(x + row * s.n * s.stride + first, s.n, s.stride, count, y + row * s.columns + first);
  });
}

// Small tensors, and sums of a few long rows, as in gradients of broadcast operands: rows are added
// one after the other. False where this does not apply.
bool sum_few_rows(const ReduceInput& x, const ReduceResults& y) {
  if (x.dtype != y.dtype || y.divisor != 1 || y.root != 1) return false;
  RowSumShape s;
  int64_t step = 1;
  for (size_t d = x.sizes.size(); d-- > 0;) {
    const int64_t size = x.sizes[d];
    const bool reduced = x.reduced >> d & 1;
    if (size == 1) continue;
    if (x.strides[d] != step) {  // only a first dimension that is reduced alone may have any stride
      if (d > 0 || x.reduced != 1) return false;
      s.stride = x.strides[d];
    } else if (reduced && s.n == 1) {
      s.stride = step;
    }
    step *= size;
    if (!reduced) (s.n == 1 ? s.columns : s.before) *= size;
    else if (s.before > 1) return false;
    else s.n *= size;
  }
  const bool few = s.n <= 8 && s.columns >= 32,
             small = s.n <= 64 && s.before * s.n * s.columns <= 4096;
  if (s.n < 2 || s.columns < 2 || (!few && !small)) return false;
  if (x.dtype == DType::Float32)
    sum_rows(s, static_cast<const float*>(x.data), static_cast<float*>(y.values));
  else if (x.dtype == DType::Float64)
    sum_rows(s, static_cast<const double*>(x.data), static_cast<double*>(y.values));
  else return false;
  return true;
}

void reduce_to(ReduceOp op, const ReduceInput& x, const ReduceResults& y) {
  if (op == ReduceOp::Sum && sum_few_rows(x, y)) return;
  if (op >= ReduceOp::Sum || op == ReduceOp::Prod)
    return is_floating(x.dtype) ? sum<double>(op, x, y) : sum<int64_t>(op, x, y);
  if (op == ReduceOp::Moments) return moments(x, y);
  if (op != ReduceOp::Any && op != ReduceOp::All) return extremes(op, x, y);
  auto* out = static_cast<uint8_t*>(y.values);
  for_each_result<uint8_t>(op, x, [=](int64_t i, uint8_t a) { out[i] = a; });
}

// ---- without accumulators ----

void complex_prod(DType dtype, int64_t rows, int64_t n, const void* x, void* y) {
  visit_inexact(dtype, "prod", [&]<class T>(Tag<T>) {
    const T* from = static_cast<const T*>(x);
    for (int64_t i = 0; i < rows; ++i, from += n) {
      T v = 1;
      for (int64_t j = 0; j < n; ++j) v *= from[j];
      static_cast<T*>(y)[i] = v;
    }
  });
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] bool equal_block(const T* a, const T* b, int64_t n) {
  int differ = 0;
  for (int64_t i = 0; i < n; ++i) differ |= a[i] != b[i];
  return !differ;
}

bool all_equal(DType dtype, int64_t n, const void* a, const void* b) {
  std::atomic<bool> equal = true;
  visit_real(dtype, "equal", [&]<class T>(Tag<T>) {
    constexpr int64_t block = 2048;
    const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    parallel_for(n, int64_t{1} << 19, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; equal.load(std::memory_order_relaxed) && i < end; i += block) {
        if (!equal_block(x + i, y + i, std::min(block, end - i)))
          equal.store(false, std::memory_order_relaxed);
      }
    });
  });
  return equal;
}

}  // namespace
}  // namespace taeda::cpu

const taeda::ReduceKernels taeda::ReduceKernels::cpu = {
    cpu::reduce_to, cpu::complex_prod, cpu::all_equal, cpu::scan, cpu::scan_extreme};
