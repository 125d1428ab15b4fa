// The sum of exp(x - most) while numbers come in, most being the largest so far (Milakov and
// Gimelshein 2018).
#pragma once

#include "kernels/cuda/common/group.h"
#include "kernels/functors/scalar.h"

namespace taeda::cuda {

template <class T> struct SumOfExp {
  T most, sum;  // trivial, for shared memory: begin with start()

  __device__ static SumOfExp start() { return {static_cast<T>(-portable::kInf), T(0)}; }
  __device__ void add(T x) { *this = merge(*this, {x, T(1)}); }
  __device__ static SumOfExp merge(SumOfExp a, SumOfExp b) {
    if (a.sum == T(0)) return b;
    if (b.sum == T(0)) return a;
    if (a.most == b.most) return {a.most, a.sum + b.sum};
    const T most = a.most < b.most ? b.most : a.most;
    return {most, a.sum * portable::exp(a.most - most) + b.sum * portable::exp(b.most - most)};
  }
};

}  // namespace taeda::cuda
