#include "vec_loops.h"

#include "kernels/cpu/simd/half.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// f(first) for each whole vector of T, and tail(first, count) for what is left.
template <class T, class F, class Tail> FN void walk(int64_t n, const F& f, const Tail& tail) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(i);
  if (i < n) tail(i, n - i);
}

template <class T> T sum(const T* x, int64_t n) {
  Vec<T> total{};
  walk<T>(
      n, [&](int64_t i) { total += load(x + i); },
      [&](int64_t i, int64_t count) { total += FirstLanes<T>(count).load(x + i); });
  return reduce_add(total);
}

template <class T> T largest(const T* x, int64_t n) {
  Vec<T> found = broadcast_to<T>(x[0]);
  walk<T>(
      n, [&](int64_t i) { found = max(found, load(x + i)); },
      [&](int64_t i, int64_t count) {
        for (int64_t j = i; j < i + count; ++j) found = max(found, broadcast_to<T>(x[j]));
      });
  return reduce(found, [](auto a, auto b) { return a > b ? a : b; });
}

template <class T> void copy(const T* x, int64_t n, T* y) {
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const int64_t count = n - i < kLanes<T> ? n - i : kLanes<T>;
    const FirstLanes<T> first(count);
    first.store(y + i, first.load(x + i));
  }
}

// Vectors of as many elements as both types' registers hold; the tail by itself.
template <class To, class From> void converted(const From* x, int64_t n, To* y) {
  constexpr int64_t lanes = kLanes<From> < kLanes<To> ? kLanes<From> : kLanes<To>;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(y + i, convert<To>(load<lanes>(x + i)));
  for (; i < n; ++i) y[i] = static_cast<To>(x[i]);
}

template <class T>
constexpr LaneLoops<T> lane_loops = {
    sum<T>, largest<T>, copy<T>, converted<float, T>, converted<double, T>, converted<T, float>};

template <class H, class C> void widened(const uint16_t* x, int64_t n, C* y) {
  const H* h = reinterpret_cast<const H*>(x);
  walk<C>(
      n, [&](int64_t i) { store(y + i, load_as<C>(h + i)); },
      [&](int64_t i, int64_t count) {
        for (int64_t j = i; j < i + count; ++j) y[j] = to<C>(h[j]);
      });
}

template <class H> void narrow_each(const float* x, int64_t n, uint16_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = narrow<H>(x[i]).bits;
}

template <class H> void narrowed(const float* x, int64_t n, uint16_t* y) {
  walk<float>(
      n, [&](int64_t i) { store_as(reinterpret_cast<H*>(y) + i, load(x + i)); },
      [&](int64_t i, int64_t count) { narrow_each<H>(x + i, count, y + i); });
}

template <class H>
constexpr HalfLoops half_loops = {widened<H, float>, widened<H, double>, narrowed<H>,
                                  narrow_each<H>};

}  // namespace

extern const VecLoops vec_loops;
const VecLoops vec_loops = {lane_loops<float>,   lane_loops<double>,  lane_loops<int32_t>,
                            lane_loops<int64_t>, lane_loops<int16_t>, lane_loops<int8_t>,
                            half_loops<F16>,     half_loops<BF16>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
