// The sum of exp(x - most) while numbers come in, most being the largest so far (Milakov and
// Gimelshein 2018).
#pragma once

#include "kernels/cuda/common/group.h"
#include "kernels/functors/scalar.h"

namespace taeda::cuda {

template <class T> struct SumOfExp {
  T most, sum;  // trivial, for shared memory: begin with start()

  static constexpr T kLeast = static_cast<T>(-portable::kInf);

  __device__ static SumOfExp start() { return {kLeast, T(0)}; }
  __device__ void add(T x) { *this = merge(*this, {x, T(1)}); }
  // Of absent ones kLeast.
  template <int N> __device__ __forceinline__ void add(const T (&x)[N]) {
    T top = most, own = 0;
#pragma unroll
    for (const T v : x) top = v > top ? v : top;
    const T from = top == kLeast ? T(0) : top;
#pragma unroll
    for (const T v : x) own += ::exp(v - from);
    sum = sum * ::exp(most - from) + own;
    most = top;
  }
  __device__ static SumOfExp merge(SumOfExp a, SumOfExp b) {
    if (a.sum == T(0)) return b;
    if (b.sum == T(0)) return a;
    if (a.most == b.most) return {a.most, a.sum + b.sum};
    const T most = a.most < b.most ? b.most : a.most;
    return {most, a.sum * ::exp(a.most - most) + b.sum * ::exp(b.most - most)};
  }
};

}  // namespace taeda::cuda
