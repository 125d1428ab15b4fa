#pragma once

#include "kernels/cuda/random/philox.h"

namespace taeda::cuda {

// What kernels/deviates.h draws from: a thread's stream, one number at a time.
struct Doubles {
  Philox& philox;
  double left = 0, left_normal = 0;
  bool has_left = false, has_left_normal = false;

  __device__ double uniform() { return one<Uniform<double>>(has_left, left); }
  __device__ double normal() { return one<Normal<double>>(has_left_normal, left_normal); }

 private:
  // A round gives two numbers, the second of which is kept.
  template <class Draw> __device__ double one(bool& kept, double& second) {
    kept = !kept;
    if (!kept) return second;
    const Draw drawn(philox.next());
    second = drawn.v[1];
    return drawn.v[0];
  }
};

}  // namespace taeda::cuda
