#include "kernels/cpu/nn/simd/resample.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T, int K>
FN void sum_rows(const int32_t* index, const T* weight, int64_t n, const T* x, T* y) {
  const T* from[K];
  T w[K];
  for (int t = 0; t < K; ++t) {
    from[t] = x + index[t] * n;
    w[t] = weight[t];
  }
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) {
    T sum = from[0][c] * w[0];
    for (int t = 1; t < K; ++t) sum += from[t][c] * w[t];
    y[c] = sum;
  }
}

template <class T>
FN void sum_many_rows(int64_t many, const int32_t* index, const T* weight, int64_t n, const T* x,
                      T* y) {
  for (int64_t c = 0; c < n; ++c) y[c] = 0;
  for (int64_t t = 0; t < many; ++t) {
    const T* from = x + index[t] * n;
    const T w = weight[t];
#pragma GCC ivdep
    for (int64_t c = 0; c < n; ++c) y[c] += from[c] * w;
  }
}

template <class T>
void rows(const TapTable<T>& taps, int64_t begin, int64_t end, int64_t n, const T* x, T* y) {
  int64_t i = begin % taps.out;
  x += begin / taps.out * taps.in * n;
  y += begin * n;
  for (int64_t r = begin; r < end; ++r, y += n) {
    const int64_t at = taps.first[i], many = taps.first[i + 1] - at;
    const int32_t* index = taps.index + at;
    const T* weight = taps.weight + at;
    switch (many) {
      case 1: sum_rows<T, 1>(index, weight, n, x, y); break;
      case 2: sum_rows<T, 2>(index, weight, n, x, y); break;
      case 3: sum_rows<T, 3>(index, weight, n, x, y); break;
      case 4: sum_rows<T, 4>(index, weight, n, x, y); break;
      default: sum_many_rows(many, index, weight, n, x, y);
    }
    if (++i == taps.out) {
      i = 0;
      x += taps.in * n;
    }
  }
}

template <class T, int K> FN void sum_line(const TapTable<T>& taps, const T* x, T* y) {
  const int64_t out = taps.out;
  const int32_t* index = taps.each_index;
  const T* weight = taps.each_weight;
  int64_t i = 0;
  for (; i + kLanes<T> <= out; i += kLanes<T>) {
    Vec<T> sum{};
    for (int t = 0; t < K; ++t) sum += gather(x, index + t * out + i) * load(weight + t * out + i);
    store(y + i, sum);
  }
  for (; i < out; ++i) {
    T sum = 0;
    for (int t = 0; t < K; ++t) sum += x[index[t * out + i]] * weight[t * out + i];
    y[i] = sum;
  }
}

template <class T>
void lines(const TapTable<T>& taps, int64_t begin, int64_t end, const T* x, T* y) {
  x += begin * taps.in;
  y += begin * taps.out;
  for (int64_t l = begin; l < end; ++l, x += taps.in, y += taps.out) {
    switch (taps.each) {
      case 1: sum_line<T, 1>(taps, x, y); break;
      case 2: sum_line<T, 2>(taps, x, y); break;
      case 4: sum_line<T, 4>(taps, x, y); break;
      default:
        for (int64_t i = 0; i < taps.out; ++i) {
          T sum = 0;
          for (int64_t t = taps.first[i]; t < taps.first[i + 1]; ++t)
            sum += x[taps.index[t]] * taps.weight[t];
          y[i] = sum;
        }
    }
  }
}

template <class T>
void products(const TapTable<T>& taps, int64_t begin, int64_t end, int64_t n, const T* x,
              const T* g, T* sum) {
  const FirstLanes<T> tail(n % kLanes<T>);
  for (int64_t i = begin; i < end; ++i) {
    const T* a = g + i * n;
    for (int64_t t = taps.first[i]; t < taps.first[i + 1]; ++t) {
      const T* b = x + taps.index[t] * n;
      Vec<T> total{};
      int64_t c = 0;
      for (; c + kLanes<T> <= n; c += kLanes<T>) total += load(a + c) * load(b + c);
      if (c < n) total += tail.load(a + c) * tail.load(b + c);
      sum[t] = reduce_add(total);
    }
  }
}

}  // namespace

extern const ForFloats<ResampleLoops> resample_kernels{
    {rows<float>, lines<float>, products<float>}, {rows<double>, lines<double>, products<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
